package deltafifo

import (
	"reflect"

	"github.com/homeostat/homeostat/object"
)

// Requeue takes back deltas that were popped and that the consumer could not use:
// as they were handed over, those of one key together and in order. The FIFO then
// holds the consumer for what it was before it got them, and its next deltas say
// so. Never over something newer: what has become pending meanwhile goes behind
// them and is merged as if they had never been popped; where something newer was
// handed over already, they are dropped. A key with nothing pending goes to the
// end. It fails with [ErrClosed] and, taking nothing, with [ErrInvalidDelta].
func (f *FIFO[T]) Requeue(deltas ...Delta[T]) error {
	if err := validate(deltas); err != nil {
		return err
	}
	f.b.mu.Lock()
	defer f.b.mu.Unlock()
	if f.b.shut {
		return ErrClosed
	}
	c := clock{start: f.b.start}
	for len(deltas) > 0 {
		n := 1
		for n < len(deltas) && deltas[n].Item.Key == deltas[0].Item.Key {
			n++
		}
		f.requeueLocked(deltas[:n], &c)
		deltas = deltas[n:]
	}
	f.doneLocked()
	return nil
}

// requeueLocked takes back the deltas of one key.
func (f *FIFO[T]) requeueLocked(ds []Delta[T], c *clock) {
	key := ds[0].Item.Key
	if !f.newestHandedLocked(&ds[len(ds)-1]) {
		return
	}
	if was := ds[0].Old; ds[0].Had {
		was.Key = key
		f.held.put(key, was)
	} else {
		f.held.delete(key)
	}
	e := f.b.q.pending(key)
	if e != nil {
		f.b.q.putBefore(e, ds)
		return
	}
	for i := range ds {
		f.b.q.push(e, &ds[i], c)
		e = f.b.q.pending(key)
	}
	if e != nil && !f.isSynced {
		f.awaitLocked(e)
	}
}

// newestHandedLocked says that last is what the consumer was last given of its
// key.
func (f *FIFO[T]) newestHandedLocked(last *Delta[T]) bool {
	held, ok := f.held.get(last.Item.Key)
	if last.Type == Delete {
		return !ok
	}
	return ok && sameState(&held, &last.Item)
}

// sameState compares objects only where the source has no versions to tell states
// apart by: Requeue is off the hot path.
func sameState[T any](a, b *object.Item[T]) bool {
	if a.ID != b.ID || a.Version != b.Version {
		return false
	}
	return a.Version != "" || reflect.DeepEqual(a.Object, b.Object)
}
