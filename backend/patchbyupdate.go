package backend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
)

// PatchByUpdate is the body of Patch for a store that has none of its own: read,
// apply, Update at the version read. It keeps the rules of Patch: under
// object.Any a write in between means another round, never an error, until ctx
// ends; a patch that changes nothing writes nothing.
//
// The object is turned into JSON and back, so that what encoding/json leaves out
// of T is lost. A store without versions is written to under object.Any: there,
// a write between the read and the Update is lost.
func PatchByUpdate[T any](ctx context.Context, b Backend[T], key string, p patch.Patch, v object.Version) (object.Item[T], error) {
	var none object.Item[T]
	if v == "" {
		return none, &Error{Op: "patch", Key: key, Err: ErrNoVersion}
	}
	var r rounds
	for {
		cur, err := b.Get(ctx, key)
		if err != nil {
			return none, as("patch", key, v, err)
		}
		if err := expect("patch", cur, v, ""); err != nil {
			return none, err
		}
		obj, changed, err := Patched(p, cur.Object)
		if err != nil {
			return none, as("patch", key, v, err)
		}
		if !changed {
			return cur, nil
		}
		item, err := b.Update(ctx, object.Item[T]{Key: key, Version: at(cur), ID: cur.ID, Object: obj})
		if err == nil {
			return item, nil
		}
		if v == object.Any && errors.Is(err, ErrConflict) {
			if err = r.again(ctx, err); err == nil {
				continue
			}
		}
		return none, as("patch", key, v, err)
	}
}

// expect checks a precondition, and an ID unless it is empty, against what was
// read. A wrong ID is final under object.Any too: it never comes right.
func expect[T any](op string, cur object.Item[T], v object.Version, id string) error {
	err := ErrConflict
	switch {
	case v != object.Any && v != cur.Version:
	case id != "" && cur.ID != "" && id != cur.ID:
		err = fmt.Errorf("%w: deleted and created again in the meantime", ErrConflict)
	default:
		return nil
	}
	return &Error{Op: op, Key: cur.Key, Want: v, Found: cur.Version, Err: err}
}

// at is the precondition "as I read it". A store without versions can only be
// written to unconditionally.
func at[T any](cur object.Item[T]) object.Version {
	if cur.Version == "" {
		return object.Any
	}
	return cur.Version
}

// Patched is p applied to a copy of obj, and whether that made a difference: what
// rule 8 asks of a store that holds Go values. The copy goes through JSON; obj is
// not changed.
func Patched[T any](p patch.Patch, obj T) (patched T, changed bool, err error) {
	if p != nil && patch.IsEmpty(p) {
		return obj, false, nil
	}
	before, err := json.Marshal(obj)
	if err != nil {
		return obj, false, err
	}
	patched, err = patch.Into(p, obj)
	if err != nil {
		return obj, false, err
	}
	after, err := json.Marshal(patched)
	if err != nil {
		return obj, false, err
	}
	return patched, !bytes.Equal(before, after), nil
}
