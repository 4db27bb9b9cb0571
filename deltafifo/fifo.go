package deltafifo

import (
	"context"
	"iter"

	"github.com/homeostat/homeostat/object"
)

// FIFO is a [Buffer] that remembers what it handed over, and so knows what its
// consumer holds: it is pushed plain states and finds Old, void deletes and what
// a Replace deletes by itself. Make one with [New]. All methods may be called from
// any goroutine.
type FIFO[T any] struct {
	b    Buffer[T]
	hand func([]Delta[T]) // f.handOverLocked, made once

	// Guarded by b.mu.
	held     shrinking[object.Item[T]] // what the consumer holds, once it took all that was popped
	replaced bool                      // Replace was called
	isSynced bool                      // synced is closed
	synced   chan struct{}
}

// New makes an empty FIFO. known lists what the consumer holds already, so that
// Replace finds what is gone since; it is called once, before New returns. nil is
// a consumer that holds nothing.
func New[T any](known func() iter.Seq2[string, object.Item[T]], opts *Options) *FIFO[T] {
	f := &FIFO[T]{synced: make(chan struct{})}
	f.b.init(opts)
	f.hand = f.handOverLocked
	if known != nil {
		for key, item := range known() {
			item.Key = key
			f.held.put(key, item)
		}
	}
	return f
}

// Put adds states that items now have, all in one step. It never waits for
// consumers, and fails only with [ErrClosed].
func (f *FIFO[T]) Put(items []object.Item[T], why object.Cause) error {
	f.b.mu.Lock()
	defer f.b.mu.Unlock()
	if f.b.shut {
		return ErrClosed
	}
	c := clock{start: f.b.start}
	for i := range items {
		f.pushLocked(Delta[T]{Type: Put, Item: items[i], Cause: why}, &c)
	}
	f.doneLocked()
	return nil
}

// Delete says that item.Key is gone, and item the state it ended in. An item with
// nothing but a key (no Version, no ID and T's zero value) tells no state: the
// newest known one stands in for it. A key that the consumer does not hold and
// that is not pending is ignored. It fails only with [ErrClosed].
func (f *FIFO[T]) Delete(item object.Item[T], why object.Cause) error {
	f.b.mu.Lock()
	defer f.b.mu.Unlock()
	if f.b.shut {
		return ErrClosed
	}
	c := clock{start: f.b.start}
	f.pushLocked(Delta[T]{Type: Delete, Item: item, Cause: why}, &c)
	f.doneLocked()
	return nil
}

// pushLocked finds out what the consumer holds. Of a pending key the queue knows,
// and does not ask.
func (f *FIFO[T]) pushLocked(d Delta[T], c *clock) {
	e := f.b.q.pending(d.Item.Key)
	if e == nil {
		d.Old, d.Had = f.held.get(d.Item.Key)
	}
	f.b.q.push(e, &d, c)
}

// Pop waits for the key that has been pending longest and takes its deltas, in
// order. It ends with [ErrClosed] after Close, and with the context's cause.
func (f *FIFO[T]) Pop(ctx context.Context) ([]Delta[T], error) {
	return f.b.pop(ctx, nil, f.hand)
}

// PopBatch is Pop for many keys at once: it waits until something is pending and
// appends to buf, oldest keys first and each key whole, what fits in buf's
// capacity, but at least one key. On error it returns buf as it was.
func (f *FIFO[T]) PopBatch(ctx context.Context, buf []Delta[T]) ([]Delta[T], error) {
	return f.b.pop(ctx, buf, f.hand)
}

// handOverLocked remembers what the consumer holds from now on.
func (f *FIFO[T]) handOverLocked(ds []Delta[T]) {
	for i := range ds {
		switch d := &ds[i]; d.Type {
		case Put:
			f.held.put(d.Item.Key, d.Item)
		case Delete:
			f.held.delete(d.Item.Key)
		}
	}
	f.settleLocked()
}

// doneLocked ends every push.
func (f *FIFO[T]) doneLocked() {
	f.settleLocked()
	f.b.wakeLocked()
}

func (f *FIFO[T]) settleLocked() {
	if f.replaced && !f.isSynced && f.b.q.initial == 0 {
		f.isSynced = true
		close(f.synced)
	}
}

// Synced is closed once everything that was pending after the first Replace has
// been handed over: at once when that was nothing. Close does not close it.
func (f *FIFO[T]) Synced() <-chan struct{} { return f.synced }

// Close ends the FIFO: what is pending is dropped, every Pop, waiting or to come,
// and every further push gets [ErrClosed]. Closing twice is fine.
func (f *FIFO[T]) Close() {
	f.b.mu.Lock()
	defer f.b.mu.Unlock()
	f.b.closeLocked()
	f.held = shrinking[object.Item[T]]{}
}

// Stats tells what is pending.
func (f *FIFO[T]) Stats() Stats { return f.b.Stats() }
