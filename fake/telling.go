package fake

import (
	"context"
	"fmt"
	"slices"

	"github.com/homeostat/homeostat/reflector"
)

// telling is a watch that has been opened.
type telling[T any] struct {
	b     *Backend[T]
	ctx   context.Context // of this one call
	call  *call
	yield func(reflector.Batch[T], error) bool

	k       int  // batches that the store has told
	changes int  // those of them that were changes: no bookmark, no part of a list
	listing bool // between Reset and Synced
	idle    bool // the batch is a sign of life, whose number depends on time

	blind bool                // the source errs about what comes before the next batch:
	prev  reflector.Cursor    // it takes this for it
	held  *reflector.Batch[T] // to be told after the next
	hides bool                // and the source does not know it
}

// run passes on the store's batches, and does to each what strikes.
func (t *telling[T]) run(opts reflector.WatchOptions) {
	for batch, err := range t.b.to.Watch(t.ctx, opts) {
		if t.idle = t.k > 0 && err == nil && !t.listing && idle(batch); !t.idle {
			t.k++
		}
		if t.k == 1 && !t.idle && t.b.hold(t.ctx, Watch, true) != nil {
			return
		}
		if err != nil {
			t.b.note(t.call.Call, err)
			t.yield(batch, err)
			return
		}
		if !t.batch(batch) {
			return
		}
	}
}

// batch is false when the watch is over.
func (t *telling[T]) batch(b reflector.Batch[T]) bool {
	list := t.listing || b.Reset
	t.listing = list && !b.Synced
	change := !list && len(b.Events) > 0
	if change {
		t.changes++
	}
	if t.blind {
		b.Prev, t.blind = t.prev, false
	}
	if list && t.call.partial {
		b.Events = b.Events[:len(b.Events)/2]
	}
	faults, over := t.strikes(change)
	lost, ok := t.before(b, change, faults, over)
	if !ok || !lost && !t.inTurn(&b, change) {
		return false
	}
	return t.after(b, change && !lost, faults, over)
}

// idle: the batch says only that the store is there.
func idle[T any](b reflector.Batch[T]) bool {
	return !b.Reset && !b.Synced && len(b.Events)+len(b.Faults) == 0
}

// strikes answers what strikes this batch, and when the plan that says so ends.
func (t *telling[T]) strikes(change bool) ([]Fault, <-chan struct{}) {
	b := t.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.idle {
		return nil, b.weather.over
	}
	later := t.call.later
	if t.call.under != b.weather {
		later = nil
	}
	return b.weather.batch(b.who, t.call.N, t.k, change && t.changes == 1, later), b.weather.over
}

// before does what comes before a batch is told; lost says that it will not be, or
// not now. ok is false when the watch is over.
func (t *telling[T]) before(b reflector.Batch[T], change bool, faults []Fault, over <-chan struct{}) (lost, ok bool) {
	for _, f := range faults {
		switch {
		case f.Do == Delay:
			if !t.delay(b, f, over) {
				return lost, false
			}
		case lost || !change:
		case f.Do == Drop:
			t.note(f, nil)
			lost, t.blind, t.prev = true, f.Unseen, b.Prev
		case f.Do == Reorder && t.held == nil:
			t.note(f, nil)
			held := b
			held.Events = slices.Clone(b.Events) // they are the store's again soon
			t.held, t.hides, lost = &held, f.Unseen, true
		}
	}
	return lost, true
}

// delay waits before a batch, unless it had happened before a wait that is over.
func (t *telling[T]) delay(b reflector.Batch[T], f Fault, over <-chan struct{}) bool {
	if b.Cursor == "" || revision(b.Cursor) <= t.call.waited {
		return true
	}
	t.note(f, nil)
	t.call.waited = t.b.head()
	return wait(t.ctx, f.For, over) == nil
}

// inTurn tells b, and what was held for it.
func (t *telling[T]) inTurn(b *reflector.Batch[T], change bool) bool {
	held, hides := t.held, t.hides
	t.held = nil
	switch {
	case held == nil:
		return t.tell(b)
	case !change: // nothing that it could come after
		return t.tell(held) && t.tell(b)
	}
	if hides { // it takes them for being in order
		b.Prev, held.Prev = held.Prev, b.Cursor
		t.blind, t.prev = true, held.Cursor
	}
	return t.tell(b) && t.tell(held)
}

func (t *telling[T]) tell(b *reflector.Batch[T]) bool {
	if !t.yield(*b, nil) {
		return false
	}
	if b.Cursor != "" {
		t.call.Revision = revision(b.Cursor)
	}
	return t.ctx.Err() == nil
}

// after does what comes after a batch; told says that it was a change and told.
func (t *telling[T]) after(b reflector.Batch[T], told bool, faults []Fault, over <-chan struct{}) bool {
	for _, f := range faults {
		switch f.Do {
		case Silence:
			t.note(f, nil)
			if wait(t.ctx, f.For, over) != nil {
				return false
			}
		case Duplicate:
			if !told {
				continue
			}
			t.note(f, nil)
			if !t.yield(b, nil) || t.ctx.Err() != nil {
				return false
			}
		case Cut:
			var err error
			if f.Err != nil {
				err = fmt.Errorf("fake: watch cut: %w", f.Err)
			}
			t.note(f, err)
			if err != nil {
				t.yield(reflector.Batch[T]{}, err)
			}
			return false
		}
	}
	return true
}

// note writes a strike into the log.
func (t *telling[T]) note(f Fault, err error) {
	c := t.call.Call
	c.Fault = f.Do
	t.b.note(c, err)
}
