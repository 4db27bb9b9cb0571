package consul_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/internal/stores/consul"
	"github.com/homeostat/homeostat/internal/stores/consul/consulserver"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
)

// consulOther is a write under another prefix.
func consulOther(t *testing.T) consulserver.Op {
	t.Helper()
	op := set(t, "x", 1)
	op.Key = "other/x"
	return op
}

func TestWriteAnswersItsOwnVersion(t *testing.T) {
	srv, store := open(t, nil)
	made, err := store.Create(t.Context(), "a", flag{N: 1})
	require.NoError(t, err)
	require.Equal(t, object.Item[flag]{Key: "a", Version: "11", ID: "11", Object: flag{N: 1}}, made)
	changed, err := store.Update(t.Context(), object.Item[flag]{Key: "a", Version: made.Version, ID: made.ID, Object: flag{N: 2}})
	require.NoError(t, err)
	require.Equal(t, object.Item[flag]{Key: "a", Version: "12", ID: "11", Object: flag{N: 2}}, changed)
	gone, err := store.Delete(t.Context(), "a", changed.Version)
	require.NoError(t, err)
	require.Equal(t, object.Item[flag]{Key: "a", ID: "11", Object: flag{N: 2}}, gone)
	require.Empty(t, srv.Entries(""))
}

func TestPreconditions(t *testing.T) {
	_, store := open(t, nil)
	made, err := store.Create(t.Context(), "a", flag{N: 1})
	require.NoError(t, err)
	_, err = store.Create(t.Context(), "a", flag{})
	require.ErrorIs(t, err, backend.ErrExists)
	_, err = store.Create(t.Context(), "", flag{})
	require.ErrorIs(t, err, backend.ErrNoKey)
	for _, c := range []struct {
		name string
		item object.Item[flag]
		is   error
	}{
		{"no version", object.Item[flag]{Key: "a"}, backend.ErrNoVersion},
		{"another version", object.Item[flag]{Key: "a", Version: "7"}, backend.ErrConflict},
		{"another object", object.Item[flag]{Key: "a", Version: object.Any, ID: "7"}, backend.ErrConflict},
		{"nothing there", object.Item[flag]{Key: "b", Version: "7"}, backend.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := store.Update(t.Context(), c.item)
			require.ErrorIs(t, err, c.is)
			if c.item.ID == "" {
				_, err = store.Delete(t.Context(), c.item.Key, c.item.Version)
				require.ErrorIs(t, err, c.is)
			}
		})
	}
	now, err := store.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, made, now)
}

func TestF03_WritesUnderAnyWaitTheirTurn(t *testing.T) {
	_, store := open(t, nil)
	_, err := store.Create(t.Context(), "a", flag{})
	require.NoError(t, err)
	double, err := patch.Merge([]byte(`{"Text":"x"}`))
	require.NoError(t, err)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			_, err := store.Update(t.Context(), object.Item[flag]{Key: "a", Version: object.Any, Object: flag{N: n + 1}})
			if err == nil {
				_, err = store.Patch(t.Context(), "a", double, object.Any)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	item, err := store.Get(t.Context(), "a")
	require.NoError(t, err)
	require.NotZero(t, item.Object.N)
}

// racing deletes the object right before the transaction that would.
type racing struct {
	http.RoundTripper
	once sync.Once
	do   func()
}

func (r *racing) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPut {
		r.once.Do(r.do)
	}
	return r.RoundTripper.RoundTrip(req)
}

func TestDeleteOfWhatIsGoneAlready(t *testing.T) {
	srv := consulserver.New(nil)
	client, url := serve(t, srv)
	srv.Apply(set(t, "a", 1))
	client.Transport = &racing{RoundTripper: client.Transport, do: func() { srv.Apply(unset("a")) }}
	store := consul.New[flag](client, url, prefix, nil, nil)
	_, err := store.Delete(t.Context(), "a", object.Any)
	require.ErrorIs(t, err, backend.ErrNotFound)
}

func TestLostAnswers(t *testing.T) {
	srv, store := open(t, nil)
	srv.LoseAnswers(1)
	_, err := store.Create(t.Context(), "a", flag{N: 1})
	require.ErrorIs(t, err, backend.ErrOutcomeUnknown)
	require.Len(t, srv.Entries(prefix), 1, "this one happened")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = store.Create(ctx, "b", flag{N: 1})
	require.NotErrorIs(t, err, backend.ErrOutcomeUnknown, "nothing was sent")
	nobody := consul.New[flag](&http.Client{Transport: &http.Transport{}}, "http://127.0.0.1:1", prefix, nil, nil)
	_, err = nobody.Create(t.Context(), "b", flag{N: 1})
	require.Error(t, err)
	require.NotErrorIs(t, err, backend.ErrOutcomeUnknown)
}

func TestUnsupported(t *testing.T) {
	_, store := open(t, nil)
	_, err := store.DryRun()
	require.ErrorIs(t, err, errors.ErrUnsupported)
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

func TestG9_FailureIsNotEmptiness(t *testing.T) {
	for _, c := range []struct {
		name      string
		answer    answering
		after     time.Duration
		permanent bool
	}{
		{name: "a 404 of a proxy", answer: answering{code: 404}},
		{name: "an answer without an index", answer: answering{code: 200, body: "[]"}},
		{name: "no leader", answer: answering{code: 500, body: "No cluster leader"}},
		{name: "no permission", answer: answering{code: 403}, permanent: true},
		{name: "too many", answer: answering{code: 429, header: http.Header{"Retry-After": {"7"}}}, after: 7 * time.Second},
		{name: "half a list", answer: answering{code: 200, header: http.Header{"X-Consul-Index": {"7"}}, body: `[{"Key":"shop/a",`}},
		{name: "no leader, for a while", answer: answering{code: 500, header: http.Header{"Retry-After": {"7"}}}, after: 7 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := consul.New[flag](&http.Client{Transport: c.answer}, "http://test", prefix, nil, nil)
			_, listed := store.List(t.Context(), reflector.ListOptions{})
			batches, watched := take(t, store, reflector.WatchOptions{}, 1)
			_, got := store.Get(t.Context(), "a")
			require.Empty(t, batches)
			for _, err := range []error{listed, watched, got} {
				require.Error(t, err)
				require.NotErrorIs(t, err, backend.ErrNotFound)
				after, _ := retry.Delay(err)
				require.Equal(t, c.after, after)
				require.Equal(t, c.permanent, retry.IsPermanent(err))
			}
		})
	}
}

func TestKeys(t *testing.T) {
	srv, store := open(t, nil)
	for _, key := range []string{"a/b", "a b", "a?x=1", "ä%2F", "#", "%"} {
		item, err := store.Create(t.Context(), key, flag{N: 1})
		require.NoError(t, err)
		got, err := store.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, item, got)
		require.Equal(t, prefix+key, srv.Entries(prefix + key)[0].Key)
	}
	srv.Apply(consulserver.Op{Key: prefix}) // a folder has no key here
	page, err := store.List(t.Context(), reflector.ListOptions{})
	require.NoError(t, err)
	require.Len(t, page.Items, 6)
	_, err = store.Get(t.Context(), "")
	require.ErrorIs(t, err, backend.ErrNotFound)
}
