package memory

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// Store is a backend.Backend in memory. Make one with [New].
type Store[T any] struct {
	id    string // the first epoch
	fault error  // faulty options: what every call answers

	mu      sync.RWMutex // guards what follows; never held while a caller's code runs
	epoch   string
	rev     int64  // of the last write; 0 before the first
	top     int64  // the highest revision there was, before the last Restore
	serial  int64  // of the change that made the present state
	serials int64  // how many were given out
	suffix  string // of IDs; see Restore
	objects map[string]*object.Item[T]
	history history[T]
	states  []*Snapshot[T] // the last ones in order, those that history reaches
	changed chan struct{}  // closed, and replaced, by the next write

	life    atomic.Int64                // how often it was restored; written under mu
	waiting atomic.Bool                 // a watch waits on changed
	present atomic.Pointer[Snapshot[T]] // of now, if there is one
}

var _ backend.Backend[int] = (*Store[int])(nil)

// New makes an empty store with an epoch of its own; nil opts are the defaults.
func New[T any](opts *Options) *Store[T] {
	keep, fault := opts.history()
	id := newName()
	return &Store[T]{
		id:      id,
		fault:   fault,
		epoch:   id,
		objects: map[string]*object.Item[T]{},
		history: newHistory[T](keep),
		changed: make(chan struct{}),
	}
}

// Compact forgets the history, as a store does that runs out of room: every
// watch that lags behind the present, every resume from before it, and every page
// of an older list, is told reflector.ErrExpired. Where there is nothing to miss,
// nothing is expired.
func (s *Store[T]) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.forget(s.rev)
	s.dropLocked()
}

// nextLocked names the revision that is about to be written. Cursor and version
// share one string.
func (s *Store[T]) nextLocked() (reflector.Cursor, object.Version) {
	at := cursorOf(s.epoch, s.rev+1)
	return at, version(at)
}

// commitLocked makes the change from was to is, under the name that nextLocked
// gave, the next revision.
func (s *Store[T]) commitLocked(was, is *object.Item[T], at reflector.Cursor) {
	s.rev++
	s.serials++
	s.serial = s.serials
	s.present.Store(nil)
	s.history.add(s.rev, entry[T]{was: was, is: is, at: at, serial: s.serial})
	s.dropLocked()
	if s.waiting.Load() {
		s.wakeLocked()
	}
}

// wakeLocked has every watch look.
func (s *Store[T]) wakeLocked() {
	s.waiting.Store(false)
	close(s.changed)
	s.changed = make(chan struct{})
}

func cursorOf(epoch string, rev int64) reflector.Cursor {
	return reflector.Cursor(epoch + "." + strconv.FormatInt(rev, 10))
}

// version is that of the revision at a cursor.
func version(at reflector.Cursor) object.Version {
	return object.Version(at[strings.LastIndexByte(string(at), '.')+1:])
}
