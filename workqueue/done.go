package workqueue

import (
	"fmt"
	"math"
	"time"

	"github.com/homeostat/homeostat/retry"
)

// verdict is what an outcome asks for. It is read outside the lock: the errors
// are the user's code.
type verdict struct {
	err              error
	later, permanent bool
	delay            time.Duration
	named            bool // the error names the delay itself
}

func judge(outcome error) verdict {
	if outcome == nil {
		return verdict{}
	}
	v := verdict{err: outcome, later: retry.IsLater(outcome), permanent: retry.IsPermanent(outcome)}
	v.delay, v.named = retry.Delay(outcome)
	return v
}

// Done ends the work on a key that Get gave. The outcome decides what comes next:
//
//	nil              done, failures forgotten
//	retry.Later      again after its delay, failures forgotten
//	retry.After      failed, again after its delay
//	retry.Permanent  failed and parked
//	any other error  failed, again after the backoff (also an After of 0)
//
// A key that was added during the run runs again at once. Two things are
// exceptions: a run that ended in After is newer than what was added before, so
// the delay holds; and a key that fails, runs again because it was added, and
// fails and was added again, takes the backoff, so that one that triggers itself
// can't spin. In both the add is not lost but met by that later run. A key that
// failed is never parked while it is wanted.
//
// Done of a key that is not in work is an error that matches [ErrUnknownKey] and
// changes nothing.
func (q *Queue[K]) Done(key K, outcome error) error {
	return q.done(key, judge(outcome))
}

func (q *Queue[K]) done(key K, v verdict) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var e *entry[K]
	if q.fault == nil {
		e = q.entries[key]
	}
	if e == nil || e.is&working == 0 {
		return fmt.Errorf("%w: %s", ErrUnknownKey, show(key))
	}
	q.inWork--
	wanted := e.is&dirty != 0
	e.is &^= working | dirty
	switch {
	case v.err == nil:
		q.succeeded(e, wanted)
	case v.later:
		q.comesBack(e, wanted, v)
	default:
		q.failed(e, wanted, v)
	}
	q.finish()
	return nil
}

func (q *Queue[K]) succeeded(e *entry[K], wanted bool) {
	e.is &^= again
	if m := e.more; m != nil {
		m.attempts, m.failing, m.err = 0, 0, nil
		m.served = clearReasons(m.served)
	}
	switch {
	case wanted:
		q.order(e, q.about())
	case e.at() != 0: // planned during the run
		e.since = ticks(q.about())
	default:
		q.drop(e)
	}
}

func (q *Queue[K]) comesBack(e *entry[K], wanted bool, v verdict) {
	e.is &^= again
	m := e.extra()
	m.attempts, m.failing, m.err = 0, 0, v.err
	m.keepReasons()
	if wanted {
		q.order(e, q.about())
		return
	}
	q.waitFor(e, q.now(), v.delay)
}

func (q *Queue[K]) failed(e *entry[K], wanted bool, v verdict) {
	now := q.now()
	m := e.extra()
	m.err = v.err
	m.keepReasons()
	if m.attempts < math.MaxInt {
		m.attempts++
	}
	if m.failing == 0 {
		m.failing = now
	}
	after := v.named && v.delay > 0 && !v.permanent
	spun := e.is&again != 0
	e.is &^= again
	switch {
	case wanted && !spun && !after:
		e.is |= again
		q.order(e, now)
	case !wanted && (v.permanent || q.givesUp(m, now)):
		// What was planned during the run stays planned and will revive it.
		e.is |= parked
		e.since = ticks(now)
		q.parked++
	case after:
		// It replaces what was planned during the run: that must not come before
		// what the outcome demands, and need not come after it.
		e.since = ticks(now)
		at := later(now, v.delay)
		q.setDue(e, at)
		q.arm(now, at)
	default:
		q.waitFor(e, now, q.opts.Backoff.Delay(m.attempts))
	}
}

func (q *Queue[K]) givesUp(m *more, now int64) bool {
	p := q.opts.Park
	return p.Attempts > 0 && m.attempts >= p.Attempts || p.Age > 0 && now-m.failing >= int64(p.Age)
}

// waitFor delays e, which has just come out of work. While the queue drains even
// a delay of nothing is one, else work that always wants to go on would never let
// it finish.
func (q *Queue[K]) waitFor(e *entry[K], now int64, d time.Duration) {
	e.since = ticks(now)
	if d <= 0 && q.phase == open {
		q.order(e, now)
		return
	}
	q.plan(e, now, later(now, d))
}
