package consul_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/internal/stores/consul"
	"github.com/homeostat/homeostat/internal/stores/consul/consulserver"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
)

// follow runs an informer until the test ends.
func follow(t *testing.T, src reflector.ListWatcher[flag], opts *informer.Options) *informer.Informer[flag] {
	t.Helper()
	inf := informer.New(src, opts)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- inf.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return inf
}

// becomes waits until a cache is equal to the store.
func becomes(t *testing.T, inf *informer.Informer[flag], srv *consulserver.Server) {
	t.Helper()
	want := map[string]flag{}
	for _, e := range srv.Entries(prefix) {
		var obj flag
		require.NoError(t, json.Unmarshal(e.Value, &obj))
		want[strings.TrimPrefix(e.Key, prefix)] = obj
	}
	err := inf.Until(soon(t), func(snap *indexer.Snapshot[flag]) bool { return maps.Equal(want, maps.Collect(snap.All())) })
	require.NoError(t, err, "want %v, status %+v", want, inf.Status())
}

// often asks for signs of life much more often than the reflector does: a delete
// that was forgotten at once is told with the next one.
type often struct{ *consul.Store[flag] }

func (o often) Watch(ctx context.Context, opts reflector.WatchOptions) iter.Seq2[reflector.Batch[flag], error] {
	opts.ProgressEvery = 50 * time.Millisecond
	return o.Store.Watch(ctx, opts)
}

// TestG1_Convergence writes while connections are cut, queries are answered for
// nothing, deletes are forgotten, replicas lag, the store is away or restored in
// either way, and in the end the caches are equal to the store.
func TestG1_Convergence(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 9))
			srv, store := open(t, nil)
			client, url := serve(t, srv)
			opts := &informer.Options{Backoff: retry.Backoff{Base: time.Millisecond, Max: 20 * time.Millisecond}}
			latest := follow(t, often{store}, opts)
			stale := follow(t, often{consul.New[flag](client, url, prefix, nil, &consul.Options{Stale: true})}, opts)
			up := func() {}
			snap := srv.Snapshot()
			for n := range 400 {
				key := fmt.Sprint("k", rnd.IntN(8))
				switch rnd.IntN(20) {
				case 0, 1:
					srv.Cut()
				case 2, 3:
					srv.Wake()
				case 4:
					srv.Reap()
				case 5:
					srv.Lag()
				case 6:
					srv.CatchUp()
				case 7:
					up = srv.Down()
				case 8:
					up()
				case 9:
					snap = srv.Snapshot()
				case 10:
					srv.Restore(snap, true)
				case 11: // the cache catches up now and then
					up()
					becomes(t, latest, srv)
				case 12, 13, 14:
					srv.Apply(unset(key))
				default:
					srv.Apply(set(t, key, n), set(t, "last", n))
				}
			}
			srv.CatchUp()
			up()
			becomes(t, latest, srv)
			becomes(t, stale, srv)
		})
	}
}

// A cluster that was begun anew from an old snapshot: the indexes are other ones.
func TestR08_ClusterBegunAnew(t *testing.T) {
	srv, store := open(t, nil)
	srv.Apply(set(t, "a", 1))
	snap := srv.Snapshot()
	inf := follow(t, often{store}, nil)
	srv.Apply(set(t, "a", 2), set(t, "b", 2))
	srv.Apply(unset("a"))
	becomes(t, inf, srv)
	srv.Restore(snap, false)
	becomes(t, inf, srv)
	require.Equal(t, 1, inf.Cache().Len())
}
