package backendtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// errStuck: a call has not returned long after its context ended.
var errStuck = errors.New("has not returned after the end of its context, and was left running")

// errPanic: the adapter, or the harness, panics.
var errPanic = errors.New("panic")

// caught is an error with what was recovered and where it came from.
func caught(v any) error {
	if err, ok := v.(error); ok {
		return fmt.Errorf("%w: %w\n%s", errPanic, err, debug.Stack())
	}
	return fmt.Errorf("%w: %v\n%s", errPanic, v, debug.Stack())
}

// call makes a call of the adapter or the harness on a goroutine of its own, with a
// context that ends after limit. A call that ignores this is left running after
// grace, and a panic or runtime.Goexit is contained.
func call[V any](ctx context.Context, what string, limit, grace time.Duration, f func(context.Context) (V, error)) (V, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type answer struct {
		v   V
		err error
	}
	done := make(chan answer, 1)
	go func() {
		a := answer{err: fmt.Errorf("%w: runtime.Goexit was called (by t.FailNow?)", errPanic)}
		defer func() {
			if v := recover(); v != nil {
				a.err = caught(v)
			}
			done <- a
		}()
		v, err := f(ctx)
		a = answer{v, err}
	}()
	var a answer
	select {
	case a = <-done:
	case <-ctx.Done():
		select {
		case a = <-done:
		case <-time.After(grace):
			return a.v, fmt.Errorf("%s: %w (%v)", what, errStuck, grace)
		}
	}
	if a.err != nil {
		a.err = fmt.Errorf("%s: %w", what, a.err)
	}
	return a.v, a.err
}

// goroutine names the goroutine that calls it.
func goroutine() string {
	var buf [64]byte
	name, _, _ := strings.Cut(string(buf[:runtime.Stack(buf[:], false)]), " [")
	return name
}
