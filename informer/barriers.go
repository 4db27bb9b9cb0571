package informer

import (
	"fmt"
	"slices"
	"sync"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

type reachedFunc = func(reflector.Cursor, object.Version) bool

// barriers are the waits for writes, and what decides how they end: the position
// of the cache, the full states that were begun, and the keys that it refuses.
type barriers struct {
	mu      sync.Mutex // a leaf: nothing is called, and no other lock taken, under it
	waiting map[string][]*barrier
	reached reachedFunc
	stale   bool             // lists may be older than asked for
	at      reflector.Cursor // the cache has everything up to here
	begun   uint64           // counts the full states that were begun
	applied uint64           // the number of the last full state that was
	asked   uint64           // begun when a list was last asked for, plus 1: it will have this number or a higher one
	refused map[string]*RefusedError
}

// barrier is one wait.
type barrier struct {
	key     string
	version object.Version
	begun   uint64 // a full state proves the write when its number is higher
	met     chan struct{}
	err     error // set before met is closed
}

// String says in words what is waited for.
func (b *barrier) String() string {
	if b.version == "" {
		return fmt.Sprintf("a list begun after a write of key %q", b.key)
	}
	return fmt.Sprintf("key %q to be at version %q or later", b.key, b.version)
}

func (s *barriers) learn(reached reachedFunc, stale bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reached, s.stale = reached, stale
}

// position is what Reached is asked about.
func (s *barriers) position() (reachedFunc, reflector.Cursor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reached, s.at
}

// begin counts one more full state: it is about to be read.
func (s *barriers) begin() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun++
	return s.begun
}

// ask is true when a list has to be asked for: one that another barrier has asked
// for after b was there will be begun after that, and serves both; and one that was
// applied is about to release b.
func (s *barriers) ask(b *barrier) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.applied > b.begun || s.asked > max(s.applied, b.begun) {
		return false
	}
	s.asked = s.begun + 1
	return true
}

func (s *barriers) register(key string, v object.Version) *barrier {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &barrier{key: key, version: v, begun: s.begun, met: make(chan struct{})}
	if r := s.refused[key]; r != nil && v != "" && r.Version == v {
		// It came in before, and the cache will not have it.
		b.err = r
		close(b.met)
		return b
	}
	if s.waiting == nil {
		s.waiting = make(map[string][]*barrier)
	}
	s.waiting[key] = append(s.waiting[key], b)
	return b
}

// release ends barriers whose proof has come. One that has ended already stays as
// it is.
func (s *barriers) release(met ...*barrier) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range met {
		if !s.removeLocked(b) {
			continue
		}
		if r := s.refused[b.key]; r != nil {
			b.err = r
		}
		close(b.met)
	}
}

func (s *barriers) remove(b *barrier) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(b)
}

func (s *barriers) removeLocked(b *barrier) bool {
	list := s.waiting[b.key]
	at := slices.Index(list, b)
	if at < 0 {
		return false
	}
	if len(list) == 1 {
		delete(s.waiting, b.key)
	} else {
		s.waiting[b.key] = slices.Delete(list, at, at+1)
	}
	return true
}

func (s *barriers) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, list := range s.waiting {
		n += len(list)
	}
	return n
}

// refuse and accept keep the list of what the cache refuses. refuse is true when
// this state was not on it.
func (s *barriers) refuse(e *RefusedError) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		s.refused = make(map[string]*RefusedError)
	}
	was := s.refused[e.Key]
	s.refused[e.Key] = e
	return was == nil || was.Version != e.Version
}

func (s *barriers) accept(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refused, key)
}

func (s *barriers) refusals() map[string]error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) == 0 {
		return nil
	}
	m := make(map[string]error, len(s.refused))
	for key, e := range s.refused {
		m[key] = e
	}
	return m
}

func (s *barriers) staleLists() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stale
}
