package backendtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/homeostat/homeostat/reflector"
)

// event is one thing that a watch told, or that it has ended.
type event[T any] struct {
	batch reflector.Batch[T]
	err   error
	over  bool // the iterator has returned
}

// session is one watch, ranged over on a goroutine of its own. What it tells is
// kept until it is asked for.
type session[T any] struct {
	k      *kit[T]
	st     *store[T]
	opts   reflector.WatchOptions
	cancel context.CancelFunc
	hook   func(n int, e event[T]) bool // runs within yield, n from 0; false ends the watch
	news   chan struct{}                // has room for one
	done   chan struct{}                // closed when the iterator has returned

	mu       sync.Mutex
	log      []event[T]
	read     int    // of log
	on       string // the goroutine that ranges
	stopping bool   // yield answers false from now on
	ended    bool   // yield answered false
	failed   bool   // an error was told
	returned bool
	panicked any // what came out of the iterator
	rules    protocol[T]
}

// watch begins a session. hook may be nil.
func (st *store[T]) watch(opts reflector.WatchOptions, hook func(n int, e event[T]) bool) *session[T] {
	ctx, cancel := context.WithCancel(st.k.ctx)
	return st.watchUnder(ctx, cancel, opts, hook)
}

func (st *store[T]) watchUnder(ctx context.Context, cancel context.CancelFunc, opts reflector.WatchOptions, hook func(int, event[T]) bool) *session[T] {
	return st.rangeOver(ctx, cancel, opts, hook, func() func(func(reflector.Batch[T], error) bool) {
		return st.src.Watch(ctx, opts)
	})
}

// rangeOver begins a session on what seq gives.
func (st *store[T]) rangeOver(ctx context.Context, cancel context.CancelFunc, opts reflector.WatchOptions, hook func(int, event[T]) bool,
	seq func() func(func(reflector.Batch[T], error) bool),
) *session[T] {
	s := &session[T]{
		k: st.k, st: st, opts: opts, cancel: cancel, hook: hook,
		news: make(chan struct{}, 1), done: make(chan struct{}), rules: protocol[T]{st: st, after: opts.After, initial: opts.Initial},
	}
	st.k.mu.Lock()
	st.k.sessions = append(st.k.sessions, s)
	st.k.mu.Unlock()
	go s.run(seq)
	return s
}

func (s *session[T]) run(seq func() func(func(reflector.Batch[T], error) bool)) {
	var err error
	finished := false
	defer func() {
		v := recover()
		switch _, ours := v.(deliberate); {
		case ours:
		case v != nil:
			err = fmt.Errorf("a watch: %w", caught(v))
		case !finished:
			err = fmt.Errorf("a watch: %w: runtime.Goexit was called", errPanic)
		}
		s.over(v, err)
	}()
	s.mu.Lock()
	s.on = goroutine()
	s.mu.Unlock()
	// Called, not ranged over: what the runtime does to an iterator that goes on
	// after false would end the program where it happens on another goroutine.
	seq()(s.yield)
	finished = true
}

// deliberate is what a hook panics with.
type deliberate struct{ why string }

func (s *session[T]) over(v any, err error) {
	s.mu.Lock()
	s.panicked = v
	s.returned = true
	if err != nil {
		s.log = append(s.log, event[T]{err: err})
	}
	s.log = append(s.log, event[T]{over: true})
	s.mu.Unlock()
	s.ring()
	close(s.done)
}

func (s *session[T]) ring() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

func (s *session[T]) yield(b reflector.Batch[T], err error) bool {
	b.Events = slices.Clone(b.Events)
	e := event[T]{batch: b, err: err}
	n, ok := s.take(e)
	if !ok {
		return false
	}
	s.ring()
	more := true
	if s.hook != nil {
		more = s.hook(n, e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The kit goes on after an error, to see that it was the last thing.
	if !more || s.stopping {
		s.ended = true
	}
	return !s.ended
}

// take keeps what was yielded, if it may have been.
func (s *session[T]) take(e event[T]) (n int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on := goroutine(); on != s.on {
		s.k.note("watch/one-goroutine", "a watch yields on %s, and is ranged over on %s", on, s.on)
		if s.returned {
			s.k.note("watch/stops-after-false", "a watch yields after its iterator has returned")
			return 0, false
		}
	}
	if s.ended {
		s.k.note("watch/stops-after-false", "a watch yields again after yield was false")
		return 0, false
	}
	if s.failed {
		s.k.note("watch/error-is-last", "a watch yields again after an error")
	}
	if e.err != nil {
		s.failed = true
	} else {
		s.rules.judge(e.batch)
	}
	s.log = append(s.log, e)
	return len(s.log) - 1, true
}

// next is what was told next; false when nothing was for so long, or stop was
// closed.
func (s *session[T]) next(d time.Duration, stop <-chan struct{}) (event[T], bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		if e, ok := s.pending(); ok {
			return e, true
		}
		select {
		case <-s.news:
			continue
		case <-timer.C:
		case <-stop:
		case <-s.k.ctx.Done():
		}
		return s.pending()
	}
}

// pending is what was told already and not asked for.
func (s *session[T]) pending() (event[T], bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read == len(s.log) {
		return event[T]{}, false
	}
	e := s.log[s.read]
	s.read++
	return e, true
}

// opens waits for the first thing that is told, which must be a batch.
func (s *session[T]) opens() error {
	e, ok := s.next(s.k.h.Wait, nil)
	switch {
	case !ok:
		return fmt.Errorf("no first batch within %v", s.k.h.Wait)
	case e.err != nil:
		return fmt.Errorf("instead of a first batch: %w", e.err)
	case e.over:
		return errors.New("the watch ended before its first batch")
	}
	return nil
}

// stop ends the session and waits for it.
func (s *session[T]) stop() error {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.cancel()
	return s.wait("the end of its context")
}

// wait waits until the iterator has returned.
func (s *session[T]) wait(since string) error {
	select {
	case <-s.done:
		return nil
	case <-time.After(s.k.h.Wait):
	}
	err := fmt.Errorf("a watch: the iterator has not returned %v after %s", s.k.h.Wait, since)
	if since == "the end of its context" {
		s.k.mu.Lock()
		defer s.k.mu.Unlock()
		if errors.Is(s.k.stuck, errStuck) {
			return nil // said before, of this check
		}
		s.k.stuck = fmt.Errorf("a watch: %w (%v)", errStuck, s.k.h.Wait)
		return s.k.stuck
	}
	return err
}
