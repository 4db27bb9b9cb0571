package consulserver

import (
	"net/http"
	"sync"
	"time"
)

// Options are the choices of a Server. nil and the zero value are the defaults.
type Options struct {
	// Wait is how long a blocking query waits that does not say. 0 is 5 min.
	Wait time.Duration
}

// Server is an http.Handler with a store behind it.
type Server struct {
	opts Options

	mu      sync.Mutex
	state   state
	replica *state        // what stale reads see; nil: the same
	changed chan struct{} // closed and replaced by each write
	wake    chan struct{} // closed and replaced when queries are to be answered now
	cut     chan struct{} // closed and replaced when connections break
	down    bool
	lose    int
}

// New makes a server without keys. Its index does not begin at 1: the servers
// themselves had to say things first.
func New(opts *Options) *Server {
	s := &Server{
		state:   state{index: 10, entries: map[string]*Entry{}, deleted: map[string]uint64{}},
		changed: make(chan struct{}), wake: make(chan struct{}), cut: make(chan struct{}),
	}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Wait == 0 {
		s.opts.Wait = 5 * time.Minute
	}
	return s
}

func ring(bell *chan struct{}) {
	close(*bell)
	*bell = make(chan struct{})
}

// Op is one key put or deleted.
type Op struct {
	Key    string
	Value  []byte
	Delete bool
}

// Apply does all ops in one step, past the network.
func (s *Server) Apply(ops ...Op) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.index++
	for _, op := range ops {
		if op.Delete {
			s.state.remove(op.Key)
		} else {
			s.state.put(op.Key, 0, op.Value)
		}
	}
	ring(&s.changed)
}

// Skip lets n indexes go to writes that are none of a key.
func (s *Server) Skip(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.index += n
}

// Reap forgets what was deleted: indexes go back to those of what is left.
func (s *Server) Reap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.state.deleted)
}

// Wake answers all blocking queries, though nothing has changed.
func (s *Server) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	ring(&s.wake)
}

// Lag lets stale reads see the state as it is now, until CatchUp.
func (s *Server) Lag() {
	s.mu.Lock()
	defer s.mu.Unlock()
	then := s.state.clone()
	s.replica = &then
}

// CatchUp ends Lag.
func (s *Server) CatchUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replica = nil
	ring(&s.changed)
}

// Cut breaks the connections of all blocking queries.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	ring(&s.cut)
}

// Restart breaks all connections; the state is on disk.
func (s *Server) Restart() { s.Cut() }

// Down lets no request through until up is called.
func (s *Server) Down() (up func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = true
	ring(&s.cut)
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

// Snapshot is the state of a server.
type Snapshot struct{ state state }

// Snapshot keeps the state as it is now.
func (s *Server) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Snapshot{s.state.clone()}
}

// Restore goes back to a snapshot. In a cluster that runs, the index of the next
// write goes on (onward) though those of the keys go back; in one that is begun
// anew from the snapshot it goes back with them. Queries are answered at once.
func (s *Server) Restore(snap Snapshot, onward bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.state.index
	s.state = snap.state.clone()
	s.replica = nil
	if onward {
		s.state.index = was + 1
	}
	ring(&s.wake)
	ring(&s.changed)
}

// Entries are all keys under a prefix.
func (s *Server) Entries(prefix string) []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, _ := s.state.under(prefix, true)
	var all []Entry
	for _, e := range found {
		all = append(all, *e)
	}
	return all
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()
	if down {
		panic(http.ErrAbortHandler)
	}
	switch {
	case r.URL.Path == "/v1/txn" && r.Method == http.MethodPut:
		s.txn(w, r)
	case len(r.URL.Path) > len("/v1/kv/")-1 && r.URL.Path[:len("/v1/kv/")] == "/v1/kv/":
		key := r.URL.Path[len("/v1/kv/"):]
		switch r.Method {
		case http.MethodGet:
			s.get(w, r, key)
		case http.MethodPut:
			s.put(w, r, key)
		case http.MethodDelete:
			s.delete(w, r, key)
		default:
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// written breaks the connection of a write whose answer is to be lost.
func (s *Server) written() {
	s.mu.Lock()
	lost := s.lose > 0
	if lost {
		s.lose--
	}
	s.mu.Unlock()
	if lost {
		panic(http.ErrAbortHandler)
	}
}
