package memory

import (
	"fmt"
	"iter"
	"sync"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// Snapshot is one state of a store: its objects and the place in its history. It
// never changes and may be used by any number of goroutines. It keeps its objects
// in memory for as long as somebody has it.
type Snapshot[T any] struct {
	of     string // the store that it was taken of, by its first epoch
	epoch  string
	life   int64 // of the store, at the time
	rev    int64
	serial int64 // of the change that made this state
	n      int   // how many objects

	order sync.Once // makes runs
	make  func() runs[T]
	runs  runs[T]
}

// Cursor is where the store stood.
func (s *Snapshot[T]) Cursor() reflector.Cursor { return cursorOf(s.epoch, s.rev) }

// Len is how many objects there are.
func (s *Snapshot[T]) Len() int { return s.n }

// Get finds one object.
func (s *Snapshot[T]) Get(key string) (object.Item[T], bool) {
	for item := range s.from(key) {
		if item.Key == key {
			return *item, true
		}
		break
	}
	return object.Item[T]{}, false
}

// List answers as the store did then: everything, sorted by key, or the first
// opts.Limit objects and the token of the next page, which the store itself gives
// for as long as its history reaches back to this state. Of opts only Limit and
// KeysOnly count.
func (s *Snapshot[T]) List(opts reflector.ListOptions) reflector.Page[T] {
	return s.page("", opts)
}

// page is what comes after the key last.
func (s *Snapshot[T]) page(last string, opts reflector.ListOptions) reflector.Page[T] {
	p := reflector.Page[T]{Cursor: s.Cursor()}
	room := s.n
	if opts.Limit > 0 {
		room = min(room, opts.Limit)
	}
	p.Items = make([]object.Item[T], 0, room)
	for item := range s.from(last) {
		switch {
		case item.Key == last: // told on the page before; no key is empty
			continue
		case len(p.Items) == room:
			p.Next = token(s.epoch, s.life, s.rev, p.Items[room-1].Key)
			return p
		case opts.KeysOnly:
			p.Items = append(p.Items, object.Item[T]{Key: item.Key, Version: item.Version, ID: item.ID})
		default:
			p.Items = append(p.Items, *item)
		}
	}
	return p
}

// from gives the objects by key, beginning at key.
func (s *Snapshot[T]) from(key string) iter.Seq[*object.Item[T]] {
	return s.sorted().from(key)
}

func (s *Snapshot[T]) sorted() runs[T] {
	s.order.Do(func() {
		s.runs = s.make()
		s.make = nil // what it was made of is let go
	})
	return s.runs
}

// keepStates is how many states the store has at hand for the next pages of lists,
// and to make others of. What they have in common they share.
const keepStates = 8

// Snapshot is the present state.
func (s *Store[T]) Snapshot() *Snapshot[T] {
	if snap := s.present.Load(); snap != nil {
		snap.sorted()
		return snap
	}
	snap := s.taken()
	snap.sorted()
	s.keepState(snap)
	return snap
}

// taken is the present state, not yet in order. A write, which takes s.present
// away, can't come between its making and its keeping. All who take it at one
// revision share it.
func (s *Store[T]) taken() *Snapshot[T] {
	s.mu.RLock()
	defer s.mu.RUnlock()
	snap := s.stateLocked(s.rev, s.serial)
	snap.n = len(s.objects)
	// Near a state that is in order already, a new order costs little.
	var base *Snapshot[T]
	for _, k := range s.states {
		if base == nil || k.rev > base.rev {
			base = k
		}
	}
	if base != nil && s.rev-base.rev <= int64(len(s.objects)) {
		changes := map[string]*object.Item[T]{}
		for rev := base.rev + 1; rev <= s.rev; rev++ {
			e := s.history.entry(rev)
			changes[e.key()] = e.is
		}
		snap.make = func() runs[T] { return base.sorted().with(changes) }
	} else {
		all := make([]*object.Item[T], 0, len(s.objects))
		for _, item := range s.objects {
			all = append(all, item)
		}
		snap.make = func() runs[T] { return inOrder(all) }
	}
	if !s.present.CompareAndSwap(nil, snap) {
		return s.present.Load()
	}
	return snap
}

// SnapshotAt is the state at an earlier position, worked out from the history:
// reflector.ErrExpired when that does not reach so far or the cursor is of another
// epoch, ErrFutureCursor when it lies ahead.
func (s *Store[T]) SnapshotAt(c reflector.Cursor) (*Snapshot[T], error) {
	rev, life, err := s.position(c)
	if err == nil {
		var snap *Snapshot[T]
		if snap, err = s.state(rev, life); err == nil {
			return snap, nil
		}
	}
	return nil, fmt.Errorf("memory: snapshot: %w", err)
}

// state is that at rev, in this life of the store.
func (s *Store[T]) state(rev, life int64) (*Snapshot[T], error) {
	if snap := s.kept(rev, life); snap != nil {
		return snap, nil
	}
	snap, err := s.undone(rev, life, s.Snapshot())
	if err != nil {
		return nil, err
	}
	snap.sorted()
	s.keepState(snap)
	return snap, nil
}

func (s *Store[T]) kept(rev, life int64) *Snapshot[T] {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, k := range s.states {
		if k.rev == rev && k.life == life {
			return k
		}
	}
	return nil
}

// undone is base without what came after rev.
func (s *Store[T]) undone(rev, life int64, base *Snapshot[T]) (*Snapshot[T], error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.life.Load() != life || base.life != life {
		return nil, fmt.Errorf("of before the store was restored: %w", reflector.ErrExpired)
	}
	if !s.history.reaches(rev) {
		return nil, s.expiredLocked(rev)
	}
	serial := int64(0) // unknown
	if rev >= s.history.first {
		serial = s.history.entry(rev).serial
	}
	snap := s.stateLocked(rev, serial)
	changes := map[string]*object.Item[T]{}
	n := base.n
	for r := base.rev; r > rev; r-- {
		e := s.history.entry(r)
		changes[e.key()] = e.was
		switch {
		case e.was == nil:
			n--
		case e.is == nil:
			n++
		}
	}
	snap.n = n
	snap.make = func() runs[T] { return base.sorted().with(changes) }
	return snap, nil
}

func (s *Store[T]) stateLocked(rev, serial int64) *Snapshot[T] {
	return &Snapshot[T]{of: s.id, epoch: s.epoch, life: s.life.Load(), rev: rev, serial: serial}
}

// keepState has snap at hand while the history reaches so far; dropLocked ends it.
func (s *Store[T]) keepState(snap *Snapshot[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if snap.life != s.life.Load() || !s.history.reaches(snap.rev) {
		return
	}
	for _, k := range s.states {
		if k.rev == snap.rev {
			return
		}
	}
	s.states = append([]*Snapshot[T]{snap}, s.states[:min(len(s.states), keepStates-1)]...)
}

// dropLocked lets go of the states that the history does not reach any more: what
// they hold would be held by nobody else.
func (s *Store[T]) dropLocked() {
	n := 0
	for _, k := range s.states {
		if s.history.reaches(k.rev) {
			s.states[n] = k
			n++
		}
	}
	clear(s.states[n:])
	s.states = s.states[:n]
}
