package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/homeostat/homeostat/backend/backendtest"
)

// world is a service on the network, behind a door that can be shut.
type world struct {
	*Service
	server *httptest.Server
	shut   atomic.Bool
}

func newWorld(keep int) *world {
	w := &world{Service: NewService(keep)}
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.shut.Load() {
			panic(http.ErrAbortHandler) // the connection breaks, without an answer
		}
		w.ServeHTTP(rw, r)
	}))
	return w
}

// store is an adapter with connections of its own.
func (w *world) store(opts Options) *Store[Order] {
	opts.Client = w.server.Client()
	return New[Order](w.server.URL, nil, &opts)
}

// write changes an object, past the adapter.
func (w *world) write(c backendtest.Change[Order]) {
	body, err := json.Marshal(c.Object)
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	rec, found := w.objects[c.Key]
	if c.Delete && !found {
		return
	}
	if rec.Key = c.Key; !c.Delete {
		rec.Object = body
	}
	w.writeLocked(rec, c.Delete)
}

// spoil makes an object one that is no Order.
func (w *world) spoil(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rec := w.objects[key]
	rec.Key, rec.Object = key, json.RawMessage(`"spoilt"`)
	w.writeLocked(rec, false)
}

// versions is what there is, by key.
func (w *world) versions() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]string{}
	for key, rec := range w.objects {
		all[key] = rec.Version
	}
	return all
}

// answering is a store over a service that always does the same.
func answering(t *testing.T, h http.HandlerFunc) *Store[Order] {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return New[Order](server.URL, nil, &Options{Client: server.Client(), MaxBytes: 1 << 10})
}
