package kube_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/internal/stores/kube"
	"github.com/homeostat/homeostat/internal/stores/kube/kubeserver"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
)

// impatient options, so that no test waits for a real server's patience.
var impatient = informer.Options{
	Backoff:    retry.Backoff{Base: time.Millisecond, Max: 20 * time.Millisecond},
	PageSize:   3,
	ResetAfter: 50 * time.Millisecond,
}

// follow runs an informer until the test ends.
func follow(t *testing.T, src reflector.ListWatcher[configMap]) *informer.Informer[configMap] {
	t.Helper()
	opts := impatient
	inf := informer.New(src, &opts)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- inf.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return inf
}

// versions is what an API says there is.
func versions(t *testing.T, store *kube.Store[configMap]) map[string]string {
	t.Helper()
	page, err := store.List(soon(t), reflector.ListOptions{})
	require.NoError(t, err)
	all := map[string]string{}
	for _, item := range page.Items {
		all[item.Key] = string(item.Version)
	}
	return all
}

// becomes waits until a cache is equal to the store.
func becomes(t *testing.T, inf *informer.Informer[configMap], want map[string]string) {
	t.Helper()
	err := inf.Until(soon(t), func(snap *indexer.Snapshot[configMap]) bool {
		got := map[string]string{}
		for key, obj := range snap.All() {
			got[key] = obj.Metadata.ResourceVersion
		}
		return maps.Equal(want, got)
	})
	require.NoError(t, err, "want %v, status %+v", want, inf.Status())
}

// TestG1_Convergence writes while streams are cut in every way, history is
// forgotten, the server restarts, lags, is away or is restored as it should be,
// and in the end the caches are equal to the store: one that streams its full
// states, one that lists them in pages, and one that has a selection.
func TestG1_Convergence(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 7))
			srv, store := open(t, &kubeserver.Options{FreshWithin: 5 * time.Millisecond, Bookmark: 10 * time.Millisecond})
			client, url := serve(t, srv)
			red := kube.New[configMap](client, url+configMaps, &kube.Options{Selector: "team=red"})
			streamed := follow(t, store)
			listed := follow(t, listOnly{store})
			selected := follow(t, red)
			require.NoError(t, streamed.WaitForSync(soon(t)))

			up := func() {}
			snap := srv.Snapshot()
			for n := range 400 {
				name := fmt.Sprint("conf-", rnd.IntN(8))
				switch rnd.IntN(24) {
				case 0, 1, 2, 3:
					srv.Cut(kubeserver.Break(rnd.IntN(4)))
				case 4:
					srv.Compact()
				case 5:
					srv.Restart()
				case 6:
					srv.Freeze()
				case 7:
					srv.Thaw()
				case 8:
					srv.Bookmark()
				case 9:
					up = srv.Down()
				case 10:
					up()
				case 11:
					snap = srv.Snapshot()
				case 12:
					srv.Restore(snap, true)
				case 13: // the caches catch up now and then
					srv.Thaw()
					up()
					becomes(t, streamed, versions(t, store))
				case 14, 15, 16:
					require.NoError(t, srv.Delete(configMaps, name))
				default:
					obj := named(name, fmt.Sprint(n))
					if rnd.IntN(2) == 0 {
						obj.Metadata.Labels = map[string]string{"team": "red"}
					}
					require.NoError(t, srv.Put(configMaps, obj))
				}
			}
			srv.Thaw()
			up()
			becomes(t, streamed, versions(t, store))
			becomes(t, listed, versions(t, store))
			becomes(t, selected, versions(t, red))
		})
	}
}

// listOnly does not say that the store can stream its full state.
type listOnly struct{ *kube.Store[configMap] }

func (l listOnly) Powers() reflector.Powers[configMap] {
	p := l.Store.Powers()
	p.Initial = false
	return p
}

// A database that was set back, revisions and all: what vanished is deleted, what
// came back is there, and the reset is counted.
func TestR08_SourceSetBack(t *testing.T) {
	srv, store := open(t, &kubeserver.Options{FreshWithin: time.Millisecond})
	put(t, srv, named("a", "1"))
	snap := srv.Snapshot()
	inf := follow(t, store)
	put(t, srv, named("b", "1"), named("c", "1"))
	becomes(t, inf, versions(t, store))
	srv.Restore(snap, false)
	becomes(t, inf, versions(t, store))
	require.Equal(t, 1, inf.Cache().Len())
	require.EqualValues(t, 1, inf.Status().Source.Resets)
}

func TestR18_BookmarksKeepAnIdleWatchResumable(t *testing.T) {
	srv, store := open(t, nil)
	put(t, srv, named("a", "1"))
	inf := follow(t, store)
	require.NoError(t, inf.WaitForSync(soon(t)))
	watches := inf.Status().Source.Watches
	srv.Skip(50) // writes to what this watch does not show
	srv.Bookmark()
	require.Eventually(t, func() bool { return inf.Status().Source.Cursor == "151" }, time.Minute, time.Millisecond)
	srv.Compact()
	srv.Cut(kubeserver.Abrupt)
	require.Eventually(t, func() bool { return inf.Status().Source.Watches > watches }, time.Minute, time.Millisecond)
	put(t, srv, named("b", "1"))
	becomes(t, inf, versions(t, store))
	require.Zero(t, inf.Status().Source.Lists)
}

func TestServerThatCannotStreamIsListed(t *testing.T) {
	srv, store := open(t, &kubeserver.Options{NoWatchList: true})
	put(t, srv, named("a", "1"), named("b", "1"), named("c", "1"), named("d", "1"))
	inf := follow(t, store)
	becomes(t, inf, versions(t, store))
	require.GreaterOrEqual(t, inf.Status().Source.Lists, uint64(2), "pages")
}
