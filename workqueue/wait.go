package workqueue

import "context"

// waiter is one blocked Get. Its channel has room for the one signal that a
// waiter gets, so that nobody blocks sending it under the lock.
type waiter struct{ ready chan struct{} }

const maxIdle = 64

// signal wakes one that waits. It promises no key: whoever comes first takes it,
// and who finds none waits again.
func (q *Queue[K]) signal() {
	n := len(q.waiters) - 1
	if n < 0 {
		return
	}
	w := q.waiters[n]
	q.waiters[n] = nil
	q.waiters = q.waiters[:n]
	w.ready <- struct{}{}
}

func (q *Queue[K]) signalAll() {
	for len(q.waiters) > 0 {
		q.signal()
	}
}

// passOn is for a caller that leaves without a key: the signal that woke it may
// have been for one.
func (q *Queue[K]) passOn() {
	if q.due.n > q.claims {
		q.signal()
	}
}

// wait blocks until a signal or the end of ctx. It gives up the lock and takes it
// again.
func (q *Queue[K]) wait(ctx context.Context) {
	var w *waiter
	if n := len(q.idle); n > 0 {
		w = q.idle[n-1]
		q.idle = q.idle[:n-1]
	} else {
		w = &waiter{ready: make(chan struct{}, 1)}
	}
	q.waiters = append(q.waiters, w)
	q.mu.Unlock()
	select {
	case <-w.ready:
		q.mu.Lock()
	case <-ctx.Done():
		q.mu.Lock()
		if !q.leave(w) {
			<-w.ready // signalled at the same time
		}
	}
	if len(q.idle) < maxIdle {
		q.idle = append(q.idle, w)
	}
}

// leave takes w off the list; false when it has been signalled.
func (q *Queue[K]) leave(w *waiter) bool {
	for i, other := range q.waiters {
		if other == w {
			q.waiters = append(q.waiters[:i], q.waiters[i+1:]...)
			return true
		}
	}
	return false
}
