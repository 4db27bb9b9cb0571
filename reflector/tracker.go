package reflector

import (
	"errors"
	"log/slog"
	"maps"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// tracker is what others may know of a reflector: Status and the log. Run's
// goroutine and the guards write it, anybody reads it. Nobody is called and
// nothing is waited for under mu; the logger, which is somebody's code, is not
// either.
type tracker struct {
	log   *slog.Logger
	trace *Trace

	// A batch looks at the clock only when these are set, which the guard does
	// once a second.
	wantAlive, wantEvent atomic.Bool

	mu     sync.Mutex
	status Status
	text   string // of the last failure
	same   uint   // how often it came in a row
	told   bool   // the log says that all is not well
	wanted int    // deletes that were confirmed
}

func newTracker(name string, log *slog.Logger, trace *Trace) *tracker {
	t := &tracker{log: log.With("reflector", name), trace: trace}
	t.status = Status{Name: name, Since: time.Now()}
	t.wantAlive.Store(true)
	t.wantEvent.Store(true)
	return t
}

func (t *tracker) get() Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	st := t.status
	st.Unreadable = maps.Clone(st.Unreadable)
	return st
}

func (t *tracker) update(f func(*Status)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.status)
}

func (t *tracker) enter(s State) {
	t.mu.Lock()
	from := t.enterLocked(s, time.Now())
	t.mu.Unlock()
	t.changed(from, s)
}

// enterLocked gives the state before; changed is to be called with it, unlocked.
func (t *tracker) enterLocked(s State, since time.Time) (from State) {
	from = t.status.State
	t.status.Next = time.Time{}
	if from != s {
		t.status.State, t.status.Since = s, since
	}
	return from
}

func (t *tracker) changed(from, to State) {
	if from == to {
		return
	}
	t.log.Debug("state", "from", from, "to", to)
	t.to(func(tr *Trace) {
		if tr.State != nil {
			tr.State(from, to)
		}
	})
}

// alive is called for every batch, before anything is done with it.
func (t *tracker) alive(event bool) {
	if !t.wantAlive.Load() && !(event && t.wantEvent.Load()) {
		return
	}
	t.wantAlive.Store(false)
	if event {
		t.wantEvent.Store(false)
	}
	t.seen(event)
}

// seen notes a sign of life, and an event, as of now.
func (t *tracker) seen(event bool) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status.Alive = now
	if event {
		t.status.LastEvent = now
	}
}

// tick has the next batch look at the clock.
func (t *tracker) tick() {
	t.wantAlive.Store(true)
	t.wantEvent.Store(true)
}

func (t *tracker) moved(c Cursor) {
	t.mu.Lock()
	t.status.Cursor = c
	t.mu.Unlock()
}

func (t *tracker) committed(c Cursor, reset bool) {
	t.mu.Lock()
	first := !t.status.Synced
	t.status.Synced = true
	t.status.Cursor = c
	t.status.WouldDelete, t.wanted = 0, 0
	if reset {
		t.status.Resets++
	}
	t.mu.Unlock()
	if first {
		t.log.Info("synced", "cursor", c)
	}
	if reset {
		t.log.Warn("the source was set back, or is another one; its state was taken whole", "cursor", c)
	}
}

func (t *tracker) torn(torn bool) {
	t.mu.Lock()
	was := t.status.Torn
	t.status.Torn = torn
	t.mu.Unlock()
	if torn && !was {
		t.log.Warn("the pages of a list may show different states, and the source has no order to wait by")
	}
}

func (t *tracker) fallback(why error) {
	t.mu.Lock()
	was := t.status.Fallback
	t.status.Fallback = why
	t.mu.Unlock()
	if was == nil && why != nil {
		t.log.Warn("full states are listed now, not streamed", "err", why)
	}
}

// well: a session is open and nothing is owed to it.
func (t *tracker) well() {
	t.mu.Lock()
	from := t.enterLocked(Watching, time.Now())
	t.status.Err = nil
	told := t.told
	t.told = false
	t.mu.Unlock()
	t.changed(from, Watching)
	if told {
		t.log.Info("recovered")
	}
}

// settled: a session has lived long enough for earlier failures to be history.
func (t *tracker) settled() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status.Failures, t.text, t.same = 0, "", 0
}

// failed counts one more failure in a row and tells how many there are.
func (t *tracker) failed() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status.Failures++
	return t.status.Failures
}

// backOff shows and logs a failure (err) and until when it is waited for. Equal
// errors are logged the first, second, fourth, eighth … time in a row.
func (t *tracker) backOff(err error, delay time.Duration) {
	now := time.Now()
	said := text(err) // the error's code: under no lock
	state := BackingOff
	if _, suspect := errors.AsType[*implausibleError](err); suspect {
		state = Held
	}
	t.mu.Lock()
	from := t.enterLocked(state, now)
	t.status.Next = now.Add(delay)
	log := false
	if err != nil {
		t.status.Err = err
		if said != t.text {
			t.text, t.same = said, 0
		}
		t.same++
		log = bits.OnesCount(t.same) == 1
		t.told = t.told || log
	}
	failures := t.status.Failures
	t.mu.Unlock()
	t.changed(from, state)
	t.to(func(tr *Trace) {
		if tr.Failed != nil && err != nil {
			tr.Failed(err, failures)
		}
	})
	if !log {
		return
	}
	args := []any{"err", err, "failures", failures, "retry_in", delay}
	if p, ok := errors.AsType[*PanicError](err); ok {
		args = append(args, "stack", string(p.Stack))
	}
	t.log.Warn("failing", args...)
}

func (t *tracker) stuck(since time.Time, call string) {
	t.mu.Lock()
	from := t.enterLocked(Stuck, since)
	t.mu.Unlock()
	t.changed(from, Stuck)
	t.log.Warn("the source does not return", "call", call, "since", since)
}

func (t *tracker) stopped(err error) {
	t.mu.Lock()
	from := t.enterLocked(Stopped, time.Now())
	if err != nil {
		t.status.Err = err
	}
	t.mu.Unlock()
	t.changed(from, Stopped)
	t.log.Info("stopped")
}
