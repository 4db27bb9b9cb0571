package kubeserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// initialEnd is the annotation of the bookmark that ends a streamed list.
const initialEnd = "k8s.io/initial-events-end"

type event struct {
	Type   string `json:"type"`
	Object any    `json:"object"`
}

// stream is one open watch.
type stream struct {
	srv       *Server
	req       *request
	w         http.ResponseWriter
	at        uint64 // everything up to here was sent
	bookmarks bool
	nudges    int
}

// options checks what a watch asks for.
func (s *Server) options(req *request) *Status {
	match := req.query.Get("resourceVersionMatch")
	switch {
	case req.query.Get("sendInitialEvents") == "":
		if match != "" {
			return forbiddenOption("resourceVersionMatch", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
		}
	case s.opts.NoWatchList:
		return forbiddenOption("sendInitialEvents", "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
	case match != "NotOlderThan":
		return forbiddenOption("resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
	}
	return nil
}

// watch streams until the client goes, the time is over or the stream is cut.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, req *request) {
	status := s.options(req)
	from, bad := revision(req.query.Get("resourceVersion"))
	if bad != nil {
		status = bad
	}
	initial := req.flag("sendInitialEvents")
	if status == nil && initial && from > 0 {
		status = s.fresh(r, from, s.opts.FreshWithin)
	}
	if status != nil {
		status.ServeHTTP(w, r)
		return
	}
	var end <-chan time.Time // nil: never
	if t := req.seconds("timeoutSeconds"); t > 0 {
		timer := time.NewTimer(t)
		defer timer.Stop()
		end = timer.C
	}
	bookmark := time.NewTicker(s.opts.Bookmark)
	defer bookmark.Stop()

	st := &stream{srv: s, req: req, w: w, at: from, bookmarks: req.flag("allowWatchBookmarks")}
	s.mu.Lock()
	cut := s.cut
	st.nudges = s.nudges
	var entries []entry
	if initial || from == 0 {
		st.at = s.visibleLocked()
		entries = s.state.entries(req.res, req.ns, st.at)
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush(w)
	st.existing(entries)
	if initial {
		st.bookmark(map[string]any{initialEnd: "true"})
	}
	for {
		changed, ok := st.follow()
		if !ok {
			return
		}
		select {
		case <-changed:
		case <-bookmark.C:
			st.bookmark(nil)
		case <-end:
			st.finish()
			return
		case <-cut:
			st.breakUp()
			return
		case <-r.Context().Done():
			return
		}
	}
}

func flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

func (st *stream) send(kind string, object any) {
	text, err := json.Marshal(event{kind, object})
	if err != nil {
		panic(err)
	}
	st.w.Write(append(text, '\n'))
	flush(st.w)
}

// existing sends what there was when the watch was opened.
func (st *stream) existing(entries []entry) {
	for _, e := range entries {
		if st.req.sel.matches(e.doc) {
			st.send("ADDED", e.doc)
		}
	}
}

// bookmark says where the server stands. A watch from the future is told that it
// is: the server's own place lies before.
func (st *stream) bookmark(annotations map[string]any) {
	if !st.bookmarks {
		return
	}
	s := st.srv
	s.mu.Lock()
	at := s.visibleLocked()
	s.mu.Unlock()
	if at > st.at || annotations != nil {
		at = st.at // nothing is said of what was not sent yet
	}
	meta := map[string]any{"resourceVersion": strconv.FormatUint(at, 10)}
	if annotations != nil {
		meta["annotations"] = annotations
	}
	st.send("BOOKMARK", doc{"kind": st.req.res.kind, "apiVersion": st.req.res.apiVersion(), "metadata": meta})
}

// follow sends what came since; changed is closed when there may be more.
func (st *stream) follow() (changed <-chan struct{}, ok bool) {
	s := st.srv
	s.mu.Lock()
	if st.at < s.oldest {
		rev := s.state.rev
		s.mu.Unlock()
		st.send("ERROR", expired(fmt.Sprintf("too old resource version: %d (%d)", st.at, rev)))
		return nil, false
	}
	changed = s.changed
	visible, nudged := s.visibleLocked(), s.nudges > st.nudges
	st.nudges = s.nudges
	var changes []change
	for _, c := range s.state.history[s.state.after(st.at):] {
		if c.rev <= visible {
			changes = append(changes, c)
		}
	}
	s.mu.Unlock()
	for _, c := range changes {
		st.change(c)
	}
	st.at = max(st.at, visible)
	if nudged {
		st.bookmark(nil)
	}
	return changed, true
}

func (st *stream) change(c change) {
	if c.id.res != st.req.res || st.req.ns != "" && c.id.ns != st.req.ns {
		return
	}
	was, is := st.req.sel.matches(c.before), st.req.sel.matches(c.after)
	switch {
	case is && !was:
		st.send("ADDED", c.after)
	case is:
		st.send("MODIFIED", c.after)
	case was: // as it was last shown, under the version of the change
		st.send("DELETED", c.before.at(c.rev))
	}
}

// finish tells what came until now, and where that leaves the watch.
func (st *stream) finish() {
	if _, ok := st.follow(); ok {
		st.bookmark(nil)
	}
}

// breakUp ends the stream in the way that Cut was told.
func (st *stream) breakUp() {
	st.srv.mu.Lock()
	how := st.srv.how
	st.srv.mu.Unlock()
	if how == HalfLine || how == HalfLineEnded {
		st.w.Write([]byte(`{"type":"MODIFIED","object":{"kind":"` + st.req.res.kind + `","metadata":{"name":"hal`))
		flush(st.w)
	}
	switch how {
	case Timeout:
		st.finish()
	case Abrupt, HalfLine:
		panic(http.ErrAbortHandler)
	}
}
