package backend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
)

// edit is what a function made of an object.
type edit[T any] struct {
	cur  object.Item[T] // what it was given a copy of
	obj  T              // what it returned
	p    patch.Patch    // the difference; nil when no merge patch can say it
	same bool           // there is none
}

// edited runs f on a copy. The error is f's, or that T can't be copied.
func edited[T any](cur object.Item[T], f func(T) (T, error)) (edit[T], error) {
	var e edit[T]
	stored, err := json.Marshal(cur.Object)
	if err != nil {
		return e, &Error{Op: "patch", Key: cur.Key, Err: err}
	}
	var mine, given T
	if err := json.Unmarshal(stored, &mine); err != nil {
		return e, &Error{Op: "patch", Key: cur.Key, Err: err}
	}
	mine, err = f(mine)
	if err != nil {
		return e, err
	}
	after, err := json.Marshal(mine)
	if err != nil {
		return e, &Error{Op: "patch", Key: cur.Key, Err: err}
	}
	if bytes.Equal(stored, after) { // the common case, without a second copy
		return edit[T]{cur: cur, same: true}, nil
	}
	// What f changed is the difference to what f was given, not to what is stored:
	// a T that JSON does not keep as it is (a large number in an any) would be
	// written for ever.
	if err := json.Unmarshal(stored, &given); err != nil {
		return e, &Error{Op: "patch", Key: cur.Key, Err: err}
	}
	p, err := patch.Between(given, mine)
	switch {
	case errors.Is(err, patch.ErrNotRepresentable):
		p = nil
	case err != nil:
		return e, &Error{Op: "patch", Key: cur.Key, Err: err}
	case patch.IsEmpty(p):
		return edit[T]{cur: cur, same: true}, nil
	}
	return edit[T]{cur: cur, obj: mine, p: p}, nil
}

// write writes the edit at the version that it was made for.
func (e edit[T]) write(ctx context.Context, b Backend[T]) (object.Item[T], error) {
	if e.p != nil {
		item, err := b.Patch(ctx, e.cur.Key, e.p, at(e.cur))
		if !errors.Is(err, errors.ErrUnsupported) {
			return item, err
		}
	}
	return b.Update(ctx, object.Item[T]{Key: e.cur.Key, Version: at(e.cur), ID: e.cur.ID, Object: e.obj})
}

// fresh is what an object begins as: a pointer points to a zero value, so that f
// needs no case of its own for nil.
func fresh[T any]() T {
	var zero T
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer {
		return zero
	}
	return reflect.New(t.Elem()).Interface().(T)
}
