package kube_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/internal/stores/kube"
	"github.com/homeostat/homeostat/internal/stores/kube/kubeserver"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// garbage writes what is an object, but no configMap.
func garbage(t *testing.T, srv *kubeserver.Server, name string) {
	t.Helper()
	require.NoError(t, srv.Put(configMaps, map[string]any{"metadata": metadata{Name: name}, "data": map[string]int{"text": 7}}))
}

// isFault: "bad" in the version v, and nothing else, cannot be read.
func isFault(t *testing.T, v object.Version, faults []reflector.Fault) {
	t.Helper()
	require.Len(t, faults, 1)
	require.Equal(t, "bad", faults[0].Key)
	require.Equal(t, v, faults[0].Version)
	require.ErrorContains(t, faults[0].Err, `object "bad"`)
}

func TestR02_FaultsNameWhatCannotBeDecoded(t *testing.T) {
	for _, c := range []struct {
		name string
		opts kubeserver.Options
	}{{"a status is answered to a delete", kubeserver.Options{}}, {"the object is", kubeserver.Options{DeletedObject: true}}} {
		t.Run(c.name, func(t *testing.T) {
			srv, store := open(t, &c.opts)
			put(t, srv, named("a", "1"))
			garbage(t, srv, "bad") // 102
			put(t, srv, named("c", "1"))

			page, err := store.List(t.Context(), reflector.ListOptions{})
			require.NoError(t, err)
			require.Len(t, page.Items, 2)
			isFault(t, "102", page.Faults)
			page, err = store.List(t.Context(), reflector.ListOptions{Limit: 2})
			require.NoError(t, err)
			require.Len(t, page.Items, 1)
			isFault(t, "102", page.Faults)
			page, err = store.List(t.Context(), reflector.ListOptions{Limit: 2, Page: page.Next})
			require.NoError(t, err)
			require.Len(t, page.Items, 1)
			require.Empty(t, page.Faults)
			page, err = store.List(t.Context(), reflector.ListOptions{KeysOnly: true})
			require.NoError(t, err)
			require.Len(t, page.Items, 3)
			require.Empty(t, page.Faults)

			_, err = store.Get(t.Context(), "bad")
			require.ErrorContains(t, err, `object "bad"`)
			require.NotErrorIs(t, err, backend.ErrNotFound)

			full, err := take(t, store, reflector.WatchOptions{Initial: true}, 5)
			require.NoError(t, err)
			require.True(t, full[0].Reset && full[4].Synced)
			require.Equal(t, "a", full[1].Events[0].Key)
			require.Empty(t, full[2].Events)
			isFault(t, "102", full[2].Faults)
			require.Empty(t, full[2].Cursor)
			require.Equal(t, "c", full[3].Events[0].Key)

			told, err := take(t, store, reflector.WatchOptions{After: "101"}, 4, func(got int) {
				if got == 1 {
					_, err := store.Delete(t.Context(), "bad", "102")
					require.NoError(t, err, "what cannot be decoded can be deleted")
				}
			})
			require.NoError(t, err)
			require.Empty(t, told[1].Events)
			isFault(t, "102", told[1].Faults)
			require.Equal(t, reflector.Cursor("102"), told[1].Cursor)
			gone := told[3]
			require.Empty(t, gone.Faults)
			require.Len(t, gone.Events, 1)
			require.NotEmpty(t, gone.Events[0].ID)
			gone.Events[0].ID = ""
			require.Equal(t, reflector.Delete[configMap]("bad", "104").Events[0].Op, gone.Events[0].Op)
			require.Equal(t, object.Item[configMap]{Key: "bad", Version: "104"}, gone.Events[0].Item)
			require.False(t, gone.Events[0].Known)
		})
	}
}

// What cannot even be named: only a full state knows, and it must not be taken for
// one without it.
func TestR02_WhatHasNoNameIsAnError(t *testing.T) {
	for _, obj := range []string{`{"metadata":{"resourceVersion":"7"},"data":3}`, `{"metadata":{"name":"a"},"data":3}`, `{"metadata":3}`, `7`} {
		list := answering{code: http.StatusOK, body: `{"kind":"ConfigMapList","metadata":{"resourceVersion":"9"},"items":[` + obj + `]}`}
		store := kube.New[configMap](&http.Client{Transport: list}, "http://test"+configMaps, nil)
		_, err := store.List(t.Context(), reflector.ListOptions{})
		require.Error(t, err, obj)
		events := answering{code: http.StatusOK, body: `{"type":"ADDED","object":` + obj + `}`}
		store = kube.New[configMap](&http.Client{Transport: events}, "http://test"+configMaps, nil)
		_, err = take(t, store, reflector.WatchOptions{Initial: true}, 0)
		require.ErrorIs(t, err, reflector.ErrExpired, obj)
	}
}

func TestR02_FaultsAreRefusedUntilTheyAreRepaired(t *testing.T) {
	srv, store := open(t, nil)
	garbage(t, srv, "bad")
	put(t, srv, named("good", "1"))
	streamed, listed := follow(t, store), follow(t, listOnly{store})
	both := []*informer.Informer[configMap]{streamed, listed}
	for _, inf := range both {
		require.NoError(t, inf.WaitForSync(soon(t)))
		refuses(t, inf, "bad")
		require.Equal(t, 1, inf.Cache().Len())
	}
	garbage(t, srv, "good")
	put(t, srv, named("other", "1"))
	for _, inf := range both {
		refuses(t, inf, "bad", "good")
		was, _ := inf.Cache().Get("good")
		require.Equal(t, "1", was.Data["text"], "the last good state is kept")
	}

	_, err := store.Update(t.Context(), object.Item[configMap]{Key: "good", Version: object.Any, Object: named("good", "2")})
	require.NoError(t, err, "what cannot be decoded can be replaced")
	repair, err := patch.Merge([]byte(`{"data":{"text":"2"}}`))
	require.NoError(t, err)
	_, err = store.Patch(t.Context(), "bad", repair, object.Any)
	require.NoError(t, err, "and patched, as the server does it")
	want := versions(t, store)
	require.Len(t, want, 3)
	for _, inf := range both {
		refuses(t, inf)
		becomes(t, inf, want)
	}
}

// refuses waits until just these keys are refused.
func refuses(t *testing.T, inf *informer.Informer[configMap], keys ...string) {
	t.Helper()
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		refused := inf.Status().Refused
		assert.Len(t, refused, len(keys))
		for _, key := range keys {
			assert.ErrorIs(t, refused[key], reflector.ErrUnreadable)
		}
	}, time.Minute, time.Millisecond)
}
