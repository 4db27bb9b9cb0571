package kube_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/internal/stores/kube"
	"github.com/homeostat/homeostat/internal/stores/kube/kubeserver"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
)

func merge(t *testing.T, text string) patch.Patch {
	t.Helper()
	p, err := patch.Merge([]byte(text))
	require.NoError(t, err)
	return p
}

func TestWritesIgnoreWhatTheObjectSaysOfItself(t *testing.T) {
	_, store := open(t, nil)
	first, err := store.Create(t.Context(), "a", named("another", "1"))
	require.NoError(t, err)
	require.Equal(t, "a", first.Object.Metadata.Name)

	// An object that was read has a uid and a resourceVersion. The item's count.
	copied, err := store.Create(t.Context(), "b", first.Object)
	require.NoError(t, err)
	require.NotEqual(t, first.ID, copied.ID)

	_, err = store.Patch(t.Context(), "a", merge(t, `{"data":{"x":"y"}}`), object.Any)
	require.NoError(t, err)
	stale := first
	stale.Version, stale.ID = object.Any, ""
	again, err := store.Update(t.Context(), stale)
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID)
}

func TestUpdateOfAnObjectThatIsGone(t *testing.T) {
	srv, store := open(t, nil)
	item, err := store.Create(t.Context(), "a", named("a", "1"))
	require.NoError(t, err)
	require.NoError(t, srv.Delete(configMaps, "a"))
	_, err = store.Update(t.Context(), item) // to which the server answers a conflict
	require.ErrorIs(t, err, backend.ErrNotFound)
	require.NotErrorIs(t, err, backend.ErrConflict)
}

func TestPatchPreconditions(t *testing.T) {
	_, store := open(t, nil)
	item, err := store.Create(t.Context(), "a", named("a", "1"))
	require.NoError(t, err)
	ops, err := patch.JSON([]byte(`[{"op":"replace","path":"/data/text","value":"2"}]`))
	require.NoError(t, err)
	for name, p := range map[string]patch.Patch{"merge": merge(t, `{"data":{"text":"2"}}`), "JSON": ops} {
		_, err = store.Patch(t.Context(), "a", p, "1")
		require.ErrorIs(t, err, backend.ErrConflict, name)
		be, ok := errors.AsType[*backend.Error](err)
		require.True(t, ok)
		require.Equal(t, item.Version, be.Found)
	}
	got, err := store.Patch(t.Context(), "a", ops, item.Version)
	require.NoError(t, err)
	require.Equal(t, "2", got.Object.Data["text"])
	same, err := store.Patch(t.Context(), "a", ops, got.Version)
	require.NoError(t, err)
	require.Equal(t, got, same, "a patch that changes nothing")
}

// What a controller wants is often made from nothing: that it has no name is no
// change, and none of the server's fields is taken away.
func TestModifyToAnObjectWithoutIdentity(t *testing.T) {
	_, store := open(t, nil)
	labelled := named("a", "1")
	labelled.Metadata.Labels = map[string]string{"team": "red"}
	made, err := store.Create(t.Context(), "a", labelled)
	require.NoError(t, err)
	item, err := backend.Modify(t.Context(), store, "a", func(configMap) (configMap, error) { return named("", "2"), nil })
	require.NoError(t, err)
	require.Equal(t, "2", item.Object.Data["text"])
	require.Empty(t, item.Object.Metadata.Labels)
	require.Equal(t, made.Object.Metadata.CreationTimestamp, item.Object.Metadata.CreationTimestamp)
	require.Equal(t, made.ID, item.ID)

	_, err = store.Patch(t.Context(), "a", merge(t, `{"metadata":null}`), object.Any)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// strange is a kind of patch that no server knows.
type strange struct{ patch.Patch }

func (strange) MediaType() string { return "application/strategic-merge-patch+json" }

func TestUnknownPatchIsUnsupported(t *testing.T) {
	_, store := open(t, nil)
	_, err := store.Create(t.Context(), "a", named("a", "1"))
	require.NoError(t, err)
	for _, v := range []object.Version{object.Any, "100"} {
		_, err = store.Patch(t.Context(), "a", strange{merge(t, `{}`)}, v)
		require.ErrorIs(t, err, errors.ErrUnsupported)
	}
}

func TestF04_DeleteWithFinalizers(t *testing.T) {
	srv, store := open(t, nil)
	held := named("a", "1")
	held.Metadata.Finalizers = []string{"example.com/hold"}
	item, err := store.Create(t.Context(), "a", held)
	require.NoError(t, err)

	marked, err := store.Delete(t.Context(), "a", item.Version)
	require.NoError(t, err)
	require.NotEmpty(t, marked.Object.Metadata.DeletionTimestamp)
	require.NotEqual(t, item.Version, marked.Version)
	again, err := store.Delete(t.Context(), "a", marked.Version)
	require.NoError(t, err)
	require.Equal(t, marked, again)

	_, err = store.Patch(t.Context(), "a", merge(t, `{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}`), object.Any)
	require.True(t, retry.IsPermanent(err), "a finalizer added while it is being deleted: %v", err)

	_, err = store.Patch(t.Context(), "a", merge(t, `{"metadata":{"finalizers":null}}`), object.Any)
	require.NoError(t, err)
	_, err = store.Get(t.Context(), "a")
	require.ErrorIs(t, err, backend.ErrNotFound)
	require.Empty(t, srv.Names("configmaps"))
}

func TestVersionOfADelete(t *testing.T) {
	for _, c := range []struct {
		name   string
		opts   *kubeserver.Options
		answer object.Version
	}{
		{"a Status has none", nil, ""},
		{"an object has it", &kubeserver.Options{DeletedObject: true}, "102"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, store := open(t, c.opts)
			item, err := store.Create(t.Context(), "a", named("a", "1"))
			require.NoError(t, err)
			require.Equal(t, object.Version("101"), item.Version)
			gone, err := store.Delete(t.Context(), "a", object.Any)
			require.NoError(t, err)
			require.Equal(t, c.answer, gone.Version)
			require.Equal(t, item.ID, gone.ID)
			require.Equal(t, item.Object.Data, gone.Object.Data)
		})
	}
}

// racing does something right before the first DELETE.
type racing struct {
	http.RoundTripper
	once sync.Once
	do   func()
}

func (r *racing) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodDelete {
		r.once.Do(r.do)
	}
	return r.RoundTripper.RoundTrip(req)
}

// What is deleted is what was read right before, or it is read again.
func TestDeleteOfWhatHasChanged(t *testing.T) {
	for _, c := range []struct {
		name string
		v    object.Version
		do   func(*kubeserver.Server) error
		is   error
	}{
		{"changed, any version", object.Any, func(srv *kubeserver.Server) error { return srv.Put(configMaps, named("a", "2")) }, nil},
		{"changed", "101", func(srv *kubeserver.Server) error { return srv.Put(configMaps, named("a", "2")) }, backend.ErrConflict},
		{"gone, any version", object.Any, func(srv *kubeserver.Server) error { return srv.Delete(configMaps, "a") }, backend.ErrNotFound},
		{"gone", "101", func(srv *kubeserver.Server) error { return srv.Delete(configMaps, "a") }, backend.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := kubeserver.New(nil)
			client, url := serve(t, srv)
			put(t, srv, named("a", "1"))
			client.Transport = &racing{RoundTripper: client.Transport, do: func() { require.NoError(t, c.do(srv)) }}
			gone, err := kube.New[configMap](client, url+configMaps, nil).Delete(t.Context(), "a", c.v)
			require.ErrorIs(t, err, c.is)
			if err == nil {
				require.Equal(t, "2", gone.Object.Data["text"], "the last state")
			}
		})
	}
}

func TestLostAnswersAreUnknownOutcomes(t *testing.T) {
	srv, store := open(t, nil)
	srv.LoseAnswers(1)
	_, err := store.Create(t.Context(), "a", named("a", "1"))
	require.ErrorIs(t, err, backend.ErrOutcomeUnknown)
	require.Equal(t, []string{"shop/a"}, srv.Names("configmaps"), "this one happened")

	defer srv.Down()()
	_, err = store.Update(t.Context(), object.Item[configMap]{Key: "a", Version: object.Any, Object: named("a", "2")})
	require.ErrorIs(t, err, backend.ErrOutcomeUnknown, "this one did not, but who knows")
	_, err = store.Get(t.Context(), "a")
	require.Error(t, err)
	require.NotErrorIs(t, err, backend.ErrOutcomeUnknown, "a read is just tried again")
}

func TestNothingSentIsNothingWritten(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, store := open(t, nil)
	_, err := store.Create(ctx, "a", named("a", "1"))
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, backend.ErrOutcomeUnknown)

	client := &http.Client{Transport: &http.Transport{}}
	nowhere := kube.New[configMap](client, "http://127.0.0.1:1"+configMaps, nil)
	_, err = nowhere.Create(t.Context(), "a", named("a", "1"))
	require.Error(t, err)
	require.NotErrorIs(t, err, backend.ErrOutcomeUnknown)
}

// answering gives every request the same answer.
type answering struct {
	code   int
	header http.Header
	body   string
}

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.code, Header: a.header, Body: io.NopCloser(bytes.NewReader([]byte(a.body))), Request: r}, nil
}

func TestWordsOfRetry(t *testing.T) {
	for _, c := range []struct {
		name      string
		answer    answering
		after     time.Duration
		permanent bool
		unknown   bool // to a write
	}{
		{name: "429 from a proxy", answer: answering{code: 429, header: http.Header{"Retry-After": {"7"}}, body: "<html>"}, after: 7 * time.Second},
		{name: "503 from a proxy", answer: answering{code: 503, header: http.Header{"Retry-After": {"7"}}}, after: 7 * time.Second},
		{name: "503 that says no more", answer: answering{code: 503}, unknown: true},
		{name: "503 of the server", answer: answering{code: 503, body: `{"kind":"Status","details":{"retryAfterSeconds":3}}`}, after: 3 * time.Second},
		{name: "504 of the server", answer: answering{code: 504, body: `{"kind":"Status","details":{"retryAfterSeconds":3}}`}, after: 3 * time.Second, unknown: true},
		{name: "500 from a proxy", answer: answering{code: 500, header: http.Header{"Retry-After": {"7"}}}, after: 7 * time.Second, unknown: true},
		{name: "502", answer: answering{code: 502}, unknown: true},
		{name: "500", answer: answering{code: 500}, unknown: true},
		{name: "401", answer: answering{code: 401}, permanent: true},
		{name: "404 of the collection", answer: answering{code: 404}, permanent: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := kube.New[configMap](&http.Client{Transport: c.answer}, "http://test"+configMaps, nil)
			_, listed := store.List(t.Context(), reflector.ListOptions{})
			_, watched := take(t, store, reflector.WatchOptions{After: "7"}, 1)
			_, written := store.Create(t.Context(), "a", named("a", "1"))
			for _, err := range []error{listed, watched, written} {
				require.Error(t, err)
				require.NotErrorIs(t, err, backend.ErrNotFound)
				after, _ := retry.Delay(err)
				require.Equal(t, c.after, after)
				require.Equal(t, c.permanent, retry.IsPermanent(err))
			}
			require.NotErrorIs(t, listed, backend.ErrOutcomeUnknown)
			require.Equal(t, c.unknown, errors.Is(written, backend.ErrOutcomeUnknown))
		})
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	srv, store := open(t, nil)
	item, err := store.Create(t.Context(), "a", named("a", "1"))
	require.NoError(t, err)
	before := srv.Revision()
	dry, err := store.DryRun()
	require.NoError(t, err)

	made, err := dry.Create(t.Context(), "b", named("b", "1"))
	require.NoError(t, err)
	require.Empty(t, made.Version+object.Version(made.ID))
	item.Object.Data["text"] = "2"
	changed, err := dry.Update(t.Context(), item)
	require.NoError(t, err)
	require.Equal(t, item.Version, changed.Version)
	gone, err := dry.Delete(t.Context(), "a", item.Version)
	require.NoError(t, err)
	require.Equal(t, item.Version, gone.Version)
	_, err = dry.Delete(t.Context(), "a", "7")
	require.ErrorIs(t, err, backend.ErrConflict)
	require.Equal(t, before, srv.Revision())
}

// Names that lead to another URL are nobody's.
func TestKeysThatAreNoNames(t *testing.T) {
	_, store := open(t, nil)
	for _, key := range []string{"", ".", "..", "a/b", "../pods/a", "a?watch=1", "a%2Fb"} {
		_, err := store.Get(t.Context(), key)
		require.ErrorIs(t, err, backend.ErrNotFound, "%q", key)
		_, err = store.Delete(t.Context(), key, object.Any)
		require.ErrorIs(t, err, backend.ErrNotFound, "%q", key)
		_, err = store.Create(t.Context(), key, configMap{})
		require.Error(t, err)
		require.True(t, retry.IsPermanent(err) || key == "", "%q: %v", key, err)
	}
	_, err := store.Create(t.Context(), "", configMap{})
	require.ErrorIs(t, err, backend.ErrNoKey)
}

// In the middle of a stream there is no header that says when to come back.
func TestWordsOfRetryInAStream(t *testing.T) {
	for code, after := range map[int]time.Duration{429: 3 * time.Second, 500: 3 * time.Second, 503: 3 * time.Second, 410: 0} {
		events := answering{code: 200, body: fmt.Sprintf(
			`{"type":"ERROR","object":{"kind":"Status","code":%d,"details":{"retryAfterSeconds":3}}}`, code)}
		store := kube.New[configMap](&http.Client{Transport: events}, "http://test"+configMaps, nil)
		_, err := take(t, store, reflector.WatchOptions{Initial: true}, 0)
		require.Error(t, err)
		got, _ := retry.Delay(err)
		require.Equal(t, after, got, "%d", code)
		require.Equal(t, code == 410, errors.Is(err, reflector.ErrExpired))
	}
}
