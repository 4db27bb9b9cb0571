package backendtest

import (
	"context"
	"testing"
	"time"
)

// Check is one thing that the kit looks at.
type Check struct {
	// Name is short and stable: "watch/whole-steps".
	Name string
	// Rules are those that the check is made for, by package and number:
	// "reflector 3", "backend 9".
	Rules []string
	// What says what is expected, in a sentence.
	What string
}

// Result is what came of a check.
type Result struct {
	Check
	// Err says what was not as expected; nil when all was, or when the check was
	// skipped.
	Err error
	// Skipped says what the store or the harness lacks for this check; "" when
	// it was made.
	Skipped string
	// Took is how long it took.
	Took time.Duration
}

// Report is what came of all checks.
type Report struct {
	Results []Result
	// Lacks lists, sorted, the powers that the source does not have ("Paged",
	// "Compare" …), what the write side answers with errors.ErrUnsupported
	// ("DryRun", "Patch" …) or leaves out ("Versions", "IDs"), and the
	// functions that the harness does not have ("Harness.Cut" …).
	Lacks []string
}

// Run makes all checks, one after the other, each on a store of its own. It ends
// early only when ctx does; what was not made then has ctx's error.
func Run[T any](ctx context.Context, h Harness[T]) Report { panic("not written yet") }

// Test is Run as a test: each check a subtest, skipped and failed as such. What the
// store lacks is logged.
func Test[T any](t *testing.T, h Harness[T]) Report { panic("not written yet") }

// Checks lists all checks, in the order in which they are made.
func Checks() []Check { panic("not written yet") }

// Failed are the results with an error.
func (r Report) Failed() []Result { panic("not written yet") }

// Err joins the errors of all checks, each with its check's name; nil if there is none.
func (r Report) Err() error { panic("not written yet") }

// String is the report as a table, what is lacking below it.
func (r Report) String() string { panic("not written yet") }
