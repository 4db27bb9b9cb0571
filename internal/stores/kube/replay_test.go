package kube_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/internal/stores/kube"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
)

// replayed is a store of ConfigMaps that gets recorded answers.
func replayed(t *testing.T, opts *kube.Options, head string, files ...string) *kube.Store[configMap] {
	t.Helper()
	client, url := serve(t, replaying(t, head, files...))
	return kube.New[configMap](client, url+configMaps, opts)
}

// recordedItems are the items that a recorded list must become.
func recordedItems(objs []configMap, kind string) []object.Item[configMap] {
	var items []object.Item[configMap]
	for _, obj := range objs {
		obj.Kind, obj.APIVersion = kind, "v1"
		m := obj.Metadata
		items = append(items, object.Item[configMap]{Key: m.Name, Version: object.Version(m.ResourceVersion), ID: m.UID, Object: obj})
	}
	return items
}

func TestRecordedLists(t *testing.T) {
	for _, c := range []struct {
		name, file string
		opts       *kube.Options
		list       reflector.ListOptions
		items      int
	}{
		{name: "whole", file: "list/configmaps.json", items: 20},
		{name: "a selection", file: "list/configmaps-label-team-red.json", opts: &kube.Options{Selector: "team=red"}, items: 10},
		{name: "a page", file: "pages/configmaps-page-1.json", list: reflector.ListOptions{Limit: 5}, items: 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := recordings(t)[c.file].object(t)
			page, err := replayed(t, c.opts, "", c.file).List(t.Context(), c.list)
			require.NoError(t, err)
			require.Len(t, page.Items, c.items)
			require.Equal(t, recordedItems(want.Items, "ConfigMap"), page.Items)
			require.Equal(t, reflector.Cursor(want.Metadata.ResourceVersion), page.Cursor)
			require.Equal(t, reflector.PageToken(want.Metadata.Continue), page.Next)
		})
	}
}

// The server ignores a limit where it may answer from its cache; the store, which
// promises to honour limits, does not ask it then.
func TestRecordedAnyIsFromTheCache(t *testing.T) {
	all := recordings(t)["list/configmaps-resourceVersion-0.json"]
	require.Equal(t, "resourceVersion=0&limit=5", all.Query)
	require.Len(t, all.object(t).Items, 20)

	store := replayed(t, nil, "", "pages/configmaps-page-1.json")
	page, err := store.List(t.Context(), reflector.ListOptions{Freshness: reflector.Any, Limit: 5})
	require.NoError(t, err)
	require.Len(t, page.Items, 5)
}

func TestRecordedEmptyList(t *testing.T) {
	client, url := serve(t, replaying(t, "", "list/configmaps-empty.json"))
	page, err := kube.New[configMap](client, url+"/api/v1/namespaces/nothing-here/configmaps", nil).List(t.Context(), reflector.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, reflector.Page[configMap]{Items: []object.Item[configMap]{}, Cursor: "320"}, page)
}

func TestRecordedKeysOnly(t *testing.T) {
	client, url := serve(t, replaying(t, "", "list/deployments-metadata-only.json"))
	page, err := kube.New[map[string]any](client, url+deployments, nil).List(t.Context(), reflector.ListOptions{KeysOnly: true, Limit: 3})
	require.NoError(t, err)
	require.Len(t, page.Items, 3)
	require.Equal(t, object.Item[map[string]any]{Key: "app-01", Version: "262", ID: "a77268ad-9af1-4d2f-9d15-4f2f2eb11877"}, page.Items[0])
}

// Four pages, of one state.
func TestRecordedPages(t *testing.T) {
	store := replayed(t, nil, "", "pages/configmaps-page-1.json", "pages/configmaps-page-2.json",
		"pages/configmaps-page-3.json", "pages/configmaps-page-4.json")
	opts := reflector.ListOptions{Limit: 5}
	var keys []string
	for pages := 1; ; pages++ {
		page, err := store.List(t.Context(), opts)
		require.NoError(t, err)
		require.Equal(t, reflector.Cursor("321"), page.Cursor)
		for _, item := range page.Items {
			keys = append(keys, item.Key)
		}
		if opts.Page = page.Next; page.Next == "" {
			require.Equal(t, 4, pages)
			break
		}
	}
	require.Len(t, keys, 20)
	require.Equal(t, "conf-20", keys[19])
}

// The other three paths are in the table of errors and in the recorded watch.
func TestR05_ExpiredOnALaterPage(t *testing.T) {
	store := replayed(t, nil, "", "expired/page-1.json", "expired/page-2.json")
	page, err := store.List(t.Context(), reflector.ListOptions{Limit: 5})
	require.NoError(t, err)
	_, err = store.List(t.Context(), reflector.ListOptions{Limit: 5, Page: page.Next})
	require.ErrorIs(t, err, reflector.ErrExpired)
}

// line is an event of a recorded watch, as it is told.
func lines(t *testing.T, file string) (told []string) {
	t.Helper()
	for text := range strings.Lines(string(recordings(t)[file].body)) {
		var e struct {
			Type   string
			Object configMap
		}
		require.NoError(t, json.Unmarshal([]byte(text), &e))
		m := e.Object.Metadata
		told = append(told, fmt.Sprint(e.Type, " ", m.Name, " ", m.ResourceVersion, " ", m.UID, " ", e.Object.Data))
	}
	return told
}

// retold is the same, of batches.
func retold(t *testing.T, batches []reflector.Batch[configMap], put string) (told []string) {
	t.Helper()
	for _, b := range batches {
		switch len(b.Events) {
		case 0:
			told = append(told, fmt.Sprint("BOOKMARK  ", b.Cursor, "  map[]"))
		case 1:
			e, kind := b.Events[0], put
			require.True(t, e.Known)
			if e.Op == reflector.OpDelete {
				kind = "DELETED"
			}
			require.Equal(t, reflector.Cursor(e.Version), b.Cursor)
			told = append(told, fmt.Sprint(kind, " ", e.Key, " ", e.Version, " ", e.ID, " ", e.Object.Data))
		default:
			t.Fatal("more than one event in a batch")
		}
	}
	return told
}

func puts(told []string) []string {
	for i := range told {
		told[i] = strings.NewReplacer("ADDED", "PUT", "MODIFIED", "PUT").Replace(told[i])
	}
	return told
}

func TestRecordedWatches(t *testing.T) {
	for _, c := range []struct {
		name, file string
		opts       *kube.Options
		after      reflector.Cursor
	}{
		{name: "whole", file: "watch/configmaps.ndjson", after: "325"},
		{name: "a selection, left and entered", file: "watch/configmaps-label-team-red.ndjson", opts: &kube.Options{Selector: "team=red"}, after: "334"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := take(t, replayed(t, c.opts, "400", c.file), reflector.WatchOptions{After: c.after}, 0)
			require.NoError(t, err)
			require.Equal(t, reflector.Bookmark[configMap](c.after), got[0], "the watch is open, and where")
			require.Equal(t, puts(lines(t, c.file)), retold(t, got[1:], "PUT"))
		})
	}
}

func TestRecordedStreamedList(t *testing.T) {
	const file = "watchlist/configmaps.ndjson"
	got, err := take(t, replayed(t, nil, "", file), reflector.WatchOptions{Initial: true}, 0)
	require.NoError(t, err)
	require.Equal(t, reflector.Batch[configMap]{Reset: true}, got[0])
	for _, b := range got[1:21] {
		require.Len(t, b.Events, 1)
		require.Empty(t, b.Cursor, "no place to resume from before the end")
		require.False(t, b.Synced)
	}
	require.Equal(t, reflector.Batch[configMap]{Synced: true, Cursor: "353"}, got[21])
	require.Equal(t, puts(lines(t, file)[21:]), retold(t, got[22:], "PUT"))
}

func TestRecordedStreamedListOfNothing(t *testing.T) {
	client, url := serve(t, replaying(t, "", "watchlist/empty.ndjson"))
	got, err := take(t, kube.New[configMap](client, url+"/api/v1/namespaces/nothing-here/configmaps", nil), reflector.WatchOptions{Initial: true}, 0)
	require.NoError(t, err)
	require.Equal(t, []reflector.Batch[configMap]{{Reset: true}, {Synced: true, Cursor: "362"}}, got)
}

// A delete with a finalizer is a change first.
func TestRecordedFinalizer(t *testing.T) {
	client, url := serve(t, replaying(t, "400", "watch/deployments-with-finalizer.ndjson"))
	got, err := take(t, kube.New[configMap](client, url+deployments, nil), reflector.WatchOptions{After: "345"}, 0)
	require.NoError(t, err)
	require.Len(t, got, 8)
	marked, gone := got[5].Events[0], got[6].Events[0]
	require.Equal(t, reflector.OpPut, marked.Op)
	require.NotEmpty(t, marked.Object.Metadata.DeletionTimestamp)
	require.Equal(t, reflector.OpDelete, gone.Op)
	require.Equal(t, object.Version("351"), gone.Version)
	require.Equal(t, reflector.Bookmark[configMap]("353"), got[7])
}

func TestR05_ExpiredInTheStream(t *testing.T) {
	got, err := take(t, replayed(t, nil, "400", "expired/watch.ndjson"), reflector.WatchOptions{After: "364"}, 0)
	require.ErrorIs(t, err, reflector.ErrExpired)
	require.Len(t, got, 1)
}

func TestRecordedErrors(t *testing.T) {
	obj := named("conf-01", "")
	item := object.Item[configMap]{Key: "conf-01", Version: "1", Object: obj}
	merge, err := patch.Merge([]byte(`{}`))
	require.NoError(t, err)
	list := func(s *kube.Store[configMap]) error {
		_, err := s.List(t.Context(), reflector.ListOptions{})
		return err
	}
	for _, c := range []struct {
		file      string
		path      string
		call      func(*kube.Store[configMap]) error
		is        error
		permanent bool
		after     time.Duration
	}{
		{file: "not-found", is: backend.ErrNotFound, call: func(s *kube.Store[configMap]) error { _, err := s.Get(t.Context(), "absent"); return err }},
		{file: "already-exists", is: backend.ErrExists, call: func(s *kube.Store[configMap]) error { _, err := s.Create(t.Context(), "conf-01", obj); return err }},
		{file: "conflict", is: backend.ErrConflict, call: func(s *kube.Store[configMap]) error { _, err := s.Update(t.Context(), item); return err }},
		{file: "invalid", path: deployments, permanent: true, call: func(s *kube.Store[configMap]) error { _, err := s.Create(t.Context(), "Bad_Name", obj); return err }},
		{file: "bad-request", permanent: true, call: func(s *kube.Store[configMap]) error { _, err := s.Create(t.Context(), "conf-01", obj); return err }},
		{file: "unsupported-media-type", is: errors.ErrUnsupported, call: func(s *kube.Store[configMap]) error {
			_, err := s.Patch(t.Context(), "conf-01", merge, object.Any)
			return err
		}},
		{file: "forbidden", permanent: true, call: list},
		{file: "unauthorized", permanent: true, call: list},
		{file: "resource-version-too-large", is: reflector.ErrFutureCursor, after: time.Second, call: func(s *kube.Store[configMap]) error {
			_, err := s.List(t.Context(), reflector.ListOptions{Freshness: reflector.Any, NotBefore: "99999999"})
			return err
		}},
		{file: "continue-token-invalid", is: reflector.ErrExpired, call: func(s *kube.Store[configMap]) error {
			_, err := s.List(t.Context(), reflector.ListOptions{Limit: 5, Page: "nonsense"})
			return err
		}},
	} {
		t.Run(c.file, func(t *testing.T) {
			file := "errors/" + c.file + ".json"
			client, url := serve(t, replaying(t, "", file))
			if c.path == "" {
				c.path = configMaps
			}
			if c.is == backend.ErrConflict { // what has it become?
				h := replaying(t, "", file).(*replay)
				h.files = append(h.files, recording{Method: "GET", Path: configMaps + "/conf-01", Status: 200,
					body: []byte(`{"kind":"ConfigMap","metadata":{"name":"conf-01","uid":"u","resourceVersion":"7"}}`)})
				client, url = serve(t, h)
			}
			err := c.call(kube.New[configMap](client, url+c.path, nil))
			require.Error(t, err)
			require.Contains(t, err.Error(), recordings(t)[file].message(t), "what the server said")
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			require.NotErrorIs(t, err, backend.ErrOutcomeUnknown)
			require.Equal(t, c.permanent, retry.IsPermanent(err))
			after, _ := retry.Delay(err)
			require.Equal(t, c.after, after)
			if be, ok := errors.AsType[*backend.Error](err); ok && c.is == backend.ErrConflict {
				require.Equal(t, object.Version("7"), be.Found)
			}
		})
	}
}

func (r recording) message(t *testing.T) string {
	t.Helper()
	var s struct{ Message string }
	require.NoError(t, json.Unmarshal(r.body, &s))
	return s.Message
}
