package fake_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
)

// follower is an informer, and what a handler was told.
type follower struct {
	*informer.Informer[pod]
	changes []informer.Change[pod]
	told    map[string]pod
}

// soon retries after exactly a second, so that tests can count.
var soon = retry.Backoff{Schedule: []time.Duration{time.Second}}

// follow runs an informer over src until the test's bubble ends.
func follow(t *testing.T, src reflector.ListWatcher[pod], opts *informer.Options) *follower {
	t.Helper()
	if opts == nil {
		opts = &informer.Options{}
	}
	opts.Backoff = soon
	f := &follower{Informer: informer.New(src, opts), told: map[string]pod{}}
	f.AddHandler(func(c informer.Change[pod]) {
		f.changes = append(f.changes, c)
		if c.Type == informer.Deleted {
			delete(f.told, c.Key)
		} else {
			f.told[c.Key] = c.New
		}
	}, &informer.HandlerOptions{Inline: true})
	go func() {
		if err := f.Run(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	return f
}

// says is what the handler was told since it was last asked: "added a", "deleted b?"
// (inferred).
func (f *follower) says() []string {
	var all []string
	for _, c := range f.changes {
		text := fmt.Sprintf("%v %s", c.Type, c.Key)
		if c.Inferred {
			text += "?"
		}
		all = append(all, text)
	}
	f.changes = nil
	return all
}

// equals checks cache and handler against the store. Within a bubble, when all is
// quiet.
func (f *follower) equals(t *testing.T, b *fake.Backend[pod]) {
	t.Helper()
	want := map[string]item{}
	snap := b.Snapshot()
	for _, it := range snap.List(reflector.ListOptions{}).Items {
		want[it.Key] = it
	}
	got := map[string]item{}
	for key := range f.Cache().All() {
		got[key], _ = f.Cache().Item(key)
	}
	require.Equal(t, want, got, "the cache")
	require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(f.told)), "the handler")
	for key, p := range f.told {
		require.Equal(t, want[key].Object, p, "the handler")
	}
}

// after lets the bubble's time pass.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// listed takes the streaming of lists away from b: it is listed and then watched.
func listed(b *fake.Backend[pod]) *fake.Backend[pod] {
	b.OnPowers(func(p reflector.Powers[pod]) reflector.Powers[pod] {
		p.Initial = false
		return p
	})
	return b
}

// calledSince is the log of b from its n-th line on, without the writes.
func calledSince(b *fake.Backend[pod], n int) []string {
	var all []string
	for _, c := range b.Log()[n:] {
		if c.Op&(fake.List|fake.Watch) != 0 {
			c.Err = nil
			all = append(all, c.String())
		}
	}
	return all
}

func put(t *testing.T, b *fake.Backend[pod], key string, n int) item {
	t.Helper()
	it, err := b.Update(t.Context(), item{Key: key, Version: object.Any, Object: pod{N: n}})
	if err != nil {
		it, err = b.Create(t.Context(), key, pod{N: n})
	}
	require.NoError(t, err)
	return it
}
