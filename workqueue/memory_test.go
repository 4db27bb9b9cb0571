package workqueue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/homeostat/homeostat/retry"
	"github.com/homeostat/homeostat/workqueue"
	"github.com/stretchr/testify/require"
)

// A cycle uses entries again, also those with reasons, failures and reminders.
func TestCyclesDoNotAllocate(t *testing.T) {
	q := workqueue.New(&workqueue.Options[string]{Backoff: retry.Backoff{Schedule: []time.Duration{0}}})
	defer q.Abort()
	cycle := func(outcome error) {
		key, err := q.Get(t.Context())
		if err != nil || q.Done(key, outcome) != nil {
			t.Fatal(key, err)
		}
	}
	for name, f := range map[string]func(){
		"add":       func() { q.Add("a"); q.Add("a"); cycle(nil) },
		"several":   func() { q.Add("a", "b"); cycle(nil); cycle(nil) },
		"reason":    func() { q.AddWith("a", workqueue.AddOptions{Reason: "x"}); cycle(nil) },
		"failure":   func() { q.Add("a"); cycle(errBoom); cycle(nil) },
		"delay":     func() { q.AddAfter("a", time.Hour); q.Add("a"); cycle(nil) },
		"reminder":  func() { q.Remind("a", time.Hour); q.Cancel("a") },
		"add twice": func() { q.Add("a"); k, _ := q.Get(t.Context()); q.Add("a"); q.Done(k, nil); cycle(nil) },
	} {
		require.Zero(t, testing.AllocsPerRun(200, f), name)
		require.Zero(t, q.Retained().Keys, name)
	}
}

func TestRunDoesNotAllocate(t *testing.T) {
	q := workqueue.New[int](nil)
	allocs := testing.AllocsPerRun(1, func() {
		left := 1000
		ctx, cancel := context.WithCancel(t.Context())
		q.Add(1, 2, 3)
		q.Run(ctx, 1, func(_ context.Context, key int) error {
			if left--; left == 0 {
				cancel()
				return nil
			}
			q.Add(key)
			return nil
		})
	})
	require.Less(t, allocs, 50.0, "for a thousand runs")
}

func TestEntryIsSmall(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("sizes are those of 64 bits")
	}
	require.LessOrEqual(t, workqueue.EntrySize, uintptr(64))
}

// What a burst needed is given back, also while a few keys stay.
func TestMemoryGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[int](nil)
		const burst = 100_000
		for i := range burst {
			q.AddAfter(i, time.Duration(i)*time.Millisecond)
		}
		require.GreaterOrEqual(t, q.Retained().Heap, burst)
		pass(burst * time.Millisecond)
		for range burst - 10 {
			key, _ := q.Get(t.Context())
			q.Done(key, nil)
		}
		r := q.Retained()
		require.Equal(t, 10, r.Keys)
		require.Equal(t, workqueue.Keep, r.Free)
		require.LessOrEqual(t, r.Heap, 2*workqueue.Keep)
		require.LessOrEqual(t, r.Peak, burst/64)
		require.Equal(t, 10, q.Len(), "and they are all there")
		for i := range 10 {
			require.Equal(t, burst-10+i, run(t, q, nil))
		}
		require.Zero(t, q.Retained().Keys)
	})
}

// Nothing of a thousand blocked callers stays.
func TestWaitersAreReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[int](nil)
		ctx, cancel := context.WithCancel(t.Context())
		for range 1000 {
			go q.Get(ctx)
		}
		synctest.Wait()
		require.Equal(t, 1000, q.Retained().Waiting)
		cancel()
		synctest.Wait()
		r := q.Retained()
		require.Zero(t, r.Waiting)
		require.Equal(t, 64, r.Idle)

		taken := 0
		for range 100 {
			go func() { q.Get(t.Context()); taken++ }()
			synctest.Wait()
			q.Add(taken)
			synctest.Wait()
		}
		require.Equal(t, 100, taken)
		require.Equal(t, 64, q.Retained().Idle)
		q.Abort()
	})
}
