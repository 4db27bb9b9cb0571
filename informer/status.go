package informer

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/homeostat/homeostat/reflector"
)

// Status is how an informer is.
type Status struct {
	// Source is what the reflector is doing. (Not embedded: its MarshalJSON would
	// be promoted.)
	Source reflector.Status
	// Objects are in the cache, Handlers registered now.
	Objects, Handlers int
	// Synced: the cache has had a complete list.
	Synced bool
	// Waiting counts the calls of WaitFor that wait.
	Waiting int
	// StaleLists: the source's lists may be older than asked for, so what WaitFor
	// proves by a list may be, too.
	StaleLists bool
	// Panics counts those of handlers and of the source's functions that were
	// caught, LastPanic is the last of them.
	Panics    uint64
	LastPanic error
	// Refused has the keys whose present state the cache could not take, and why
	// (each a *[RefusedError]); nil when there are none. The cache shows their
	// last good state, if there was one.
	Refused map[string]error
}

// Status tells how the informer is, at the moment of the call; its parts are
// looked at one after the other.
func (i *Informer[T]) Status() Status {
	s := Status{
		Source:   i.refl.Status(),
		Objects:  i.cache.Len(),
		Handlers: int(i.registered.Load()),
		Synced:   i.Synced(),
		Waiting:  i.barriers.count(),
		Refused:  i.barriers.refusals(),
	}
	s.StaleLists = i.barriers.staleLists()
	s.Panics, s.LastPanic = i.stats.get()
	return s
}

// MarshalJSON prints errors as text and leaves out what is not set.
func (s Status) MarshalJSON() ([]byte, error) {
	var refused map[string]string
	if len(s.Refused) > 0 {
		refused = make(map[string]string, len(s.Refused))
		for key, err := range s.Refused {
			refused[key] = err.Error()
		}
	}
	last := ""
	if s.LastPanic != nil {
		last = s.LastPanic.Error()
	}
	return json.Marshal(struct {
		Source     reflector.Status  `json:"source"`
		Objects    int               `json:"objects"`
		Handlers   int               `json:"handlers"`
		Synced     bool              `json:"synced"`
		Waiting    int               `json:"waiting"`
		StaleLists bool              `json:"staleLists,omitempty"`
		Panics     uint64            `json:"panics"`
		LastPanic  string            `json:"lastPanic,omitempty"`
		Refused    map[string]string `json:"refused,omitempty"`
	}{s.Source, s.Objects, s.Handlers, s.Synced, s.Waiting, s.StaleLists, s.Panics, last, refused})
}

// Fresh is nil when the source was heard, whether it told of a change or only
// that it is alive, within the last maxAge, and the cache has had a complete
// list; else it is a *[StaleError]. Reads answer either way.
func (i *Informer[T]) Fresh(maxAge time.Duration) error {
	s := i.refl.Status()
	if !i.Synced() {
		return &StaleError{Name: i.name, Err: s.Err}
	}
	age := time.Since(s.Alive)
	if age <= maxAge {
		return nil
	}
	return &StaleError{Name: i.name, Age: age, Since: s.Alive, Err: s.Err}
}

// stats counts what was caught.
type stats struct {
	mu     sync.Mutex
	panics uint64
	last   error
}

func (s *stats) panicked(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.panics++
	s.last = err
}

func (s *stats) get() (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.panics, s.last
}
