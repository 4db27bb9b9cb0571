package workqueue

import "time"

// Add wants a run of each key as soon as possible. A key that is queued stays
// where it is; one that is in work runs exactly once more after its Done, however
// often it is added meanwhile; one that is delayed or parked is due now. After
// Drain or Abort, and when the options are faulty, it does nothing but count the
// keys in Stats.Refused.
func (q *Queue[K]) Add(keys ...K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refuse(len(keys)) {
		return
	}
	for _, key := range keys {
		if e := q.entry(key); e.is&(queued|dirty) == 0 {
			q.order(e, q.about())
		}
	}
}

// AddWith is Add or AddAfter with a reason.
func (q *Queue[K]) AddWith(key K, o AddOptions) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refuse(1) {
		return
	}
	e := q.entry(key)
	if o.Reason != "" {
		m := e.extra()
		m.asked = because(m.asked, o.Reason, 1)
	}
	switch {
	case e.is&(queued|dirty) != 0:
	case o.After <= 0:
		q.order(e, q.about())
	default:
		now := q.now()
		q.plan(e, now, later(now, o.After))
	}
}

// AddAfter wants a run after d. It merges with all other adds: of several the
// earliest wins, and one that is due now absorbs it. For a run that must not be
// absorbed there is [Queue.Remind]. A d of 0 or less is Add.
func (q *Queue[K]) AddAfter(key K, d time.Duration) {
	q.AddWith(key, AddOptions{After: d})
}

// Remind promises that a run starts d from now or later, and soon then. Nothing
// absorbs it but such a run: a run that starts earlier leaves it standing. One
// run meets all reminders of its key that were due when it started. A key has up
// to 16 of them; beyond that the two nearest become one, at the later time. A d
// of 0 or less is Add.
func (q *Queue[K]) Remind(key K, d time.Duration) {
	if d <= 0 {
		q.Add(key)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refuse(1) {
		return
	}
	e := q.entry(key)
	now := q.now()
	q.startsWaiting(e, now)
	before := e.at()
	e.extra().remind(later(now, d))
	if at := e.at(); at != before {
		q.planned.fix(e)
		q.arm(now, at)
	}
}

// plan wants a run at the given time, or earlier if that is planned.
func (q *Queue[K]) plan(e *entry[K], now, at int64) {
	q.startsWaiting(e, now)
	if e.due != 0 && e.due <= at {
		return
	}
	q.setDue(e, at)
	q.arm(now, at)
}

// setDue changes the planned run; 0 is none. An entry whose earliest time stays,
// because a reminder comes first, keeps its place among equal times.
func (q *Queue[K]) setDue(e *entry[K], due int64) {
	before := e.at()
	e.due = due
	if e.at() != before {
		q.planned.fix(e)
	}
}

// startsWaiting notes since when a key waits that was not there, or parked.
func (q *Queue[K]) startsWaiting(e *entry[K], now int64) {
	if e.is&parked != 0 || e.is&(queued|working) == 0 && e.at() == 0 {
		q.revive(e)
		e.since = ticks(now)
	}
}

// Cancel drops what is planned for key: its place in the queue, its delay, its
// retry, its reminders, its place among the parked. Its failures are forgotten. A
// key in work goes on; only the runs planned after this one are dropped, and what
// its Done will ask for is not. It tells whether there was anything to drop.
func (q *Queue[K]) Cancel(key K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fault != nil {
		return false
	}
	e := q.entries[key]
	if e == nil {
		return false
	}
	had := e.is&(queued|dirty|parked) != 0 || e.at() != 0
	if e.is&queued != 0 {
		q.due.remove(e)
	}
	if e.is&parked != 0 {
		q.parked--
	}
	e.is &^= queued | dirty | parked
	e.due = 0
	if m := e.more; m != nil {
		m.reminders = m.reminders[:0]
		m.asked = clearReasons(m.asked)
	}
	q.planned.remove(e)
	if e.is&working == 0 {
		q.drop(e)
		q.finish()
	}
	return had
}

// Forget forgets the failures of key, so that its next one is again the first. It
// cancels nothing: a retry that is planned stays planned. A parked key is
// released: it is due now (after Drain or Abort it stays as it is).
func (q *Queue[K]) Forget(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fault != nil {
		return
	}
	e := q.entries[key]
	if e == nil || e.more == nil || e.is&parked != 0 && q.phase != open {
		return
	}
	m := e.more
	m.attempts, m.failing, m.err = 0, 0, nil
	e.is &^= again
	if e.is&parked != 0 {
		q.order(e, q.about())
	}
}

// refuse counts what comes when nothing is taken in.
func (q *Queue[K]) refuse(n int) bool {
	if q.phase == open && q.fault == nil {
		return false
	}
	q.refused += int64(n)
	return true
}
