package reconcile

import (
	"fmt"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/retry"
)

// Outcome is what came of one run; each is counted by its name in [Counts].
type Outcome uint8

// The outcomes. The first five follow from what a [Func] returned (see
// [Decide]), the others from how it ended.
const (
	Done        Outcome = iota + 1 // nil
	Later                          // looked, come back: no failure
	Conflict                       // its picture was old: once more with a newer one
	Failed                         // again after a delay
	Parked                         // not again until something changes
	Panicked                       // failed, by a panic
	TimedOut                       // failed, after Options.Timeout had ended its context
	Interrupted                    // cut short by the controller's own stop: no failure
)

var outcomeNames = [...]string{
	"unknown", "done", "later", "conflict", "failed", "parked", "panicked", "timed out", "interrupted",
}

// String is the outcome's name in lower case.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// MarshalText is String.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Decision is what a controller makes of one returned error.
type Decision struct {
	Outcome Outcome
	// Named says that the error asked for a delay, which is Delay.
	Named bool
	Delay time.Duration
	// Failure says that the run counts as a failed attempt: the next one's backoff
	// is longer. Whatever is no failure sets the backoff back to its first step.
	// Only the controller knows whether a Conflict is one: the second in a row is.
	Failure bool
}

// Decide reads what a [Func] returned. It is the controller's own rule, here for
// middleware and tests.
//
// Of an error made of several (errors.Join, or more than one %w) a failure wins
// over a Later, the longest delay that any of them names holds, one Permanent
// parks the whole, and it is a conflict only when all of it is.
func Decide(err error) Decision {
	if err == nil {
		return Decision{Outcome: Done}
	}
	delay, named := retry.Delay(err)
	switch {
	case retry.IsPermanent(err):
		return Decision{Outcome: Parked, Failure: true}
	case retry.IsLater(err):
		return Decision{Outcome: Later, Named: named, Delay: delay}
	case named && delay > 0:
		return Decision{Outcome: Failed, Named: true, Delay: delay, Failure: true}
	case onlyConflict(err):
		return Decision{Outcome: Conflict}
	}
	return Decision{Outcome: Failed, Failure: true}
}

// onlyConflict says that nothing else failed: errors.Is would also find the one
// conflict beside a failure that deserves its backoff.
func onlyConflict(err error) bool {
	if err == backend.ErrConflict {
		return true
	}
	switch x := err.(type) {
	case interface{ Unwrap() error }:
		if inner := x.Unwrap(); inner != nil {
			return onlyConflict(inner)
		}
	case interface{ Unwrap() []error }:
		all := x.Unwrap()
		for _, inner := range all {
			if !onlyConflict(inner) {
				return false
			}
		}
		return len(all) > 0
	}
	is, ok := err.(interface{ Is(error) bool })
	return ok && is.Is(backend.ErrConflict)
}

// Next says in words when a key runs again after this decision. Any trigger
// makes it run earlier.
func (d Decision) Next() string {
	switch {
	case d.Outcome == Conflict:
		return "once the cache has moved; by backoff if it conflicts again"
	case d.Outcome == Done, d.Outcome == Parked:
		return "when something changes"
	case d.Named && d.Delay > 0:
		return "in " + d.Delay.String()
	case d.Named:
		return "at once"
	}
	return "by backoff"
}
