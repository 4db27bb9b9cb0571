package deltafifo

import "time"

// queue holds the pending keys in the order of their first pending delta. Its
// user locks.
//
// It is a list through the entries, not a ring: a key whose deltas cancel out
// leaves from the middle, and must leave nothing behind, or else a producer that
// adds and deletes while the consumer stands still would fill the memory (G4).
type queue[T any] struct {
	keepAll     bool
	keys        shrinking[*entry[T]]
	front, back *entry[T]
	free        *entry[T] // entries to use again, linked by next
	freeLen     int
	deltas      int
	initial     int // how many entries have the flag
	turns       uint64
	compacted   uint64
}

// maxFree is how many entries are kept to be used again: enough for the steady
// state of a busy consumer, little beside what one big list brings.
const maxFree = 1024

// entry is what is pending of one key: first, then rest. Compacted, rest is empty
// but for a key that was deleted and created again.
type entry[T any] struct {
	prev, next *entry[T]
	since      time.Duration // when first was pushed, counted from the Buffer's start
	turn       uint64        // the place in the order of keys; the front's is the lowest
	initial    bool          // the FIFO's: part of what Synced waits for
	first      Delta[T]      // Type 0: nothing is pending
	rest       []Delta[T]
}

func (e *entry[T]) len() int {
	if e.first.Type == 0 {
		return 0
	}
	return 1 + len(e.rest)
}

func (e *entry[T]) last() *Delta[T] {
	if n := len(e.rest); n > 0 {
		return &e.rest[n-1]
	}
	return &e.first
}

// clock is read at most once per push, and only when a key becomes pending.
type clock struct {
	start time.Time
	since time.Duration
	read  bool
}

func (c *clock) now() time.Duration {
	if !c.read {
		// Since reads the monotonic clock alone: half the price of Now.
		c.since, c.read = time.Since(c.start), true
	}
	return c.since
}

func (q *queue[T]) len() int { return q.keys.len() }

// pending is the entry of key, or nil.
func (q *queue[T]) pending(key string) *entry[T] {
	e, _ := q.keys.get(key)
	return e
}

// push adds one delta by the rules; e is what is pending of its key.
func (q *queue[T]) push(e *entry[T], d *Delta[T], c *clock) {
	isNew := e == nil
	if isNew {
		e = q.take()
	}
	q.deltas -= e.len()
	q.add(e, d)
	after := e.len()
	q.deltas += after
	switch {
	case isNew && after == 0: // void
		q.give(e)
	case isNew:
		e.since = c.now()
		q.append(e)
	case after == 0: // cancelled out
		q.unlink(e, d.Item.Key)
	}
}

// add puts d behind what is pending in e, by the rules.
func (q *queue[T]) add(e *entry[T], d *Delta[T]) {
	before := e.len()
	if q.keepAll {
		keep(e, d)
	} else {
		merge(e, d)
	}
	if spared := before + 1 - e.len(); spared > 0 {
		q.compacted += uint64(spared)
	}
}

// remove takes e out, with all its deltas.
func (q *queue[T]) remove(e *entry[T]) {
	q.deltas -= e.len()
	q.unlink(e, e.first.Item.Key)
}

func (q *queue[T]) append(e *entry[T]) {
	q.keys.put(e.first.Item.Key, e)
	q.turns++
	e.turn = q.turns
	e.prev = q.back
	if q.back == nil {
		q.front = e
	} else {
		q.back.next = e
	}
	q.back = e
}

func (q *queue[T]) unlink(e *entry[T], key string) {
	if e.prev == nil {
		q.front = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		q.back = e.prev
	} else {
		e.next.prev = e.prev
	}
	if e.initial {
		q.initial--
	}
	q.keys.delete(key)
	q.give(e)
}

// take makes an entry, or finds one to use again.
func (q *queue[T]) take() *entry[T] {
	e := q.free
	if e == nil {
		return &entry[T]{}
	}
	q.free, e.next = e.next, nil
	q.freeLen--
	return e
}

// give keeps e to be used again. It must not keep objects alive.
func (q *queue[T]) give(e *entry[T]) {
	if q.freeLen == maxFree {
		return
	}
	clear(e.rest)
	rest := e.rest[:0]
	if q.keepAll {
		rest = nil // may be of any size
	}
	*e = entry[T]{next: q.free, rest: rest}
	q.free = e
	q.freeLen++
}

// drop lets go of everything, also of the memory.
func (q *queue[T]) drop() {
	*q = queue[T]{keepAll: q.keepAll, compacted: q.compacted, turns: q.turns}
}

// putBefore puts ds, deltas of e's key, before what is pending in e.
func (q *queue[T]) putBefore(e *entry[T], ds []Delta[T]) {
	key := ds[0].Item.Key
	after := append([]Delta[T]{e.first}, e.rest...)
	q.deltas -= e.len()
	e.first = Delta[T]{}
	clear(e.rest)
	e.rest = e.rest[:0]
	for _, part := range [2][]Delta[T]{ds, after} {
		for i := range part {
			q.add(e, &part[i])
		}
	}
	q.deltas += e.len()
	if e.len() == 0 {
		q.unlink(e, key)
	}
}
