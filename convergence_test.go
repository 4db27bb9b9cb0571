package homeostat_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

type thing struct {
	Colour string
	N      int
}

var byColour = indexer.By("colour", func(t thing) string { return t.Colour })

// TestG1_TwoInformersOverOneBackend: a thousand random writes on a bad day, and
// in the end both caches, their indexes and all that their handlers were told are
// the backend.
func TestG1_TwoInformersOverOneBackend(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			t.Helper()
			store := fake.New(badDay(seed), object.Item[thing]{Key: "k0", Object: thing{"red", -1}})
			var infs []*follower
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			defer running.Wait()
			defer cancel()
			for i := range 2 {
				f := newFollower(store, i == 1)
				infs = append(infs, f)
				running.Go(func() {
					if err := f.Run(ctx); err != nil {
						t.Errorf("seed %d: %v", seed, err)
					}
				})
			}
			write(t, store, seed)
			store.SetPlan(fake.Plan{}) // the sun comes out
			time.Sleep(time.Hour)      // of the bubble's time
			synctest.Wait()

			want := contents(t, store)
			for _, f := range infs {
				require.Empty(t, cmp.Diff(want, f.cached()), "seed %d: the cache", seed)
				require.Empty(t, cmp.Diff(want, f.told), "seed %d: the handler", seed)
				require.Empty(t, f.broken, "seed %d", seed)
				f.checkIndex(t, want)
			}
		})
	}
}

// write does a thousand writes, in bursts with pauses between them. On a bad day
// any of them may fail.
func write(t *testing.T, store *fake.Backend[thing], seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	colours := []string{"red", "green", "blue"}
	for n := range 1000 {
		key := fmt.Sprint("k", rnd.IntN(12))
		obj := thing{colours[rnd.IntN(3)], n}
		switch rnd.IntN(8) {
		case 0, 1:
			store.Delete(t.Context(), key, object.Any)
		case 2: // gone and there again, in one breath
			store.Delete(t.Context(), key, object.Any)
			store.Create(t.Context(), key, obj)
		default:
			if _, err := store.Update(t.Context(), object.Item[thing]{Key: key, Version: object.Any, Object: obj}); errors.Is(err, reflector.ErrNotFound) {
				store.Create(t.Context(), key, obj)
			}
		}
		switch rnd.IntN(60) {
		case 0:
			time.Sleep(time.Duration(rnd.IntN(5000)) * time.Millisecond)
		case 1:
			store.Compact()
		case 2:
			store.Cut()
		case 3:
			synctest.Wait()
		}
	}
}

func badDay(seed uint64) fake.Plan {
	return fake.Plan{Seed: seed, Faults: []fake.Fault{
		{On: fake.List, Do: fake.Fail, OneIn: 4},
		{On: fake.Watch, Do: fake.Cut, OneIn: 30},
		{On: fake.Watch, Do: fake.Expire, OneIn: 60},
		{On: fake.Watch, Do: fake.Silence, OneIn: 50, For: 40 * time.Second},
		{On: fake.Watch, Do: fake.Duplicate, OneIn: 20},
		{On: fake.Writes, Do: fake.Fail, OneIn: 20},
		{On: fake.Writes, Do: fake.FailAfterCommit, OneIn: 20},
		{On: fake.List | fake.Watch, Do: fake.Delay, OneIn: 10, For: 3 * time.Second},
	}}
}

// follower is an informer, and a handler that believes only what it is told.
type follower struct {
	*informer.Informer[thing]
	told   map[string]thing
	broken []string // what it was told that cannot be
}

func newFollower(store reflector.ListWatcher[thing], slow bool) *follower {
	f := &follower{Informer: informer.New(store, nil, byColour), told: map[string]thing{}}
	f.AddHandler(func(c informer.Change[thing]) {
		if slow {
			time.Sleep(100 * time.Millisecond)
		}
		have, has := f.told[c.Key]
		switch {
		case c.Type == informer.Added && has, c.Type == informer.Updated && !has, c.Type == informer.Deleted && !has:
			f.broken = append(f.broken, fmt.Sprintf("%v of %s", c.Type, c.Key))
		case has && c.Old != have:
			f.broken = append(f.broken, fmt.Sprintf("%s was %v before, not %v", c.Key, have, c.Old))
		case has && c.Type == informer.Updated && c.New.N < have.N:
			f.broken = append(f.broken, fmt.Sprintf("%s went back from %v to %v", c.Key, have, c.New))
		}
		if c.Type == informer.Deleted {
			delete(f.told, c.Key)
		} else {
			f.told[c.Key] = c.New
		}
	}, nil)
	return f
}

func (f *follower) cached() map[string]thing {
	got := map[string]thing{}
	for key, obj := range f.Cache().All() {
		got[key] = obj
	}
	return got
}

func (f *follower) checkIndex(t *testing.T, want map[string]thing) {
	n := 0
	for colour, count := range byColour.Values(f.Cache()) {
		for key := range byColour.Lookup(f.Cache(), colour) {
			require.Equal(t, colour, want[key].Colour)
			count--
			n++
		}
		require.Zero(t, count)
	}
	require.Len(t, want, n)
}

func contents(t *testing.T, store reflector.ListWatcher[thing]) map[string]thing {
	page, err := store.List(t.Context(), reflector.ListOptions{})
	require.NoError(t, err)
	got := map[string]thing{}
	for _, item := range page.Items {
		got[item.Key] = item.Object
	}
	return got
}
