package workqueue_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/retry"
	"github.com/homeostat/homeostat/workqueue"
	"github.com/stretchr/testify/require"
)

// While a key waits for a turn it is still in the queue.
func TestBudgetKeepsKeysInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(&workqueue.Options[string]{Budget: retry.NewBudget(1, 1)})
		q.Add("a", "b", "c")
		start := time.Now()
		got := make(chan string, 9)
		for range 5 { // more than there are keys
			go func() {
				for {
					key, err := q.Get(t.Context())
					if err != nil {
						return
					}
					got <- key
				}
			}()
		}
		synctest.Wait()
		require.Equal(t, "a", <-got)
		require.Equal(t, []string{"b", "c"}, keysOf(q, workqueue.Due))
		q.Cancel("b")
		q.Add("c", "d")
		pass(time.Second)
		require.Equal(t, "c", <-got, "the first when the turn comes")
		pass(time.Second)
		require.Equal(t, "d", <-got)
		// Nobody waits for a turn, or holds one, without a key for it: the second
		// that passed unused is there.
		pass(1500 * time.Millisecond)
		q.Add("x")
		synctest.Wait()
		require.Equal(t, "x", <-got)
		pass(8500 * time.Millisecond)
		q.Add("e", "f")
		synctest.Wait()
		require.Equal(t, "e", <-got)
		require.Empty(t, got)
		pass(time.Second)
		require.Equal(t, "f", <-got)
		require.Equal(t, 13*time.Second, time.Since(start))
		q.Abort()
	})
}

func TestBudgetWaitEnds(t *testing.T) {
	for name, end := range map[string]func(q *workqueue.Queue[string], cancel func()) error{
		"Abort":   func(q *workqueue.Queue[string], _ func()) error { q.Abort(); return workqueue.ErrClosed },
		"context": func(_ *workqueue.Queue[string], cancel func()) error { cancel(); return context.Canceled },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				budget := retry.NewBudget(0, 0)
				q := workqueue.New(&workqueue.Options[string]{Budget: budget})
				q.Add("a")
				budget.Pause(time.Hour)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				start := time.Now()
				var all sync.WaitGroup
				var got error
				all.Go(func() { _, got = q.Get(ctx) })
				pass(time.Second)
				want := end(q, cancel)
				all.Wait()
				require.Equal(t, want, got)
				require.Equal(t, time.Second, time.Since(start))
				require.Equal(t, []string{"a"}, keysOf(q, workqueue.Due))
				q.Abort()
			})
		})
	}
	t.Run("and another goes on", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			budget := retry.NewBudget(0, 0)
			q := workqueue.New(&workqueue.Options[string]{Budget: budget})
			q.Add("a")
			budget.Pause(time.Minute)
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			all.Go(func() { q.Get(ctx) })
			synctest.Wait()
			start := time.Now()
			all.Go(func() { // waits for a key: the one there is spoken for
				key, err := q.Get(t.Context())
				if key != "a" || err != nil || time.Since(start) != time.Minute {
					t.Error(key, err, time.Since(start))
				}
			})
			synctest.Wait()
			cancel()
			all.Wait()
			q.Abort()
		})
	})
}

// The key for which a turn was awaited may be gone when it comes.
func TestBudgetTurnWithoutKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := retry.NewBudget(0, 0)
		q := workqueue.New(&workqueue.Options[string]{Budget: budget})
		q.Add("gone")
		budget.Pause(time.Second)
		got := make(chan string, 1)
		go func() {
			key, _ := q.Get(t.Context())
			got <- key
		}()
		synctest.Wait()
		q.Cancel("gone")
		pass(time.Minute)
		require.Empty(t, got)
		q.Add("here")
		synctest.Wait()
		require.Equal(t, "here", <-got)
		q.Abort()
	})
}

func TestPauseHoldsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := retry.NewBudget(0, 0)
		q := workqueue.New(&workqueue.Options[string]{Budget: budget})
		q.Add("a", "b")
		start := time.Now()
		var at []time.Duration
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		q.Run(ctx, 1, func(ctx context.Context, key string) error {
			at = append(at, time.Since(start))
			if len(at) == 2 {
				cancel()
			}
			return budget.Do(ctx, func() error { return retry.After(errBoom, time.Minute) })
		})
		require.Equal(t, []time.Duration{0, time.Minute}, at)
		q.Abort()
	})
}
