package workqueue_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/retry"
	"github.com/homeostat/homeostat/workqueue"
	"github.com/stretchr/testify/require"
)

func TestCancelTellsWhetherThereWasAnything(t *testing.T) {
	tests := map[string]struct {
		plan func(q *workqueue.Queue[string])
		had  bool
		left workqueue.State
	}{
		"nothing":               {func(q *workqueue.Queue[string]) {}, false, 0},
		"queued":                {func(q *workqueue.Queue[string]) { q.Add("k") }, true, 0},
		"delayed":               {func(q *workqueue.Queue[string]) { q.AddAfter("k", 1) }, true, 0},
		"reminder":              {func(q *workqueue.Queue[string]) { q.Remind("k", 1) }, true, 0},
		"retry":                 {func(q *workqueue.Queue[string]) { q.Add("k"); run(t, q, errBoom) }, true, 0},
		"parked":                {func(q *workqueue.Queue[string]) { q.Add("k"); run(t, q, retry.Permanent(errBoom)) }, true, 0},
		"in work":               {func(q *workqueue.Queue[string]) { q.Add("k"); get(t, q) }, false, workqueue.Working},
		"in work, wanted":       {func(q *workqueue.Queue[string]) { q.Add("k"); get(t, q); q.Add("k") }, true, workqueue.Working},
		"in work, delayed":      {func(q *workqueue.Queue[string]) { q.Add("k"); get(t, q); q.AddAfter("k", 1) }, true, workqueue.Working},
		"in work with reminder": {func(q *workqueue.Queue[string]) { q.Add("k"); get(t, q); q.Remind("k", 1) }, true, workqueue.Working},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.New[string](nil)
				q.Add("before")
				get(t, q)
				tt.plan(q)
				q.Add("after")
				require.Equal(t, tt.had, q.Cancel("k"))
				require.Equal(t, tt.left, state(q, "k"))
				require.False(t, q.Cancel("k"), "twice")
				if tt.left == workqueue.Working {
					require.NoError(t, q.Done("k", nil))
				}
				pass(time.Hour)
				require.Equal(t, []string{"after"}, keysOf(q, workqueue.Due))
				require.Equal(t, workqueue.State(0), state(q, "k"))
				require.Zero(t, q.Stats().Parked)
				require.Zero(t, q.Stats().Delayed)
				q.Abort()
			})
		})
	}
}

func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[int](nil)
		for i := range 50 {
			q.AddAfter(i, time.Minute)
		}
		q.Add(100, 101, 100, 102)
		q.AddAfter(103, time.Second)
		q.Remind(10, time.Second) // its delay comes with it
		q.Cancel(101)
		q.Cancel(20)
		pass(time.Second)
		q.Add(104)
		require.Equal(t, []int{100, 102, 103, 10, 104}, keysOf(q, workqueue.Due))
		pass(time.Minute)
		want := []int{100, 102, 103, 10, 104}
		for i := range 50 {
			if i != 10 && i != 20 {
				want = append(want, i)
			}
		}
		require.Equal(t, want, keysOf(q, workqueue.Due), "of equal times the one planned first")
		var got []int
		for q.Len() > 0 {
			got = append(got, run(t, q, nil))
		}
		require.Equal(t, want, got)
		require.True(t, slices.IsSorted(want[5:]))
	})
}

// Many keys fall due at one moment: more than are made due under one lock.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[int](nil)
		for i := range 5000 {
			q.AddAfter(i, time.Minute)
		}
		q.AddAfter(-1, 2*time.Minute)
		pass(time.Minute)
		require.Equal(t, 5000, q.Len())
		pass(time.Minute)
		require.Equal(t, 5001, q.Len())
		q.Abort()
	})
}
