package reconcile_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reconcile"
)

func TestC15_AMappingThatFailsIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		children := store(t)
		var runs ran
		c := reconcile.New("c", informer.New(store(t), nil), runs.wrap(nil), &reconcile.Options{Backoff: exact, Logger: log.logger(0)})
		tries := map[string]int{}
		reconcile.WatchFunc(c, informer.New(children, named("children")), func(_ context.Context, ch informer.Change[thing]) ([]string, error) {
			tries[ch.Key]++
			if ch.Key == "c" && tries["c"] == 1 {
				panic("first")
			}
			if ch.Key == "c" && tries["c"] == 2 {
				return nil, errBoom
			}
			return []string{ch.Object().Owner, ch.Object().Owner}, nil
		})
		launch(t, &reconcile.Group{}, c)
		create := func(key, owner string) {
			_, err := children.Create(t.Context(), key, thing{Owner: owner})
			require.NoError(t, err)
			synctest.Wait()
		}
		create("c", "p")
		require.Empty(t, runs.of("p"))
		require.Equal(t, 1, c.Status().Watches[1].Pending)
		require.ErrorContains(t, c.Status().Watches[1].Err, "first")
		create("d", "q")
		require.Len(t, runs.of("q"), 1, "others go on meanwhile")
		require.ErrorContains(t, c.Status().Watches[1].Err, "first", "and do not hide it")

		time.Sleep(time.Second)
		synctest.Wait()
		require.ErrorIs(t, c.Status().Watches[1].Err, errBoom)
		require.Equal(t, "c", c.Status().Watches[1].Key)
		require.Empty(t, runs.of("p"))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Len(t, runs.of("p"), 1)
		require.Equal(t, []string{"children added ×1"}, reasons(runs.of("p")[0]))
		status := c.Status().Watches[1]
		require.EqualValues(t, 2, status.Failures)
		require.Zero(t, status.Pending)
		require.NoError(t, status.Err)
		require.Contains(t, log.String(), "boom")
	})
}

// Changes that wait to be mapped keep their order, and are not merged: each names
// keys of its own.
func TestWatchFuncMapsEveryChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		children := store(t)
		var runs ran
		c := reconcile.New("c", informer.New(store(t), nil), runs.wrap(nil), &reconcile.Options{Backoff: exact})
		var fixed atomic.Bool
		var order []string
		reconcile.WatchFunc(c, informer.New(children, nil), func(_ context.Context, ch informer.Change[thing]) ([]string, error) {
			if !fixed.Load() {
				return nil, errBoom
			}
			order = append(order, ch.Type.String()+ch.New.Owner)
			return []string{ch.Object().Owner}, nil
		})
		launch(t, &reconcile.Group{}, c)
		_, err := children.Create(t.Context(), "c", thing{Owner: "p1"})
		require.NoError(t, err)
		for _, owner := range []string{"p2", "p3"} {
			synctest.Wait()
			_, err = children.Update(t.Context(), object.Item[thing]{Key: "c", Version: object.Any, Object: thing{Owner: owner}})
			require.NoError(t, err)
		}
		remove(t, children, "c")
		synctest.Wait()
		fixed.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"addedp1", "updatedp2", "updatedp3", "deleted"}, order)
		require.Equal(t, []string{"p1", "p2", "p3"}, runs.keys())
		require.Zero(t, reconcile.Unmapped[thing, thing](c))
	})
}

// A mapping that never works keeps eight changes of an object, and triggers all
// keys in place of the others.
func TestWatchFuncIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		children := store(t, "c")
		var runs ran
		c := reconcile.New("c", informer.New(store(t, "a", "b"), nil), runs.wrap(nil), nil)
		reconcile.WatchFunc(c, informer.New(children, named("children")), func(context.Context, informer.Change[thing]) ([]string, error) {
			return nil, errBoom
		})
		launch(t, &reconcile.Group{}, c)
		for i := range 7 {
			put(t, children, "c", i+1)
			synctest.Wait()
		}
		require.Equal(t, 8, c.Status().Watches[1].Pending)
		require.Len(t, runs.of("a"), 1)
		for i := range 20 {
			put(t, children, "c", i+100)
			synctest.Wait()
		}
		require.Equal(t, 8, c.Status().Watches[1].Pending)
		for _, key := range []string{"a", "b"} {
			calls := runs.of(key)
			require.Equal(t, []string{"trigger changes of children that were not mapped ×1"}, reasons(calls[len(calls)-1]))
		}
	})
}

// A change that was pushed out while it was being mapped takes no other with it.
func TestWatchFuncIsPushedOutWhileItMaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		children := store(t)
		var runs ran
		c := reconcile.New("c", informer.New(store(t), nil), runs.wrap(nil), nil)
		gate := make(chan struct{})
		var mapped atomic.Int64
		reconcile.WatchFunc(c, informer.New(children, nil), func(context.Context, informer.Change[thing]) ([]string, error) {
			<-gate
			mapped.Add(1)
			return nil, nil
		})
		launch(t, &reconcile.Group{}, c)
		with(t, children, "c")
		synctest.Wait()
		for i := range 8 {
			put(t, children, "c", i+1)
			synctest.Wait()
		}
		close(gate)
		synctest.Wait()
		require.EqualValues(t, 9, mapped.Load())
	})
}

// What was not mapped by the end is let go.
func TestWatchFuncLetsGoAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := reconcile.New("c", informer.New(store(t), nil), script(), nil)
		reconcile.WatchFunc(c, informer.New(store(t, "c"), nil), func(context.Context, informer.Change[thing]) ([]string, error) {
			return nil, errBoom
		})
		stop := launch(t, &reconcile.Group{}, c)
		require.Equal(t, 1, c.Status().Watches[1].Pending)
		require.NoError(t, stop())
		require.Zero(t, c.Status().Watches[1].Pending)
	})
}

// Goexit in a mapping costs a goroutine, not a worker.
func TestWatchFuncSurvivesGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		children := store(t, "c")
		var runs ran
		c := reconcile.New("c", informer.New(store(t), nil), runs.wrap(nil), &reconcile.Options{Workers: 1, Backoff: exact})
		first := true
		reconcile.WatchFunc(c, informer.New(children, nil), func(context.Context, informer.Change[thing]) ([]string, error) {
			if first {
				first = false
				goexit()
			}
			return []string{"p"}, nil
		})
		launch(t, &reconcile.Group{}, c)
		require.ErrorContains(t, c.Status().Watches[1].Err, "Goexit")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, runs.of("p"), 1)
	})
}
