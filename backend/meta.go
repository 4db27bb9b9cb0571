package backend

import (
	"reflect"
	"time"

	"github.com/homeostat/homeostat/object"
)

// hasMeta says whether every object of T but a nil pointer has a Meta of its own.
// A Meta embedded through a pointer can be nil, or shared, and does not count.
func hasMeta[T any]() (has bool) {
	// A Meta promoted through a nil pointer panics as it is reached for.
	defer func() {
		if recover() != nil {
			has = false
		}
	}()
	obj := fresh[T]()
	return object.MetaOf(&obj) != nil
}

// notNil says that obj has a Meta. It panics for types that reach theirs through a
// pointer: hasMeta is asked first.
func notNil[T any](obj T) bool { return object.MetaOf(&obj) != nil }

// metaMarks finds the marks in an object.Meta.
func metaMarks[T any]() Marks[T] {
	return Marks[T]{
		Finalizers:   func(obj T) []string { return object.MetaOf(&obj).Finalizers },
		Deleting:     func(obj T) time.Time { return object.MetaOf(&obj).Deleting },
		WithDeleting: withDeleting[T],
	}
}

// withDeleting is obj with this Deleting. Behind a pointer the object belongs to
// its giver, or is shared by the store's readers: then a copy of it is changed.
func withDeleting[T any](obj T, t time.Time) T {
	if reflect.TypeFor[T]().Kind() == reflect.Pointer {
		// Only one time of it changes, so what lies behind it may stay shared.
		c := fresh[T]()
		reflect.ValueOf(c).Elem().Set(reflect.ValueOf(obj).Elem())
		obj = c
	}
	object.MetaOf(&obj).Deleting = t
	return obj
}
