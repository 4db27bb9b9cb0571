package workqueue_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/retry"
	"github.com/homeostat/homeostat/workqueue"
	"github.com/stretchr/testify/require"
)

func TestExplainFollowsAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(&workqueue.Options[string]{Backoff: retry.Backoff{Schedule: []time.Duration{10 * second}}})
		entry := func() workqueue.Entry[string] {
			t.Helper()
			e, known := q.Explain("k")
			require.True(t, known)
			return e
		}
		start := time.Now()
		q.AddWith("k", workqueue.AddOptions{After: 5 * second, Reason: "pod"})
		q.AddWith("k", workqueue.AddOptions{After: 7 * second, Reason: "pod"})
		q.AddWith("k", workqueue.AddOptions{Reason: "", After: 6 * second})
		want := workqueue.Entry[string]{Key: "k", State: workqueue.Delayed, Since: start, Due: start.Add(5 * second), Reasons: map[string]int{"pod": 2}}
		require.Equal(t, want, entry())
		pass(5 * second)
		want.State, want.Since = workqueue.Due, start.Add(5*second)
		require.Equal(t, want, entry())
		q.AddWith("k", workqueue.AddOptions{Reason: "node"}) // while it is queued
		pass(5 * second)
		get(t, q)
		want = workqueue.Entry[string]{Key: "k", State: workqueue.Working, Since: start.Add(10 * second), Reasons: map[string]int{"pod": 2, "node": 1}}
		require.Equal(t, want, entry())
		q.AddWith("k", workqueue.AddOptions{After: 3 * second, Reason: "node"})
		want.Due = start.Add(13 * second)
		require.Equal(t, want, entry(), "the reasons of the run in work, the time of the next")
		pass(2 * second)
		require.NoError(t, q.Done("k", errBoom))
		want = workqueue.Entry[string]{Key: "k", State: workqueue.Delayed, Since: start.Add(12 * second), Due: start.Add(13 * second),
			Attempts: 1, Err: errBoom, Reasons: map[string]int{"pod": 2, "node": 2}}
		require.Equal(t, want, entry(), "a failure keeps its reasons")
		pass(2 * second)
		get(t, q)
		require.NoError(t, q.Done("k", retry.Permanent(errBoom)))
		want.State, want.Since, want.Due, want.Attempts, want.Err = workqueue.Parked, start.Add(14*second), time.Time{}, 2, retry.Permanent(errBoom)
		require.Equal(t, want, entry())
		pass(2 * second)
		q.Remind("k", second)
		want.State, want.Since, want.Due, want.Attempts = workqueue.Delayed, start.Add(16*second), start.Add(17*second), 0
		require.Equal(t, want, entry())
		q.AddAfter("k", 2*second)
		require.Equal(t, want, entry(), "it waits since then, for the earlier")
		pass(second)
		get(t, q)
		q.AddWith("k", workqueue.AddOptions{Reason: "again"})
		require.NoError(t, q.Done("k", nil))
		want = workqueue.Entry[string]{Key: "k", State: workqueue.Due, Since: start.Add(17 * second), Due: start.Add(17 * second), Reasons: map[string]int{"again": 1}}
		require.Equal(t, want, entry(), "a success takes its reasons along")
		get(t, q)
		pass(2 * second)
		require.NoError(t, q.Done("k", retry.Later(4*second, "not there")))
		want.State, want.Since, want.Due, want.Err = workqueue.Delayed, start.Add(19*second), start.Add(23*second), retry.Later(4*second, "not there")
		require.Equal(t, want, entry(), "a later too keeps its reasons")
		pass(4 * second)
		get(t, q)
		q.Remind("k", 3*second)
		pass(2 * second)
		require.NoError(t, q.Done("k", nil))
		want = workqueue.Entry[string]{Key: "k", State: workqueue.Delayed, Since: start.Add(25 * second), Due: start.Add(26 * second)}
		require.Equal(t, want, entry())
		q.Cancel("k")
		_, known := q.Explain("k")
		require.False(t, known)
	})
}

func TestReasonsAreBounded(t *testing.T) {
	q := workqueue.New[string](nil)
	for range 2 {
		for i := range 100 {
			q.AddWith("k", workqueue.AddOptions{Reason: fmt.Sprint("pod ", i)})
		}
	}
	check := func(n, other int) {
		t.Helper()
		e, _ := q.Explain("k")
		require.Len(t, e.Reasons, 32)
		require.Equal(t, n, e.Reasons["pod 0"])
		require.Equal(t, n, e.Reasons["pod 30"])
		require.Equal(t, other, e.Reasons["(other)"])
	}
	check(2, 2*69)
	get(t, q)
	for i := range 100 {
		q.AddWith("k", workqueue.AddOptions{Reason: fmt.Sprint("pod ", i)})
	}
	check(2, 2*69)
	require.NoError(t, q.Done("k", errBoom))
	check(3, 3*69)
	q.Abort()
}

// Cancel in work drops the reasons of the run it drops, not of the one in work.
func TestCancelDropsReasons(t *testing.T) {
	q := workqueue.New[string](nil)
	q.AddWith("k", workqueue.AddOptions{Reason: "first"})
	get(t, q)
	q.AddWith("k", workqueue.AddOptions{Reason: "second"})
	q.Cancel("k")
	require.NoError(t, q.Done("k", errBoom))
	e, _ := q.Explain("k")
	require.Equal(t, map[string]int{"first": 1}, e.Reasons)
	q.Abort()
}

func TestSinceIsAtMostASecondEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[int](nil)
		for i := range 200 {
			q.Add(i)
			e, _ := q.Explain(i)
			early := time.Since(e.Since)
			require.True(t, 0 <= early && early <= 1100*time.Millisecond, "%d: %v early", i, early)
			time.Sleep(70 * time.Millisecond)
		}
		pass(time.Hour)
		q.Add(-1) // after a time without any the clock is read
		e, _ := q.Explain(-1)
		require.Equal(t, time.Now().Truncate(100*time.Millisecond), e.Since)

		// While it drains no timer runs, so the clock is read each time.
		_, err := q.Drain(endedContext(t, nil))
		require.Error(t, err)
		for range 3 {
			pass(time.Hour)
			key := get(t, q)
			e, _ := q.Explain(key)
			require.Equal(t, time.Now().Truncate(100*time.Millisecond), e.Since)
		}
		q.Abort()
	})
}

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		require.Zero(t, q.Stats())
		start := time.Now()
		q.Add("a", "b", "c", "d")
		pass(5 * second)
		q.AddAfter("e", time.Hour)
		q.Remind("f", time.Hour)
		run(t, q, retry.Permanent(errBoom))
		get(t, q)
		require.Equal(t, workqueue.Stats{Due: 2, Delayed: 2, Working: 1, Parked: 1, Oldest: start}, q.Stats())
		require.Equal(t, 2, q.Len())
		text, err := json.Marshal(q.Stats())
		require.NoError(t, err)
		require.JSONEq(t, `{"due":2,"delayed":2,"working":1,"parked":1,"oldest":"2000-01-01T00:00:00Z","refused":0}`, string(text))
		q.Cancel("c")
		q.Cancel("d")
		q.Add("g")
		require.Equal(t, start.Add(5*second), q.Stats().Oldest)
		q.Cancel("g")
		text, err = json.Marshal(q.Stats())
		require.NoError(t, err)
		require.JSONEq(t, `{"due":0,"delayed":2,"working":1,"parked":1,"refused":0}`, string(text))
		q.Abort()
	})
}

func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		q.Add("parked 1")
		run(t, q, retry.Permanent(errBoom))
		pass(2 * second)
		q.Add("parked 0", "working", "due 9", "due 1", "due 5")
		run(t, q, retry.Permanent(errBoom))
		get(t, q)
		q.AddAfter("delayed 3", 3*second)
		q.Remind("delayed 1", second)
		q.AddAfter("delayed 2", 2*second)
		require.Equal(t, []string{"due 9", "due 1", "due 5"}, keysOf(q, workqueue.Due))
		require.Equal(t, []string{"delayed 1", "delayed 2", "delayed 3"}, keysOf(q, workqueue.Delayed))
		require.Equal(t, []string{"working"}, keysOf(q, workqueue.Working))
		require.Equal(t, []string{"parked 1", "parked 0"}, keysOf(q, workqueue.Parked))
		require.Equal(t, []string{"due 9", "due 1", "due 5", "delayed 1", "delayed 2", "delayed 3", "working", "parked 1", "parked 0"}, keysOf(q, 0))
		require.Empty(t, keysOf(q, 77))
		for e := range q.Keys(0) { // it may be left, and the queue be used meanwhile
			q.Cancel(e.Key)
			q.Stats()
			break
		}
		require.Equal(t, 2, q.Len())
		seq := q.Keys(workqueue.Due)
		q.Cancel("due 1")
		for e := range seq {
			require.Equal(t, "due 5", e.Key, "as it is when the iteration begins")
		}
		q.Abort()
	})
}

func TestJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(&workqueue.Options[pair]{Backoff: retry.Backoff{Schedule: []time.Duration{second}}})
		key := pair{"ns", "name"}
		q.AddWith(key, workqueue.AddOptions{Reason: "pod"})
		text := func() string {
			e, _ := q.Explain(key)
			text, err := json.Marshal([]any{e, &e})
			require.NoError(t, err)
			var both []json.RawMessage
			require.NoError(t, json.Unmarshal(text, &both))
			require.JSONEq(t, string(both[0]), string(both[1]))
			return string(both[0])
		}
		require.JSONEq(t, `{"key":{"Namespace":"ns","Name":"name"},"state":"due","since":"2000-01-01T00:00:00Z","due":"2000-01-01T00:00:00Z","reasons":{"pod":1}}`, text())
		get(t, q)
		require.JSONEq(t, `{"key":{"Namespace":"ns","Name":"name"},"state":"working","since":"2000-01-01T00:00:00Z","reasons":{"pod":1}}`, text())
		require.NoError(t, q.Done(key, errBoom))
		require.JSONEq(t, `{"key":{"Namespace":"ns","Name":"name"},"state":"delayed","since":"2000-01-01T00:00:00Z","due":"2000-01-01T00:00:01Z","attempts":1,"error":"boom","reasons":{"pod":1}}`, text())
		q.Abort()
	})
}

func TestStateNames(t *testing.T) {
	for s, want := range map[workqueue.State]string{
		0: "unknown", workqueue.Due: "due", workqueue.Delayed: "delayed", workqueue.Working: "working", workqueue.Parked: "parked", 99: "State(99)",
	} {
		require.Equal(t, want, s.String())
		text, err := json.Marshal(s)
		require.NoError(t, err)
		require.Equal(t, `"`+want+`"`, string(text))
	}
}
