package indexer

import (
	"fmt"
	"hash/maphash"
	"iter"
	"runtime"
)

// Index is a typed secondary index: a name and a function of the object. It holds
// no objects, is declared once (a package variable is fine), registered with any
// number of caches by [New] or [Indexer.AddIndex], and looked up through its
// methods. They may be called from any goroutine.
//
// The function must depend on the object alone, must not change it, and must not
// write to a cache that has the index. It is called once for each object put, on
// the writer's goroutine, and for all objects when the index is added later. Two
// values are the same if they are ==; a value that is not == to itself (NaN) is
// found by no look-up and is left out. A value that can't be compared (a slice
// within an interface) counts as a panic of the function; a look-up of one panics.
type Index[T any, K comparable] struct {
	name, where string
	one         func(T) K         // By
	each        func(T) []K       // ByEach
	maybe       func(T) (K, bool) // Unique
}

// By declares an index with one value for each object.
func By[T any, K comparable](name string, key func(T) K) *Index[T, K] {
	return &Index[T, K]{name: name, where: caller(), one: key}
}

// ByEach declares an index with any number of values for each object. A value
// named twice counts once. The slice stays the function's: it is read before the
// write returns, and neither changed nor kept.
func ByEach[T any, K comparable](name string, keys func(T) []K) *Index[T, K] {
	return &Index[T, K]{name: name, where: caller(), each: keys}
}

// Unique declares an index with at most one object for each value; an object for
// which key answers false has none. A batch that ends with two objects under one
// value is refused with [*TakenError]; within it values may move in any order.
func Unique[T any, K comparable](name string, key func(T) (K, bool)) *Index[T, K] {
	return &Index[T, K]{name: name, where: caller(), maybe: key}
}

// caller is where an index is declared, for errors about two of one name.
func caller() string {
	_, file, line, _ := runtime.Caller(2)
	return fmt.Sprintf("%s:%d", file, line)
}

// Indexed is any *Index over T, whatever its value type. No other type implements it.
type Indexed[T any] interface {
	// Name is the name that the index was declared with.
	Name() string

	check() error
	declared() string
	column(seed maphash.Seed) column[T]
}

// Name is the name that x was declared with.
func (x *Index[T, K]) Name() string { return x.name }

func (x *Index[T, K]) declared() string { return x.where }

func (x *Index[T, K]) check() error {
	switch {
	case x == nil:
		return fmt.Errorf("%w: nil", ErrInvalidIndex)
	case x.name == "":
		return fmt.Errorf("%w: no name (declared at %s)", ErrInvalidIndex, x.where)
	case x.one == nil && x.each == nil && x.maybe == nil:
		return fmt.Errorf("%w: %q has no function (declared at %s)", ErrInvalidIndex, x.name, x.where)
	}
	return nil
}

// Lookup yields the keys and objects under value, in any order, as of the call.
// It panics if v lacks the index: it was not registered, or after the snapshot was
// taken.
func (x *Index[T, K]) Lookup(v View[T], value K) iter.Seq2[string, T] {
	s, at := x.seek(v, value)
	return func(yield func(string, T) bool) { s.visit(at, yield) }
}

// seek gives the state that v shows, and where in it the objects under value are.
func (x *Index[T, K]) seek(v View[T], value K) (*Snapshot[T], *slots) {
	s := v.state()
	if found := x.in(s).find(value); found != nil {
		return s, &found.slots
	}
	return s, &slots{}
}

func (s *Snapshot[T]) visit(at *slots, yield func(string, T) bool) {
	at.walk(func(slot uint32, _ struct{}) bool {
		item := s.items.get(slot)
		return yield(item.Key, item.Object)
	})
}

// One is an object under value, any one if there are several; false when there is
// none. It panics as Lookup does.
func (x *Index[T, K]) One(v View[T], value K) (key string, obj T, ok bool) {
	s, at := x.seek(v, value)
	if at.n == 0 {
		return "", obj, false
	}
	item := s.items.get(at.first())
	return item.Key, item.Object, true
}

// Count is the number of objects under value. It panics as Lookup does.
func (x *Index[T, K]) Count(v View[T], value K) int {
	_, at := x.seek(v, value)
	return at.n
}

// Values yields each value that an object has, once, in any order, with the number
// of its objects, as of the call. It panics as Lookup does.
func (x *Index[T, K]) Values(v View[T]) iter.Seq2[K, int] {
	p := x.in(v.state())
	return func(yield func(K, int) bool) { p.counts(yield) }
}

// Keys is the index's function itself: the values of obj, as the function gives
// them, panics included. For what ByEach declared, the slice is the function's.
func (x *Index[T, K]) Keys(obj T) []K {
	switch {
	case x.one != nil:
		return []K{x.one(obj)}
	case x.each != nil:
		return x.each(obj)
	}
	if value, ok := x.maybe(obj); ok {
		return []K{value}
	}
	return nil
}

// in is what s has of x.
func (x *Index[T, K]) in(s *Snapshot[T]) *postings[T, K] {
	for _, c := range s.columns {
		if p, ok := c.(*postings[T, K]); ok && p.index == x {
			return p
		}
	}
	panic(fmt.Sprintf("indexer: index %q (declared at %s) is not registered with this cache", x.name, x.where))
}
