package memory

import (
	"crypto/rand"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// Store is a backend.Backend in memory. Make one with [New].
type Store[T any] struct {
	epoch string
	fault error // faulty options: what every call answers

	mu      sync.RWMutex // guards what follows; never held while a caller's code runs
	rev     int64        // of the last write; 0 before the first
	objects map[string]*object.Item[T]
	history history[T]
	changed chan struct{} // closed, and replaced, by the next write

	waiting  atomic.Bool                 // a watch waits on changed
	snapshot atomic.Pointer[snapshot[T]] // the last one made, while it is current
}

var _ backend.Backend[int] = (*Store[int])(nil)

// New makes an empty store with an epoch of its own; nil opts are the defaults.
func New[T any](opts *Options) *Store[T] {
	keep, fault := opts.history()
	return &Store[T]{
		epoch:   rand.Text(),
		fault:   fault,
		objects: map[string]*object.Item[T]{},
		history: newHistory[T](keep),
		changed: make(chan struct{}),
	}
}

// Compact forgets the history, as a store does that runs out of room: every
// watch that lags behind the present, and every resume from before it, is told
// reflector.ErrExpired. Where there is nothing to miss, nothing is expired.
func (s *Store[T]) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.forget(s.rev)
}

// nextLocked names the revision that is about to be written. Cursor and version
// share one string.
func (s *Store[T]) nextLocked() (reflector.Cursor, object.Version) {
	at := s.cursor(s.rev + 1)
	return at, object.Version(at[len(s.epoch)+1:])
}

// commitLocked makes ev, under the names that nextLocked gave, the next revision.
func (s *Store[T]) commitLocked(ev reflector.Event[T], at reflector.Cursor) {
	s.rev++
	s.snapshot.Store(nil)
	s.history.add(s.rev, entry[T]{event: ev, at: at})
	if s.waiting.Load() {
		s.waiting.Store(false)
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

func (s *Store[T]) cursor(rev int64) reflector.Cursor {
	return reflector.Cursor(s.epoch + "." + strconv.FormatInt(rev, 10))
}
