package workqueue

import (
	"cmp"
	"context"
	"slices"
)

// Drain lets the queue come to its end: from now on nothing new is taken in and
// no delay runs out, while workers go on getting what is queued, and what is in
// work and was added during it. When all of that is done, Get returns [ErrClosed]
// to everybody, and Drain returns the keys that are left over because they were
// delayed or to be reminded. Parked keys are not among them; Keys has them.
//
// When ctx ends first, the error is a [*HeldError] that names the keys in work,
// and the keys that nobody took are left over too. The queue goes on draining:
// call Drain again, or Abort.
//
// It may be called any number of times, at once or later, and gives the same
// answer once it is done. After Abort it only waits for what is in work.
func (q *Queue[K]) Drain(ctx context.Context) ([]K, error) {
	q.mu.Lock()
	if q.phase == open {
		q.phase = draining
		q.stopTimer()
	}
	if q.drained == nil {
		q.drained = make(chan struct{})
	}
	q.finish()
	drained := q.drained
	q.mu.Unlock()

	select {
	case <-drained:
	case <-ctx.Done():
	}

	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isDrained() {
		return q.leftOver(false), nil
	}
	held := &HeldError[K]{Queued: q.due.n, Err: context.Cause(ctx)}
	for _, e := range q.inState(Working) {
		held.Keys = append(held.Keys, e.key)
	}
	return q.leftOver(false), held
}

// Abort ends the queue at once: Get returns [ErrClosed] to everybody, nothing new
// is taken in, no delay runs out. It does not wait for what is in work; the Done
// of that is still heard. It returns the keys that will not be run although they
// were wanted: queued, delayed, to be reminded, and in work but wanted again.
//
// It may be called any number of times. A call after the last Done also names
// those whose last run asked for another one.
func (q *Queue[K]) Abort() []K {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.phase = aborted
	q.stopTimer()
	q.shut()
	q.finish()
	return q.leftOver(true)
}

// finish ends a drain when its last key is gone. It is called wherever one goes.
func (q *Queue[K]) finish() {
	if q.phase == open || !q.isDrained() {
		return
	}
	if q.phase == draining {
		q.phase = closed
		q.shut()
	}
	if q.drained != nil {
		select {
		case <-q.drained:
		default:
			close(q.drained)
		}
	}
}

func (q *Queue[K]) isDrained() bool {
	return q.inWork == 0 && (q.due.n == 0 || q.phase == aborted)
}

// shut wakes all who wait in Get.
func (q *Queue[K]) shut() {
	if q.end != nil {
		q.end()
	}
	q.signalAll()
}

func (q *Queue[K]) stopTimer() {
	q.fresh, q.wake = false, never
	if q.timer != nil {
		q.timer.Stop()
	}
}

// leftOver is the keys that are wanted, in the order in which they would have
// run; inWork adds those that are in work and wanted again.
func (q *Queue[K]) leftOver(inWork bool) []K {
	var keys []K
	for e := q.due.head; e != nil; e = e.next {
		keys = append(keys, e.key)
	}
	var rest []*entry[K]
	for _, e := range q.entries {
		busy := e.is&working != 0
		if e.is&dirty != 0 && inWork || e.at() != 0 && e.is&queued == 0 && (inWork || !busy) {
			rest = append(rest, e)
		}
	}
	slices.SortFunc(rest, func(a, b *entry[K]) int {
		if c := cmp.Compare(a.at(), b.at()); c != 0 { // wanted at once: 0
			return c
		}
		return int(int32(a.seq - b.seq))
	})
	for _, e := range rest {
		keys = append(keys, e.key)
	}
	return keys
}
