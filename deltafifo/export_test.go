package deltafifo

// Merge is the rule table's function: next put behind pending.
func Merge[T any](pending []Delta[T], next Delta[T]) []Delta[T] {
	var e entry[T]
	if len(pending) > 0 {
		e.first = pending[0]
		e.rest = append(e.rest, pending[1:]...)
	}
	merge(&e, &next)
	if e.len() == 0 {
		return nil
	}
	return append([]Delta[T]{e.first}, e.rest...)
}

// Room is how many keys' worth of memory b keeps: in its map, and in entries to
// use again.
func (b *Buffer[T]) Room() (keys, entries int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.q.keys.peak, b.q.freeLen
}

// Room is that of the FIFO's queue, and of its memory of what it handed over.
func (f *FIFO[T]) Room() (keys, entries, held int) {
	keys, entries = f.b.Room()
	f.b.mu.Lock()
	defer f.b.mu.Unlock()
	return keys, entries, f.held.peak
}

// Marks is how many places somebody waits for.
func (b *Buffer[T]) Marks() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.marks)
}
