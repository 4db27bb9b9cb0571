package workqueue_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/retry"
	"github.com/homeostat/homeostat/workqueue"
	"github.com/stretchr/testify/require"
)

// watched is what a stress knows of a key.
type watched struct {
	running atomic.Int32
	wanted  atomic.Int64 // adds so far, counted before each
	seen    atomic.Int64 // adds before the last run started
	runs    atomic.Int64
}

// work checks that the key is with nobody else, and notes what this run covers.
func (w *watched) work(t *testing.T, inside func()) {
	if n := w.running.Add(1); n != 1 {
		t.Errorf("%d workers have one key", n)
	}
	defer w.running.Add(-1)
	w.seen.Store(w.wanted.Load())
	w.runs.Add(1)
	inside()
}

func TestQ17_OneWorkerPerKey(t *testing.T) {
	const workers, adds, keys = 8, 10_000, 20
	q := workqueue.New[int](nil)
	var all [keys]watched
	var running sync.WaitGroup
	running.Go(func() {
		q.Run(t.Context(), workers, func(_ context.Context, key int) error {
			all[key].work(t, func() {})
			return nil
		})
	})
	var producers sync.WaitGroup
	for range 4 {
		producers.Go(func() {
			for range adds / 4 {
				key := rand.IntN(keys)
				all[key].wanted.Add(1)
				q.Add(key)
			}
		})
	}
	producers.Wait()
	_, err := q.Drain(t.Context())
	require.NoError(t, err)
	running.Wait()
	for key := range all {
		require.Equal(t, all[key].wanted.Load(), all[key].seen.Load(), "the last run of %d started before its last add", key)
	}
	require.Zero(t, q.Stats())
}

// Whatever is done to the queue from many goroutines, a key is never with two
// workers, and an add that nobody cancelled is followed by a run.
func TestG6_Stress(t *testing.T) {
	const keys, producers, ops = 20, 4, 1500
	seed := uint64(time.Now().UnixNano())
	for round := range 4 {
		synctest.Test(t, func(t *testing.T) {
			q := workqueue.New(&workqueue.Options[int]{
				Backoff: retry.Backoff{Base: time.Millisecond, Max: 20 * time.Millisecond},
				Park:    workqueue.Park{Attempts: 5},
			})
			var all [keys]watched
			var quiet atomic.Bool // from then on all work succeeds
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			for range 2 {
				running.Go(func() {
					q.Run(ctx, 4, func(_ context.Context, key int) (err error) {
						all[key].work(t, func() {
							if rand.IntN(4) == 0 {
								time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
							}
							if quiet.Load() {
								return
							}
							switch rand.IntN(12) {
							case 0:
								err = errBoom
							case 1:
								err = retry.Later(time.Duration(rand.IntN(2))*time.Millisecond, "x")
							case 2:
								err = retry.After(errBoom, 5*time.Millisecond)
							case 3:
								err = retry.Permanent(errBoom)
							case 4:
								panic("stress")
							case 5: // triggers itself
								all[key].wanted.Add(1)
								q.Add(key)
							}
						})
						return err
					})
				})
			}
			var sending sync.WaitGroup
			for p := range producers {
				sending.Go(func() {
					rng := rand.New(rand.NewPCG(seed, uint64(round*producers+p)))
					for range ops {
						key := rng.IntN(keys)
						all[key].wanted.Add(1)
						switch rng.IntN(8) {
						case 0:
							q.AddAfter(key, time.Duration(rng.IntN(3000))*time.Microsecond)
						case 1:
							q.Remind(key, time.Duration(rng.IntN(3000))*time.Microsecond)
						case 2:
							q.AddWith(key, workqueue.AddOptions{Reason: "stress"})
						case 3:
							q.Cancel(key) // and what it dropped is wanted again
							q.Add(key)
						case 4:
							q.Forget(key)
							q.Add(key)
						default:
							q.Add(key)
						}
						if rng.IntN(10) == 0 {
							time.Sleep(time.Duration(rng.IntN(500)) * time.Microsecond)
						}
						if rng.IntN(50) == 0 {
							q.Stats()
							for range q.Keys(0) {
							}
						}
					}
				})
			}
			sending.Wait()
			quiet.Store(true)
			pass(time.Minute)
			for key := range all {
				require.Equal(t, all[key].wanted.Load(), all[key].seen.Load(), "seed %d: key %d", seed, key)
				require.Positive(t, all[key].runs.Load())
			}
			st := q.Stats()
			require.Zero(t, st.Due+st.Delayed+st.Working)
			left, err := q.Drain(t.Context())
			require.NoError(t, err)
			require.Empty(t, left)
			stop()
			running.Wait()
		})
	}
}
