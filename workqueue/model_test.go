package workqueue_test

import (
	"slices"
	"time"

	"github.com/homeostat/homeostat/retry"
	"github.com/homeostat/homeostat/workqueue"
)

// model is the queue without any cleverness: one record per key, everything found
// by looking at all of them.
type model struct {
	backoff  retry.Backoff
	park     workqueue.Park
	now      time.Time
	last     time.Time // nothing is planned later: there the clock ends
	draining bool
	closed   bool
	refused  int64
	fifo     []uint8
	keys     map[uint8]*wish
	planned  int // counts plans, to tell the first of equal times
}

type wish struct {
	queued, working, dirty, parked, again bool

	due       time.Time
	reminders []time.Time
	order     int // of its earliest time among equal ones
	attempts  int
	failing   time.Time
	err       error
	asked     map[string]int
	served    map[string]int
}

func newModel(opts workqueue.Options[uint8], now time.Time) *model {
	return &model{backoff: opts.Backoff, park: opts.Park, now: now, last: now.Add(1<<63 - 3), keys: map[uint8]*wish{}}
}

// at is the earliest time that is planned for the key, zero for none.
func (w *wish) at() time.Time {
	at := w.due
	for _, r := range w.reminders {
		if at.IsZero() || r.Before(at) {
			at = r
		}
	}
	return at
}

func (w *wish) state() workqueue.State {
	switch {
	case w.working:
		return workqueue.Working
	case w.queued:
		return workqueue.Due
	case w.parked:
		return workqueue.Parked
	}
	return workqueue.Delayed
}

// touch runs f on the key's record and keeps the bookkeeping true: a record that
// says nothing goes, a changed time is a new plan.
func (m *model) touch(key uint8, f func(*wish)) {
	w := m.keys[key]
	if w == nil {
		w = &wish{asked: map[string]int{}, served: map[string]int{}}
		m.keys[key] = w
	}
	before := w.at()
	f(w)
	if at := w.at(); !at.Equal(before) {
		m.planned++
		w.order = m.planned
	}
	if !w.queued && !w.working && !w.parked && w.at().IsZero() {
		delete(m.keys, key)
	}
}

func (m *model) in(d time.Duration) time.Time {
	if at := m.now.Add(d); at.Before(m.last) {
		return at
	}
	return m.last
}

func (m *model) refuse() bool {
	if m.draining || m.closed {
		m.refused++
		return true
	}
	return false
}

func (m *model) add(key uint8, after time.Duration, reason string) {
	if m.refuse() {
		return
	}
	m.touch(key, func(w *wish) {
		if reason != "" {
			w.asked[reason]++
		}
		if after <= 0 {
			m.dueNow(key, w)
		} else {
			m.dueAt(w, m.in(after))
		}
	})
}

func (m *model) dueNow(key uint8, w *wish) {
	w.due = time.Time{}
	switch {
	case w.working:
		w.dirty = true
	case !w.queued:
		m.revive(w)
		w.queued = true
		m.fifo = append(m.fifo, key)
	}
}

func (m *model) dueAt(w *wish, at time.Time) {
	if w.queued || w.dirty {
		return
	}
	m.revive(w)
	if w.due.IsZero() || at.Before(w.due) {
		w.due = at
	}
}

func (m *model) revive(w *wish) {
	if w.parked {
		w.parked, w.attempts, w.failing = false, 0, time.Time{}
	}
}

func (m *model) remind(key uint8, d time.Duration) {
	if d <= 0 {
		m.add(key, 0, "")
		return
	}
	if m.refuse() {
		return
	}
	m.touch(key, func(w *wish) {
		m.revive(w)
		at := m.in(d)
		if slices.ContainsFunc(w.reminders, at.Equal) {
			return
		}
		w.reminders = append(w.reminders, at)
		slices.SortFunc(w.reminders, time.Time.Compare)
		if len(w.reminders) > 16 {
			nearest, gap := 0, time.Duration(1<<62)
			for i := range 16 {
				if g := w.reminders[i+1].Sub(w.reminders[i]); g < gap {
					nearest, gap = i, g
				}
			}
			w.reminders = slices.Delete(w.reminders, nearest, nearest+1)
		}
	})
}

func (m *model) cancel(key uint8) (had bool) {
	w := m.keys[key]
	if w == nil {
		return false
	}
	m.touch(key, func(w *wish) {
		had = w.queued || w.dirty || w.parked || !w.at().IsZero()
		w.queued, w.dirty, w.parked = false, false, false
		w.due, w.reminders = time.Time{}, nil
		clear(w.asked)
	})
	m.fifo = slices.DeleteFunc(m.fifo, func(k uint8) bool { return k == key })
	return had
}

func (m *model) forget(key uint8) {
	w := m.keys[key]
	if w == nil || w.parked && (m.draining || m.closed) {
		return
	}
	m.touch(key, func(w *wish) {
		w.attempts, w.failing, w.err, w.again = 0, time.Time{}, nil, false
		if w.parked {
			m.dueNow(key, w)
		}
	})
}

func (m *model) get() uint8 {
	key := m.fifo[0]
	m.fifo = m.fifo[1:]
	m.touch(key, func(w *wish) {
		w.queued, w.working = false, true
		w.served, w.asked = w.asked, map[string]int{}
	})
	return key
}

func (m *model) done(key uint8, outcome error) bool {
	if w := m.keys[key]; w == nil || !w.working {
		return false
	}
	m.touch(key, func(w *wish) {
		dirty, again := w.dirty, w.again
		w.working, w.dirty, w.again = false, false, false
		w.err = outcome
		served := w.served
		w.served = map[string]int{}
		if outcome != nil {
			for r, n := range served {
				w.asked[r] += n
			}
		}
		delay, named := retry.Delay(outcome)
		wait := func() {
			if delay <= 0 && !m.draining && !m.closed {
				m.dueNow(key, w)
			} else {
				m.dueAt(w, m.in(max(delay, 0)))
			}
		}
		switch {
		case outcome == nil:
			w.attempts, w.failing = 0, time.Time{}
			if dirty {
				m.dueNow(key, w)
			}
			return
		case retry.IsLater(outcome):
			w.attempts, w.failing = 0, time.Time{}
			if dirty {
				m.dueNow(key, w)
			} else {
				wait()
			}
			return
		}
		w.attempts++
		if w.failing.IsZero() {
			w.failing = m.now
		}
		permanent := retry.IsPermanent(outcome)
		after := named && delay > 0 && !permanent
		gone := permanent || m.park.Attempts > 0 && w.attempts >= m.park.Attempts ||
			m.park.Age > 0 && m.now.Sub(w.failing) >= m.park.Age
		switch {
		case dirty && !again && !after:
			w.again = true
			m.dueNow(key, w)
		case gone && !dirty:
			w.parked = true
		case after:
			w.due = time.Time{}
			wait()
		default:
			delay = m.backoff.Delay(w.attempts)
			wait()
		}
	})
	return true
}

// advance lets time pass, one planned moment after the other.
func (m *model) advance(d time.Duration) {
	m.now = m.now.Add(d)
	if m.draining || m.closed {
		return
	}
	for {
		var key uint8
		var next *wish
		for k, w := range m.keys {
			at := w.at()
			if at.IsZero() || at.After(m.now) {
				continue
			}
			if next == nil || at.Before(next.at()) || at.Equal(next.at()) && w.order < next.order {
				key, next = k, w
			}
		}
		if next == nil {
			return
		}
		moment := next.at()
		m.touch(key, func(w *wish) {
			if w.due.Equal(moment) {
				w.due = time.Time{}
			}
			w.reminders = slices.DeleteFunc(w.reminders, moment.Equal)
			m.dueNow(key, w)
		})
	}
}

func (m *model) count(s workqueue.State) (n int) {
	for _, w := range m.keys {
		if w.state() == s {
			n++
		}
	}
	return n
}

// leftOver is what Drain, or with inWork Abort, returns.
func (m *model) leftOver(inWork bool) []uint8 {
	left := slices.Clone(m.fifo)
	var later []uint8
	for k, w := range m.keys {
		if w.queued || w.working && !inWork {
			continue
		}
		if w.dirty || !w.at().IsZero() {
			later = append(later, k)
		}
	}
	slices.SortFunc(later, m.before)
	return append(left, later...)
}

func (m *model) before(a, b uint8) int {
	x, y := m.keys[a], m.keys[b]
	if c := x.at().Compare(y.at()); c != 0 {
		return c
	}
	return x.order - y.order
}
