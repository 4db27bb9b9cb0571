package workqueue

import (
	"math"
	"time"
)

// Times inside are nanoseconds since the queue's first use, from 1: 0 is "none".
//
// What only people look at (since when a key is in its state) is coarse: reading
// the clock costs twice as much as adding a queued key. The clock is read when
// somebody needs it exactly, and else by the first operation in a second; the
// queue's timer says when the second is over, so an idle queue is not woken.

const (
	coarse = int64(time.Second)
	never  = math.MaxInt64
	tick   = int64(100 * time.Millisecond) // the unit of entry.since: 13 years fit
	batch  = 1024                          // keys that fall due under one lock
)

// now reads the clock.
func (q *Queue[K]) now() int64 {
	if q.start.IsZero() {
		q.start = time.Now()
		q.last = 1
		return 1
	}
	q.last = int64(time.Since(q.start)) + 1
	return q.last
}

// about is now, at most a second ago.
func (q *Queue[K]) about() int64 {
	if !q.fresh {
		now := q.now()
		q.fresh = q.phase == open
		q.arm(now, now+coarse)
	}
	return q.last
}

func ticks(at int64) uint32 { return uint32(min(at/tick, math.MaxUint32)) }

// time is a moment of the inner clock as one of the world.
func (q *Queue[K]) time(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return q.start.Add(time.Duration(at - 1))
}

func (q *Queue[K]) sinceTime(e *entry[K]) time.Time {
	return q.start.Add(time.Duration(int64(e.since) * tick))
}

// later is now+d without overflow; less than nothing is nothing.
func later(now int64, d time.Duration) int64 {
	if d := int64(max(d, 0)); d < never-now {
		return now + d
	}
	return never - 1
}

// arm makes the one timer fire at the given time at the latest.
func (q *Queue[K]) arm(now, at int64) {
	if q.phase != open || at >= q.wake {
		return
	}
	q.wake = at
	d := time.Duration(at - now)
	if q.timer == nil {
		q.timer = time.AfterFunc(d, q.ring)
	} else {
		q.timer.Reset(d)
	}
}

// ring is the timer's call. It lets go of the lock now and then: a hundred
// thousand keys may fall due at once.
func (q *Queue[K]) ring() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wake, q.fresh = never, false
	for q.phase == open {
		now := q.now()
		if !q.fireDue(now) {
			if e := q.planned.first(); e != nil {
				q.arm(now, e.at())
			}
			return
		}
		q.mu.Unlock()
		q.mu.Lock()
	}
}

// fireDue makes up to a batch of keys due whose time has come; true when there
// may be more.
func (q *Queue[K]) fireDue(now int64) bool {
	for range batch {
		e := q.planned.first()
		if e == nil || e.at() > now {
			return false
		}
		if e.due != 0 && e.due <= now {
			e.due = 0
		}
		if m := e.more; m != nil {
			met := 0
			for met < len(m.reminders) && m.reminders[met] <= now {
				met++
			}
			m.reminders = append(m.reminders[:0], m.reminders[met:]...)
		}
		q.planned.fix(e)
		q.order(e, now)
	}
	return true
}
