package reflector

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/homeostat/homeostat/retry"
)

// PanicError is a panic of somebody else's code on a goroutine of the reflector:
// the source's, the sink's, or that of a function given to an adapter. It was
// recovered, is shown as the reflector's error, and what failed is tried again.
type PanicError struct {
	// In says whose code it was: "source List", "source Watch", "sink Apply",
	// "keep", "transform", "key", "hints" …
	In string
	// Key is the object at which it happened, where that is known.
	Key string
	// Value is what was given to panic.
	Value any
	// Stack is the panicking goroutine's stack.
	Stack []byte
}

// Error names where the panic was, at which key, and its value; not the stack.
func (e *PanicError) Error() string {
	if e.Key != "" {
		return fmt.Sprintf("reflector: panic in %s at key %q: %v", e.In, e.Key, e.Value)
	}
	return fmt.Sprintf("reflector: panic in %s: %v", e.In, e.Value)
}

// caught makes the error of a recovered value. Called in the deferred function
// itself, so that the stack is still the panicking one.
func caught(in, key string, value any) *PanicError {
	return &PanicError{In: in, Key: key, Value: value, Stack: debug.Stack()}
}

// ask calls those methods of somebody's error that will be called later. One that
// can't be asked (a typed nil, most often) panics here, where that is caught and it
// is known whose error it is.
func ask(err error) {
	if err == nil {
		return
	}
	_ = err.Error()
	_ = errors.Is(err, errAgain) // which it is not: all of its tree is asked
	_, _ = errors.AsType[*PanicError](err)
	_, _ = retry.Delay(err)
	_, _ = retry.IsLater(err), retry.IsPermanent(err)
}
