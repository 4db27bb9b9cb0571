package deltafifo

import "github.com/homeostat/homeostat/object"

// Replace makes items all there is, in one step: a consumer sees all of it
// pending or none. What the consumer holds, or has pending, and items does not
// name is deleted, Inferred, with its newest known state. An item with the same
// ID and Version, not empty, as the newest known state is unchanged and causes no
// delta; every other one is a Put, and one of another ID a Delete and a Put. Of
// items that share a key the last one counts. Deletes become pending before the
// puts, in no particular order. It fails only with [ErrClosed].
func (f *FIFO[T]) Replace(items []object.Item[T], why object.Cause) error {
	f.b.mu.Lock()
	defer f.b.mu.Unlock()
	if f.b.shut {
		return ErrClosed
	}
	c := clock{start: f.b.start}
	at := make(map[string]int, len(items)) // where each key is last named
	for i := range items {
		at[items[i].Key] = i
	}
	f.deleteOthersLocked(at, why, &c)
	if f.held.len() == 0 { // a first list: all of it will be pending
		f.b.q.keys.expect(len(at))
	}
	for i := range items {
		item := &items[i]
		if at[item.Key] != i {
			continue
		}
		if was, ok := f.newestLocked(item.Key); ok && unchanged(&was, item) {
			continue
		}
		f.pushLocked(Delta[T]{Type: Put, Item: *item, Cause: why}, &c)
	}
	if !f.replaced {
		f.replaced = true
		for e := f.b.q.front; e != nil; e = e.next {
			f.awaitLocked(e)
		}
	}
	f.doneLocked()
	return nil
}

// deleteOthersLocked deletes what the consumer would hold once it took everything
// pending, and named lacks. Pending keys count as well as held ones: one that is
// only pending would otherwise come to the consumer after the list that no longer
// has it, and stay for ever.
func (f *FIFO[T]) deleteOthersLocked(named map[string]int, why object.Cause, c *clock) {
	gone := func(item object.Item[T]) {
		f.pushLocked(Delta[T]{Type: Delete, Item: item, Cause: why, Inferred: true}, c)
	}
	var next *entry[T]
	for e := f.b.q.front; e != nil; e = next {
		next = e.next // e may cancel out
		last := e.last()
		if _, ok := named[last.Item.Key]; !ok && last.Type != Delete {
			gone(last.Item)
		}
	}
	for key, item := range f.held.m {
		if _, ok := named[key]; !ok && f.b.q.pending(key) == nil {
			gone(item)
		}
	}
}

// newestLocked is the state that the consumer will hold of key once it took
// everything pending.
func (f *FIFO[T]) newestLocked(key string) (object.Item[T], bool) {
	if e := f.b.q.pending(key); e != nil {
		last := e.last()
		return last.Item, last.Type != Delete
	}
	return f.held.get(key)
}

func unchanged[T any](was, is *object.Item[T]) bool {
	return is.Version != "" && was.Version == is.Version && was.ID == is.ID
}

// awaitLocked makes Synced wait for e.
func (f *FIFO[T]) awaitLocked(e *entry[T]) {
	if !e.initial {
		e.initial = true
		f.b.q.initial++
	}
}

// Resync makes the consumer look at everything it holds again: a Sync of each key
// that has nothing pending, in no particular order and all in one step. It fails
// only with [ErrClosed].
func (f *FIFO[T]) Resync() error {
	f.b.mu.Lock()
	defer f.b.mu.Unlock()
	if f.b.shut {
		return ErrClosed
	}
	c := clock{start: f.b.start}
	for key, item := range f.held.m {
		if f.b.q.pending(key) == nil {
			f.b.q.push(nil, &Delta[T]{Type: Sync, Item: item, Old: item, Had: true, Cause: object.Resync}, &c)
		}
	}
	f.doneLocked()
	return nil
}
