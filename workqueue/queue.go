package workqueue

import (
	"context"
	"sync"
	"time"
)

// What stays for reuse: so many unused entries, a megabyte at most, so many of
// them with room for what is rare. Memory beyond it goes back.
const (
	keep     = 16384
	keepMore = 1024
)

// Queue hands each key that is wanted to one worker at a time. The package
// documentation tells the rules. All methods may be called at the same time, also
// by work that is under way.
type Queue[K comparable] struct {
	opts  Options[K]
	fault error // of the options; nothing happens then

	end  context.CancelFunc // ends life; nil without a budget
	life context.Context    // ends when nobody may wait for a turn any more

	mu      sync.Mutex
	phase   phase
	entries map[K]*entry[K]
	peak    int // of entries since the map was made
	due     fifo[K]
	planned heap[K]
	inWork  int
	parked  int
	refused int64
	claims  int // due keys for which a turn of the budget is awaited

	waiters []*waiter     // blocked in Get, not yet signalled
	idle    []*waiter     // for reuse
	drained chan struct{} // made by the first Drain, closed when nothing more can end

	free     *entry[K]
	freeSize int

	start time.Time // the clock's zero; see clock.go
	last  int64     // the last reading
	fresh bool      // last is at most a second old
	wake  int64     // when the timer fires
	timer *time.Timer
}

type phase uint8

const (
	open     phase = iota
	draining       // intake refused, the rest finishes
	closed         // drained
	aborted        // nothing is handed out any more
)

// New makes a queue; nil options are the defaults. Faulty options come out of Get
// and Run, matching [ErrInvalidOptions]; until then what is added is refused.
//
// A type of key is faulty ([ErrBadKey]) when it is, or contains, a pointer, a
// channel, an interface, or a floating point or complex number: two keys with the
// same contents would not be the same key. Strings, integers, booleans, and
// arrays and structs of these are fine, and so is unique.Handle.
func New[K comparable](opts *Options[K]) *Queue[K] {
	q := &Queue[K]{wake: never}
	if opts != nil {
		q.opts = *opts
	}
	if q.opts.Name == "" {
		q.opts.Name = "queue"
	}
	q.fault = q.opts.validate()
	q.entries = make(map[K]*entry[K])
	if q.opts.Budget != nil {
		q.life, q.end = context.WithCancel(context.Background())
	}
	return q
}

// Get waits for a key that is due and puts it into work: until its Done nobody
// else gets it. It returns the cause of ctx's end, [ErrClosed], or what is wrong
// with the options; a context that has ended gets no key even if one is due.
func (q *Queue[K]) Get(ctx context.Context) (K, error) {
	var none K
	if q.fault != nil {
		return none, q.fault
	}
	q.mu.Lock()
	for {
		if err := q.over(ctx); err != nil {
			q.passOn()
			q.mu.Unlock()
			return none, err
		}
		if q.due.n > q.claims {
			if q.opts.Budget != nil && !q.turn(ctx) {
				continue
			}
			key := q.take().key // the entry is anybody's once the lock is gone
			q.mu.Unlock()
			return key, nil
		}
		q.wait(ctx)
	}
}

// over says why nothing is handed out to this caller any more.
func (q *Queue[K]) over(ctx context.Context) error {
	if q.phase >= closed {
		return ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// turn waits for the budget. No more callers than there are due keys do, so that
// no turn is spent for nothing; the key is picked afterwards, for it may be
// cancelled meanwhile. It gives up the lock and takes it again.
func (q *Queue[K]) turn(ctx context.Context) bool {
	q.claims++
	q.mu.Unlock()
	bounded, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(q.life, cancel)
	err := q.opts.Budget.Wait(bounded)
	stop()
	cancel()
	q.mu.Lock()
	q.claims--
	return err == nil && q.over(ctx) == nil && q.due.n > 0
}

// take puts the first due key into work.
func (q *Queue[K]) take() *entry[K] {
	e := q.due.head
	q.due.remove(e)
	e.is = e.is&^queued | working
	e.since = ticks(q.about())
	if m := e.more; m != nil {
		m.asked, m.served = clearReasons(m.served), m.asked
	}
	q.inWork++
	return e
}

// order wants a run of e as soon as possible.
func (q *Queue[K]) order(e *entry[K], now int64) {
	if e.is&(queued|dirty) != 0 {
		return // a run that covers it is coming
	}
	if e.due != 0 { // absorbed
		q.setDue(e, 0)
	}
	if e.is&working != 0 {
		e.is |= dirty
		return
	}
	q.revive(e)
	e.is |= queued
	e.since = ticks(now)
	q.due.push(e)
	q.signal()
}

// revive takes e back from the dead letters, its failures forgotten.
func (q *Queue[K]) revive(e *entry[K]) {
	if e.is&parked == 0 {
		return
	}
	e.is &^= parked
	e.more.attempts, e.more.failing = 0, 0
	q.parked--
}

// entry finds the entry of key, or makes one that has no state yet.
func (q *Queue[K]) entry(key K) *entry[K] {
	if e := q.entries[key]; e != nil {
		return e
	}
	e := q.free
	if e == nil {
		e = new(entry[K])
	} else {
		q.free, e.next = e.next, nil
		q.freeSize--
	}
	e.key = key
	q.entries[key] = e
	q.peak = max(q.peak, len(q.entries))
	return e
}

// drop forgets e, which is in neither fifo nor heap.
func (q *Queue[K]) drop(e *entry[K]) {
	delete(q.entries, e.key)
	if q.freeSize < keep {
		m := e.more
		if q.freeSize >= keepMore {
			m = nil
		}
		if m != nil {
			m.clear()
		}
		*e = entry[K]{next: q.free, more: m}
		q.free = e
		q.freeSize++
	}
	// A map never shrinks. Few enough are left to copy them under the lock.
	if q.peak > keep && len(q.entries) <= q.peak/64 {
		small := make(map[K]*entry[K], len(q.entries))
		for k, e := range q.entries {
			small[k] = e
		}
		q.entries, q.peak = small, len(small)
	}
}
