package workqueue_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/retry"
	"github.com/homeostat/homeostat/workqueue"
	"github.com/stretchr/testify/require"
)

const second = time.Second

// TestOutcomes: what Done decides, for a key that was, or was not, wanted again
// during its run.
func TestOutcomes(t *testing.T) {
	type after struct {
		state    workqueue.State // 0: gone
		due      time.Duration   // from now, of a delayed key
		attempts int
	}
	due := after{state: workqueue.Due}
	tests := []struct {
		name    string
		outcome error
		during  func(q *workqueue.Queue[string]) // nil: nothing
		want    after
	}{
		{"nil", nil, nil, after{}},
		{"nil, added", nil, add, due},
		{"nil, delayed", nil, addAfter(5 * second), after{state: workqueue.Delayed, due: 5 * second}},
		{"nil, delayed, then added", nil, both(addAfter(5*second), add), due},
		{"nil, added, then delayed", nil, both(add, addAfter(5*second)), due},
		{"nil, reminder", nil, remind(5 * second), after{state: workqueue.Delayed, due: 5 * second}},
		{"nil, added, cancelled", nil, both(add, cancel), after{}},
		{"nil, delayed, cancelled", nil, both(addAfter(second), cancel), after{}},

		{"later", retry.Later(3*second, ""), nil, after{state: workqueue.Delayed, due: 3 * second}},
		{"later at once", retry.Later(0, ""), nil, due},
		{"later, added", retry.Later(3*second, ""), add, due},
		{"later, delayed less", retry.Later(3*second, ""), addAfter(second), after{state: workqueue.Delayed, due: second}},
		{"later, delayed more", retry.Later(3*second, ""), addAfter(5 * second), after{state: workqueue.Delayed, due: 3 * second}},
		{"wrapped later", fmt.Errorf("pod: %w", retry.Later(3*second, "")), nil, after{state: workqueue.Delayed, due: 3 * second}},

		{"failed", errBoom, nil, after{state: workqueue.Delayed, due: 10 * second, attempts: 1}},
		{"failed, added", errBoom, add, after{state: workqueue.Due, attempts: 1}},
		{"failed, delayed less", errBoom, addAfter(second), after{state: workqueue.Delayed, due: second, attempts: 1}},
		{"failed, delayed more", errBoom, addAfter(60 * second), after{state: workqueue.Delayed, due: 10 * second, attempts: 1}},
		{"failed, reminder", errBoom, remind(second), after{state: workqueue.Delayed, due: second, attempts: 1}},
		{"failed, cancelled before", errBoom, both(add, cancel), after{state: workqueue.Delayed, due: 10 * second, attempts: 1}},
		{"joined with later", errors.Join(errBoom, retry.Later(3*second, "")), nil, after{state: workqueue.Delayed, due: 3 * second, attempts: 1}},

		{"after", retry.After(errBoom, 3*second), nil, after{state: workqueue.Delayed, due: 3 * second, attempts: 1}},
		{"after longer than any backoff", retry.After(errBoom, time.Hour), nil, after{state: workqueue.Delayed, due: time.Hour, attempts: 1}},
		{"after nothing takes the backoff", retry.After(errBoom, 0), nil, after{state: workqueue.Delayed, due: 10 * second, attempts: 1}},
		{"after nothing, added", retry.After(errBoom, 0), add, after{state: workqueue.Due, attempts: 1}},
		{"after holds against an add", retry.After(errBoom, 3*second), add, after{state: workqueue.Delayed, due: 3 * second, attempts: 1}},
		{"after holds against a shorter delay", retry.After(errBoom, 3*second), addAfter(second), after{state: workqueue.Delayed, due: 3 * second, attempts: 1}},
		{"after covers a longer delay", retry.After(errBoom, 3*second), addAfter(5 * second), after{state: workqueue.Delayed, due: 3 * second, attempts: 1}},

		{"permanent", retry.Permanent(errBoom), nil, after{state: workqueue.Parked, attempts: 1}},
		{"permanent, added", retry.Permanent(errBoom), add, after{state: workqueue.Due, attempts: 1}},
		{"permanent, delayed", retry.Permanent(errBoom), addAfter(5 * second), after{state: workqueue.Parked, due: 5 * second, attempts: 1}},
		{"permanent, reminder", retry.Permanent(errBoom), remind(5 * second), after{state: workqueue.Parked, due: 5 * second, attempts: 1}},
		{"permanent with a delay", retry.After(retry.Permanent(errBoom), second), nil, after{state: workqueue.Parked, attempts: 1}},
		{"permanent with a delay, added", retry.After(retry.Permanent(errBoom), second), add, after{state: workqueue.Due, attempts: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.New(&workqueue.Options[string]{Backoff: retry.Backoff{Schedule: []time.Duration{10 * second}}})
				q.Add("k")
				require.Equal(t, "k", get(t, q))
				if tt.during != nil {
					tt.during(q)
				}
				require.NoError(t, q.Done("k", tt.outcome))
				e, known := q.Explain("k")
				require.Equal(t, tt.want.state != 0, known)
				require.Equal(t, tt.want.state, e.State)
				require.Equal(t, tt.want.attempts, e.Attempts)
				if known {
					require.Equal(t, tt.outcome, e.Err)
				}
				if tt.want.due > 0 {
					require.Equal(t, time.Now().Add(tt.want.due), e.Due)
					pass(tt.want.due - 1)
					require.Zero(t, q.Len(), "not before its time")
					pass(1)
				}
				if tt.want.state == workqueue.Due || tt.want.due > 0 {
					run(t, q, nil)
					require.Zero(t, q.Len(), "exactly one run")
				}
				q.Abort()
			})
		})
	}
}

func add(q *workqueue.Queue[string])    { q.Add("k"); q.Add("k", "k") }
func cancel(q *workqueue.Queue[string]) { q.Cancel("k") }
func addAfter(d time.Duration) func(*workqueue.Queue[string]) {
	return func(q *workqueue.Queue[string]) { q.AddAfter("k", d) }
}
func remind(d time.Duration) func(*workqueue.Queue[string]) {
	return func(q *workqueue.Queue[string]) { q.Remind("k", d) }
}
func both(f, g func(*workqueue.Queue[string])) func(*workqueue.Queue[string]) {
	return func(q *workqueue.Queue[string]) { f(q); g(q) }
}

func TestFailuresCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(&workqueue.Options[string]{Backoff: retry.Backoff{Schedule: []time.Duration{1 * second, 2 * second, 3 * second}}})
		fails := func(outcome error, want time.Duration, attempts int) {
			t.Helper()
			run(t, q, outcome)
			e, _ := q.Explain("k")
			require.Equal(t, want, time.Until(e.Due))
			require.Equal(t, attempts, e.Attempts)
			pass(want)
		}
		q.Add("k")
		fails(errBoom, 1*second, 1)
		fails(retry.After(errBoom, 7*second), 7*second, 2)
		fails(errBoom, 3*second, 3)
		fails(retry.After(errBoom, 0), 3*second, 4)
		fails(retry.Later(9*second, ""), 9*second, 0)
		fails(errBoom, 1*second, 1)
		run(t, q, nil)
		q.Add("k")
		fails(errBoom, 1*second, 1)
		q.Abort()
	})
}

// A key that is added during each of its runs, and fails each time, runs at once
// only every other time.
func TestTriggeringItselfDoesNotSpin(t *testing.T) {
	for _, outcome := range []error{errBoom, retry.Permanent(errBoom)} {
		t.Run(outcome.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.New(&workqueue.Options[string]{Backoff: retry.Backoff{Base: second, NoJitter: true}})
				q.Add("k")
				for i := range 6 {
					require.Equal(t, "k", get(t, q))
					q.Add("k")
					require.NoError(t, q.Done("k", outcome))
					e, _ := q.Explain("k")
					require.Equal(t, i+1, e.Attempts)
					if i%2 == 0 {
						require.Equal(t, workqueue.Due, e.State, "an add is a new fact")
						continue
					}
					require.Equal(t, workqueue.Delayed, e.State)
					require.Equal(t, second<<i, time.Until(e.Due))
					pass(second << i)
				}
				q.Abort()
			})
		})
	}
	// What ends the row.
	for name, between := range map[string]func(t *testing.T, q *workqueue.Queue[string]){
		"a success":              func(t *testing.T, q *workqueue.Queue[string]) { run(t, q, nil); q.Add("k") },
		"a later":                func(t *testing.T, q *workqueue.Queue[string]) { run(t, q, retry.Later(0, "")) },
		"a failure, not added":   func(t *testing.T, q *workqueue.Queue[string]) { run(t, q, errBoom); pass(time.Minute) },
		"an after":               func(t *testing.T, q *workqueue.Queue[string]) { run(t, q, retry.After(errBoom, second)); pass(second) },
		"parked and added again": func(t *testing.T, q *workqueue.Queue[string]) { run(t, q, retry.Permanent(errBoom)); q.Add("k") },
		"forgotten":              func(t *testing.T, q *workqueue.Queue[string]) { q.Forget("k") },
		"cancelled":              func(t *testing.T, q *workqueue.Queue[string]) { q.Cancel("k"); q.Add("k") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.New[string](nil)
				q.Add("k")
				for range 3 {
					get(t, q)
					q.Add("k")
					require.NoError(t, q.Done("k", errBoom))
					require.Equal(t, workqueue.Due, state(q, "k"))
					between(t, q)
				}
				q.Abort()
			})
		})
	}
}

func TestPark(t *testing.T) {
	fast := retry.Backoff{Schedule: []time.Duration{second}}
	tests := []struct {
		name string
		park workqueue.Park
		runs int // failures until it is parked
	}{
		{"attempts", workqueue.Park{Attempts: 3}, 3},
		{"one attempt", workqueue.Park{Attempts: 1}, 1},
		{"age", workqueue.Park{Age: 3 * second}, 4},
		{"age just missed", workqueue.Park{Age: 3*second + 1}, 5},
		{"what comes first, attempts", workqueue.Park{Attempts: 2, Age: time.Hour}, 2},
		{"what comes first, age", workqueue.Park{Attempts: 9, Age: second}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.New(&workqueue.Options[string]{Backoff: fast, Park: tt.park})
				q.Add("k")
				for i := range tt.runs {
					run(t, q, errBoom)
					if i < tt.runs-1 {
						require.Equal(t, workqueue.Delayed, state(q, "k"))
						pass(second)
					}
				}
				e, _ := q.Explain("k")
				require.Equal(t, workqueue.Parked, e.State)
				require.Equal(t, tt.runs, e.Attempts)
				require.Equal(t, errBoom, e.Err)
				require.True(t, e.Due.IsZero())
				require.Equal(t, workqueue.Stats{Parked: 1}, q.Stats())
				pass(100 * time.Hour)
				require.Equal(t, workqueue.Parked, state(q, "k"))

				q.Add("k") // a new row of failures begins
				run(t, q, errBoom)
				want := workqueue.Delayed
				if tt.runs == 1 {
					want = workqueue.Parked
				}
				e, _ = q.Explain("k")
				require.Equal(t, want, e.State)
				require.Equal(t, 1, e.Attempts)
				q.Abort()
			})
		})
	}
	t.Run("never by default", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := workqueue.New(&workqueue.Options[string]{Backoff: fast})
			q.Add("k")
			for range 1000 {
				run(t, q, errBoom)
				pass(second)
			}
			require.Zero(t, q.Stats().Parked)
			q.Abort()
		})
	})
	t.Run("age counts from the first failure of the row", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := workqueue.New(&workqueue.Options[string]{Backoff: fast, Park: workqueue.Park{Age: 3 * second}})
			for _, end := range []func(){
				func() { run(t, q, nil) },
				func() { run(t, q, retry.Later(second, "")) },
				func() { q.Forget("k"); run(t, q, errBoom) },
			} {
				q.Add("k")
				run(t, q, errBoom)
				pass(2 * second)
				end()
				pass(2 * second)
				q.Add("k")
				run(t, q, errBoom)
				require.Equal(t, workqueue.Delayed, state(q, "k"))
				q.Cancel("k")
			}
		})
	})
	t.Run("after counts too", func(t *testing.T) {
		q := workqueue.New(&workqueue.Options[string]{Park: workqueue.Park{Attempts: 1}})
		q.Add("k")
		run(t, q, retry.After(errBoom, time.Hour))
		require.Equal(t, workqueue.Parked, state(q, "k"))
		q.Abort()
	})
	t.Run("not while it is wanted", func(t *testing.T) {
		q := workqueue.New(&workqueue.Options[string]{Park: workqueue.Park{Attempts: 1}})
		q.Add("k")
		get(t, q)
		q.Add("k")
		require.NoError(t, q.Done("k", retry.After(errBoom, time.Hour)))
		require.Equal(t, workqueue.Delayed, state(q, "k"))
		q.Abort()
	})
}

func TestRevive(t *testing.T) {
	tests := map[string]struct {
		wish func(q *workqueue.Queue[string])
		due  time.Duration
	}{
		"Add":      {func(q *workqueue.Queue[string]) { q.Add("k") }, 0},
		"AddWith":  {func(q *workqueue.Queue[string]) { q.AddWith("k", workqueue.AddOptions{Reason: "x"}) }, 0},
		"AddAfter": {func(q *workqueue.Queue[string]) { q.AddAfter("k", second) }, second},
		"Remind":   {func(q *workqueue.Queue[string]) { q.Remind("k", second) }, second},
		"Forget":   {func(q *workqueue.Queue[string]) { q.Forget("k") }, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.New[string](nil)
				q.Add("k")
				run(t, q, retry.Permanent(errBoom))
				pass(time.Hour)
				tt.wish(q)
				e, _ := q.Explain("k")
				require.Equal(t, time.Now(), e.Since)
				require.Zero(t, e.Attempts)
				if name != "Forget" {
					require.Error(t, e.Err, "until the next run it is what is known")
				} else {
					require.NoError(t, e.Err)
				}
				if tt.due == 0 {
					require.Equal(t, workqueue.Due, e.State)
				} else {
					require.Equal(t, workqueue.Delayed, e.State)
					require.Equal(t, tt.due, time.Until(e.Due))
				}
				pass(tt.due)
				run(t, q, nil)
				require.Zero(t, q.Stats())
			})
		})
	}
}
