package consul_test

import (
	"testing"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/internal/stores/consul/consulserver"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func garbage(key string) consulserver.Op {
	return consulserver.Op{Key: prefix + key, Value: []byte("{")}
}

// isFault: "bad" in the version v, and nothing else, cannot be read.
func isFault(t *testing.T, v object.Version, faults []reflector.Fault) {
	t.Helper()
	require.Len(t, faults, 1)
	require.Equal(t, "bad", faults[0].Key)
	require.Equal(t, v, faults[0].Version)
	require.ErrorContains(t, faults[0].Err, `"shop/bad"`)
}

func TestFaultsNameWhatTheCodecCannotRead(t *testing.T) {
	srv, store := open(t, nil)
	srv.Apply(set(t, "a", 1), garbage("bad"), set(t, "c", 3)) // 11
	page, err := store.List(t.Context(), reflector.ListOptions{})
	require.NoError(t, err)
	require.Len(t, page.Items, 2)
	isFault(t, "11", page.Faults)
	_, err = store.Get(t.Context(), "bad")
	require.ErrorContains(t, err, `"shop/bad"`)
	require.NotErrorIs(t, err, backend.ErrNotFound)

	got, err := take(t, store, reflector.WatchOptions{Initial: true}, 4, func(got int) {
		switch got {
		case 1:
			srv.Apply(set(t, "a", 2))
		case 2:
			_, err := store.Delete(t.Context(), "bad", "11")
			require.NoError(t, err, "what cannot be read can be deleted")
		case 3:
			srv.Apply(set(t, "bad", 4))
		}
	})
	require.NoError(t, err)
	for n, want := range []map[string]int{{"a": 1, "c": 3}, {"a": 2, "c": 3}, {"a": 2, "c": 3}, {"a": 2, "bad": 4, "c": 3}} {
		require.Equal(t, want, keys(got[n]))
		require.True(t, got[n].Reset && got[n].Synced)
		if n < 2 {
			isFault(t, "11", got[n].Faults)
		} else {
			require.Empty(t, got[n].Faults)
		}
	}
}

func TestFaultsAreRefusedUntilTheyAreRepaired(t *testing.T) {
	srv, store := open(t, nil)
	srv.Apply(garbage("bad"), set(t, "good", 1))
	inf := follow(t, store, &informer.Options{Backoff: retry.Backoff{Base: time.Millisecond, Max: 20 * time.Millisecond}})
	require.NoError(t, inf.WaitForSync(soon(t)))
	refuses(t, inf, "bad")
	require.Equal(t, 1, inf.Cache().Len())
	srv.Apply(garbage("good"), set(t, "other", 2))
	refuses(t, inf, "bad", "good")
	was, _ := inf.Cache().Get("good")
	require.Equal(t, flag{N: 1}, was, "the last good state is kept")

	_, err := store.Update(t.Context(), object.Item[flag]{Key: "good", Version: object.Any, Object: flag{N: 3}})
	require.NoError(t, err, "what cannot be read can be replaced")
	srv.Apply(set(t, "bad", 4))
	refuses(t, inf)
	becomes(t, inf, srv)
	require.Equal(t, 3, inf.Cache().Len())
}

// refuses waits until just these keys are refused.
func refuses(t *testing.T, inf *informer.Informer[flag], keys ...string) {
	t.Helper()
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		refused := inf.Status().Refused
		assert.Len(t, refused, len(keys))
		for _, key := range keys {
			assert.ErrorIs(t, refused[key], reflector.ErrUnreadable)
		}
	}, time.Minute, time.Millisecond)
}
