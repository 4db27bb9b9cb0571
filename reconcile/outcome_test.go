package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/retry"
)

var errBoom = errors.New("boom")

// answers is what can be returned, and what comes of it: the example prints it,
// the tests hold the controller to it.
var answers = []struct {
	returned string
	err      error
	outcome  reconcile.Outcome
	failure  bool
	again    time.Duration // by a backoff that begins with a second; 0 is never
}{
	{"nil", nil, reconcile.Done, false, 0},
	{"retry.Later(10s)", retry.Later(10*time.Second, "not ready"), reconcile.Later, false, 10 * time.Second},
	{"err", errBoom, reconcile.Failed, true, time.Second},
	{"retry.After(err, 1m)", retry.After(errBoom, time.Minute), reconcile.Failed, true, time.Minute},
	{"retry.Permanent(err)", retry.Permanent(errBoom), reconcile.Parked, true, 0},
	{"backend.ErrConflict", backend.ErrConflict, reconcile.Conflict, false, time.Second},
	{"Join(err, Later(10s))", errors.Join(errBoom, retry.Later(10*time.Second, "")), reconcile.Failed, true, 10 * time.Second},
	{"Join(After(5s), After(1m))", errors.Join(retry.After(errBoom, 5*time.Second), retry.After(errBoom, time.Minute)), reconcile.Failed, true, time.Minute},
	{"Join(After(1m), Permanent)", errors.Join(retry.After(errBoom, time.Minute), retry.Permanent(errBoom)), reconcile.Parked, true, 0},
	{"Join(ErrConflict, err)", errors.Join(backend.ErrConflict, errBoom), reconcile.Failed, true, time.Second},
}

// The table of what to return, as the policy itself has it.
func ExampleDecide() {
	fmt.Printf("%-28s %-9s %-8s %s\n", "returned", "outcome", "failure", "runs again")
	for _, a := range answers {
		d := reconcile.Decide(a.err)
		fmt.Printf("%-28s %-9v %-8v %s\n", a.returned, d.Outcome, d.Failure, d.Next())
	}
	// Output:
	// returned                     outcome   failure  runs again
	// nil                          done      false    when something changes
	// retry.Later(10s)             later     false    in 10s
	// err                          failed    true     by backoff
	// retry.After(err, 1m)         failed    true     in 1m0s
	// retry.Permanent(err)         parked    true     when something changes
	// backend.ErrConflict          conflict  false    once the cache has moved; by backoff if it conflicts again
	// Join(err, Later(10s))        failed    true     in 10s
	// Join(After(5s), After(1m))   failed    true     in 1m0s
	// Join(After(1m), Permanent)   parked    true     when something changes
	// Join(ErrConflict, err)       failed    true     by backoff
}

// TestW02 holds a controller to the table: when it runs next, and what is counted.
func TestW02_WhatYouReturnIsWhenItRunsNext(t *testing.T) {
	for _, a := range answers {
		t.Run(a.returned, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var runs ran
				first := true
				c := reconcile.New("c", informer.New(store(t, "a"), nil), runs.wrap(func(context.Context, reconcile.Request[thing]) error {
					if first {
						first = false
						return a.err
					}
					return nil
				}), &reconcile.Options{Backoff: exact})
				launch(t, &reconcile.Group{}, c)

				counts := c.Status().Counts
				require.EqualValues(t, 1, counts.Runs)
				require.Equal(t, a.failure, counts.Failures == 1)
				byName := map[reconcile.Outcome]uint64{
					reconcile.Done: counts.Done, reconcile.Later: counts.Later, reconcile.Failed: counts.Failed,
					reconcile.Parked: counts.Parked, reconcile.Conflict: counts.Conflict,
				}
				require.EqualValues(t, 1, byName[a.outcome], "%+v", counts)
				require.Equal(t, a.outcome, c.Explain("a").Runs[0].Outcome)
				require.Equal(t, a.err, c.Explain("a").Runs[0].Err)

				time.Sleep(5 * time.Minute)
				synctest.Wait()
				calls := runs.of("a")
				if a.again == 0 {
					require.Len(t, calls, 1)
					return
				}
				require.Len(t, calls, 2)
				require.Equal(t, a.again, calls[1].at.Sub(calls[0].at))
			})
		})
	}
}
