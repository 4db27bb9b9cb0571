package workqueue_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/retry"
	"github.com/homeostat/homeostat/workqueue"
	"github.com/stretchr/testify/require"
)

func TestRunEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[int](nil)
		q.Add(1, 2, 3, 4, 5)
		type ctxKey struct{}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), ctxKey{}, "mine"))
		start := time.Now()
		var mu sync.Mutex
		var ran []int
		time.AfterFunc(time.Second, cancel)
		err := q.Run(ctx, 2, func(ctx context.Context, key int) error {
			require.Equal(t, "mine", ctx.Value(ctxKey{}))
			<-ctx.Done() // it is told, and takes its time
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			ran = append(ran, key)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, time.Since(start), "it waits for the work under way")
		require.ElementsMatch(t, []int{1, 2}, ran)
		require.Equal(t, []int{3, 4, 5}, keysOf(q, workqueue.Due), "the rest stays")
		require.NoError(t, q.Run(ctx, 1, func(context.Context, int) error { t.Error("ran"); return nil }))

		// Another Run goes on, two at once share.
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				require.NoError(t, q.Run(t.Context(), 1, func(_ context.Context, key int) error {
					time.Sleep(time.Second)
					return nil
				}))
			})
		}
		start = time.Now()
		left, err := q.Drain(t.Context())
		require.NoError(t, err)
		require.Empty(t, left)
		require.Equal(t, 2*time.Second, time.Since(start))
		all.Wait()
	})
}

func TestRunEndsWithAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[int](nil)
		q.Add(1, 2)
		time.AfterFunc(time.Second, func() { q.Abort() })
		start := time.Now()
		require.NoError(t, q.Run(t.Context(), 1, func(context.Context, int) error {
			time.Sleep(5 * time.Second)
			return errBoom
		}))
		require.Equal(t, 5*time.Second, time.Since(start))
		require.Equal(t, []int{2, 1}, q.Abort())
	})
}

func TestG6_PanicIsAFailure(t *testing.T) {
	values := map[string]any{
		"text":            "no such pod",
		"error":           errBoom,
		"nil":             nil,
		"a retry word":    retry.Later(0, "never mind"),
		"a permanent one": retry.Permanent(errBoom),
	}
	for name, value := range values {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.New(&workqueue.Options[string]{Backoff: retry.Backoff{Base: time.Hour}})
				q.Add("ns/bad", "good")
				go q.Run(t.Context(), 1, func(_ context.Context, key string) error {
					if key == "ns/bad" {
						panic(value)
					}
					return nil
				})
				synctest.Wait()
				e, _ := q.Explain("ns/bad")
				require.Equal(t, workqueue.Delayed, e.State)
				require.Equal(t, 1, e.Attempts)
				p, ok := errors.AsType[*workqueue.PanicError](e.Err)
				require.True(t, ok)
				require.Equal(t, "ns/bad", p.Key)
				if value != nil {
					require.Equal(t, value, p.Value)
				}
				require.Contains(t, string(p.Stack), "run_test.go")
				require.ErrorContains(t, e.Err, `workqueue: panic while working on "ns/bad": `)
				require.Equal(t, workqueue.Stats{Delayed: 1}, q.Stats(), "the rest goes on")
				q.Abort()
			})
		})
	}
}

// rude panics when it is asked.
type rude struct{}

func (rude) Error() string             { return "rude" }
func (rude) RetryAfter() time.Duration { panic("how dare you") }

func TestG6_PanicOfAnOutcomeIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		q.Add("k")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		require.NoError(t, q.Run(ctx, 1, func(context.Context, string) error { cancel(); return rude{} }))
		e, _ := q.Explain("k")
		require.ErrorContains(t, e.Err, "how dare you")
		q.Abort()
	})
}

// Work that ends its goroutine, as t.FailNow does, ends neither its key nor the
// worker.
func TestG6_GoexitIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(&workqueue.Options[string]{Backoff: retry.Backoff{Schedule: []time.Duration{time.Second}}})
		q.Add("k", "other")
		tries := 0
		var ran []string
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, q.Run(ctx, 1, func(_ context.Context, key string) error {
			if key == "k" {
				if tries++; tries <= 2 {
					runtime.Goexit()
				}
				e, _ := q.Explain("k")
				require.Equal(t, 2, e.Attempts)
				require.ErrorContains(t, e.Err, "Goexit")
				cancel()
			}
			ran = append(ran, key)
			return nil
		}))
		require.Equal(t, []string{"other", "k"}, ran)
		require.Zero(t, q.Stats())
	})
}
