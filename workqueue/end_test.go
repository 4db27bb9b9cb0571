package workqueue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/retry"
	"github.com/homeostat/homeostat/workqueue"
	"github.com/stretchr/testify/require"
)

func endedContext(t *testing.T, cause error) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	return ctx
}

func TestDrainReturnsWhatIsDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(&workqueue.Options[string]{Backoff: retry.Backoff{Base: time.Minute}})
		q.AddAfter("third", time.Hour)
		q.Remind("first", time.Second)
		q.AddAfter("second", time.Second) // of equal times the one planned first
		q.Add("fails", "parks", "comes back", "goes on", "fine")
		q.Remind("fine", 2*time.Hour)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		started := make(chan struct{}, 9)
		go q.Run(ctx, 1, func(_ context.Context, key string) error {
			started <- struct{}{}
			time.Sleep(time.Second)
			switch key {
			case "fails":
				return errBoom
			case "parks":
				return retry.Permanent(errBoom)
			case "comes back":
				return retry.Later(time.Second, "")
			case "goes on":
				return retry.Later(0, "for ever")
			}
			return nil
		})
		<-started
		start := time.Now()
		left, err := q.Drain(t.Context())
		require.NoError(t, err)
		require.Equal(t, 5*time.Second, time.Since(start))
		// "comes back" is planned for 3 s + 1 s, "goes on" for the fourth second.
		require.Equal(t, []string{"first", "second", "comes back", "goes on", "fails", "third", "fine"}, left)
		again, err := q.Drain(endedContext(t, nil))
		require.NoError(t, err)
		require.Equal(t, left, again)
		require.Equal(t, left, q.Abort())
		again, err = q.Drain(t.Context())
		require.NoError(t, err)
		require.Equal(t, left, again)

		pass(24 * time.Hour)
		require.Zero(t, q.Len(), "no delay runs out any more")
		require.Equal(t, []string{"parks"}, keysOf(q, workqueue.Parked))
		q.Forget("parks")
		require.Equal(t, workqueue.Parked, state(q, "parks"))
		e, _ := q.Explain("parks")
		require.Error(t, e.Err)
		require.True(t, q.Cancel("third"))
		require.NotContains(t, q.Abort(), "third")
	})
}

func TestDrainRefusesAdds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		q.Add("a")
		get(t, q)
		_, err := q.Drain(endedContext(t, nil))
		require.Error(t, err)
		q.Add("a", "b")
		q.AddAfter("c", 1)
		q.AddWith("d", workqueue.AddOptions{Reason: "x"})
		q.Remind("a", 1)
		q.Remind("a", 0)
		require.Equal(t, workqueue.Stats{Working: 1, Refused: 6}, q.Stats())
		require.NoError(t, q.Done("a", nil))
		require.Equal(t, workqueue.Stats{Refused: 6}, q.Stats())
		_, err = q.Get(t.Context())
		require.Equal(t, workqueue.ErrClosed, err)
	})
}

func TestDrainGivesUpWithItsContext(t *testing.T) {
	cause := errors.New("no more time")
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		q.Add("held a")
		get(t, q)
		pass(2 * time.Second)
		q.Add("held b", "queued", "wanted")
		q.AddAfter("delayed", time.Hour)
		get(t, q)
		q.Remind("held a", time.Minute)
		q.Add("held b")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		start := time.Now()
		left, err := q.Drain(ctx)
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, []string{"queued", "wanted", "delayed"}, left)
		held, ok := errors.AsType[*workqueue.HeldError[string]](err)
		require.True(t, ok)
		require.Equal(t, []string{"held a", "held b"}, held.Keys, "longest first")
		require.Equal(t, 2, held.Queued)
		require.ErrorIs(t, err, cause)
		require.EqualError(t, err, `workqueue: not drained, 2 keys in work ("held a", "held b"), 2 queued: no more time`)

		// It goes on draining: what is queued is still handed out.
		require.Equal(t, "queued", run(t, q, nil))
		require.Equal(t, "wanted", run(t, q, nil))
		require.NoError(t, q.Done("held a", nil))
		require.NoError(t, q.Done("held b", nil))
		require.Equal(t, "held b", run(t, q, nil))
		left, err = q.Drain(ctx)
		require.NoError(t, err, "drained counts, though ctx has ended")
		require.Equal(t, []string{"held a", "delayed"}, left)
	})
}

func TestHeldErrorIsShort(t *testing.T) {
	q := workqueue.New[int](nil)
	for i := range 13 {
		q.Add(i)
		get(t, q)
	}
	_, err := q.Drain(endedContext(t, nil))
	require.ErrorIs(t, err, context.Canceled)
	require.Regexp(t, `^workqueue: not drained, 13 keys in work \((\d+, ){10}3 more\), 0 queued: context canceled$`, err.Error())
	q.Abort()
}

// The last key may leave by Cancel.
func TestDrainEndsByCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		q.Add("a", "b")
		done := make(chan struct{})
		go func() {
			defer close(done)
			left, err := q.Drain(t.Context())
			if len(left) > 0 || err != nil {
				t.Error(left, err)
			}
		}()
		synctest.Wait()
		q.Cancel("a")
		synctest.Wait()
		select {
		case <-done:
			t.Error("too early")
		default:
		}
		q.Cancel("b")
		<-done
	})
}

func TestAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(&workqueue.Options[string]{Backoff: retry.Backoff{Base: time.Minute}})
		q.Add("quiet", "wanted", "reminded", "fails", "parked")
		for range 5 {
			get(t, q)
		}
		require.NoError(t, q.Done("parked", retry.Permanent(errBoom)))
		q.Add("wanted")
		q.Remind("reminded", 2*time.Hour)
		q.AddAfter("delayed", time.Hour)
		var blocked sync.WaitGroup
		for range 10 {
			blocked.Go(func() {
				if _, err := q.Get(t.Context()); err != workqueue.ErrClosed {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		q.Add() // nothing, wakes nobody
		require.Equal(t, []string{"wanted", "delayed", "reminded"}, q.Abort())
		blocked.Wait()
		require.Equal(t, []string{"wanted", "delayed", "reminded"}, q.Abort())
		_, err := q.Get(t.Context())
		require.Equal(t, workqueue.ErrClosed, err)
		_, err = q.Get(endedContext(t, nil))
		require.Equal(t, workqueue.ErrClosed, err)

		// Drain then waits for what is in work, and only for that.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		left, err := q.Drain(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, []string{"delayed"}, left)
		drained := make(chan error)
		go func() { _, err := q.Drain(t.Context()); drained <- err }()
		synctest.Wait()
		require.NoError(t, q.Done("quiet", nil))
		require.NoError(t, q.Done("wanted", nil))
		require.NoError(t, q.Done("reminded", nil))
		require.NoError(t, q.Done("fails", errBoom))
		require.NoError(t, <-drained)
		require.Equal(t, []string{"wanted", "fails", "delayed", "reminded"}, q.Abort(), "what the last runs asked for is named")
		q.Add("x")
		require.EqualValues(t, 1, q.Stats().Refused)
		pass(24 * time.Hour)
		require.Equal(t, 1, q.Len(), "nothing falls due")
	})
}

func TestAbortEndsADrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		q.Add("a", "b")
		get(t, q)
		type answer struct {
			left []string
			err  error
		}
		drained := make(chan answer, 1)
		go func() { left, err := q.Drain(t.Context()); drained <- answer{left, err} }()
		synctest.Wait()
		require.Equal(t, []string{"b"}, q.Abort())
		synctest.Wait()
		require.Empty(t, drained, "a is in work")
		require.NoError(t, q.Done("a", nil))
		require.Equal(t, answer{[]string{"b"}, nil}, <-drained)
	})
}

// Everything at once, in any order, and nobody hangs.
func TestEndsTogether(t *testing.T) {
	for i := range 50 {
		synctest.Test(t, func(t *testing.T) {
			q := workqueue.New(&workqueue.Options[int]{Budget: retry.NewBudget(1e6, 1)})
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() {
					q.Run(ctx, 3, func(_ context.Context, key int) error {
						q.Add(key + 1)
						return []error{nil, errBoom, retry.Later(1, "")}[key%3]
					})
				})
			}
			q.Add(1, 2, 3, 4)
			all.Go(func() { time.Sleep(time.Duration(i) * time.Microsecond); q.Drain(t.Context()) })
			all.Go(func() { time.Sleep(time.Duration(i/2) * time.Microsecond); q.Drain(ctx) })
			all.Go(func() { time.Sleep(time.Duration(50-i) * time.Microsecond); q.Abort() })
			all.Go(func() { time.Sleep(30 * time.Microsecond); cancel() })
			all.Wait()
			_, err := q.Drain(t.Context())
			require.NoError(t, err)
			require.Zero(t, q.Stats().Working)
			require.Zero(t, q.Retained().Waiting)
		})
	}
}

func TestGetEndsWithContext(t *testing.T) {
	cause := errors.New("enough")
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		q.Add("a")
		_, err := q.Get(endedContext(t, cause))
		require.Equal(t, cause, err, "though a key is due")
		require.Equal(t, 1, q.Len())
		get(t, q)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		start := time.Now()
		_, err = q.Get(ctx)
		require.Equal(t, cause, err)
		require.Equal(t, time.Second, time.Since(start))
		require.Zero(t, q.Retained().Waiting)
		q.Abort()
	})
}

// A Get whose context ends may have been woken for a key; another one gets it.
func TestNoWakeUpIsLost(t *testing.T) {
	for _, budget := range []*retry.Budget{nil, retry.NewBudget(0, 0)} {
		for i := range 500 {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.New(&workqueue.Options[int]{Budget: budget})
				got := make(chan error, 9)
				take := func(ctx context.Context) {
					_, err := q.Get(ctx)
					got <- err
				}
				ctx, cancel := context.WithCancel(t.Context())
				stay, stop := context.WithCancel(t.Context())
				go take(stay)
				synctest.Wait()
				go take(ctx) // woken first
				synctest.Wait()
				switch i % 3 {
				case 0:
					q.Add(1)
					cancel()
				case 1: // its context has ended, but it does not know yet
					cancel()
					q.Add(1)
				default:
					go cancel()
					q.Add(1)
				}
				synctest.Wait()
				require.Zero(t, q.Len(), "run %d: one of the two takes it", i)
				stop()
				synctest.Wait()
				first, second := <-got, <-got
				require.True(t, (first == nil) != (second == nil), fmt.Sprint(first, second))

				// Nothing is left of the signal for those who wait next.
				for range 2 {
					go take(t.Context())
				}
				synctest.Wait()
				require.Equal(t, 2, q.Retained().Waiting)
				q.Add(2)
				q.Add(3)
				synctest.Wait()
				require.Zero(t, q.Len())
				require.Zero(t, q.Retained().Waiting)
			})
		}
	}
}
