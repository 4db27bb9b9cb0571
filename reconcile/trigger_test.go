package reconcile_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/workqueue"
)

func TestOwnChangesTrigger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store(t, "a", "b")
		var runs ran
		c := reconcile.New("c", informer.New(s, named("things")), runs.wrap(nil), nil)
		launch(t, &reconcile.Group{}, c)
		require.Len(t, runs.of("a"), 1)
		require.Len(t, runs.of("b"), 1)
		require.Equal(t, []string{"things added (initial) ×1"}, reasons(runs.of("a")[0]))
		obj, ok := runs.of("a")[0].Object()
		require.True(t, ok)
		require.Zero(t, obj.Spec)

		put(t, s, "a", 7)
		synctest.Wait()
		require.Len(t, runs.of("a"), 2)
		require.Equal(t, []string{"things updated ×1"}, reasons(runs.of("a")[1]))
		obj, _ = runs.of("a")[1].Object()
		require.Equal(t, 7, obj.Spec)

		remove(t, s, "a")
		synctest.Wait()
		require.Len(t, runs.of("a"), 3)
		require.Equal(t, []string{"things deleted ×1"}, reasons(runs.of("a")[2]))
		_, ok = runs.of("a")[2].Object()
		require.False(t, ok)
		require.Len(t, runs.of("b"), 1, "of no concern")
	})
}

// A run's object is read once: what changes meanwhile is the next run's.
func TestObjectIsReadOnceARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store(t, "a")
		var seen []int
		c := reconcile.New("c", informer.New(s, nil), func(ctx context.Context, req reconcile.Request[thing]) error {
			before, _ := req.Object()
			if before.Spec == 0 {
				put(t, s, "a", 1)
				time.Sleep(time.Second)
			}
			after, _ := req.Object()
			item, ok := req.Item()
			require.True(t, ok)
			require.Equal(t, before, after)
			require.Equal(t, before, item.Object)
			require.NotEmpty(t, item.Version)
			seen = append(seen, after.Spec)
			return nil
		}, nil)
		launch(t, &reconcile.Group{}, c)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []int{0, 1}, seen)
	})
}

// Last is kept until a run that knew of the delete has returned nil, and not
// longer.
func TestLastIsWhatTheObjectWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store(t, "a")
		put(t, s, "a", 5)
		var runs ran
		fails := 2
		c := reconcile.New("c", informer.New(s, nil), runs.wrap(func(_ context.Context, req reconcile.Request[thing]) error {
			if _, exists := req.Object(); !exists && fails > 0 {
				fails--
				return errBoom
			}
			return nil
		}), &reconcile.Options{Backoff: exact})
		launch(t, &reconcile.Group{}, c)
		remove(t, s, "a")
		time.Sleep(time.Minute)
		synctest.Wait()

		calls := runs.of("a")
		require.Len(t, calls, 4)
		_, ok := calls[0].Last()
		require.False(t, ok, "it has not gone yet")
		for _, call := range calls[1:] {
			last, ok := call.Last()
			require.True(t, ok)
			require.Equal(t, 5, last.Spec)
		}
		c.Trigger("a", "look again")
		synctest.Wait()
		_, ok = runs.of("a")[4].Last()
		require.False(t, ok, "it is done with")

		// One that is there again has a new object and still the old Last.
		with(t, s, "a")
		synctest.Wait()
		put(t, s, "a", 6)
		synctest.Wait()
		fails = 1
		remove(t, s, "a")
		synctest.Wait()
		with(t, s, "a")
		synctest.Wait()
		call := runs.of("a")[len(runs.of("a"))-1]
		obj, exists := call.Object()
		require.True(t, exists)
		require.Zero(t, obj.Spec)
		last, ok := call.Last()
		require.True(t, ok)
		require.Equal(t, 6, last.Spec)
	})
}

// When the source tells a newer state with the delete, that is the last one.
func TestLastIsTheNewestKnownState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store(t, "a")
		var runs ran
		c := reconcile.New("c", informer.New[thing](farewell{s}, nil), runs.wrap(nil), nil)
		launch(t, &reconcile.Group{}, c)
		remove(t, s, "a")
		synctest.Wait()
		last, ok := runs.of("a")[1].Last()
		require.True(t, ok)
		require.Equal(t, 99, last.Spec)
	})
}

// farewell tells of everything that goes that its Spec was 99.
type farewell struct{ backend.Backend[thing] }

func (f farewell) Watch(ctx context.Context, opts reflector.WatchOptions) iter.Seq2[reflector.Batch[thing], error] {
	return func(yield func(reflector.Batch[thing], error) bool) {
		for batch, err := range f.Backend.Watch(ctx, opts) {
			batch.Events = slices.Clone(batch.Events)
			for i := range batch.Events {
				if e := &batch.Events[i]; e.Op == reflector.OpDelete {
					e.Known, e.Object.Spec = true, 99
				}
			}
			if !yield(batch, err) {
				return
			}
		}
	}
}

// What goes while its own run goes on is not forgotten by that run.
func TestLastOfADeleteDuringARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store(t, "a")
		var runs ran
		c := reconcile.New("c", informer.New(s, nil), runs.wrap(func(_ context.Context, req reconcile.Request[thing]) error {
			if _, exists := req.Object(); exists {
				remove(t, s, "a")
				time.Sleep(time.Second)
			}
			return nil
		}), nil)
		launch(t, &reconcile.Group{}, c)
		time.Sleep(time.Minute)
		synctest.Wait()
		calls := runs.of("a")
		require.Len(t, calls, 2)
		_, ok := calls[1].Last()
		require.True(t, ok)
	})
}

func TestTriggerByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store(t, "a", "b")
		var runs ran
		c := reconcile.New("c", informer.New(s, nil), runs.wrap(nil), nil)
		c.Trigger("early", "before Run")
		stop := launch(t, &reconcile.Group{}, c)
		require.Len(t, runs.of("early"), 1, "what comes before Run is remembered")
		require.Equal(t, []string{"trigger before Run ×1"}, reasons(runs.of("early")[0]))

		c.Trigger("none", "by hand")
		synctest.Wait()
		require.Len(t, runs.of("none"), 1, "a key needs no object")

		c.TriggerAll("all")
		synctest.Wait()
		require.Len(t, runs.of("a"), 2)
		require.Len(t, runs.of("b"), 2)
		require.Len(t, runs.of("none"), 1)

		require.NoError(t, stop())
		c.Trigger("a", "too late")
		runs.of("a")[0].Trigger("too late")
		require.Len(t, runs.of("a"), 2)
		require.Empty(t, c.Explain("a").Causes)
		require.Zero(t, c.Status().Queue.Due, "and nothing gathers")
	})
}

// A Request may trigger its key from a goroutine, long after its run.
func TestRequestTriggersLongAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs ran
		started := false
		c := reconcile.New("c", informer.New(store(t, "a"), nil), runs.wrap(func(_ context.Context, req reconcile.Request[thing]) error {
			if !started {
				started = true
				go func() {
					time.Sleep(time.Hour)
					req.Trigger("process ended")
				}()
			}
			return nil
		}), nil)
		launch(t, &reconcile.Group{}, c)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		calls := runs.of("a")
		require.Len(t, calls, 2)
		require.Equal(t, []string{"trigger process ended ×1"}, reasons(calls[1]))
		require.Equal(t, time.Hour, calls[1].at.Sub(calls[0].at))
	})
}

// A zero Request is that of a key that is gone.
func TestZeroRequest(t *testing.T) {
	req := reconcile.Request[thing]{Key: "a"}
	_, ok := req.Object()
	require.False(t, ok)
	_, ok = req.Item()
	require.False(t, ok)
	_, ok = req.Last()
	require.False(t, ok)
	req.Trigger("nobody hears")
	req.Log().Info("nobody hears")
}

// busy is a controller of one worker that is held up until release, so that
// triggers gather.
func busy(t *testing.T, in *informer.Informer[thing], runs *ran) (c *reconcile.Controller[thing], release func()) {
	gate := make(chan struct{})
	c = reconcile.New("c", in, runs.wrap(func(_ context.Context, req reconcile.Request[thing]) error {
		if req.Key == "plug" {
			<-gate
		}
		return nil
	}), &reconcile.Options{Workers: 1})
	c.Trigger("plug", "hold the worker")
	return c, func() { close(gate); synctest.Wait() }
}

func TestO06_CausesAreMergedWithCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parents, children := store(t), store(t)
		var runs ran
		c, release := busy(t, informer.New(parents, named("parents")), &runs)
		reconcile.Watch(c, informer.New(children, named("children")), owners)
		launch(t, &reconcile.Group{}, c)

		begin := time.Now()
		with(t, parents, "p")
		time.Sleep(time.Second)
		for i := range 3 {
			_, err := children.Create(t.Context(), fmt.Sprint("c", i), thing{Owner: "p"})
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		explained := c.Explain("p")
		require.Equal(t, "due", explained.State)
		want := []reconcile.Trigger{
			{Source: "parents", Key: "p", Reason: "added", Count: 1, First: begin, Last: begin},
			{Source: "children", Key: "c2", Reason: "added", Count: 3, First: begin.Add(time.Second), Last: begin.Add(3 * time.Second)},
		}
		require.Equal(t, want, explained.Causes)
		release()
		require.Len(t, runs.of("p"), 1)
		require.Equal(t, want, runs.of("p")[0].Causes)
		require.Equal(t, want, c.Explain("p").Runs[0].Causes)
		require.Empty(t, c.Explain("p").Causes)
	})
}

func TestCausesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs ran
		c, release := busy(t, informer.New(store(t), nil), &runs)
		launch(t, &reconcile.Group{}, c)
		for i := range 100 {
			c.Trigger("a", fmt.Sprint("reason ", i))
		}
		c.Trigger("a", "reason 3")
		release()
		causes := runs.of("a")[0].Causes
		require.Len(t, causes, 16)
		require.Equal(t, 2, causes[3].Count)
		require.Equal(t, "others", causes[15].Reason)
		require.Equal(t, 85, causes[15].Count)
	})
}

// A key that fails says so itself when it runs again.
func TestRetriesNameTheirCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs ran
		c := reconcile.New("c", informer.New(store(t, "a"), nil), runs.wrap(func(_ context.Context, req reconcile.Request[thing]) error {
			if req.Attempt < 3 {
				return errBoom
			}
			return nil
		}), &reconcile.Options{Backoff: exact})
		launch(t, &reconcile.Group{}, c)
		time.Sleep(time.Minute)
		synctest.Wait()
		calls := runs.of("a")
		require.Len(t, calls, 3)
		require.Equal(t, []string{"c failed ×1"}, reasons(calls[1]))
		require.Equal(t, []int{1, 2, 3}, []int{calls[0].Attempt, calls[1].Attempt, calls[2].Attempt})
	})
}

func TestC16_OldAndNewOwnersRunOnceEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parents, children := store(t, "p1", "p2", "p3"), store(t)
		_, err := children.Create(t.Context(), "c", thing{Owner: "p1"})
		require.NoError(t, err)
		var runs ran
		c := reconcile.New("c", informer.New(parents, nil), runs.wrap(nil), nil)
		reconcile.Watch(c, informer.New(children, named("children")), owners)
		launch(t, &reconcile.Group{}, c)
		before := len(runs.of(""))

		_, err = children.Update(t.Context(), object.Item[thing]{Key: "c", Version: object.Any, Object: thing{Owner: "p2"}})
		require.NoError(t, err)
		synctest.Wait()
		calls := runs.of("")[before:]
		require.Len(t, calls, 2)
		for _, call := range calls {
			require.Contains(t, []string{"p1", "p2"}, call.Key)
			require.Equal(t, []string{"children updated ×1"}, reasons(call))
		}
		require.NotEqual(t, calls[0].Key, calls[1].Key)

		remove(t, children, "c")
		synctest.Wait()
		calls = runs.of("")[before+2:]
		require.Len(t, calls, 1)
		require.Equal(t, "p2", calls[0].Key)
	})
}

// One key that both states name is one trigger.
func TestWatchCountsAChangeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		children := store(t)
		_, err := children.Create(t.Context(), "c", thing{Owner: "p"})
		require.NoError(t, err)
		var runs ran
		c := reconcile.New("c", informer.New(store(t), nil), runs.wrap(nil), nil)
		reconcile.Watch(c, informer.New(children, named("children")), owners)
		launch(t, &reconcile.Group{}, c)
		_, err = children.Update(t.Context(), object.Item[thing]{Key: "c", Version: object.Any, Object: thing{Owner: "p", Spec: 1}})
		require.NoError(t, err)
		synctest.Wait()
		calls := runs.of("p")
		require.Len(t, calls, 2)
		require.Equal(t, []string{"children updated ×1"}, reasons(calls[1]))
	})
}

// A panic of Watch's keys loses the keys of that state alone, and is shown.
func TestWatchContainsPanicsOfItsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		children := store(t)
		_, err := children.Create(t.Context(), "c", thing{Owner: "bad"})
		require.NoError(t, err)
		var runs ran
		c := reconcile.New("c", informer.New(store(t), nil), runs.wrap(nil), &reconcile.Options{Logger: log.logger(0)})
		reconcile.Watch(c, informer.New(children, named("children")), func(c thing) []string {
			if c.Owner == "bad" {
				panic("bad owner")
			}
			return owners(c)
		})
		stop := launch(t, &reconcile.Group{}, c)
		_, err = children.Update(t.Context(), object.Item[thing]{Key: "c", Version: object.Any, Object: thing{Owner: "good"}})
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, runs.of("good"), 1)

		status := c.Status().Watches[1]
		require.Equal(t, "children", status.Source)
		require.EqualValues(t, 2, status.Failures)
		require.Equal(t, "c", status.Key)
		var panicked *reconcile.PanicError
		require.ErrorAs(t, status.Err, &panicked)
		require.Equal(t, "bad owner", panicked.Value)
		require.Contains(t, string(panicked.Stack), "TestWatchContainsPanicsOfItsKeys")
		require.Contains(t, log.String(), "TestWatchContainsPanicsOfItsKeys")
		require.NoError(t, stop())
	})
}

func TestOnlyFiltersOwnChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, children := store(t, "a"), store(t)
		var runs ran
		c := reconcile.New("c", informer.New(s, nil), runs.wrap(nil), nil)
		reconcile.Watch(c, informer.New(children, nil), owners)
		c.Only(func(ch informer.Change[thing]) bool {
			if ch.New.Spec == 13 {
				panic("unlucky")
			}
			return ch.Type != informer.Deleted
		})
		c.Only(func(ch informer.Change[thing]) bool { return ch.New.Spec%2 == 0 })
		launch(t, &reconcile.Group{}, c)
		require.Len(t, runs.of("a"), 1, "added")
		for i, step := range []struct {
			spec, runs int
		}{{1, 1}, {2, 2}, {13, 3}, {3, 3}} {
			put(t, s, "a", step.spec)
			synctest.Wait()
			require.Len(t, runs.of("a"), step.runs, "step %d", i)
		}
		remove(t, s, "a")
		synctest.Wait()
		require.Len(t, runs.of("a"), 3, "deleted is not wanted")
		_, err := children.Create(t.Context(), "c", thing{Owner: "a"})
		require.NoError(t, err)
		c.Trigger("a", "by hand")
		synctest.Wait()
		require.GreaterOrEqual(t, len(runs.of("a")), 4, "others are not asked about")
	})
}

// A filter for "the spec has changed" leaves the safety net alone.
func TestI16_OnlyDoesNotSwallowEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs ran
		c := reconcile.New("c", informer.New(store(t, "a"), nil), runs.wrap(nil), &reconcile.Options{Every: 10 * time.Second})
		c.Only(func(ch informer.Change[thing]) bool { return ch.Old.Spec != ch.New.Spec })
		launch(t, &reconcile.Group{}, c)
		require.Empty(t, runs.of("a"), "not by being there")
		time.Sleep(35 * time.Second)
		synctest.Wait()
		calls := runs.of("a")
		require.GreaterOrEqual(t, len(calls), 3)
		require.LessOrEqual(t, len(calls), 4)
		for _, call := range calls {
			require.Equal(t, []string{"c every ×1"}, reasons(call))
		}
	})
}

func TestKeysByState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs ran
		c, release := busy(t, informer.New(store(t, "a", "b"), nil), &runs)
		launch(t, &reconcile.Group{}, c)
		var due []string
		for e := range c.Keys(workqueue.Due) {
			due = append(due, e.Key)
		}
		slices.Sort(due)
		require.Equal(t, []string{"a", "b"}, due)
		release()
		for range c.Keys(0) {
			t.Fatal("nothing to do")
		}
	})
}
