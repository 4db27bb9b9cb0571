package backend

import (
	"errors"
	"fmt"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

// What a write, or Get, answers. All but ErrOutcomeUnknown mean that nothing was
// written.
var (
	// ErrNotFound: there is no object under this key. The same value as
	// reflector.ErrNotFound.
	ErrNotFound = reflector.ErrNotFound
	// ErrExists: a Create found an object under the key.
	ErrExists = errors.New("backend: exists already")
	// ErrConflict: the object is not the one, or not in the version, that the
	// write was made for. Read it again and decide anew.
	ErrConflict = errors.New("backend: version conflict")
	// ErrOutcomeUnknown: the answer was lost. The write may have happened, now or
	// in a moment, or not at all.
	ErrOutcomeUnknown = errors.New("backend: outcome unknown")
	// ErrNoVersion: a write that names neither a version nor object.Any. It is
	// permanent (see package retry): the program forgot something.
	ErrNoVersion = retry.Permanent(errors.New("backend: a write without a version"))
	// ErrNoKey: a Create without a key. Permanent, too.
	ErrNoKey = retry.Permanent(errors.New("backend: an object without a key"))
)

// What WithFinalizers answers besides. Both are permanent.
var (
	// ErrDeleting: the object is being deleted, so no finalizer can be added.
	ErrDeleting = retry.Permanent(errors.New("backend: a finalizer added to an object that is being deleted"))
	// ErrNoMeta: the type does not embed object.Meta and nothing says what stands
	// for it, or the object is a nil pointer.
	ErrNoMeta = retry.Permanent(errors.New("backend: an object without object.Meta can't have finalizers"))
)

// Error says what went wrong with which object. It matches what it wraps.
type Error struct {
	// Op is the operation: "get", "create", "update", "patch", "delete".
	Op string
	// Key names the object.
	Key string
	// Want is the version that the write named, Found the one that the object
	// has; each is empty where there is none or it is not known.
	Want, Found object.Version
	// Err is what went wrong.
	Err error
}

// Error names operation, key, cause and versions.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s %q: %v", e.Op, e.Key, e.Err)
	wanted := e.Want != "" && e.Want != object.Any
	switch {
	case wanted && e.Found != "":
		text += fmt.Sprintf(" (want version %s, found %s)", e.Want, e.Found)
	case wanted:
		text += fmt.Sprintf(" (want version %s)", e.Want)
	case e.Found != "":
		text += fmt.Sprintf(" (found version %s)", e.Found)
	}
	return text
}

// Unwrap gives Err.
func (e *Error) Unwrap() error { return e.Err }

// as is err told under the operation that the caller asked for: one call of a
// wrapper may be several of the store's. Only an *Error at the top is renamed,
// so that what is wrapped around a deeper one (retry.After) stays.
func as(op, key string, want object.Version, err error) error {
	e, ok := err.(*Error)
	if !ok {
		return &Error{Op: op, Key: key, Want: want, Err: err}
	}
	return &Error{Op: op, Key: key, Want: want, Found: e.Found, Err: e.Err}
}
