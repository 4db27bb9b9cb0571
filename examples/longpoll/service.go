package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// Service is the system that the adapter is written for, in place of one of your
// own: JSON objects over HTTP, and a log of changes that can be waited for.
//
//	GET    /objects                              all objects, and where in the log
//	GET    /changes?epoch=e&after=n&wait=10s     what came after n; waits for it
//	GET    /object?key=k                         one object
//	PUT    /object?key=k       If-None-Match: *  creates one
//	PUT    /object?key=k&id=i  If-Match: "v"     replaces one (* for any version,
//	DELETE /object?key=k&id=i  If-Match: "v"     removes one   no id for any object)
//
// Every write has a number, one more than the write before. Numbers begin anew
// when the service starts empty; the epoch tells that from another time.
type Service struct {
	// Overloaded makes it refuse everything, and ask to come back in a second.
	Overloaded atomic.Bool

	keep    int // entries of the log
	mu      sync.Mutex
	epoch   string
	seq     int64 // of the last write
	objects map[string]record
	log     []change      // the last ones, without a gap, up to seq
	changed chan struct{} // closed, and replaced, by the next write
}

// NewService starts a service that is empty and remembers its last changes.
func NewService(keep int) *Service {
	s := &Service{keep: keep, changed: make(chan struct{})}
	s.Reset()
	return s
}

// Reset is a start without what was there before.
func (s *Service) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch, s.seq, s.objects, s.log = rand.Text(), 0, map[string]record{}, nil
	s.wakeLocked()
}

// Compact forgets the log.
func (s *Service) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = nil
}

// ServeHTTP answers, always in JSON.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, status, no := s.answer(r)
	if no != nil {
		answer = no
	}
	if no != nil && no.Code == codeOverloaded {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(answer)
}

func (s *Service) answer(r *http.Request) (answer any, status int, no *refusal) {
	if s.Overloaded.Load() {
		return nil, http.StatusServiceUnavailable, &refusal{Code: codeOverloaded, Message: "too much to do"}
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /objects":
		return s.all(), http.StatusOK, nil
	case "GET /changes":
		return s.wait(r)
	case "GET /object", "PUT /object", "DELETE /object":
		return s.one(r)
	}
	return nil, http.StatusNotFound, &refusal{Code: codeBad, Message: "there is no such page"}
}

func (s *Service) all() listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := listing{Epoch: s.epoch, Seq: s.seq, Objects: []record{}}
	for _, rec := range s.objects {
		l.Objects = append(l.Objects, rec)
	}
	return l
}

// wait is the long poll.
func (s *Service) wait(r *http.Request) (any, int, *refusal) {
	q := r.URL.Query()
	after, err := strconv.ParseInt(q.Get("after"), 10, 64)
	wait, err2 := time.ParseDuration(q.Get("wait"))
	if err != nil || err2 != nil {
		return nil, http.StatusBadRequest, &refusal{Code: codeBad, Message: "after is no number, or wait no time"}
	}
	timer := time.NewTimer(min(wait, time.Minute))
	defer timer.Stop()
	for {
		got, changed, status, no := s.since(q.Get("epoch"), after)
		if no != nil || len(got.Changes) > 0 {
			return got, status, no
		}
		select {
		case <-changed:
		case <-timer.C:
			return got, status, nil
		case <-r.Context().Done():
			return got, status, nil
		}
	}
}

// since answers at most 500 changes; when there are none, changed is closed by the
// next one.
func (s *Service) since(epoch string, after int64) (got changes, changed <-chan struct{}, status int, no *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	missing := after - (s.seq - int64(len(s.log))) // how many of the log were seen; less than 0: some are gone
	switch {
	case epoch != s.epoch || missing < 0:
		return got, nil, http.StatusGone, &refusal{Code: codeGone, Message: "the log does not reach back so far"}
	case after > s.seq:
		return got, nil, http.StatusRequestedRangeNotSatisfiable, &refusal{Code: codeAhead, Message: "the log has not come so far"}
	}
	rest := s.log[missing:]
	return changes{s.epoch, slices.Clone(rest[:min(len(rest), 500)])}, s.changed, http.StatusOK, nil
}

// one reads or writes one object.
func (s *Service) one(r *http.Request) (any, int, *refusal) {
	key, id, match := r.URL.Query().Get("key"), r.URL.Query().Get("id"), r.Header.Get("If-Match")
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, 1<<20))
	switch {
	case err != nil, r.Method == "PUT" && !json.Valid(body):
		return nil, http.StatusBadRequest, &refusal{Code: codeBad, Message: "the body is no JSON of at most 1 MiB"}
	case r.Method == "PUT" && (key == "" || !utf8.ValidString(key)):
		return nil, http.StatusBadRequest, &refusal{Code: codeBad, Message: "a key is a text, and not empty"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rec, found := s.objects[key]
	create := r.Method == "PUT" && r.Header.Get("If-None-Match") == "*"
	switch {
	case create && found:
		return nil, http.StatusConflict, &refusal{codeExists, "there is an object under this key", rec.Version}
	case create:
		return s.writeLocked(record{Key: key, Object: body}, false), http.StatusOK, nil
	case !found:
		return nil, http.StatusNotFound, &refusal{Code: codeNotFound, Message: "there is no object under this key"}
	case r.Method == "GET":
		return rec, http.StatusOK, nil
	case match == "":
		return nil, http.StatusPreconditionRequired, &refusal{Code: codeBad, Message: "a write needs If-Match or If-None-Match"}
	case match != "*" && match != strconv.Quote(rec.Version), id != "" && id != rec.ID:
		return nil, http.StatusPreconditionFailed, &refusal{codeConflict, "the object is not the one that was meant", rec.Version}
	case r.Method == "PUT":
		rec.Object = body
	}
	return s.writeLocked(rec, r.Method == "DELETE"), http.StatusOK, nil
}

func (s *Service) writeLocked(rec record, deleted bool) record {
	s.seq++
	rec.Version = fmt.Sprintf("%s.%d", s.epoch, s.seq)
	if rec.ID == "" {
		rec.ID = rec.Version
	}
	if s.objects[rec.Key] = rec; deleted {
		delete(s.objects, rec.Key)
	}
	s.log = append(s.log, change{s.seq, deleted, rec})
	s.log = s.log[max(0, len(s.log)-s.keep):]
	s.wakeLocked()
	return rec
}

func (s *Service) wakeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}
