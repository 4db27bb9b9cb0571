package bolt

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/homeostat/homeostat/reflector"
)

// What is read in one transaction, and kept in memory for one watcher.
const (
	chunk     = 500     // objects in one batch of a streamed list
	pull      = 64      // revisions taken from the history at a time
	pullBytes = 4 << 20 // and no more of these than it takes to pass this
)

// Watch tells what comes after opts.After, one batch for each revision, or begins
// with the whole state when opts.Initial is set or opts.After is empty. It runs
// on the goroutine that ranges over it and ends when ctx does.
func (s *Store[T]) Watch(ctx context.Context, opts reflector.WatchOptions) iter.Seq2[reflector.Batch[T], error] {
	return func(yield func(reflector.Batch[T], error) bool) {
		w := &watch[T]{store: s, ctx: ctx, opts: opts, yield: yield}
		if err := w.run(); err != nil && ctx.Err() == nil {
			yield(reflector.Batch[T]{}, fmt.Errorf("bolt: watch: %w", err))
		}
	}
}

// watch is one session.
type watch[T any] struct {
	store *Store[T]
	ctx   context.Context // of this one call
	opts  reflector.WatchOptions
	yield func(reflector.Batch[T], error) bool
	rev   int64            // everything up to this revision was told
	at    reflector.Cursor // the same place
}

var errStop = errors.New("bolt: nobody listens")

// run tells everything; its error is what the session ends with.
func (w *watch[T]) run() error {
	if w.ctx.Err() != nil {
		return nil
	}
	begin := w.resume
	if w.opts.Initial || w.opts.After == "" {
		begin = w.list
	}
	err := begin()
	if err == nil {
		err = w.follow()
	}
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// tell yields; errStop is its only error.
func (w *watch[T]) tell(b reflector.Batch[T]) error {
	if w.yield(b, nil) && w.ctx.Err() == nil {
		return nil
	}
	return errStop
}

// list streams the whole state in chunks, each read in a transaction of its own, but
// all as of one revision; only the last has a cursor.
func (w *watch[T]) list() error {
	f := w.store.file
	at, last := int64(-1), ""
	b := reflector.Batch[T]{Reset: true}
	var events []reflector.Event[T]
	for {
		b.Faults = nil
		p, rev, err := f.part(w.ctx, at, last, chunk, false)
		if err != nil {
			return err
		}
		at, events = rev, events[:0]
		for _, r := range p.records {
			last = r.key
			item, err := w.store.item(r, false)
			if err != nil {
				b.Faults = append(b.Faults, fault(r, err))
				continue
			}
			events = append(events, reflector.Event[T]{Op: reflector.OpPut, Known: true, Item: item})
		}
		b.Events = events
		if !p.more {
			w.rev, w.at = at, cursor(f.epoch, at)
			b.Synced, b.Cursor = true, w.at
			return w.tell(b)
		}
		if err := w.tell(b); err != nil {
			return err
		}
		b.Reset = false
	}
}

// resume begins where the consumer says that it stands.
func (w *watch[T]) resume() error {
	f := w.store.file
	rev, err := f.position(w.opts.After)
	if err != nil {
		return err
	}
	err = f.view(func(st *state) error {
		if rev < st.forgotten {
			return st.expired(rev)
		}
		return nil
	})
	if err != nil {
		return err
	}
	w.rev, w.at = rev, cursor(f.epoch, rev)
	return w.tell(reflector.Bookmark[T](w.at))
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
	f := w.store.file
	told := make([]reflector.Event[T], 1)
	for {
		changes, changed, err := f.take(w.rev)
		if err != nil {
			return err
		}
		for _, c := range changes {
			at := cursor(f.epoch, c.rev)
			b := reflector.Batch[T]{Events: told, Cursor: at, Prev: w.at}
			if told[0], err = w.store.event(c); err != nil {
				b.Events, b.Faults = nil, []reflector.Fault{fault(c.after, err)}
			}
			if err := w.tell(b); err != nil {
				return err
			}
			w.rev, w.at = c.rev, at
		}
		clear(told) // a quiet watch holds on to no object
		if len(changes) > 0 {
			continue
		}
		if timer != nil {
			timer.Reset(w.opts.ProgressEvery)
		}
		select {
		case <-changed:
		case <-f.closing:
		case <-progress:
			if err := w.tell(reflector.Batch[T]{Cursor: w.at, Prev: w.at}); err != nil {
				return err
			}
		case <-w.ctx.Done():
			return nil
		}
	}
}

// take copies what follows rev, as far as it is safe on disk and one transaction
// should read. When there is nothing, changed is closed by the next commit.
func (f *file) take(rev int64) (taken []change, changed <-chan struct{}, err error) {
	head, changed, err := f.head()
	if err != nil || head == rev {
		return nil, changed, err
	}
	err = f.view(func(st *state) error {
		if rev < st.forgotten {
			return st.expired(rev)
		}
		c := st.history.Cursor()
		size := 0
		for k, v := c.Seek(revKey(rev + 1)); k != nil && len(taken) < pull && size < pullBytes; k, v = c.Next() {
			next := rev + int64(len(taken)) + 1
			if next > head {
				return nil
			}
			if got, ok := readRev(k); !ok || got != next {
				return fmt.Errorf("%w: revision %d is missing from the history", ErrCorrupt, next)
			}
			ch, err := readChange(next, v)
			if err != nil {
				return err
			}
			ch.before, ch.after = ch.before.copied(!ch.gone), ch.after.copied(false)
			size += len(ch.before.data) + len(ch.after.data)
			taken = append(taken, ch)
		}
		if len(taken) == 0 {
			return fmt.Errorf("%w: revision %d is missing from the history", ErrCorrupt, rev+1)
		}
		return nil
	})
	return taken, nil, err
}
