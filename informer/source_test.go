package informer_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

type obj struct {
	Key, ID, Group string
	Rev            int
}

// source keeps its history: whatever is asked after a position that was not
// compacted is told from there.
type source struct {
	mu      sync.Mutex
	powers  reflector.Powers[*obj]
	bare    bool // no versions and no positions
	noIDs   bool
	fail    error // what every List and Watch answers, if not nil
	rev     int
	floor   int // history up to here is gone
	ids     int
	live    map[string]object.Item[*obj]
	log     []entry
	moved   chan struct{} // closed at the next change
	cuts    chan struct{} // closed to end all sessions
	lists   int
	watches int
	// atList runs in each List, after its state was taken, under no lock.
	atList func()
	// hold, while set, stops all watches from telling; see Hold.
	hold chan struct{}
}

type entry struct {
	rev    int
	events []reflector.Event[*obj]
}

func newSource() *source {
	s := &source{live: map[string]object.Item[*obj]{}, moved: make(chan struct{}), cuts: make(chan struct{})}
	s.powers.ResumeProven = true
	s.powers.Compare = func(a, b reflector.Cursor) int { return cmp.Compare(num(a), num(b)) }
	return s
}

func num[S ~string](s S) int {
	n, _ := strconv.Atoi(string(s))
	return n
}

// tx is one transaction: all its events in one batch.
func (s *source) tx(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.txLocked(f)
}

func (s *source) txLocked(f func()) {
	s.rev++
	s.log = append(s.log, entry{rev: s.rev})
	f()
	close(s.moved)
	s.moved = make(chan struct{})
}

// put and del are for inside tx.
func (s *source) put(key, group string) object.Version {
	old, ok := s.live[key]
	id := old.ID
	if !ok {
		s.ids++
		if id = "i" + strconv.Itoa(s.ids); s.noIDs {
			id = ""
		}
	}
	// A transaction may put a key twice: its states have versions of their own.
	rev := s.rev*100 + len(s.log[len(s.log)-1].events)
	o := &obj{Key: key, ID: id, Group: group, Rev: rev}
	v := object.Version(strconv.Itoa(rev))
	if s.bare {
		v, o.Rev = "", 0
	}
	it := object.Item[*obj]{Key: key, ID: id, Version: v, Object: o}
	s.live[key] = it
	s.tell(reflector.Event[*obj]{Op: reflector.OpPut, Known: true, Item: it})
	return v
}

func (s *source) del(key string) {
	if _, ok := s.live[key]; !ok {
		return
	}
	delete(s.live, key)
	s.tell(reflector.Event[*obj]{Op: reflector.OpDelete, Item: object.Item[*obj]{Key: key}})
}

func (s *source) tell(ev reflector.Event[*obj]) {
	e := &s.log[len(s.log)-1]
	e.events = append(e.events, ev)
}

func (s *source) Put(key, group string) (v object.Version) {
	s.tx(func() { v = s.put(key, group) })
	return v
}

func (s *source) Del(key string) { s.tx(func() { s.del(key) }) }

// Hide forgets the history and ends all sessions.
func (s *source) Hide() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hideLocked()
}

func (s *source) hideLocked() {
	s.floor, s.log = s.rev, nil
	close(s.cuts)
	s.cuts = make(chan struct{})
}

// Unseen is a transaction that no watch tells of: only a list will show it.
func (s *source) Unseen(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.txLocked(f)
	s.hideLocked()
}

// Cut ends all sessions.
func (s *source) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.cuts)
	s.cuts = make(chan struct{})
}

func (s *source) Fail(err error) {
	s.mu.Lock()
	s.fail = err
	s.mu.Unlock()
	s.Cut()
}

// Hold stops all watches from telling, until release.
func (s *source) Hold() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hold := make(chan struct{})
	s.hold = hold
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hold = nil
		close(hold)
	}
}

func (s *source) Lists() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

func (s *source) Powers() reflector.Powers[*obj] { return s.powers }

func (s *source) cursor() reflector.Cursor {
	if s.bare {
		return ""
	}
	return reflector.Cursor(strconv.Itoa(s.rev))
}

func (s *source) List(ctx context.Context, o reflector.ListOptions) (reflector.Page[*obj], error) {
	s.mu.Lock()
	s.lists++
	p, err, then := s.page(), s.fail, s.atList
	s.mu.Unlock()
	if err != nil {
		return reflector.Page[*obj]{}, err
	}
	if then != nil {
		then()
	}
	return p, ctx.Err()
}

func (s *source) page() reflector.Page[*obj] {
	p := reflector.Page[*obj]{Cursor: s.cursor()}
	for _, it := range s.live {
		p.Items = append(p.Items, it)
	}
	return p
}

func (s *source) Watch(ctx context.Context, o reflector.WatchOptions) iter.Seq2[reflector.Batch[*obj], error] {
	return func(yield func(reflector.Batch[*obj], error) bool) {
		s.mu.Lock()
		s.watches++
		cut, fail, at := s.cuts, s.fail, num(o.After)
		first := reflector.Bookmark[*obj](o.After)
		if s.bare || o.Initial {
			at, first = s.rev, reflector.Batch[*obj]{Reset: true, Synced: true, Cursor: s.cursor()}
			for _, it := range s.page().Items {
				first.Events = append(first.Events, reflector.Put(it, "").Events...)
			}
		}
		s.mu.Unlock()
		if fail != nil {
			yield(reflector.Batch[*obj]{}, fail)
			return
		}
		if !yield(first, nil) {
			return
		}
		for {
			s.mu.Lock()
			var next []reflector.Batch[*obj]
			expired, moved, hold := at < s.floor, s.moved, s.hold
			// The log has each revision up to now, one entry for one.
			for _, e := range s.log[max(0, len(s.log)-(s.rev-at)):] {
				b := reflector.Batch[*obj]{Events: e.events}
				if !s.bare {
					b.Cursor = reflector.Cursor(strconv.Itoa(e.rev))
				}
				next = append(next, b)
			}
			s.mu.Unlock()
			if hold != nil {
				select {
				case <-hold:
					continue
				case <-cut:
					return
				case <-ctx.Done():
					return
				}
			}
			if expired {
				yield(reflector.Batch[*obj]{}, reflector.ErrExpired)
				return
			}
			for _, b := range next {
				if !yield(b, nil) {
					return
				}
			}
			at += len(next)
			if len(next) > 0 {
				continue
			}
			select {
			case <-moved:
			case <-cut:
				return
			case <-ctx.Done():
				return
			}
		}
	}
}

func (s *source) state() map[string]*obj {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := map[string]*obj{}
	for key, it := range s.live {
		m[key] = it.Object
	}
	return m
}

// replay holds a handler to its promises and remembers what it was told.
type replay struct {
	name    string
	mu      sync.Mutex
	held    map[string]*obj
	newest  map[string]int
	faults  []string
	changes []informer.Change[*obj]
	bare    bool
}

func newReplay(name string) *replay {
	return &replay{name: name, held: map[string]*obj{}, newest: map[string]int{}}
}

func (r *replay) on(c informer.Change[*obj]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, c)
	fault := func(format string, args ...any) {
		r.faults = append(r.faults, fmt.Sprintf("%s: %v %s: ", r.name, c.Type, c.Key)+fmt.Sprintf(format, args...))
	}
	old, had := r.held[c.Key]
	if c.Old != old {
		fault("Old is %+v, was last given %+v", c.Old, old)
	}
	switch c.Type {
	case informer.Added:
		if had {
			fault("it had the key")
		}
		r.held[c.Key] = c.New
	case informer.Updated:
		if !had {
			fault("it did not have the key")
		} else if old.ID != c.New.ID {
			fault("an update across identities %s and %s", old.ID, c.New.ID)
		}
		r.held[c.Key] = c.New
	case informer.Deleted:
		if !had {
			fault("it did not have the key")
		}
		if c.New != nil || c.Last == nil || had && (c.Last.Rev < old.Rev || c.Last.ID != old.ID) {
			fault("New %+v, Last %+v", c.New, c.Last)
		}
		delete(r.held, c.Key)
	default:
		fault("a strange type")
	}
	if c.Type != informer.Deleted {
		if c.New.Key != c.Key || c.Last != nil {
			fault("New %+v, Last %+v", c.New, c.Last)
		}
		if c.New.Rev <= r.newest[c.Key] && !r.bare {
			fault("revision %d after %d", c.New.Rev, r.newest[c.Key])
		}
		r.newest[c.Key] = c.New.Rev
	}
}

func (r *replay) batch(cs []informer.Change[*obj]) {
	if len(cs) == 0 {
		r.mu.Lock()
		r.faults = append(r.faults, r.name+": a call with no changes")
		r.mu.Unlock()
	}
	for _, c := range cs {
		r.on(c)
	}
}

func (r *replay) all() []informer.Change[*obj] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]informer.Change[*obj](nil), r.changes...)
}

func (r *replay) verify(t *testing.T, want map[string]*obj) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.faults {
		t.Error(f)
	}
	if want != nil && !maps.Equal(r.held, want) {
		t.Errorf("%s: holds %v, want %v", r.name, show(r.held), show(want))
	}
}

func show(m map[string]*obj) map[string]obj {
	s := map[string]obj{}
	for k, o := range m {
		s[k] = *o
	}
	return s
}

func cached(i *informer.Informer[*obj]) map[string]*obj { return maps.Collect(i.Cache().All()) }

// run runs i until the test ends, or stop is called.
func run[T any](t *testing.T, i *informer.Informer[T]) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- i.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// bubble is a test with time of its own.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}
