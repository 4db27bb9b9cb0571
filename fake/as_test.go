package fake_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

func TestCallersAreCountedAndStruckByThemselves(t *testing.T) {
	b := fake.New(plan(fake.Fault{On: fake.Get | fake.Update, Do: fake.Fail, Call: 2}), item{Key: "a"})
	ann, bob := b.As("ann"), b.As("bob")
	for range 3 {
		ann.Get(t.Context(), "a")
	}
	_, err := bob.Get(t.Context(), "a")
	require.NoError(t, err)
	b.Get(t.Context(), "a")
	_, err = b.As("bob").Update(t.Context(), item{Key: "a", Version: object.Any})
	require.ErrorIs(t, err, fake.ErrFault, "the second of the set, whoever else called")
	dry := must(ann.DryRun())
	must(dry.Get(t.Context(), "a"))

	require.Equal(t, []string{`ann: get #1 "a" at 1`, `ann: get #2 "a": fail: get "a": fake: a fault, as planned`, `ann: get #3 "a" at 1`,
		`ann: get #4 "a" (dry run) at 1`}, lines(ann))
	require.Equal(t, []string{`bob: get #1 "a" at 1`, `bob: update #1 "a": fail: update "a": fake: a fault, as planned`}, lines(bob))
	require.Len(t, lines(b), 7, "without a name, everybody's")
	require.Equal(t, `get #1 "a" at 1`, lines(b)[4])
	require.Equal(t, [3]int{4, 1, 6}, [3]int{ann.Calls(fake.Get), bob.Calls(fake.Get), b.Calls(fake.Get)})
	require.Equal(t, lines(b), lines(b.As("")), "no name is the Backend itself")
}

func TestInterceptorsOfOneCaller(t *testing.T) {
	b := fake.New(fake.Plan{}, item{Key: "a"})
	var seen []string
	say := func(who string) func(context.Context, string) error {
		return func(context.Context, string) error { seen = append(seen, who); return nil }
	}
	b.As("ann").Intercept(fake.Get, say("ann"))
	b.Intercept(fake.Get, say("all"))
	b.As("ann").Get(t.Context(), "a")
	b.As("bob").Get(t.Context(), "a")
	b.Get(t.Context(), "a")
	require.Equal(t, []string{"all", "ann", "all", "all"}, seen)
	b.Intercept(0, nil)
	b.As("ann").Get(t.Context(), "a")
	require.Equal(t, "ann", seen[len(seen)-1])
	require.Len(t, seen, 5)
}

func TestCutOfOneCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[pod](fake.Plan{})
		ended := map[string]bool{}
		var mu sync.Mutex
		ctx, cancel := context.WithCancel(t.Context())
		for _, name := range []string{"ann", "bob", ""} {
			go func() {
				for range b.As(name).Watch(ctx, reflector.WatchOptions{}) {
				}
				mu.Lock()
				defer mu.Unlock()
				ended[name] = true
			}()
		}
		synctest.Wait()
		b.As("ann").Cut()
		synctest.Wait()
		mu.Lock()
		require.Equal(t, map[string]bool{"ann": true}, ended)
		mu.Unlock()
		b.Cut()
		synctest.Wait()
		mu.Lock()
		require.Len(t, ended, 3)
		mu.Unlock()
		cancel()
	})
}

// What strikes a caller depends on the seed and on its own calls alone: whatever
// the order in which many call at once, each one's day is the same each time.
func TestDecisionsAreFreeOfOrder(t *testing.T) {
	p := fake.Plan{Seed: 9, Faults: []fake.Fault{
		{Do: fake.Fail, OneIn: 7},
		{Do: fake.FailAfterCommit, OneIn: 5},
		{Do: fake.Conflict, OneIn: 6},
		{On: fake.Get | fake.Patch, Do: fake.Fail, Call: 11},
		{Do: fake.Cut, OneIn: 4},
		{Do: fake.Duplicate, OneIn: 3},
		{Do: fake.Drop, OneIn: 3},
		{Do: fake.Reorder, OneIn: 5},
		{Do: fake.PartialPage, OneIn: 3},
		{Do: fake.StaleRead, OneIn: 4},
		{Do: fake.Expire, OneIn: 9},
	}}
	day := func(shuffle uint64) map[string][]string {
		b := fake.New[pod](p)
		var wg sync.WaitGroup
		for c := range 8 {
			wg.Go(func() { aDay(t.Context(), b.As(fmt.Sprint("caller", c)), rand.New(rand.NewPCG(shuffle, uint64(c)))) })
		}
		wg.Wait()
		all := map[string][]string{}
		for _, call := range b.Log() {
			// Where in the shared history it was, and what conflicts name, is for
			// all callers together to make.
			failed := call.Err != nil
			call.Revision, call.Err = 0, nil
			all[call.Caller] = append(all[call.Caller], fmt.Sprint(call, " ", failed))
		}
		return all
	}
	first := day(0)
	require.Len(t, first, 8)
	require.NotEqual(t, first["caller0"], first["caller1"])
	for i := range uint64(10) {
		require.Equal(t, first, day(i+1))
	}
}

// aDay is what one caller does, whatever the others do: with its own key, and with
// a watch of its own writes.
func aDay(ctx context.Context, b *fake.Backend[pod], r *rand.Rand) {
	pause := func() {
		for range r.IntN(4) {
			runtime.Gosched()
		}
	}
	key := "key of " + b.Caller()
	b.Create(ctx, key, pod{})
	for i := range 40 {
		pause()
		b.Patch(ctx, key, merge(`{"n":%d}`, i), object.Any)
		pause()
		b.Get(ctx, key)
		b.List(ctx, reflector.ListOptions{})
	}
	for range 15 {
		pause()
		n := 0
		for _, err := range b.Watch(ctx, reflector.WatchOptions{}) {
			// The list is one batch, since there are few objects; changes of
			// others may follow it at any time, or not.
			if n++; err != nil || n == 1 {
				break
			}
		}
	}
}

func TestWatchDecisionsAreByBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plan(fake.Fault{Do: fake.Drop, OneIn: 3}, fake.Fault{Do: fake.Cut, OneIn: 20})
		days := map[string][]string{}
		for _, spread := range []bool{false, true} {
			b := fake.New[pod](p)
			w := b.As("w")
			start := must(b.List(t.Context(), listAll)).Cursor
			if !spread {
				feed(b, 1, 40)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := range 5 {
					got, err := told(t, w, reflector.WatchOptions{After: at(start, i)})
					require.NoError(t, err)
					days[fmt.Sprint(spread)] = append(days[fmt.Sprint(spread)], fmt.Sprint(len(got)))
				}
			}()
			if spread {
				for i := 1; i <= 40; i++ {
					feed(b, i, i)
					synctest.Wait()
				}
			}
			<-done
			days[fmt.Sprint(spread)] = append(days[fmt.Sprint(spread)], lines(w)...)
		}
		require.Equal(t, days["false"], days["true"], "at once or one by one")
	})
}

func TestWatchDecisionsAreByCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[pod](plan(fake.Fault{Do: fake.Drop, OneIn: 3}))
		start := must(b.List(t.Context(), listAll)).Cursor
		feed(b, 1, 40)
		one := must(told(t, b.As("one"), reflector.WatchOptions{After: start}))
		other := must(told(t, b.As("other"), reflector.WatchOptions{After: start}))
		require.NotEqual(t, say(one), say(other))
	})
}

func TestPlanStrikesEachCallerAnew(t *testing.T) {
	b := fake.New(plan(), item{Key: "a"})
	ann := b.As("ann")
	ann.Get(t.Context(), "a")
	b.SetPlan(plan(fake.Fault{On: fake.Get, Do: fake.Fail, Call: 1}))
	for _, who := range []*fake.Backend[pod]{ann, b, b.As("bob")} {
		_, err := who.Get(t.Context(), "a")
		require.True(t, errors.Is(err, fake.ErrFault))
		_, err = who.Get(t.Context(), "a")
		require.NoError(t, err)
	}
}
