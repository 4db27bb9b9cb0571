package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/retry"
	"github.com/homeostat/homeostat/workqueue"
)

// script is a Func that returns one outcome after the other, and then nil.
func script(outcomes ...error) reconcile.Func[thing] {
	var n atomic.Int64
	return func(context.Context, reconcile.Request[thing]) error {
		if i := int(n.Add(1)) - 1; i < len(outcomes) {
			return outcomes[i]
		}
		return nil
	}
}

// gaps are the times between the calls for a key.
func gaps(calls []call) []time.Duration {
	var all []time.Duration
	for i := 1; i < len(calls); i++ {
		all = append(all, calls[i].at.Sub(calls[i-1].at))
	}
	return all
}

func TestC03_AnErrorMayCarryItsOwnDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs ran
		c := reconcile.New("c", informer.New(store(t, "a"), nil), runs.wrap(script(retry.After(errBoom, time.Minute))), nil)
		launch(t, &reconcile.Group{}, c)
		require.EqualValues(t, 1, c.Status().Counts.Failed)
		e := c.Explain("a")
		require.Equal(t, "delayed", e.State)
		require.Equal(t, time.Minute, time.Until(e.Entry.Due))
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, []time.Duration{time.Minute}, gaps(runs.of("a")))
	})
}

func TestC04_AnySuccessResetsTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		later := retry.Later(10*time.Second, "")
		var runs ran
		c := reconcile.New("c", informer.New(store(t, "a"), nil),
			runs.wrap(script(errBoom, errBoom, errBoom, errBoom, errBoom, later, later, errBoom)), &reconcile.Options{Backoff: exact})
		launch(t, &reconcile.Group{}, c)
		time.Sleep(time.Hour)
		synctest.Wait()
		s := time.Second
		require.Equal(t, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 10 * s, 10 * s, s}, gaps(runs.of("a")))
		require.Equal(t, 6, runs.of("a")[5].Attempt)
		require.Equal(t, 1, runs.of("a")[6].Attempt)
	})
}

// limited is an error of somebody else's that says when to come back.
type limited struct{}

func (limited) Error() string             { return "429" }
func (limited) RetryAfter() time.Duration { return 30 * time.Second }

func TestC05_TheErrorDecidesTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs ran
		c := reconcile.New("c", informer.New(store(t, "a"), nil), runs.wrap(script(fmt.Errorf("call: %w", limited{}), errBoom)),
			&reconcile.Options{Backoff: exact})
		launch(t, &reconcile.Group{}, c)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, []time.Duration{30 * time.Second, 2 * time.Second}, gaps(runs.of("a")))
	})
}

// Waiting for something outside is no failure, however often, and says for what.
func TestC06_LaterIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var outcomes []error
		for i := range 5 {
			outcomes = append(outcomes, retry.Later(time.Second<<i, "the disk is not attached"))
		}
		var runs ran
		c := reconcile.New("c", informer.New(store(t, "a"), nil), runs.wrap(script(outcomes...)), nil)
		launch(t, &reconcile.Group{}, c)
		require.Contains(t, c.Explain("a").String(), "the disk is not attached")
		time.Sleep(time.Hour)
		synctest.Wait()
		s := time.Second
		require.Equal(t, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s}, gaps(runs.of("a")))
		counts := c.Status().Counts
		require.EqualValues(t, 5, counts.Later)
		require.Zero(t, counts.Failures)
	})
}

func TestC07_PermanentParksUntilSomethingChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store(t, "a")
		var runs ran
		c := reconcile.New("c", informer.New(s, nil), runs.wrap(script(retry.Permanent(errBoom), retry.Permanent(errBoom))),
			&reconcile.Options{Every: time.Minute})
		launch(t, &reconcile.Group{}, c)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Len(t, runs.of("a"), 1, "Every leaves it alone")
		parked := []string{}
		for e := range c.Keys(workqueue.Parked) {
			parked = append(parked, e.Key)
			require.ErrorIs(t, e.Err, errBoom)
		}
		require.Equal(t, []string{"a"}, parked)
		require.Equal(t, "parked", c.Explain("a").State)
		require.EqualValues(t, 1, c.Status().Counts.Parked)

		put(t, s, "a", 1)
		synctest.Wait()
		require.Len(t, runs.of("a"), 2, "revived by a change")
		require.Equal(t, "parked", c.Explain("a").State)
		c.Trigger("a", "by hand")
		synctest.Wait()
		require.Len(t, runs.of("a"), 3, "revived by hand")
		require.NotEqual(t, "parked", c.Explain("a").State)
	})
}

// Giving up on a key that keeps failing is a choice.
func TestOptionsPark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs ran
		c := reconcile.New("c", informer.New(store(t, "a"), nil), runs.wrap(script(errBoom, errBoom, errBoom, errBoom)),
			&reconcile.Options{Backoff: exact, Park: workqueue.Park{Attempts: 3}})
		launch(t, &reconcile.Group{}, c)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Len(t, runs.of("a"), 3)
		require.Equal(t, "parked", c.Explain("a").State)
	})
}

func TestC08_APanicIsOneKeysFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store(t, "bad")
		for i := range 100 {
			with(t, s, fmt.Sprint("good-", i))
		}
		var log lines
		var runs ran
		c := reconcile.New("c", informer.New(s, nil), runs.wrap(func(_ context.Context, req reconcile.Request[thing]) error {
			if req.Key == "bad" {
				panic(retry.Permanent(errBoom)) // the value decides nothing
			}
			return nil
		}), &reconcile.Options{Workers: 1, Backoff: exact, Logger: log.logger(slog.LevelError)})
		launch(t, &reconcile.Group{}, c)
		require.Len(t, runs.keys(), 101)
		e := c.Explain("bad")
		require.Equal(t, "delayed", e.State)
		require.Equal(t, reconcile.Panicked, e.Runs[0].Outcome)
		var panicked *reconcile.PanicError
		require.ErrorAs(t, e.Runs[0].Err, &panicked)
		require.Contains(t, panicked.Error(), `controller "c", key "bad"`)
		require.Contains(t, string(panicked.Stack), "TestC08")
		require.Contains(t, log.String(), "TestC08")
		require.Contains(t, log.String(), "key=bad")

		time.Sleep(4 * time.Second)
		synctest.Wait()
		require.Equal(t, []time.Duration{time.Second, 2 * time.Second}, gaps(runs.of("bad")))
		counts := c.Status().Counts
		require.EqualValues(t, 3, counts.Panicked)
		require.EqualValues(t, 3, counts.Failures)
		require.EqualValues(t, 100, counts.Done)
		put(t, s, "good-1", 1)
		synctest.Wait()
		require.Len(t, runs.of("good-1"), 2, "the worker is still there")
	})
}

// runtime.Goexit, as by a test's FailNow, ends a goroutine that cannot be kept.
func TestGoexitCostsNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs ran
		c := reconcile.New("c", informer.New(store(t, "a", "b"), nil), runs.wrap(func(_ context.Context, req reconcile.Request[thing]) error {
			if req.Key == "a" && req.Attempt == 1 {
				goexit()
			}
			return nil
		}), &reconcile.Options{Workers: 1, Backoff: exact})
		stop := launch(t, &reconcile.Group{}, c)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, runs.of("a"), 2)
		require.Len(t, runs.of("b"), 1)
		require.EqualValues(t, 1, c.Status().Counts.Panicked)
		require.NoError(t, stop())
	})
}

func TestC09_TimeoutFreesTheWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store(t, "slow")
		var runs ran
		var cause error
		c := reconcile.New("c", informer.New(s, nil), runs.wrap(func(ctx context.Context, req reconcile.Request[thing]) error {
			if req.Key != "slow" || req.Attempt > 1 {
				_, has := ctx.Deadline()
				require.True(t, has)
				return nil
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		}), &reconcile.Options{Workers: 1, Timeout: time.Second, Backoff: exact})
		launch(t, &reconcile.Group{}, c)
		begin := time.Now()
		with(t, s, "next")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.ErrorIs(t, cause, reconcile.ErrTimeout)
		require.ErrorIs(t, cause, context.DeadlineExceeded)
		require.Equal(t, time.Second, runs.of("next")[0].at.Sub(begin))
		counts := c.Status().Counts
		require.EqualValues(t, 1, counts.TimedOut)
		require.EqualValues(t, 1, counts.Failures)
		require.Zero(t, counts.Failed)
		require.Equal(t, []time.Duration{2 * time.Second}, gaps(runs.of("slow")), "a second of run, a second of backoff")
	})
}

// What a run says itself outweighs that its time was over.
func TestTimeoutLeavesOtherOutcomesAlone(t *testing.T) {
	for _, a := range []struct {
		name string
		err  error
		want reconcile.Outcome
	}{
		{"done", nil, reconcile.Done},
		{"later", retry.Later(time.Hour, ""), reconcile.Later},
		{"permanent", retry.Permanent(errBoom), reconcile.Parked},
		{"conflict", backend.ErrConflict, reconcile.Conflict},
		{"any", errBoom, reconcile.TimedOut},
	} {
		t.Run(a.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := reconcile.New("c", informer.New(store(t, "a"), nil), func(ctx context.Context, _ reconcile.Request[thing]) error {
					<-ctx.Done()
					return a.err
				}, &reconcile.Options{Timeout: time.Minute, Backoff: exact})
				launch(t, &reconcile.Group{}, c)
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, a.want, c.Explain("a").Runs[0].Outcome)
			})
		})
	}
}

// A run's context ends with the run.
func TestContextEndsWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runCtx context.Context
		c := reconcile.New("c", informer.New(store(t, "a"), nil), func(ctx context.Context, _ reconcile.Request[thing]) error {
			require.NoError(t, ctx.Err())
			runCtx = ctx
			return nil
		}, nil)
		launch(t, &reconcile.Group{}, c)
		require.Error(t, runCtx.Err())
	})
}

// A retry is of the key, not of what was to be done: it reads what is there now.
func TestC18_ARetryReadsTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store(t, "a")
		target := map[string]bool{"a": true}
		fails := 1
		var runs ran
		c := reconcile.New("c", informer.New(s, nil), runs.wrap(func(_ context.Context, req reconcile.Request[thing]) error {
			_, exists := req.Object()
			if !exists && fails > 0 {
				fails--
				return errBoom
			}
			target[req.Key] = exists
			return nil
		}), &reconcile.Options{Backoff: exact, Workers: 1})
		launch(t, &reconcile.Group{}, c)
		remove(t, s, "a")
		synctest.Wait()
		require.Zero(t, fails)
		with(t, s, "a")
		time.Sleep(time.Hour)
		synctest.Wait()
		require.True(t, target["a"])
	})
}

// A conflict waits for the state that it conflicted with, in the cache that lags,
// and not for a backoff.
func TestConflictRunsAgainOnceTheCacheHasMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The object of the conflict is of another type, which triggers nothing.
		inner := memoryWith(t, "x")
		others := reconcile.NewClient[thing](lagging{Backend: inner, lag: 700 * time.Millisecond}, nil)
		var runs ran
		c := reconcile.New("c", informer.New(store(t), nil), runs.wrap(func(ctx context.Context, req reconcile.Request[thing]) error {
			item, _ := others.Cache().Item("x")
			item.Object.Status = req.Key
			_, err := others.Update(ctx, item)
			return err
		}), &reconcile.Options{Backoff: retry.Backoff{Base: time.Hour, Max: time.Hour}})
		c.Reads(others)
		launch(t, &reconcile.Group{}, c)
		put(t, inner, "x", 1)
		c.Trigger("k", "go")
		time.Sleep(time.Minute)
		synctest.Wait()
		calls := runs.of("k")
		require.Equal(t, []time.Duration{700 * time.Millisecond}, gaps(calls))
		require.Equal(t, []string{"c conflict ×1"}, reasons(calls[1]))
		require.Equal(t, 1, calls[1].Attempt)
		counts := c.Status().Counts
		require.EqualValues(t, 1, counts.Conflict)
		require.Zero(t, counts.Failures)
		item, err := inner.Get(t.Context(), "x")
		require.NoError(t, err)
		require.Equal(t, "k", item.Object.Status)
	})
}

// A state that does not come is waited for no longer than a second, and then the
// backoff's first step.
func TestConflictDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memoryWith(t, "x")
		others := reconcile.NewClient[thing](lagging{Backend: inner, lag: time.Hour}, nil)
		var runs ran
		c := reconcile.New("c", informer.New(store(t), nil), runs.wrap(func(ctx context.Context, req reconcile.Request[thing]) error {
			item, _ := others.Cache().Item("x")
			_, err := others.Update(ctx, item)
			return err
		}), &reconcile.Options{Backoff: exact, Workers: 1})
		c.Reads(others)
		launch(t, &reconcile.Group{}, c)
		put(t, inner, "x", 1)
		c.Trigger("k", "go")
		synctest.Wait()
		c.Trigger("other", "is not held up")
		synctest.Wait()
		require.Len(t, runs.of("other"), 1)
		e := c.Explain("k")
		require.Equal(t, "barred", e.State)
		require.Len(t, e.Waiting, 1)
		require.Equal(t, "x", e.Waiting[0].Key)
		require.EqualValues(t, "2", e.Waiting[0].Version)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, []time.Duration{1900 * time.Millisecond}, gaps(runs.of("k"))[:1])
	})
}

// A store that answers every write with a conflict is not spun on.
func TestConflictsInARowBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs ran
		c := reconcile.New("c", informer.New(store(t, "a"), nil), runs.wrap(func(context.Context, reconcile.Request[thing]) error {
			return fmt.Errorf("always: %w", &backend.Error{Err: backend.ErrConflict})
		}), &reconcile.Options{Backoff: exact})
		launch(t, &reconcile.Group{}, c)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		s := time.Second
		require.Equal(t, []time.Duration{s, s, 2 * s, 4 * s, 8 * s}, gaps(runs.of("a")))
		counts := c.Status().Counts
		require.EqualValues(t, 6, counts.Conflict)
		require.EqualValues(t, 5, counts.Failures, "the first of a row is none")
	})
}

// A success ends a row of conflicts; a failure does not.
func TestWhatEndsARowOfConflicts(t *testing.T) {
	for _, a := range []struct {
		between  error
		failures uint64
	}{{nil, 0}, {retry.Later(time.Second, ""), 0}, {errBoom, 2}} {
		t.Run(fmt.Sprint(a.between), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := store(t, "a")
				c := reconcile.New("c", informer.New(s, nil), script(backend.ErrConflict, a.between, backend.ErrConflict), &reconcile.Options{Backoff: exact})
				launch(t, &reconcile.Group{}, c)
				for range 3 {
					time.Sleep(time.Minute)
					c.Trigger("a", "next")
				}
				synctest.Wait()
				counts := c.Status().Counts
				require.EqualValues(t, 2, counts.Conflict)
				require.Equal(t, a.failures, counts.Failures)
			})
		})
	}
}

// Two controllers that write one object each keep their retry.
func TestC19_AConflictLeavesTheKeyScheduled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[thing](fake.Plan{Seed: 3, Faults: []fake.Fault{{On: fake.Update, Do: fake.Conflict, OneIn: 3}}})
		const n = 300
		for i := range n {
			with(t, b, fmt.Sprint(i))
		}
		client := reconcile.NewClient[thing](b, nil)
		write := func(name string, set func(*thing)) *reconcile.Controller[thing] {
			return reconcile.New(name, client.Informer, func(ctx context.Context, req reconcile.Request[thing]) error {
				item, exists := req.Item()
				if !exists {
					return nil
				}
				was := item.Object
				set(&item.Object)
				if was.Status == item.Object.Status && was.Other == item.Object.Other {
					return nil
				}
				_, err := client.Update(ctx, item)
				return err
			}, nil)
		}
		one := write("one", func(o *thing) { o.Status = "one" })
		two := write("two", func(o *thing) { o.Other = "two" })
		launch(t, &reconcile.Group{}, one, two)
		time.Sleep(time.Minute)
		synctest.Wait()
		for i := range n {
			item, err := b.Get(t.Context(), fmt.Sprint(i))
			require.NoError(t, err)
			require.Equal(t, "one", item.Object.Status, one.Explain(fmt.Sprint(i)))
			require.Equal(t, "two", item.Object.Other, two.Explain(fmt.Sprint(i)))
		}
		require.NotZero(t, one.Status().Counts.Conflict+two.Status().Counts.Conflict)
	})
}

// As many keys at once as there are workers.
func TestWorkers(t *testing.T) {
	for _, a := range []struct{ option, workers int }{{0, 4}, {1, 1}, {7, 7}} {
		t.Run(fmt.Sprint(a.option), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := store(t)
				for i := range 20 {
					with(t, s, fmt.Sprint(i))
				}
				var now atomic.Int64
				gate := make(chan struct{})
				c := reconcile.New("c", informer.New(s, nil), func(context.Context, reconcile.Request[thing]) error {
					now.Add(1)
					<-gate
					return nil
				}, &reconcile.Options{Workers: a.option})
				launch(t, &reconcile.Group{}, c)
				require.EqualValues(t, a.workers, now.Load())
				require.Equal(t, a.workers, c.Status().Queue.Working)
				close(gate)
				synctest.Wait()
				require.EqualValues(t, 20, now.Load())
			})
		})
	}
}

func TestOptionsAreValidated(t *testing.T) {
	in := informer.New(store(t), nil)
	none := func(context.Context, reconcile.Request[thing]) error { return nil }
	var nowhere *informer.Informer[thing]
	for _, a := range []struct {
		name  string
		c     *reconcile.Controller[thing]
		wrong []string
	}{
		{"name", reconcile.New("", in, none, nil), []string{"name"}},
		{"informer", reconcile.New("c", nil, none, nil), []string{"no informer"}},
		{"function", reconcile.New("c", in, nil, nil), []string{"no function"}},
		{"numbers", reconcile.New("c", in, none, &reconcile.Options{
			Workers: -1, Timeout: -1, Every: -1, Park: workqueue.Park{Attempts: -1}, Backoff: retry.Backoff{Base: -1},
		}), []string{"Workers", "Timeout", "Every", "Park", "Backoff"}},
		{"park age", reconcile.New("c", in, none, &reconcile.Options{Park: workqueue.Park{Age: -1}}), []string{"Park"}},
		{"watch", func() *reconcile.Controller[thing] {
			c := reconcile.New("c", in, none, nil)
			reconcile.Watch(c, nowhere, owners)
			reconcile.WatchFunc[thing, thing](c, in, nil)
			return c
		}(), []string{"Watch without", "WatchFunc without"}},
		{"only", func() *reconcile.Controller[thing] {
			c := reconcile.New("c", in, none, nil)
			c.Only(nil)
			c.Reads(nil, nowhere, reconcile.Client[thing]{})
			return c
		}(), []string{"Only without", "reads nil"}},
	} {
		t.Run(a.name, func(t *testing.T) {
			err := a.c.Run(t.Context())
			require.ErrorIs(t, err, reconcile.ErrInvalidOptions)
			for _, word := range a.wrong {
				require.ErrorContains(t, err, word)
			}
			// Nothing that only looks, or triggers, minds.
			a.c.Trigger("a", "")
			a.c.TriggerAll("")
			_ = a.c.Explain("a").String()
			_ = a.c.Status()
		})
	}
}

func TestRunIsForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := informer.New(store(t), nil)
		c := reconcile.New("c", in, script(), nil)
		stop := launch(t, &reconcile.Group{}, c)
		require.Equal(t, reconcile.Running, c.Status().State)
		require.ErrorIs(t, c.Run(t.Context()), reconcile.ErrAlreadyRunning)
		require.Panics(t, func() { c.Reads(in) })
		require.Panics(t, func() { c.Only(func(informer.Change[thing]) bool { return true }) })
		require.Panics(t, func() { reconcile.Watch(c, in, owners) })
		require.NoError(t, stop())
		err := c.Run(t.Context())
		require.ErrorIs(t, err, reconcile.ErrAlreadyRunning)
		require.ErrorContains(t, err, `it runs once: controller "c"`)
		require.Equal(t, reconcile.Stopped, c.Status().State)
	})
}

func TestOutcomesHaveNames(t *testing.T) {
	names := map[string]bool{}
	for o := reconcile.Done; o <= reconcile.Interrupted; o++ {
		names[o.String()] = true
	}
	require.Len(t, names, 8)
	require.Equal(t, "Outcome(99)", reconcile.Outcome(99).String())
	require.Equal(t, "idle", reconcile.Idle.String())
	require.Equal(t, "State(99)", reconcile.State(99).String())
}

// An error whose Is says that it is a conflict is one.
type moved struct{}

func (moved) Error() string        { return "412" }
func (moved) Is(target error) bool { return target == backend.ErrConflict }
func TestDecideKnowsForeignConflicts(t *testing.T) {
	require.Equal(t, reconcile.Conflict, reconcile.Decide(moved{}).Outcome)
	require.Equal(t, reconcile.Conflict, reconcile.Decide(errors.Join(moved{}, backend.ErrConflict)).Outcome)
	require.Equal(t, reconcile.Failed, reconcile.Decide(errors.Join(moved{}, errBoom)).Outcome)
	require.Equal(t, reconcile.Failed, reconcile.Decide(retry.After(backend.ErrConflict, time.Second)).Outcome, "with a delay of its own")
	require.Equal(t, "at once", reconcile.Decide(retry.Later(0, "")).Next())
	require.Equal(t, "by backoff", reconcile.Decide(retry.After(errBoom, 0)).Next())
}

func memoryWith(t *testing.T, keys ...string) backend.Backend[thing] { return store(t, keys...) }
