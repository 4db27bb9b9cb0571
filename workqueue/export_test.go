package workqueue

import "unsafe"

// Retained is what a queue holds on to: keys, entries for reuse, those of them
// with room for what is rare, room in the heap, the map's greatest size, channels
// for reuse, callers that wait.
type Retained struct{ Keys, Free, More, Heap, Peak, Idle, Waiting int }

func (q *Queue[K]) Retained() Retained {
	q.mu.Lock()
	defer q.mu.Unlock()
	mores := 0
	for e := q.free; e != nil; e = e.next {
		if e.more != nil {
			mores++
		}
	}
	return Retained{len(q.entries), q.freeSize, mores, cap(q.planned.slots), q.peak, len(q.idle), len(q.waiters)}
}

// Ticks says whether the timer is set, and stops it.
func (q *Queue[K]) Ticks() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.timer != nil && q.timer.Stop()
}

const (
	Keep     = keep
	KeepMore = keepMore
)

const EntrySize = unsafe.Sizeof(entry[string]{})
