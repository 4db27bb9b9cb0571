package workqueue

import (
	"errors"
	"fmt"
	"strings"
)

// From the first Get, from Run.
var (
	// ErrInvalidOptions is matched by every fault of the options, of the key
	// type, and of the arguments of Run.
	ErrInvalidOptions = errors.New("workqueue: invalid options")
	// ErrBadKey is matched when K can't be told apart by value; see [New].
	ErrBadKey = errors.New("workqueue: keys of this type are not equal when their contents are")
)

// While it works.
var (
	// ErrClosed is what Get returns, at once and for ever, after Abort, and once
	// Drain has finished.
	ErrClosed = errors.New("workqueue: closed")
	// ErrUnknownKey is matched by Done of a key that is not in work.
	ErrUnknownKey = errors.New("workqueue: key is not in work")
)

// errGoexit stands for the outcome of work that ended its goroutine.
var errGoexit = errors.New("workqueue: work ended its goroutine (runtime.Goexit)")

// PanicError is the outcome of work that panicked under Run. It counts as a
// plain failure, whatever the value: a panic with a retry word in it does not
// decide anything.
type PanicError struct {
	// Key is what was being worked on, of the queue's key type.
	Key any
	// Value is what was given to panic, Stack where it happened.
	Value any
	Stack []byte
}

// Error names the key and what was panicked with, without the stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("workqueue: panic while working on %s: %v", show(e.Key), e.Value)
}

// HeldError says that Drain gave up waiting. It unwraps to the cause of the
// context's end.
type HeldError[K comparable] struct {
	// Keys are still in work, those that are longest first.
	Keys []K
	// Queued is how many keys nobody had taken yet.
	Queued int
	// Err is why Drain did not wait any longer.
	Err error
}

// Error names the keys still in work.
func (e *HeldError[K]) Error() string {
	const most = 10
	var names []string
	for _, key := range e.Keys[:min(len(e.Keys), most)] {
		names = append(names, show(key))
	}
	if more := len(e.Keys) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("workqueue: not drained, %d keys in work (%s), %d queued: %v",
		len(e.Keys), strings.Join(names, ", "), e.Queued, e.Err)
}

// Unwrap gives the cause of the context's end.
func (e *HeldError[K]) Unwrap() error { return e.Err }

// show quotes text, so that an empty key can be seen too.
func show(key any) string {
	if s, ok := key.(string); ok {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprint(key)
}
