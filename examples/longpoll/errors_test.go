package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
)

// says answers with a status and a body.
func says(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// breaks sends a half of an answer, or nothing of it.
func breaks(half string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if half != "" {
			w.Header().Set("Content-Length", strconv.Itoa(2*len(half)))
			io.WriteString(w, half)
			w.(http.Flusher).Flush()
		}
		panic(http.ErrAbortHandler)
	}
}

// What an answer means: to a read, and to a write.
func TestAnswers(t *testing.T) {
	long := `{"key":"a","version":"e.1","object":{},"more":"` + strings.Repeat("x", 1<<10) + `"}`
	const unreadable = "an object that can't be read"
	tests := []struct {
		name      string
		answer    http.HandlerFunc
		is        error // of reads and writes, if any
		after     time.Duration
		permanent bool
		unknown   bool // a write may have been done
	}{
		{"too much to do", says(503, `{"error":"overloaded","message":"m"}`, "Retry-After", "7"), nil, 7 * time.Second, false, false},
		{"too many requests", says(429, "slower", "Retry-After", "3"), nil, 3 * time.Second, false, false},
		{"a proxy without a service", says(503, "<html>", "Retry-After", "3"), nil, 3 * time.Second, false, true},
		{"a proxy that waits no longer", says(504, "<html>"), nil, 0, false, true},
		{"a service that fails", says(500, `{"error":"internal","message":"m"}`), nil, 0, false, true},
		{"nobody may", says(403, "no"), nil, 0, true, false},
		{"a wrong URL", says(404, "404 page not found"), nil, 0, true, false},
		{"the service refuses the request", says(400, `{"error":"bad-request","message":"m"}`), nil, 0, true, false},
		{"no answer", breaks(""), io.EOF, 0, false, true},
		{"half an answer", breaks(`{"key":"a","version":"e.1","object":{}`), io.ErrUnexpectedEOF, 0, false, true},
		{"no JSON", says(200, "<html>welcome to this network"), nil, 0, false, true},
		{"good JSON, and no answer", says(200, "{}"), nil, 0, false, true},
		{"a status nobody uses", says(204, ""), nil, 0, false, true},
		{unreadable, says(200, `{"key":"a","version":"e.1","object":[]}`), nil, 0, false, true},
		{"too long an answer", says(200, long), nil, 0, false, true},
		{"no object", says(404, `{"error":"not-found","message":"m"}`), backend.ErrNotFound, 0, false, false},
		{"another version", says(412, `{"error":"conflict","message":"m","version":"e.9"}`), backend.ErrConflict, 0, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := answering(t, tt.answer)
			_, get := s.Get(t.Context(), "a")
			_, list := s.List(t.Context(), reflector.ListOptions{})
			var watch error
			for _, watch = range s.Watch(t.Context(), reflector.WatchOptions{After: "e.1"}) {
				break
			}
			_, update := s.Update(t.Context(), object.Item[Order]{Key: "a", Version: "e.1"})
			gone, remove := s.Delete(t.Context(), "a", "e.1")
			all := map[string]error{"get": get, "list": list, "watch": watch, "update": update, "delete": remove}
			if tt.name == unreadable { // gone it is, whatever it was
				require.NoError(t, remove)
				require.Equal(t, object.Item[Order]{Key: "a", Version: "e.1"}, gone)
				delete(all, "delete")
			}
			for what, err := range all {
				writes := what == "update" || what == "delete"
				require.Error(t, err, what)
				require.Equal(t, writes && tt.unknown, errors.Is(err, backend.ErrOutcomeUnknown), "%s: %v", what, err)
				require.Equal(t, tt.permanent, retry.IsPermanent(err), "%s: %v", what, err)
				pause, _ := retry.Delay(err)
				require.Equal(t, tt.after, pause, "%s: %v", what, err)
				if tt.is != nil {
					require.ErrorIs(t, err, tt.is, what)
				} else {
					require.NotErrorIs(t, err, backend.ErrNotFound, what)
				}
			}
			e, ok := errors.AsType[*backend.Error](update)
			require.True(t, ok)
			require.Equal(t, object.Version("e.1"), e.Want)
			require.Equal(t, tt.is == backend.ErrConflict, e.Found == "e.9")
		})
	}
}

func TestNobodyThere(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	s := New[Order](server.URL, nil, &Options{Client: server.Client()})
	_, err := s.Create(t.Context(), "a", Order{})
	require.Error(t, err)
	require.NotErrorIs(t, err, backend.ErrOutcomeUnknown, "nothing was sent")

	_, err = New[Order]("http://\x00", nil, nil).Get(t.Context(), "a")
	require.True(t, retry.IsPermanent(err), "%v", err)
}

// A call ends with its context, in the middle of an answer too.
func TestEndOfContext(t *testing.T) {
	asked := make(chan struct{}, 1)
	s := answering(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		asked <- struct{}{}
		<-r.Context().Done()
	})
	for name, do := range map[string]func(context.Context) error{
		"list": func(ctx context.Context) error { _, err := s.List(ctx, reflector.ListOptions{}); return err },
		"get":  func(ctx context.Context) error { _, err := s.Get(ctx, "a"); return err },
		"write": func(ctx context.Context) error {
			_, err := s.Delete(ctx, "a", object.Any)
			require.ErrorIs(t, err, backend.ErrOutcomeUnknown)
			return err
		},
	} {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- do(ctx) }()
		<-asked
		stop()
		require.ErrorIs(t, <-ended, context.Canceled, name)
	}
	ctx, stop := context.WithCancel(t.Context())
	go func() { <-asked; stop() }()
	for b, err := range s.Watch(ctx, reflector.WatchOptions{After: "e.1"}) {
		t.Errorf("a watch that was ended says %v, %v", b, err)
	}

	stop()
	_, err := s.Create(ctx, "a", Order{})
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, backend.ErrOutcomeUnknown, "it never began")
}

// An answer that does not come has an end without the caller's help.
func TestTimeout(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	s := New[Order](server.URL, nil, &Options{Client: server.Client(), Timeout: time.Millisecond})
	_, err := s.List(t.Context(), reflector.ListOptions{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// What the service says of cursors, and what is said of those that it never gave.
func TestCursors(t *testing.T) {
	w := newWorld(1000)
	defer w.server.Close()
	s := w.store(Options{})
	for _, key := range []string{"a", "b", "c"} {
		_, err := s.Create(t.Context(), key, Order{})
		require.NoError(t, err)
	}
	page, err := s.List(t.Context(), reflector.ListOptions{})
	require.NoError(t, err)
	at, ok := parse(page.Cursor)
	require.True(t, ok)
	require.EqualValues(t, 3, at.seq)
	for name, tt := range map[string]struct {
		after reflector.Cursor
		want  error
	}{
		"another epoch":  {position{"other", 3}.cursor(), reflector.ErrExpired},
		"ahead":          {position{at.epoch, 4}.cursor(), reflector.ErrFutureCursor},
		"no cursor":      {"3", reflector.ErrExpired},
		"no number":      {reflector.Cursor(at.epoch + ".x"), reflector.ErrExpired},
		"before the log": {position{at.epoch, -1}.cursor(), reflector.ErrExpired},
	} {
		for b, err := range s.Watch(t.Context(), reflector.WatchOptions{After: tt.after}) {
			require.ErrorIs(t, err, tt.want, name)
			require.Empty(t, b)
		}
		if name != "before the log" {
			_, err := s.List(t.Context(), reflector.ListOptions{NotBefore: tt.after})
			require.ErrorIs(t, err, tt.want, name)
		}
	}
	_, err = s.List(t.Context(), reflector.ListOptions{Page: "2"})
	require.ErrorIs(t, err, reflector.ErrExpired)
	for _, err := range s.Watch(t.Context(), reflector.WatchOptions{Initial: true}) {
		require.ErrorIs(t, err, errors.ErrUnsupported)
	}
	require.Zero(t, compare(page.Cursor, "other.3"))
	require.False(t, reached(page.Cursor, "other.1"))
}

// What can't be read is there all the same, until it is deleted.
func TestUnreadable(t *testing.T) {
	s := answering(t, says(200, `{"epoch":"e","seq":2,"objects":[{"key":"a","version":"e.2","object":[]}]}`))
	page, err := s.List(t.Context(), reflector.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, page.Items)
	require.Equal(t, "a", page.Faults[0].Key)
	require.EqualValues(t, "e.2", page.Faults[0].Version)
	require.Error(t, page.Faults[0].Err)

	s = answering(t, says(200, `{"epoch":"e","changes":[
		{"seq":2,"key":"a","version":"e.2","object":[]},
		{"seq":3,"deleted":true,"key":"a","version":"e.3","object":[]}]}`))
	var got []reflector.Batch[Order]
	for b, err := range s.Watch(t.Context(), reflector.WatchOptions{After: "e.1"}) {
		require.NoError(t, err)
		if got = append(got, b); len(got) == 3 {
			break
		}
	}
	require.Equal(t, reflector.Bookmark[Order]("e.1"), got[0])
	require.Equal(t, "a", got[1].Faults[0].Key)
	require.Empty(t, got[1].Events)
	require.Equal(t, reflector.Cursor("e.2"), got[1].Cursor)
	require.Equal(t, []reflector.Event[Order]{{Op: reflector.OpDelete, Item: got[2].Events[0].Item}}, got[2].Events)
	require.Equal(t, "a", got[2].Events[0].Key)
}

// Every answer's body is closed.
func TestBodiesAreClosed(t *testing.T) {
	w := newWorld(1000)
	defer w.server.Close()
	var open atomic.Int64
	next := w.server.Client().Transport
	s := New[Order](w.server.URL, nil, &Options{Client: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err == nil {
			open.Add(1)
			resp.Body = closing{resp.Body, &open}
		}
		return resp, err
	})}})
	s.Create(t.Context(), "a", Order{})
	s.Create(t.Context(), "a", Order{})
	s.Get(t.Context(), "a")
	s.Get(t.Context(), "b")
	s.List(t.Context(), reflector.ListOptions{})
	for range s.Watch(t.Context(), reflector.WatchOptions{After: "x.1"}) {
	}
	for range s.Watch(t.Context(), reflector.WatchOptions{}) {
		break
	}
	require.Zero(t, open.Load())
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type closing struct {
	io.ReadCloser
	open *atomic.Int64
}

func (c closing) Close() error {
	c.open.Add(-1)
	return c.ReadCloser.Close()
}

// Keys may be any text, and preconditions too.
func TestAnyKey(t *testing.T) {
	w := newWorld(1000)
	defer w.server.Close()
	s := w.store(Options{})
	for _, key := range []string{"a/b", "../x", "a b?&=#%", "日本", "\x00\n", `"`} {
		item, err := s.Create(t.Context(), key, Order{Tea: 1})
		require.NoError(t, err, "%q", key)
		got, err := s.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, item, got)
		for _, v := range []object.Version{"1", "\n", "e.\x00", `"`, `*"`, "日"} {
			_, err = s.Delete(t.Context(), key, v)
			require.ErrorIs(t, err, backend.ErrConflict, "%q", v)
		}
		_, err = s.Delete(t.Context(), key, item.Version)
		require.NoError(t, err)
	}
	_, err := s.Create(t.Context(), "\xff", Order{})
	require.True(t, retry.IsPermanent(err), "JSON can't tell such a key: %v", err)
}
