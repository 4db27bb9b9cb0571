package backend

import (
	"context"
	"errors"

	"github.com/homeostat/homeostat/object"
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
			e, ferr := edited(cur, f)
			if ferr != nil {
				return none, ferr
			}
			if e.same {
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
		case errors.Is(err, ErrConflict):
		case found && errors.Is(err, ErrNotFound): // deleted since
		case !found && errors.Is(err, ErrExists):
		default:
			return none, err
		}
		if err := r.again(ctx, err); err != nil {
			return none, &Error{Op: "patch", Key: key, Err: err}
		}
	}
}
