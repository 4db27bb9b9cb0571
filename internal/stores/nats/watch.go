package nats

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/homeostat/homeostat/reflector"
)

const chunk = 500 // objects in one batch of a full state

// Watch tells what comes after opts.After, each change in a batch, or begins with
// the full state when opts.Initial is set or opts.After is empty.
func (s *Store[T]) Watch(ctx context.Context, opts reflector.WatchOptions) iter.Seq2[reflector.Batch[T], error] {
	return func(yield func(reflector.Batch[T], error) bool) {
		if err := s.watch(ctx, opts, yield); err != nil && ctx.Err() == nil {
			yield(reflector.Batch[T]{}, fmt.Errorf("nats: watch %q: %w", s.kv.Bucket(), err))
		}
	}
}

// watch is one session. It answers nil after yield was false.
func (s *Store[T]) watch(ctx context.Context, opts reflector.WatchOptions, yield func(reflector.Batch[T], error) bool) error {
	resume := opts.After != "" && !opts.Initial
	after := uint64(0)
	if resume {
		_, after, _ = position(opts.After)
	}
	r, err := s.read(ctx, after)
	if err != nil {
		return err
	}
	defer r.close()
	if !resume {
		return r.stream(opts.ProgressEvery, yield)
	}
	if err := notBefore(opts.After, cursor(r.epoch, r.head)); err != nil {
		return err
	}
	r.whole = true
	if !yield(reflector.Bookmark[T](opts.After), nil) {
		return nil
	}
	return r.follow(opts.ProgressEvery, yield)
}

// stream tells the full state, and follows.
func (r *reader[T]) stream(every time.Duration, yield func(reflector.Batch[T], error) bool) error {
	b := reflector.Batch[T]{Reset: true}
	for c, err := range r.full() {
		if err != nil {
			return err
		}
		if len(b.Events)+len(b.Faults) == chunk || c.clashes(b) {
			if !yield(b, nil) {
				return nil
			}
			b = reflector.Batch[T]{Events: b.Events[:0]}
		}
		c.addTo(&b)
	}
	b.Synced, b.Cursor = true, cursor(r.epoch, r.at)
	if !yield(b, nil) {
		return nil
	}
	return r.follow(every, yield)
}

// follow tells each message as a batch, and which one it follows.
func (r *reader[T]) follow(every time.Duration, yield func(reflector.Batch[T], error) bool) error {
	wait := 2 * time.Second
	if every > 0 {
		wait = max(every/2, time.Millisecond) // half for the answer's way
	}
	for {
		c, err := r.next(wait)
		if err != nil {
			return err
		}
		b := reflector.Bookmark[T](cursor(r.epoch, r.at))
		if c.Op != 0 {
			c.addTo(&b)
			b.Prev = cursor(r.epoch, r.at-1)
		}
		if (c.Op != 0 || every > 0) && !yield(b, nil) {
			return nil
		}
	}
}

func (c change[T]) addTo(b *reflector.Batch[T]) {
	if c.unread != nil {
		b.Faults = append(b.Faults, c.fault())
	} else {
		b.Events = append(b.Events, c.Event)
	}
}

// clashes: no key may be both in the events and in the faults of a batch, and a
// bucket's history may have it in either state.
func (c change[T]) clashes(b reflector.Batch[T]) bool {
	if c.unread != nil {
		return slices.ContainsFunc(b.Events, func(e reflector.Event[T]) bool { return e.Key == c.Key })
	}
	return slices.ContainsFunc(b.Faults, func(f reflector.Fault) bool { return f.Key == c.Key })
}
