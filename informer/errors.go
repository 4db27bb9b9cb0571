package informer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// Of the informer's life.
var (
	// ErrInvalidOptions: Run found a faulty option, source or index; the message
	// says which. Nothing was started.
	ErrInvalidOptions = errors.New("informer: invalid options")
	// ErrAlreadyRunning: Run was called before. An Informer runs once.
	ErrAlreadyRunning = errors.New("informer: Run was called before; an Informer runs once")
	// ErrStopped: Run has returned, so what is waited for can't come any more.
	ErrStopped = errors.New("informer: stopped")
	// ErrCanceled: the subscription was cancelled before its handler was synced.
	ErrCanceled = errors.New("informer: subscription cancelled")
)

// WaitError is why a wait was given up: whose, for what, and what the source was
// doing meanwhile. It unwraps to Cause and, when there is one, to Err.
type WaitError struct {
	// Informer is who was waited for; Handler too, when it was one of its
	// handlers.
	Informer, Handler string
	// For is what was waited for, in words.
	For string
	// State is what the source's reflector was doing, and Since when; Failures
	// counts its attempts in a row that failed, Err is why the last of them did
	// (nil when none did).
	State    reflector.State
	Since    time.Time
	Failures int
	Err      error
	// Cause ended the wait: the context's cause, [ErrStopped] or [ErrCanceled].
	Cause error
}

// Error says who is not synced, in which state since when, and the last error.
func (e *WaitError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "informer %q: ", e.Informer)
	if e.Handler != "" {
		fmt.Fprintf(&b, "handler %q: ", e.Handler)
	}
	fmt.Fprintf(&b, "waited for %s: %v (source: %v", e.For, e.Cause, e.State)
	if !e.Since.IsZero() {
		fmt.Fprintf(&b, " since %s", e.Since.Format(time.RFC3339))
	}
	if e.Failures > 0 {
		fmt.Fprintf(&b, ", %d failed attempts", e.Failures)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ", last error: %v", e.Err)
	}
	b.WriteByte(')')
	return b.String()
}

// Unwrap gives the end of the context and the source's last error.
func (e *WaitError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Cause}
	}
	return []error{e.Cause, e.Err}
}

// StaleError is [Informer.Fresh]'s answer when the last proof that the source is
// heard is too old, or when there never was a first list.
type StaleError struct {
	Name string
	// Age is how long ago the last proof was, and Since when; both are zero when
	// there has been none.
	Age   time.Duration
	Since time.Time
	// Err is the source's last error, if it is failing.
	Err error
}

// Error says how old the cache is, and why.
func (e *StaleError) Error() string {
	s := fmt.Sprintf("informer %q: never synced", e.Name)
	if !e.Since.IsZero() {
		s = fmt.Sprintf("informer %q: last heard of its source %v ago", e.Name, e.Age)
	}
	if e.Err != nil {
		s += fmt.Sprintf(" (%v)", e.Err)
	}
	return s
}

// Unwrap gives the source's last error.
func (e *StaleError) Unwrap() error { return e.Err }

// RefusedError says that the cache could not take an object's state: an index
// function panicked on it, a unique index has another holder of its value, the
// source cannot read it (reflector.ErrUnreadable), or it has no key, which breaks
// the source's contract (reflector.ErrContract). The cache keeps the object's last
// good state. It unwraps to the reason.
type RefusedError struct {
	Informer string
	Key      string
	// Version is the state that was refused.
	Version object.Version
	Err     error
}

// Error names the informer, the key and the reason.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("informer %q: the cache refused key %q at version %q: %v", e.Informer, e.Key, e.Version, e.Err)
}

// Unwrap gives the reason.
func (e *RefusedError) Unwrap() error { return e.Err }

// PanicError is a panic of a handler, or of one of the source's Powers, caught at
// the boundary.
type PanicError struct {
	Informer string
	// What panicked: `handler "x"`, or the name of the source's function.
	What string
	// Key is the key it was called for; "" when for none or for several.
	Key   string
	Value any
	Stack []byte
}

// Error names what panicked and with what, without the stack.
func (e *PanicError) Error() string {
	s := fmt.Sprintf("informer %q: %s panicked", e.Informer, e.What)
	if e.Key != "" {
		s += fmt.Sprintf(" on key %q", e.Key)
	}
	return fmt.Sprintf("%s: %v", s, e.Value)
}

// Unwrap is the value that was panicked with, when that was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
