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

// Modify reads the object, gives f a copy of its own, and writes what f changed.
// When f changed nothing, nothing is written and the object read is the answer.
//
// The change is written as a merge patch, so that fields that T does not know
// stay as they are, under the version that f saw. Somebody else's write in
// between, to whatever field, means another round: f is called again with the
// new state, and neither write is lost or ends in an error. So f sees exactly the
// state that its change is applied to; it may be called any number of times and
// should do nothing but compute. Rounds end when ctx does; the error is then both
// the context's and ErrConflict.
//
// What a merge patch can't say (a null that is to be set), and what goes to a
// store without patches, is written as a whole object by Update, under the same
// version.
//
// f's error ends it and is returned as it is. ErrNotFound: there is no object.
// ErrOutcomeUnknown: f's change may or may not be there; f is not called again,
// since for a change like "one more" that would be one too many.
//
// The copy is made by encoding/json: what that leaves out of T, f does not see.
// In a store without versions, a write between read and write may be lost.
func Modify[T any](ctx context.Context, b Backend[T], key string, f func(T) (T, error)) (object.Item[T], error) {
	return change(ctx, b, key, f, false)
}

// Ensure is Modify for an object that need not be there: then f gets the zero
// value of T, or a pointer to one when T is a pointer, and what it returns is
// created, changed or not. When somebody else creates it first, f is called again
// with what is there.
func Ensure[T any](ctx context.Context, b Backend[T], key string, f func(T) (T, error)) (object.Item[T], error) {
	return change(ctx, b, key, f, true)
}

func change[T any](ctx context.Context, b Backend[T], key string, f func(T) (T, error), create bool) (object.Item[T], error) {
	var none object.Item[T]
	var r rounds
	for {
		cur, err := b.Get(ctx, key)
		found := err == nil
		if !found && !(create && errors.Is(err, ErrNotFound)) {
			return none, err
		}
		// What f answers is told apart from what the store answers: an ErrConflict
		// or ErrNotFound that f brings from elsewhere is no reason to go on.
		var item object.Item[T]
		if found {
			e, same, ferr := edited(cur, f)
			if ferr != nil {
				return none, ferr
			}
			if same {
				return cur, nil
			}
			item, err = e.write(ctx, b)
		} else {
			obj, ferr := f(fresh[T]())
			if ferr != nil {
				return none, ferr
			}
			item, err = b.Create(ctx, key, obj)
		}
		switch {
		case err == nil:
			return item, nil
		case found && errors.Is(err, ErrConflict):
		case found && create && errors.Is(err, ErrNotFound):
		case !found && errors.Is(err, ErrExists):
		default:
			return none, err
		}
		if err := r.again(ctx, err); err != nil {
			return none, &Error{Op: "patch", Key: key, Err: err}
		}
	}
}

// edit is what f made of an object.
type edit[T any] struct {
	cur object.Item[T] // what f was given a copy of
	obj T              // what f returned
	p   patch.Patch    // the difference; nil when no merge patch can say it
}

// edited runs f on a copy. same: f changed nothing. The error is f's, or that T
// can't be copied.
func edited[T any](cur object.Item[T], f func(T) (T, error)) (e edit[T], same bool, err error) {
	stored, err := json.Marshal(cur.Object)
	if err != nil {
		return e, false, &Error{Op: "patch", Key: cur.Key, Err: err}
	}
	mine, err := decoded[T](cur.Key, stored)
	if err != nil {
		return e, false, err
	}
	mine, err = f(mine)
	if err != nil {
		return e, false, err
	}
	after, err := json.Marshal(mine)
	if err != nil {
		return e, false, &Error{Op: "patch", Key: cur.Key, Err: err}
	}
	if bytes.Equal(stored, after) {
		return e, true, nil
	}
	// A T that does not survive JSON unchanged (a large number in an any) is no
	// change of f's: compare with what f was given, not with what is stored.
	given, err := decoded[T](cur.Key, stored)
	if err != nil {
		return e, false, err
	}
	before, err := json.Marshal(given)
	if err != nil {
		return e, false, &Error{Op: "patch", Key: cur.Key, Err: err}
	}
	if bytes.Equal(before, after) {
		return e, true, nil
	}
	p, err := patch.MergeBetween(before, after)
	if err != nil && !errors.Is(err, patch.ErrNotRepresentable) {
		return e, false, &Error{Op: "patch", Key: cur.Key, Err: err}
	}
	return edit[T]{cur: cur, obj: mine, p: p}, false, nil
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

func decoded[T any](key string, doc []byte) (obj T, err error) {
	if err := json.Unmarshal(doc, &obj); err != nil {
		return obj, &Error{Op: "patch", Key: key, Err: err}
	}
	return obj, nil
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
