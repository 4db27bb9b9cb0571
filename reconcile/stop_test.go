package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/retry"
)

// stopped runs a controller whose key "a" is at work when the stop comes, one
// second after its start, and tells how long Run took from there.
func stopped(t *testing.T, c *reconcile.Controller[thing], grace time.Duration) (time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	g := &reconcile.Group{Grace: grace}
	go func() { ended <- g.Run(ctx, c) }()
	time.Sleep(time.Second)
	cancel()
	begin := time.Now()
	err := <-ended
	return time.Since(begin), err
}

func TestC10_RunningWorkEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		var runs ran
		s := store(t, "a")
		for i := range 100 {
			with(t, s, fmt.Sprint("waits-", i))
		}
		var cut error
		c := reconcile.New("c", informer.New(s, nil), runs.wrap(func(ctx context.Context, req reconcile.Request[thing]) error {
			time.Sleep(2 * time.Second)
			cut = ctx.Err()
			return nil
		}), &reconcile.Options{Workers: 1, Logger: log.logger(slog.LevelWarn)})
		took, err := stopped(t, c, 3*time.Second)
		require.NoError(t, err)
		require.Equal(t, time.Second, took)
		require.NoError(t, cut)
		require.Len(t, runs.of(""), 1, "no further key is taken")
		counts := c.Status().Counts
		require.EqualValues(t, 1, counts.Done)
		require.Zero(t, counts.Failures)
		require.Empty(t, log.String())
	})
}

// A run that the stop cuts short is no error, and nothing loud.
func TestO10_AStopIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, answer := range []error{nil, errBoom, context.Canceled, retry.Permanent(errBoom)} {
			var log lines
			var cause error
			c := reconcile.New("c", informer.New(store(t, "a"), nil), func(ctx context.Context, req reconcile.Request[thing]) error {
				<-ctx.Done()
				cause = context.Cause(ctx)
				if answer == nil {
					return ctx.Err()
				}
				return answer
			}, &reconcile.Options{Logger: log.logger(slog.LevelWarn)})
			took, err := stopped(t, c, 3*time.Second)
			require.NoError(t, err)
			require.Equal(t, 3*time.Second, took)
			require.ErrorIs(t, cause, reconcile.ErrStopping)
			counts := c.Status().Counts
			require.EqualValues(t, 1, counts.Interrupted)
			require.Zero(t, counts.Failures)
			require.Empty(t, log.String())
			require.Equal(t, reconcile.Interrupted, c.Explain("a").Runs[0].Outcome)
		}
	})
}

// A panic while it is being cut short is still a panic, and a success a success.
func TestStopLeavesOtherOutcomesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, end := range map[reconcile.Outcome]func() error{
			reconcile.Panicked: func() error { panic("late") },
			reconcile.Done:     func() error { return nil },
			reconcile.Later:    func() error { return retry.Later(time.Second, "") },
		} {
			c := reconcile.New("c", informer.New(store(t, "a"), nil), func(ctx context.Context, req reconcile.Request[thing]) error {
				<-ctx.Done()
				return end()
			}, nil)
			_, err := stopped(t, c, 3*time.Second)
			require.NoError(t, err)
			require.Equal(t, want, c.Explain("a").Runs[0].Outcome)
		}
	})
}

// The grace defaults to 30 s, alone and in a group; negative is none.
func TestGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		obey := func(ctx context.Context, req reconcile.Request[thing]) error {
			<-ctx.Done()
			return ctx.Err()
		}
		long, _ := stopped(t, reconcile.New("c", informer.New(store(t, "a"), nil), obey, nil), 0)
		require.Equal(t, 30*time.Second, long)
		took, err := stopped(t, reconcile.New("c", informer.New(store(t, "a"), nil), obey, nil), -time.Hour)
		require.NoError(t, err)
		require.Zero(t, took)

		in := informer.New(store(t, "a"), nil)
		c := reconcile.New("c", in, obey, nil)
		ctx, cancel := context.WithCancel(t.Context())
		inCtx, stopIn := context.WithCancel(t.Context())
		defer stopIn()
		go in.Run(inCtx)
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		synctest.Wait()
		cancel()
		begin := time.Now()
		require.NoError(t, <-ended)
		require.Equal(t, 30*time.Second, time.Since(begin))
		require.Zero(t, in.Status().Handlers, "nothing of it stays with the informer")
	})
}

// What ignores its context is named, and left alone.
func TestStillRunningNamesKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		gate := make(chan struct{})
		ignore := func(ctx context.Context, req reconcile.Request[thing]) error {
			if req.Key != "c" {
				<-gate
			}
			return nil
		}
		one := reconcile.New("one", informer.New(store(t, "e", "b", "a", "c", "d"), nil), ignore, &reconcile.Options{Logger: log.logger(0)})
		two := reconcile.New("two", informer.New(store(t, "z"), nil), ignore, nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		g := &reconcile.Group{Grace: 5 * time.Second}
		go func() { ended <- g.Run(ctx, one, two) }()
		synctest.Wait()
		cancel()
		begin := time.Now()
		err := <-ended
		require.Equal(t, 6*time.Second, time.Since(begin))
		var still *reconcile.StillRunning
		require.ErrorAs(t, err, &still)
		require.Equal(t, map[string][]string{"one": {"a", "b", "d", "e"}, "two": {"z"}}, still.Keys)
		require.EqualError(t, err, `reconcile: still running: one "a", "b", "d", "e"; two "z"`)
		require.Contains(t, log.String(), "still running")
		require.Equal(t, reconcile.Stopped, one.Status().State)
		close(gate) // for the bubble to end
		synctest.Wait()
		require.Zero(t, reconcile.Remembered(one))
		require.EqualValues(t, 1, one.Status().Counts.Runs, "what comes too late is dropped")
	})
}

// A key that is held for its writes does not hold up the stop.
func TestStopDoesNotWaitForBarriers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		children := reconcile.NewClient[thing](lagging{Backend: store(t), lag: time.Hour, opaque: true}, nil)
		c := reconcile.New("c", informer.New(store(t, "a"), nil), func(ctx context.Context, req reconcile.Request[thing]) error {
			time.Sleep(900 * time.Millisecond)
			_, err := children.Create(ctx, "x", thing{})
			return err
		}, nil)
		c.Reads(children)
		took, err := stopped(t, c, 0)
		require.NoError(t, err)
		require.Zero(t, took)
	})
}

// A WatchFunc that ignores its context is named by the object that it maps.
func TestStillRunningNamesMappings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		c := reconcile.New("c", informer.New(store(t), nil), script(), nil)
		reconcile.WatchFunc(c, informer.New(store(t, "child", "quick"), nil), func(_ context.Context, ch informer.Change[thing]) ([]string, error) {
			if ch.Key == "child" {
				<-gate
			}
			return nil, nil
		})
		_, err := stopped(t, c, time.Second)
		var still *reconcile.StillRunning
		require.ErrorAs(t, err, &still)
		require.Equal(t, map[string][]string{"c": {"child"}}, still.Keys)
		close(gate)
	})
}

// Nothing runs that the stop came before.
func TestStopBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs ran
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c := reconcile.New("c", informer.New(store(t, "a"), nil), runs.wrap(nil), nil)
		lone := &part{run: func(context.Context) error { return errors.New("it ran") }}
		require.NoError(t, reconcile.Run(ctx, c, lone))
		require.Empty(t, runs.of(""))
	})
}

// Work in its grace still reads live caches: informers end after controllers.
func TestInformersOutliveControllers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		things, others := store(t, "a"), store(t)
		client := reconcile.NewClient[thing](others, nil)
		seen := false
		c := reconcile.New("c", informer.New(things, nil), func(ctx context.Context, req reconcile.Request[thing]) error {
			time.Sleep(2 * time.Second) // the stop comes
			with(t, others, "late")
			time.Sleep(time.Second)
			_, seen = client.Cache().Get("late")
			item, err := client.Create(ctx, "later", thing{})
			if err == nil {
				err = client.WaitFor(ctx, "later", item.Version)
			}
			return err
		}, nil)
		// Named beside the controller, and not as something that it reads.
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- reconcile.Run(ctx, client, c) }()
		time.Sleep(time.Second)
		cancel()
		require.NoError(t, <-ended)
		require.True(t, seen)
		require.EqualValues(t, 1, c.Status().Counts.Done, c.Explain("a"))
	})
}

var errRunner = errors.New("runner failed")
