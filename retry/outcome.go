package retry

import (
	"fmt"
	"time"
)

// Later says that nothing failed, but that it must be looked at again after d:
// something that was asked for is not there yet. Failures counted so far are
// forgotten. A negative d is 0, which means at once. why is for people.
func Later(d time.Duration, why string) error {
	return &laterError{delay: max(d, 0), why: why}
}

// After says that err happened and that it is of no use to try again before d
// has passed. It counts as a failure. A negative d is 0: a caller that has a
// backoff then uses it. After(nil, d) is nil.
func After(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &afterError{err: err, delay: max(d, 0)}
}

// Permanent says that err will happen again until something else changes: the
// object, the configuration, the program. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err: err}
}

// laterError wraps nothing: whatever it would wrap would be a failure.
type laterError struct {
	delay time.Duration
	why   string
}

func (e *laterError) Error() string {
	if e.why == "" {
		return fmt.Sprintf("later (in %v)", e.delay)
	}
	return fmt.Sprintf("later: %s (in %v)", e.why, e.delay)
}

type afterError struct {
	err   error
	delay time.Duration
}

func (e *afterError) Error() string { return fmt.Sprintf("%v (again after %v)", e.err, e.delay) }
func (e *afterError) Unwrap() error { return e.err }

// RetryAfter lets other libraries that look for this method understand After.
func (e *afterError) RetryAfter() time.Duration { return e.delay }

type permanentError struct{ err error }

func (e *permanentError) Error() string { return "permanent: " + e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }
