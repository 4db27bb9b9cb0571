package memory

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/homeostat/homeostat/reflector"
)

const (
	chunk = 500 // objects in one batch of a streamed list
	pull  = 64  // revisions taken from the history at a time
)

// Watch tells what comes after opts.After, one batch for each revision, or begins
// with the whole state when opts.Initial is set or opts.After is empty. It runs
// on the goroutine that ranges over it and ends when ctx does.
func (s *Store[T]) Watch(ctx context.Context, opts reflector.WatchOptions) iter.Seq2[reflector.Batch[T], error] {
	return func(yield func(reflector.Batch[T], error) bool) {
		if s.fault != nil {
			yield(reflector.Batch[T]{}, fmt.Errorf("memory: watch: %w", s.fault))
			return
		}
		w := &watch[T]{store: s, ctx: ctx, opts: opts, yield: yield}
		if err := w.run(); err != nil {
			yield(reflector.Batch[T]{}, fmt.Errorf("memory: watch: %w", err))
		}
	}
}

// watch is one session.
type watch[T any] struct {
	store *Store[T]
	ctx   context.Context // of this one call
	opts  reflector.WatchOptions
	yield func(reflector.Batch[T], error) bool
	at    int64 // everything up to this revision was told
}

// run tells everything; its error is what the session ends with.
func (w *watch[T]) run() error {
	if w.ctx.Err() != nil {
		return nil
	}
	if w.opts.Initial || w.opts.After == "" {
		if !w.list() {
			return nil
		}
	} else {
		at, err := w.store.resume(w.opts.After)
		if err != nil {
			return err
		}
		w.at = at
		if !w.tell(reflector.Bookmark[T](w.store.cursor(at))) {
			return nil
		}
	}
	return w.follow()
}

// tell yields, and says whether to go on.
func (w *watch[T]) tell(b reflector.Batch[T]) bool {
	return w.yield(b, nil) && w.ctx.Err() == nil
}

// list streams the whole state in chunks; only the last has a cursor.
func (w *watch[T]) list() bool {
	snap := w.store.current()
	rest := snap.items
	events := make([]reflector.Event[T], 0, min(chunk, len(rest)))
	for first := true; ; first = false {
		events = events[:0]
		for _, item := range rest[:min(chunk, len(rest))] {
			events = append(events, reflector.Event[T]{Op: reflector.OpPut, Known: true, Item: *item})
		}
		rest = rest[len(events):]
		b := reflector.Batch[T]{Events: events, Reset: first, Synced: len(rest) == 0}
		if b.Synced {
			w.at = snap.rev
			b.Cursor = w.store.cursor(snap.rev)
		}
		if !w.tell(b) {
			return false
		}
		if b.Synced {
			return true
		}
	}
}

// follow tells every revision after w.at, and bookmarks while there is none.
func (w *watch[T]) follow() error {
	var progress <-chan time.Time // nil: never
	var timer *time.Timer
	if w.opts.ProgressEvery > 0 {
		timer = time.NewTimer(w.opts.ProgressEvery)
		defer timer.Stop()
		progress = timer.C
	}
	taken := make([]entry[T], pull)
	told := make([]reflector.Event[T], 1)
	for w.ctx.Err() == nil {
		n, changed, err := w.store.take(w.at, taken)
		if err != nil {
			return err
		}
		for i := range n {
			told[0] = taken[i].event
			if !w.tell(reflector.Batch[T]{Events: told, Cursor: taken[i].at}) {
				return nil
			}
			w.at++
		}
		clear(taken[:n]) // a quiet watch holds on to no objects
		clear(told)
		if n > 0 {
			continue
		}
		if timer != nil {
			timer.Reset(w.opts.ProgressEvery)
		}
		select {
		case <-changed:
		case <-progress:
			if !w.tell(reflector.Bookmark[T](w.store.cursor(w.at))) {
				return nil
			}
		case <-w.ctx.Done():
		}
	}
	return nil
}

// take copies what follows rev into buf. When there is nothing, changed is closed
// by the next write.
func (s *Store[T]) take(rev int64, buf []entry[T]) (n int, changed <-chan struct{}, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n, ok := s.history.after(rev, s.rev, buf)
	if !ok {
		return 0, nil, s.expiredLocked(rev)
	}
	if n == 0 {
		s.waiting.Store(true)
	}
	return n, s.changed, nil
}

// resume is where a watch after c begins.
func (s *Store[T]) resume(c reflector.Cursor) (int64, error) {
	rev, err := s.position(c)
	if err != nil {
		return 0, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.history.reaches(rev) {
		return 0, s.expiredLocked(rev)
	}
	return rev, nil
}

func (s *Store[T]) expiredLocked(rev int64) error {
	return fmt.Errorf("after revision %d, history begins at %d: %w", rev, s.history.first, reflector.ErrExpired)
}
