package kubeserver

import (
	"net/http"
	"sync"
	"time"
)

// Options are the choices of a Server. nil and the zero value are the defaults.
type Options struct {
	// NoWatchList refuses sendInitialEvents, as servers do that do not have it.
	NoWatchList bool
	// DeletedObject lets a DELETE answer the object, as it does for Pods and
	// Services, and not a Status.
	DeletedObject bool
	// FreshWithin is how long a list waits for a resourceVersion that the server
	// has not come to. 0 is 3 s.
	FreshWithin time.Duration
	// Bookmark is the interval of bookmarks. 0 is a minute.
	Bookmark time.Duration
	// Auth says who is asking and whether they may; no user is 401, may not is
	// 403. nil lets everybody in.
	Auth func(*http.Request) (user string, allowed bool)
}

// Server is an http.Handler with a store behind it.
type Server struct {
	opts Options

	mu      sync.Mutex
	state   state
	changed chan struct{} // closed and replaced when anything below may have changed
	oldest  uint64        // the watch cache begins here
	frozen  uint64        // the watch cache stands here; 0: it is up to date
	nudges  int           // how often Bookmark was called
	cut     chan struct{} // closed and replaced by Cut
	how     Break
	down    bool
	lose    int
}

// New makes a server without objects.
func New(opts *Options) *Server {
	s := &Server{changed: make(chan struct{}), cut: make(chan struct{})}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.FreshWithin == 0 {
		s.opts.FreshWithin = 3 * time.Second
	}
	if s.opts.Bookmark == 0 {
		s.opts.Bookmark = time.Minute
	}
	s.state = newState()
	s.oldest = s.state.rev
	return s
}

// tellLocked wakes everybody who waits for a change.
func (s *Server) tellLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// visibleLocked is how far the watch cache has come.
func (s *Server) visibleLocked() uint64 {
	if s.frozen != 0 {
		return min(s.frozen, s.state.rev)
	}
	return s.state.rev
}

// Revision is the resourceVersion of the last write.
func (s *Server) Revision() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.rev
}

// Compact forgets the history up to now: page tokens and watches from before are
// told 410, unless they stand exactly here.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.compact()
	s.oldest = s.state.rev
	s.tellLocked()
}

// Skip lets n resourceVersions go to objects that nobody here can see.
func (s *Server) Skip(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.rev += n
	s.tellLocked()
}

// Freeze lets the watch cache stand still, also for lists that may be old, until
// Thaw.
func (s *Server) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = s.state.rev
}

// Thaw ends Freeze.
func (s *Server) Thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = 0
	s.tellLocked()
}

// Bookmark sends a bookmark in all watches that asked for some.
func (s *Server) Bookmark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nudges++
	s.tellLocked()
}

// Restart breaks all watches and begins the watch cache anew; the objects and
// their history are in a database that stays.
func (s *Server) Restart() {
	s.mu.Lock()
	s.oldest, s.frozen = s.state.rev, 0
	s.mu.Unlock()
	s.Cut(Abrupt)
}

// Snapshot is the state of a server.
type Snapshot struct{ state state }

// Snapshot keeps the state as it is now.
func (s *Server) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Snapshot{s.state.clone()}
}

// Restore goes back to a snapshot and restarts. With raise the revisions go on
// behind all that were given out and the history is forgotten, as a restore should
// be done; without, they go back too.
func (s *Server) Restore(snap Snapshot, raise bool) {
	s.mu.Lock()
	was := s.state.rev
	s.state = snap.state.clone()
	if raise {
		s.state.rev = was + 1000
		s.state.compact()
	}
	s.mu.Unlock()
	s.Restart()
}

// Break is a way in which a stream breaks.
type Break uint8

const (
	// Abrupt closes the connection between two lines.
	Abrupt Break = iota
	// HalfLine closes it in the middle of a line.
	HalfLine
	// HalfLineEnded ends the answer properly, in the middle of a line, as a proxy
	// may do that lost its own connection.
	HalfLineEnded
	// Timeout ends it after a last bookmark, as the server itself does.
	Timeout
)

// Cut breaks all open watches.
func (s *Server) Cut(how Break) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.how = how
	close(s.cut)
	s.cut = make(chan struct{})
}

// Down lets no request through, and breaks all watches, until up is called.
func (s *Server) Down() (up func()) {
	s.mu.Lock()
	s.down = true
	s.mu.Unlock()
	s.Cut(Abrupt)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.down = false
	}
}

// LoseAnswers does the next n writes and breaks their connections before they are
// answered.
func (s *Server) LoseAnswers(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose = n
}

func (s *Server) loses() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lose == 0 {
		return false
	}
	s.lose--
	return true
}
