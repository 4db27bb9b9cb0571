package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/retry"
)

// A change that never can be mapped does not stand in the way of the next.
func TestWatchFuncGivesUpWhatIsPermanent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		children := store(t, "x")
		var runs ran
		c := reconcile.New("c", informer.New(store(t), nil), runs.wrap(nil), &reconcile.Options{Backoff: exact, Logger: log.logger(0)})
		asked := 0
		reconcile.WatchFunc(c, informer.New(children, named("children")), func(_ context.Context, ch informer.Change[thing]) ([]string, error) {
			asked++
			if ch.New.Spec == 0 {
				return nil, retry.Permanent(errBoom)
			}
			return []string{"p"}, nil
		})
		launch(t, &reconcile.Group{}, c)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 1, asked)
		status := c.Status().Watches[1]
		require.EqualValues(t, 1, status.Failures)
		require.Zero(t, status.Pending)
		require.Equal(t, "x", status.Key)
		require.ErrorIs(t, status.Err, errBoom, "it stays to be seen")
		require.Contains(t, log.String(), "could not be mapped")

		put(t, children, "x", 1)
		synctest.Wait()
		require.Equal(t, 2, asked)
		require.Len(t, runs.of("p"), 1)
		require.NoError(t, c.Status().Watches[1].Err, "mapped")
	})
}

// Looking again later is no failure.
func TestWatchFuncLaterIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		var runs ran
		c := reconcile.New("c", informer.New(store(t), nil), runs.wrap(nil), &reconcile.Options{Logger: log.logger(0)})
		begin, asked := time.Now(), 0
		reconcile.WatchFunc(c, informer.New(store(t, "x"), nil), func(context.Context, informer.Change[thing]) ([]string, error) {
			if asked++; asked < 3 {
				return nil, retry.Later(time.Hour, "not there yet")
			}
			return []string{"p"}, nil
		})
		launch(t, &reconcile.Group{}, c)
		require.Equal(t, 1, c.Status().Watches[1].Pending)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.Len(t, runs.of("p"), 1)
		require.Equal(t, 2*time.Hour, runs.of("p")[0].at.Sub(begin))
		status := c.Status().Watches[1]
		require.Zero(t, status.Failures)
		require.NoError(t, status.Err)
		require.NotContains(t, log.String(), "could not be mapped")
	})
}

// What was pushed out is made up for by the controller's own goroutines: at the
// next attempt, and no more often than the backoff says.
func TestWatchFuncCatchesUpOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		children := store(t, "c")
		var runs ran
		c := reconcile.New("c", informer.New(store(t, "a"), nil), runs.wrap(nil), &reconcile.Options{Backoff: exact})
		gate := make(chan struct{})
		var answer error = errBoom
		reconcile.WatchFunc(c, informer.New(children, named("children")), func(context.Context, informer.Change[thing]) ([]string, error) {
			<-gate
			return nil, answer
		})
		launch(t, &reconcile.Group{}, c)
		spec := 0
		change := func(n int) {
			for range n {
				spec++
				put(t, children, "c", spec)
				synctest.Wait()
			}
		}
		change(50)
		require.Len(t, runs.of("a"), 1, "not by the informer, while an attempt lasts")
		close(gate)
		synctest.Wait()
		require.Len(t, runs.of("a"), 2)
		require.Equal(t, []string{"trigger changes of children that were not mapped ×1"}, reasons(runs.of("a")[1]))
		for _, step := range []struct {
			after time.Duration
			runs  int
		}{{0, 2}, {999 * time.Millisecond, 2}, {time.Millisecond, 3}, {time.Second, 3}, {time.Second, 4}} {
			time.Sleep(step.after)
			change(20)
			require.Len(t, runs.of("a"), step.runs, "after %v", step.after)
		}
		// Once all are mapped nothing else would come back to it.
		answer = nil
		change(1)
		require.Len(t, runs.of("a"), 5)
		require.Zero(t, c.Status().Watches[1].Pending)
		time.Sleep(time.Hour)
		change(3)
		require.Len(t, runs.of("a"), 5, "made up for once")
		// Success has set the pause back to its first step.
		answer = errors.New("down again")
		change(9)
		require.Len(t, runs.of("a"), 6)
		time.Sleep(time.Second)
		change(1)
		require.Len(t, runs.of("a"), 7)
	})
}
