package etcd_test

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/internal/stores/etcd"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// isFault: "bad" in the version v, and nothing else, cannot be read.
func isFault(t *testing.T, v object.Version, faults []reflector.Fault) {
	t.Helper()
	require.Len(t, faults, 1)
	require.Equal(t, "bad", faults[0].Key)
	require.Equal(t, v, faults[0].Version)
	require.ErrorContains(t, faults[0].Err, `object "bad"`)
}

func TestFaults_NameWhatTheCodecCannotRead(t *testing.T) {
	c := client(t, server.Addr())
	p := prefix()
	s := etcd.New[int](c, p, nil)
	start := head(t, s)
	_, err := c.Txn(t.Context()).Then(clientv3.OpPut(p+"a", "1"), clientv3.OpPut(p+"bad", "{"), clientv3.OpPut(p+"c", "3")).Commit()
	require.NoError(t, err)
	here := head(t, s)

	told := collect(t, s, start, 2)[1]
	require.Len(t, told.Events, 2, "the rest of the transaction")
	isFault(t, told.Events[0].Version, told.Faults)
	require.Equal(t, here, told.Cursor)
	v := told.Faults[0].Version

	page, err := s.List(t.Context(), reflector.ListOptions{})
	require.NoError(t, err)
	require.Len(t, page.Items, 2)
	isFault(t, v, page.Faults)
	page, err = s.List(t.Context(), reflector.ListOptions{Limit: 2})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	isFault(t, v, page.Faults)
	page, err = s.List(t.Context(), reflector.ListOptions{Limit: 2, Page: page.Next})
	require.NoError(t, err)
	require.Equal(t, "c", page.Items[0].Key, "the last of the page before could not be read")
	require.Empty(t, page.Faults)
	page, err = s.List(t.Context(), reflector.ListOptions{KeysOnly: true})
	require.NoError(t, err)
	require.Len(t, page.Items, 3)
	require.Empty(t, page.Faults)

	_, err = s.Get(t.Context(), "bad")
	require.ErrorContains(t, err, `object "bad"`)
	require.NotErrorIs(t, err, backend.ErrNotFound)

	gone, err := s.Delete(t.Context(), "bad", v)
	require.NoError(t, err, "what cannot be read can be deleted")
	last := collect(t, s, here, 2)[1]
	require.Empty(t, last.Faults)
	require.Equal(t, []reflector.Event[int]{{Op: reflector.OpDelete, Item: object.Item[int]{
		Key: "bad", Version: gone.Version, ID: gone.ID,
	}}}, last.Events)
}

func TestFaults_AreRefusedUntilTheyAreRepaired(t *testing.T) {
	c := client(t, server.Addr())
	p := prefix()
	s := etcd.New[int](c, p, nil)
	put := func(key, value string) {
		t.Helper()
		_, err := c.Put(t.Context(), p+key, value)
		require.NoError(t, err)
	}
	put("bad", "{")
	put("good", "1")
	cache := run(t, s)
	require.NoError(t, cache.WaitForSync(within(t, long)))
	refuses(t, cache, "bad") // from the list
	converges(t, cache, state(t, s))
	put("good", "{") // by the watch
	put("other", "2")
	refuses(t, cache, "bad", "good")
	was, _ := cache.Cache().Get("good")
	require.Equal(t, 1, was, "the last good state is kept")

	_, err := s.Update(t.Context(), object.Item[int]{Key: "good", Version: object.Any, Object: 3})
	require.NoError(t, err, "what cannot be read can be replaced")
	put("bad", "4")
	refuses(t, cache)
	want := state(t, s)
	require.Len(t, want, 3)
	converges(t, cache, want)
}

// refuses waits until just these keys are refused.
func refuses(t *testing.T, i *informer.Informer[int], keys ...string) {
	t.Helper()
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		refused := i.Status().Refused
		assert.Len(t, refused, len(keys))
		for _, key := range keys {
			assert.ErrorIs(t, refused[key], reflector.ErrUnreadable)
		}
	}, long, 5*time.Millisecond)
}
