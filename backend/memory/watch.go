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
// on the goroutine that ranges over it and ends when ctx does, or when the store is
// restored.
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
	life  int64            // the store's, as it began
	rev   int64            // everything up to this revision was told
	at    reflector.Cursor // the same place
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
		if err := w.resume(); err != nil {
			return err
		}
		if !w.tell(reflector.Bookmark[T](w.at)) {
			return nil
		}
	}
	return w.follow()
}

// tell yields, and says whether to go on.
func (w *watch[T]) tell(b reflector.Batch[T]) bool {
	return w.yield(b, nil) && w.ctx.Err() == nil && w.store.life.Load() == w.life
}

// list streams the whole state in chunks; only the last has a cursor.
func (w *watch[T]) list() bool {
	snap := w.store.Snapshot()
	w.life, w.rev, w.at = snap.life, snap.rev, snap.Cursor()
	events := make([]reflector.Event[T], 0, min(chunk, snap.n))
	b := reflector.Batch[T]{Reset: true}
	for item := range snap.from("") {
		if len(events) == chunk {
			b.Events = events
			if !w.tell(b) {
				return false
			}
			b.Reset, events = false, events[:0]
		}
		events = append(events, reflector.Event[T]{Op: reflector.OpPut, Known: true, Item: *item})
	}
	b.Events, b.Synced, b.Cursor = events, true, w.at
	return w.tell(b)
}

// resume begins where the consumer says that it stands.
func (w *watch[T]) resume() error {
	s := w.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	rev, life, err := s.positionLocked(w.opts.After)
	if err != nil {
		return err
	}
	if !s.history.reaches(rev) {
		return s.expiredLocked(rev)
	}
	w.life, w.rev, w.at = life, rev, cursorOf(s.epoch, rev)
	return nil
}

// follow tells every revision after w.rev, and bookmarks while there is none.
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
		n, changed, err := w.take(taken)
		if err != nil || changed == nil {
			return err
		}
		for i := range n {
			told[0] = taken[i].event()
			if !w.tell(reflector.Batch[T]{Events: told, Cursor: taken[i].at, Prev: w.at}) {
				return nil
			}
			w.rev, w.at = w.rev+1, taken[i].at
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
			if !w.tell(reflector.Batch[T]{Cursor: w.at, Prev: w.at}) {
				return nil
			}
		case <-w.ctx.Done():
		}
	}
	return nil
}

// take copies what follows into buf. When there is nothing, changed is closed by
// the next write; it is nil when the store was restored, which ends the watch.
func (w *watch[T]) take(buf []entry[T]) (n int, changed <-chan struct{}, err error) {
	s := w.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.life.Load() != w.life {
		return 0, nil, nil
	}
	n, ok := s.history.after(w.rev, s.rev, buf)
	if !ok {
		return 0, nil, s.expiredLocked(w.rev)
	}
	if n == 0 {
		s.waiting.Store(true)
	}
	return n, s.changed, nil
}

func (s *Store[T]) expiredLocked(rev int64) error {
	return fmt.Errorf("after revision %d, history begins at %d: %w", rev, s.history.first, reflector.ErrExpired)
}
