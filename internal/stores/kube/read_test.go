package kube_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/internal/stores/kube"
	"github.com/homeostat/homeostat/internal/stores/kube/kubeserver"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

// A list leaves out the kind; objects must be the same wherever they come from.
func TestSameObjectFromListGetAndWatch(t *testing.T) {
	srv, store := open(t, nil)
	put(t, srv, named("a", "1"))
	got, err := store.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "ConfigMap", got.Object.Kind)
	page, err := store.List(t.Context(), reflector.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, []object.Item[configMap]{got}, page.Items)
	told, err := take(t, store, reflector.WatchOptions{Initial: true}, 2)
	require.NoError(t, err)
	require.Equal(t, got, told[1].Events[0].Item)
}

func TestAllNamespaces(t *testing.T) {
	srv := kubeserver.New(nil)
	client, url := serve(t, srv)
	store := kube.New[configMap](client, url+"/api/v1/configmaps", nil)
	for _, ns := range []string{"a-b", "a", "b"} {
		require.NoError(t, srv.Put("/api/v1/namespaces/"+ns+"/configmaps", named("x", ns)))
	}
	item, err := store.Create(t.Context(), "b/y", configMap{})
	require.NoError(t, err)
	require.Equal(t, "b/y", item.Key)

	var keys []string
	opts := reflector.ListOptions{Limit: 1}
	for {
		page, err := store.List(t.Context(), opts)
		require.NoError(t, err)
		require.Len(t, page.Items, 1)
		keys = append(keys, page.Items[0].Key)
		if opts.Page = page.Next; opts.Page == "" {
			break
		}
	}
	require.ElementsMatch(t, []string{"a/x", "a-b/x", "b/x", "b/y"}, keys)
	_, err = store.Delete(t.Context(), "a-b/x", object.Any)
	require.NoError(t, err)
	_, err = store.Get(t.Context(), "a-b/x")
	require.ErrorIs(t, err, backend.ErrNotFound)
	_, err = store.Get(t.Context(), "x")
	require.ErrorIs(t, err, backend.ErrNotFound)
}

func TestSelector(t *testing.T) {
	srv, _ := open(t, nil)
	client, url := serve(t, srv)
	red := kube.New[configMap](client, url+configMaps, &kube.Options{Selector: "team=red"})
	a, b := named("a", "1"), named("b", "1")
	a.Metadata.Labels = map[string]string{"team": "red"}
	put(t, srv, a, b)
	page, err := red.List(t.Context(), reflector.ListOptions{})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	_, err = red.Get(t.Context(), "b")
	require.ErrorIs(t, err, backend.ErrNotFound)
	got, err := red.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, page.Items[0], got)

	a.Metadata.Labels, b.Metadata.Labels = b.Metadata.Labels, a.Metadata.Labels
	put(t, srv, a, b)
	told, err := take(t, red, reflector.WatchOptions{After: page.Cursor}, 3)
	require.NoError(t, err)
	left, came := told[1].Events[0], told[2].Events[0]
	require.Equal(t, reflector.OpDelete, left.Op)
	require.Equal(t, "a", left.Key)
	require.Equal(t, got.Object.Metadata.Labels, left.Object.Metadata.Labels, "as it was last selected")
	require.Greater(t, left.Version, got.Version)
	require.Equal(t, reflector.OpPut, came.Op)
	require.Equal(t, "b", came.Key)
}

func TestR05_ExpiredOnEveryPath(t *testing.T) {
	srv, store := open(t, nil)
	put(t, srv, named("a", "1"), named("b", "1"), named("c", "1"))
	first, err := store.List(t.Context(), reflector.ListOptions{Limit: 2})
	require.NoError(t, err)
	told, err := take(t, store, reflector.WatchOptions{After: first.Cursor}, 0, func(got int) {
		srv.Freeze()
		put(t, srv, named("a", "2")) // which the watch is not told before it is forgotten
		srv.Compact()
	})
	require.ErrorIs(t, err, reflector.ErrExpired, "in the stream")
	require.Len(t, told, 1)
	srv.Thaw()
	_, err = store.List(t.Context(), reflector.ListOptions{Limit: 2, Page: first.Next})
	require.ErrorIs(t, err, reflector.ErrExpired, "on a page")
	_, err = take(t, store, reflector.WatchOptions{After: first.Cursor}, 0)
	require.ErrorIs(t, err, reflector.ErrExpired, "as the watch opens")
}

// The server itself would be silent until it has come to the cursor.
func TestR08_FutureCursor(t *testing.T) {
	srv, store := open(t, &kubeserver.Options{FreshWithin: time.Millisecond})
	put(t, srv, named("a", "1"))
	snap := srv.Snapshot()
	put(t, srv, named("b", "1"))
	page, err := store.List(t.Context(), reflector.ListOptions{})
	require.NoError(t, err)
	srv.Restore(snap, false)
	_, err = take(t, store, reflector.WatchOptions{After: page.Cursor}, 1)
	require.ErrorIs(t, err, reflector.ErrFutureCursor)
	for _, f := range []reflector.Freshness{reflector.Latest, reflector.Any} {
		_, err = store.List(t.Context(), reflector.ListOptions{Freshness: f, NotBefore: page.Cursor})
		require.ErrorIs(t, err, reflector.ErrFutureCursor)
	}
}

func TestStaleListsOnlyWhereTheyMayBe(t *testing.T) {
	srv, store := open(t, &kubeserver.Options{FreshWithin: time.Millisecond})
	srv.Freeze()
	put(t, srv, named("a", "1"))
	for _, c := range []struct {
		opts  reflector.ListOptions
		items int
	}{
		{reflector.ListOptions{}, 1},
		{reflector.ListOptions{Freshness: reflector.Any}, 0},
	} {
		page, err := store.List(t.Context(), c.opts)
		require.NoError(t, err)
		require.Len(t, page.Items, c.items)
	}
	head, err := store.Powers().Head(t.Context())
	require.NoError(t, err)
	_, err = store.List(t.Context(), reflector.ListOptions{Freshness: reflector.Any, NotBefore: head})
	require.ErrorIs(t, err, reflector.ErrFutureCursor, "the cache has not come so far")
}

func TestStreamedListUnsupported(t *testing.T) {
	srv, store := open(t, &kubeserver.Options{NoWatchList: true})
	put(t, srv, named("a", "1"))
	_, err := take(t, store, reflector.WatchOptions{Initial: true}, 1)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	told, err := take(t, store, reflector.WatchOptions{}, 2, func(got int) {
		if got == 1 {
			put(t, srv, named("b", "1"))
		}
	})
	require.NoError(t, err, "from its present end")
	require.Equal(t, reflector.Bookmark[configMap]("101"), told[0])
	require.Equal(t, "b", told[1].Events[0].Key)
}

// However a stream breaks, what was not told whole was not told.
func TestBrokenStreams(t *testing.T) {
	for _, c := range []struct {
		how    kubeserver.Break
		failed bool
	}{{kubeserver.Abrupt, true}, {kubeserver.HalfLine, true}, {kubeserver.HalfLineEnded, true}, {kubeserver.Timeout, false}} {
		t.Run(fmt.Sprint(c.how), func(t *testing.T) {
			srv, store := open(t, nil)
			told, err := take(t, store, reflector.WatchOptions{After: "100"}, 0, func(got int) {
				if got == 1 {
					put(t, srv, named("a", "1"))
				} else {
					srv.Cut(c.how)
				}
			})
			require.Equal(t, c.failed, err != nil, "%v", err)
			require.NotErrorIs(t, err, reflector.ErrExpired, "it can be resumed")
			require.GreaterOrEqual(t, len(told), 2)
			require.Equal(t, "a", told[1].Events[0].Key)
		})
	}
}

func TestCursorsAndVersions(t *testing.T) {
	_, store := open(t, nil)
	p := store.Powers()
	require.Negative(t, p.Compare("9", "10"))
	require.Zero(t, p.Compare("9", "of another store"))
	require.True(t, p.Reached("10", "9"))
	require.False(t, p.Reached("9", "10"))
	require.False(t, p.Reached("9", ""))
	require.False(t, p.Reached("", "9"))
	for _, c := range []reflector.Cursor{"0", "-1", "x"} {
		_, err := take(t, store, reflector.WatchOptions{After: c}, 1)
		require.ErrorIs(t, err, reflector.ErrExpired, "%q is where a server begins anywhere", c)
	}
}
