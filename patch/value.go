package patch

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// Into gives obj as p changes it. T goes through its JSON form, by encoding/json
// and its rules: what that leaves out (json:"-", unexported fields) is not in the
// answer. obj, a value or a pointer, is not changed, and the answer shares
// nothing with it.
//
// Errors are those of p.Apply, ErrWrongType when T has no JSON form or the
// patched document is none of T, and ErrBadPatch for a nil Patch. The error of
// encoding/json is wrapped. With an error the answer is T's zero value.
func Into[T any](p Patch, obj T) (T, error) {
	var out, none T
	if p == nil {
		return none, fmt.Errorf("%w: there is none", ErrBadPatch)
	}
	doc, err := encode(obj)
	if err != nil {
		return none, err
	}
	if doc, err = p.Apply(doc); err != nil {
		return none, err
	}
	if err := json.Unmarshal(doc, &out); err != nil {
		return none, wrongType[T](err)
	}
	return out, nil
}

// Between makes the merge patch that leads from one value to another: [Into] of
// it and from gives to. It compares the JSON forms, by encoding/json. For equal
// ones it is empty, see [IsEmpty].
//
// A merge patch can't set a member to null, it deletes it instead. To most types
// this is the same: a nil pointer, slice or map reads back as nil from either.
// Between tries it, and where the difference would be lost (a nil in a
// map[string]any) answers ErrNotRepresentable, in an *Error with the path of the
// null. [JSONBetween] has no such gap.
//
// ErrWrongType when T has no JSON form.
func Between[T any](from, to T) (Patch, error) {
	a, err := encode(from)
	if err != nil {
		return nil, err
	}
	b, err := encode(to)
	if err != nil {
		return nil, err
	}
	p, lost, err := mergeDiff(a, b)
	if err != nil {
		return nil, err
	}
	if lost != nil && !leadsTo(p, from, b) {
		return nil, &Error{Op: -1, Path: lost, Err: fmt.Errorf("%w: it can't set null", ErrNotRepresentable)}
	}
	return p, nil
}

// leadsTo says that p makes of from what T writes as want.
func leadsTo[T any](p Patch, from T, want []byte) bool {
	got, err := Into(p, from)
	if err != nil {
		return false
	}
	doc, _ := encode(got) // no text is no JSON
	a, b, err := checkBoth(doc, want)
	return err == nil && equal(a, b)
}

func encode[T any](obj T) ([]byte, error) {
	doc, err := json.Marshal(obj)
	if err != nil {
		return nil, wrongType[T](err)
	}
	return doc, nil
}

func wrongType[T any](err error) error {
	return fmt.Errorf("%w %v: %w", ErrWrongType, reflect.TypeFor[T](), err)
}
