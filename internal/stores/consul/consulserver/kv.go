package consulserver

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// longest is the longest that a query may block.
const longest = 10 * time.Minute

func refuse(w http.ResponseWriter, err error) { http.Error(w, err.Error(), http.StatusBadRequest) }

func answer(w http.ResponseWriter, code int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(text)
}

// number reads a number of a query; 0 when there is none.
func number(r *http.Request, name string) (n uint64, given bool, err error) {
	q := r.URL.Query()
	if !q.Has(name) {
		return 0, false, nil
	}
	n, err = strconv.ParseUint(q.Get(name), 10, 64)
	return n, true, err
}

// get answers a key, or all under a prefix, and blocks if it is told to.
func (s *Server) get(w http.ResponseWriter, r *http.Request, key string) {
	q := r.URL.Query()
	if q.Has("stale") && q.Has("consistent") {
		refuse(w, errors.New("cannot specify both ?stale and ?consistent"))
		return
	}
	after, _, err := number(r, "index")
	wait := s.opts.Wait
	if q.Has("wait") && err == nil {
		wait, err = time.ParseDuration(q.Get("wait"))
	}
	if err != nil {
		refuse(w, err)
		return
	}
	wait = min(wait, longest)
	wait += wait / 16 // so that not all queries of a cluster end at once: at most so much
	found, index := s.block(r, key, after, wait)
	w.Header().Set("X-Consul-Index", strconv.FormatUint(index, 10))
	w.Header().Set("X-Consul-KnownLeader", "true")
	w.Header().Set("X-Consul-LastContact", "0")
	if len(found) == 0 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	answer(w, http.StatusOK, found)
}

// block waits until the index is above after; 0 does not wait.
func (s *Server) block(r *http.Request, key string, after uint64, wait time.Duration) ([]*Entry, uint64) {
	q := r.URL.Query()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	s.mu.Lock()
	wake, cut := s.wake, s.cut
	s.mu.Unlock()
	for over := after == 0; ; {
		s.mu.Lock()
		seen := &s.state
		if q.Has("stale") && s.replica != nil {
			seen = s.replica
		}
		found, index := seen.under(key, q.Has("recurse"))
		changed := s.changed
		s.mu.Unlock()
		if over || index > after {
			return found, index
		}
		select {
		case <-changed:
		case <-timer.C:
			over = true
		case <-wake:
			over = true
		case <-cut:
			panic(http.ErrAbortHandler)
		case <-r.Context().Done():
			over = true
		}
	}
}

// write does something in one step; it answers whether it was done.
func (s *Server) write(w http.ResponseWriter, do func(*state) bool) {
	s.mu.Lock()
	s.state.index++ // also a write that comes to nothing is in the log
	done := do(&s.state)
	if done {
		ring(&s.changed)
	}
	s.mu.Unlock()
	s.written()
	answer(w, http.StatusOK, done)
}

func (s *Server) put(w http.ResponseWriter, r *http.Request, key string) {
	value, err := io.ReadAll(r.Body)
	cas, given, casErr := number(r, "cas")
	flags, _, flagsErr := number(r, "flags")
	if err := errors.Join(err, casErr, flagsErr); err != nil || key == "" {
		refuse(w, errors.Join(err, errors.New("missing key name")))
		return
	}
	s.write(w, func(st *state) bool {
		if given && cas != st.at(key) {
			return false
		}
		st.put(key, flags, value)
		return true
	})
}

func (s *Server) delete(w http.ResponseWriter, r *http.Request, key string) {
	cas, given, err := number(r, "cas")
	recurse := r.URL.Query().Has("recurse")
	if err != nil || key == "" && !recurse || given && (recurse || cas == 0) {
		refuse(w, errors.Join(err, errors.New("invalid delete")))
		return
	}
	s.write(w, func(st *state) bool {
		if given && cas != st.at(key) {
			// There is nothing to delete: that is what was asked for.
			return st.at(key) == 0
		}
		found, _ := st.under(key, recurse)
		for _, e := range found {
			st.remove(e.Key)
		}
		return true
	})
}
