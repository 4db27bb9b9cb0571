package workqueue

import "unsafe"

// Retained is what a queue holds on to: keys, entries for reuse, room in the
// heap, room in the map (as its greatest size), channels for reuse.
type Retained struct{ Keys, Free, Heap, Peak, Idle, Waiting int }

func (q *Queue[K]) Retained() Retained {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Retained{len(q.entries), q.freeSize, cap(q.planned.slots), q.peak, len(q.idle), len(q.waiters)}
}

const Keep = keep

const EntrySize = unsafe.Sizeof(entry[string]{})
