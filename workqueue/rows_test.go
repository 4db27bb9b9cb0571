package workqueue_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/retry"
	"github.com/homeostat/homeostat/workqueue"
	"github.com/stretchr/testify/require"
)

var errBoom = errors.New("boom")

func get[K comparable](t *testing.T, q *workqueue.Queue[K]) K {
	t.Helper()
	require.Positive(t, q.Len(), "nothing is due")
	key, err := q.Get(t.Context())
	require.NoError(t, err)
	return key
}

// run gets the next due key and ends it at once.
func run[K comparable](t *testing.T, q *workqueue.Queue[K], outcome error) K {
	t.Helper()
	key := get(t, q)
	require.NoError(t, q.Done(key, outcome))
	return key
}

// pass lets time pass, and all that happens in it.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func state[K comparable](q *workqueue.Queue[K], key K) workqueue.State {
	e, _ := q.Explain(key)
	return e.State
}

func keysOf[K comparable](q *workqueue.Queue[K], s workqueue.State) (keys []K) {
	for e := range q.Keys(s) {
		keys = append(keys, e.Key)
	}
	return keys
}

func TestQ01_GetEndsOnceDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		q.Add("a")
		key := get(t, q)

		var blocked sync.WaitGroup
		for range 10 {
			blocked.Go(func() {
				_, err := q.Get(t.Context())
				if err != workqueue.ErrClosed {
					t.Errorf("blocked Get: %v", err)
				}
			})
		}
		synctest.Wait()
		drained := make(chan error, 1)
		go func() { _, err := q.Drain(t.Context()); drained <- err }()
		synctest.Wait()
		start := time.Now()
		require.NoError(t, q.Done(key, nil))
		blocked.Wait()
		require.NoError(t, <-drained)
		require.Zero(t, time.Since(start))
		for range 3 {
			_, err := q.Get(t.Context())
			require.Equal(t, workqueue.ErrClosed, err)
		}
	})
}

func TestQ02_DrainWaitsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[int](nil)
		q.Add(1, 2, 3, 4, 5)
		ran := 0
		first := make(chan struct{})
		go q.Run(t.Context(), 1, func(ctx context.Context, key int) error {
			ran++
			if ran == 1 {
				q.Add(key) // again while it is worked on
				close(first)
			}
			time.Sleep(time.Second)
			return nil
		})
		<-first
		var waiting sync.WaitGroup
		for range 3 { // each of several waiters is woken
			waiting.Go(func() {
				left, err := q.Drain(t.Context())
				if len(left) != 0 || err != nil || ran != 6 {
					t.Errorf("left %v, %v, after %d runs", left, err, ran)
				}
			})
		}
		waiting.Wait()
	})
}

func TestQ02_DoneOfUnknownKeyChangesNothing(t *testing.T) {
	q := workqueue.New[string](nil)
	q.Add("queued", "held")
	q.AddAfter("delayed", time.Hour)
	require.Equal(t, "queued", get(t, q))
	require.NoError(t, q.Done("queued", nil))
	q.Add("queued")
	require.Equal(t, "held", get(t, q))
	before := q.Stats()
	for _, key := range []string{"queued", "delayed", "unknown"} {
		for _, outcome := range []error{nil, errBoom, retry.Permanent(errBoom)} {
			err := q.Done(key, outcome)
			require.ErrorIs(t, err, workqueue.ErrUnknownKey)
			require.ErrorContains(t, err, fmt.Sprintf("%q", key))
		}
	}
	require.NoError(t, q.Done("held", nil))
	require.ErrorIs(t, q.Done("held", nil), workqueue.ErrUnknownKey, "twice")
	after := q.Stats()
	after.Working++
	require.Equal(t, before, after)
	q.Abort()
}

func TestQ03_AbortIsImmediate(t *testing.T) {
	q := workqueue.New[int](nil)
	var want []int
	for i := range 100 {
		q.Add(i)
		want = append(want, i)
	}
	require.Equal(t, want, q.Abort())
	_, err := q.Get(t.Context())
	require.Equal(t, workqueue.ErrClosed, err)
	require.Equal(t, want, q.Abort(), "again")
}

func TestQ04_CoalescingOrReminding(t *testing.T) {
	const h = time.Hour
	tests := []struct {
		name string
		plan func(q *workqueue.Queue[string])
		runs []time.Duration // when the key is due, one run each
	}{
		{"an add absorbs a delay", func(q *workqueue.Queue[string]) { q.AddAfter("k", 5*h); q.Add("k") }, []time.Duration{0}},
		{"in the other order too", func(q *workqueue.Queue[string]) { q.Add("k"); q.AddAfter("k", 5*h) }, []time.Duration{0}},
		{"an add leaves a reminder", func(q *workqueue.Queue[string]) { q.Remind("k", 5*h); q.Add("k") }, []time.Duration{0, 5 * h}},
		{"in the other order too, reminder", func(q *workqueue.Queue[string]) { q.Add("k"); q.Remind("k", 5*h) }, []time.Duration{0, 5 * h}},
		{"an earlier delay leaves a reminder", func(q *workqueue.Queue[string]) { q.Remind("k", 5*h); q.AddAfter("k", h) }, []time.Duration{h, 5 * h}},
		{"an earlier reminder covers a delay", func(q *workqueue.Queue[string]) { q.AddAfter("k", 5*h); q.Remind("k", h) }, []time.Duration{h}},
		{"two reminders are two", func(q *workqueue.Queue[string]) { q.Remind("k", 5*h); q.Remind("k", h) }, []time.Duration{h, 5 * h}},
		{"at one time are one", func(q *workqueue.Queue[string]) { q.Remind("k", h); q.Remind("k", h) }, []time.Duration{h}},
		{"a reminder and a delay at one time are one", func(q *workqueue.Queue[string]) { q.Remind("k", h); q.AddAfter("k", h) }, []time.Duration{h}},
		{"of now is an add", func(q *workqueue.Queue[string]) { q.AddAfter("k", 0); q.Remind("k", -1) }, []time.Duration{0}},
		{"without end", func(q *workqueue.Queue[string]) { q.AddAfter("k", math.MaxInt64); q.Remind("k", math.MaxInt64) }, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.New[string](nil)
				start := time.Now()
				tt.plan(q)
				var runs []time.Duration
				for time.Since(start) <= 10*h {
					synctest.Wait()
					if q.Len() > 0 {
						runs = append(runs, time.Since(start))
						run(t, q, nil)
					}
					time.Sleep(h / 2)
				}
				require.Equal(t, tt.runs, runs)
				q.Abort()
			})
		})
	}
}

// A run that starts before a reminder's time does not meet it, also when it ends
// after it; one run meets all reminders that are due when it starts.
func TestQ04_ReminderNeedsARunThatStartsAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		q.Remind("k", time.Second)
		q.Remind("k", 2*time.Second)
		q.Remind("k", 3*time.Second)
		q.Add("k")
		require.Equal(t, "k", get(t, q))
		pass(time.Second)
		require.Zero(t, q.Len(), "in work")
		require.NoError(t, q.Done("k", nil))
		require.Equal(t, 1, q.Len())
		pass(time.Second) // the second is due while the run for the first waits
		run(t, q, nil)
		require.Zero(t, q.Len())
		pass(time.Second)
		run(t, q, nil)
		require.Zero(t, q.Stats())
	})
}

func TestQ04_RemindersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		start := time.Now()
		for i := range 16 {
			q.Remind("k", time.Duration(i*i+1)*time.Minute) // 1, 2, 5, 10 … 226
		}
		q.Remind("k", 230*time.Minute) // nearest are 1 and 2
		q.Remind("k", 12*time.Minute)  // nearest are 10 and 12
		var at []int
		for q.Stats().Delayed > 0 {
			pass(time.Minute)
			if q.Len() > 0 {
				at = append(at, int(time.Since(start)/time.Minute))
				run(t, q, nil)
			}
		}
		require.Equal(t, []int{2, 5, 12, 17, 26, 37, 50, 65, 82, 101, 122, 145, 170, 197, 226, 230}, at)
	})
}

func TestQ05_EarliestWins(t *testing.T) {
	for name, plan := range map[string][]time.Duration{
		"later after earlier": {time.Second, time.Hour},
		"earlier after later": {time.Hour, time.Second},
		"between":             {time.Hour, time.Second, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.New[string](nil)
				for _, d := range plan {
					q.AddAfter("k", d)
				}
				e, _ := q.Explain("k")
				require.Equal(t, time.Now().Add(time.Second), e.Due)
				pass(time.Second - 1)
				require.Zero(t, q.Len())
				pass(1)
				run(t, q, nil)
				require.Zero(t, q.Stats())
			})
		})
	}
}

func TestQ06_OneTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[int](nil)
		goroutines := runtime.NumGoroutine()
		const keys, wakeups = 100_000, 1_000
		for i := range keys - wakeups {
			q.AddAfter(i, 24*time.Hour)
		}
		for i := range wakeups {
			q.AddAfter(keys-wakeups+i, 24*time.Hour-time.Duration(i)*time.Second) // each is the new first
		}
		// Others of the test process come and go; a hundred thousand do not.
		require.Less(t, runtime.NumGoroutine(), goroutines+100, "who waits is no goroutine")
		pass(24*time.Hour - wakeups*time.Second/2)
		require.Equal(t, wakeups/2, q.Len())
		pass(wakeups * time.Second / 2)
		require.Equal(t, keys, q.Len())
		q.Abort()
	})
	t.Run("set anew, not made anew", func(t *testing.T) {
		q := workqueue.New[int](nil)
		d := 24 * time.Hour
		q.AddAfter(0, d)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			d -= time.Second
			q.AddAfter(0, d)
		}))
		q.Abort()
	})
}

func TestQ06_BothEndsStopTheTimer(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, q *workqueue.Queue[int]){
		"Abort":   func(_ *testing.T, q *workqueue.Queue[int]) { q.Abort() },
		"Drain":   func(t *testing.T, q *workqueue.Queue[int]) { q.Drain(t.Context()) },
		"neither": func(*testing.T, *workqueue.Queue[int]) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.New[int](nil)
				q.AddAfter(1, time.Hour)
				end(t, q)
				require.Equal(t, name == "neither", q.Ticks())
				pass(2 * time.Hour)
				require.Equal(t, workqueue.Delayed, state(q, 1))
				q.Abort()
			})
		})
	}
}

// A queue that only has keys in work, or none, does not tick.
func TestQ06_AnIdleQueueDoesNotTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[int](nil)
		q.Add(1, 2)
		get(t, q)
		pass(2 * time.Second)
		require.False(t, q.Ticks())
		q.AddAfter(3, time.Minute)
		pass(time.Minute)
		require.Equal(t, 2, q.Len())
		pass(2 * time.Second)
		require.False(t, q.Ticks())
		q.Abort()
	})
}

func TestQ07_NothingIsRetained(t *testing.T) {
	keys := 1_000_000
	if operations < keys {
		keys = 50_000 // under the race detector
	}
	q := workqueue.New[int](&workqueue.Options[int]{Backoff: retry.Backoff{Base: time.Hour}})
	for i := range keys {
		q.Add(i)
		key, err := q.Get(t.Context())
		if err != nil || q.Done(key, errBoom) != nil {
			t.Fatal(key, err)
		}
	}
	require.Equal(t, keys, q.Stats().Delayed)
	for i := range keys {
		if !q.Cancel(i) { // deleted
			t.Fatal(i)
		}
	}
	require.Zero(t, q.Stats())
	for range q.Keys(0) {
		t.Error("a key is left")
	}
	r := q.Retained()
	require.Zero(t, r.Keys)
	require.LessOrEqual(t, r.Free, workqueue.Keep)
	require.LessOrEqual(t, r.More, workqueue.KeepMore)
	require.LessOrEqual(t, r.Heap, 2*workqueue.Keep)
	require.LessOrEqual(t, r.Peak, workqueue.Keep)
	q.Abort()
}

// Each way in which a key ends takes its failures along.
func TestQ07_FailuresAreDropped(t *testing.T) {
	ends := map[string]func(q *workqueue.Queue[string]){
		"success": func(q *workqueue.Queue[string]) { q.Add("k"); run(t, q, nil) },
		"cancel":  func(q *workqueue.Queue[string]) { q.Cancel("k") },
		"parked, released, succeeded": func(q *workqueue.Queue[string]) {
			q.Add("k")
			run(t, q, retry.Permanent(errBoom))
			q.Forget("k")
			run(t, q, nil)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.New[string](nil)
				q.AddWith("k", workqueue.AddOptions{Reason: "why"})
				run(t, q, errBoom)
				q.Remind("k", time.Hour)
				e, known := q.Explain("k")
				require.True(t, known)
				require.Equal(t, 1, e.Attempts)
				end(q)
				q.Cancel("k") // the reminder
				_, known = q.Explain("k")
				require.False(t, known)
				q.Add("k") // on the same, reused entry
				e, _ = q.Explain("k")
				require.Zero(t, e.Attempts)
				require.NoError(t, e.Err)
				require.Empty(t, e.Reasons)
				require.Equal(t, e.Since, e.Due)
				run(t, q, nil)
				require.Zero(t, q.Stats(), "and no reminder")
			})
		})
	}
}

func TestQ08_DuplicatesCostOneToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](&workqueue.Options[string]{Budget: retry.NewBudget(10, 1)})
		start := time.Now()
		for range 1000 {
			q.Add("hot")
		}
		q.Add("other")
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			q.Run(ctx, 3, func(_ context.Context, key string) error {
				if key == "other" {
					require.LessOrEqual(t, time.Since(start), 200*time.Millisecond)
					cancel()
				}
				return nil
			})
		})
		all.Wait()
		require.Zero(t, q.Stats())
	})
}

func TestQ16_ForgottenKeysAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		q.Add("zombie", "fine")
		get(t, q)
		pass(30 * time.Second)
		require.Equal(t, "fine", get(t, q))
		pass(30 * time.Second)
		var names []string
		var ages []time.Duration
		for e := range q.Keys(workqueue.Working) {
			names = append(names, e.Key)
			ages = append(ages, time.Since(e.Since))
		}
		require.Equal(t, []string{"zombie", "fine"}, names, "longest first")
		require.Equal(t, []time.Duration{time.Minute, 30 * time.Second}, ages)
		q.Abort()
	})
}

func TestQ19_ForgetIsNotCancel(t *testing.T) {
	hour := &workqueue.Options[string]{Backoff: retry.Backoff{Schedule: []time.Duration{time.Hour, 2 * time.Hour}}}
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(hour)
		q.Add("cancelled", "forgotten")
		run(t, q, errBoom)
		run(t, q, errBoom)
		require.True(t, q.Cancel("cancelled"))
		q.Forget("forgotten")
		e, _ := q.Explain("forgotten")
		require.Zero(t, e.Attempts)
		require.NoError(t, e.Err)
		pass(time.Hour)
		require.Equal(t, "forgotten", run(t, q, errBoom))
		pass(time.Hour)
		require.Equal(t, "forgotten", run(t, q, nil), "it counts from the first again")
		pass(10 * time.Hour)
		require.Zero(t, q.Stats())
		q.Forget("unknown")
		require.False(t, q.Cancel("unknown"))
		require.Zero(t, q.Stats())
	})
}
