package reflector

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

const (
	// progressEvery is what a source with Powers.Progress is asked for; silence
	// of silences times that is the death of its watch (rule 7).
	progressEvery = 10 * time.Second
	silences      = 3
	// stuckAfter is how long a source may take to return once it was told to.
	stuckAfter = 5 * time.Second
	// maxTick is how often the clock is looked at, whatever the batches do.
	maxTick = time.Second
)

// Why we ended a session.
var (
	errSession = errors.New("reflector: the longest session is over")
	errAudit   = errors.New("reflector: an audit is due")
	errLate    = errors.New("reflector: the watch does not come to where an audit was listed")
	errRelist  = errors.New("reflector: a full state was asked for")
)

// missError: the source missed a deadline.
type missError struct{ what string }

func (e *missError) Error() string { return e.what }

// phase is what a session is in.
type phase int32

const (
	opening phase = iota
	streaming
	live
)

// guard ends a session whose source misses a deadline. It compares counters at a
// coarse tick, so that a batch costs two additions and no look at the clock.
type guard struct {
	track   *tracker
	open    time.Duration
	session time.Duration // 0: no limit
	longest time.Duration // session, jittered
	silence time.Duration // 0: no progress is promised
	audits  time.Duration // how often; 0: never

	turns    atomic.Int64 // odd while a batch is in our hands, where silence is ours
	advances atomic.Int64 // steps of the full state that is on its way
	phase    atomic.Int32
	turned   atomic.Int64 // how often a phase began
	audit    atomic.Int64 // when one is due, in Unix nanoseconds; 0: never
	awaits   atomic.Bool  // an audit waits for the watch
}

func newGuard(track *tracker, opts Options, progress bool, audits time.Duration) *guard {
	g := &guard{track: track, open: opts.Open, session: max(opts.Session, 0), audits: audits}
	if progress {
		g.silence = silences * progressEvery
	}
	// Down only: it is the longest. Jittered, so that what began together does
	// not come back together.
	g.longest = g.session - time.Duration(rand.Int64N(int64(g.session)/4+1))
	return g
}

// due says when the next audit is; zero for never.
func (g *guard) due(at time.Time) {
	if at.IsZero() {
		g.audit.Store(0)
		return
	}
	g.audit.Store(at.UnixNano())
}

func (g *guard) enter()   { g.turns.Add(1) }
func (g *guard) leave()   { g.turns.Add(1) }
func (g *guard) advance() { g.advances.Add(1) }

func (g *guard) turn(p phase) {
	g.phase.Store(int32(p))
	g.turned.Add(1)
}

// start begins to watch over a session and gives the function that ends it and
// waits for it.
func (g *guard) start(ctx context.Context, end context.CancelCauseFunc) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		g.watch(ctx, quit, end)
	}()
	return func() {
		close(quit)
		<-done
	}
}

func (g *guard) watch(ctx context.Context, quit <-chan struct{}, end context.CancelCauseFunc) {
	tick := min(maxTick, g.open/4)
	if g.session > 0 {
		tick = min(tick, g.session/4)
	}
	if g.audits > 0 {
		tick = min(tick, g.audits/4)
	}
	ticker := time.NewTicker(max(tick, time.Millisecond))
	defer ticker.Stop()
	var (
		began    = time.Now() // of the phase
		quiet    = began      // since when nothing that counts in it
		opened   time.Time
		stirred  time.Time // when a live watch last moved
		turns    int64
		advances int64
		turned   int64
	)
	for {
		var now time.Time
		select {
		case <-quit:
			return
		case <-ctx.Done():
			return
		case now = <-ticker.C:
		}
		g.track.tick()
		p := phase(g.phase.Load())
		if n := g.turned.Load(); n != turned {
			turned, began, quiet = n, now, now
		}
		if p != opening && opened.IsZero() {
			opened = now
		}
		if p != opening && now.Sub(opened) >= minLife {
			g.track.settled()
		}
		n, busy := g.turns.Load(), g.busy()
		if p == streaming {
			if a := g.advances.Load(); a != advances {
				advances, quiet = a, now
			}
		} else if n != turns {
			quiet = now
		}
		turns = n
		if busy {
			continue // what takes its time is ours
		}
		err := g.judge(p, now.Sub(began), now.Sub(quiet))
		if a := g.advances.Load(); p == live && (a != advances || began.After(stirred)) {
			advances, stirred = a, now
		}
		if err == nil && p == live {
			err = g.examine(now, now.Sub(stirred))
		}
		if err != nil {
			end(err)
			return
		}
	}
}

// judge says whether a deadline was missed, so long after the phase began and
// after the last that counted.
func (g *guard) judge(p phase, age, quiet time.Duration) error {
	switch {
	case p == opening && age >= g.open:
		return &missError{"the watch was not open within " + g.open.String()}
	case p == streaming && quiet >= g.open:
		return &missError{"the full state that the watch streams has not moved for " + g.open.String()}
	case p == streaming && g.session > 0 && age >= g.session:
		return &missError{"the full state that the watch streams was not complete within " + g.session.String()}
	case p == live && g.silence > 0 && quiet >= g.silence:
		return &missError{"the source was silent for " + g.silence.String()}
	case p == live && g.silence == 0 && g.session > 0 && age >= g.longest && !g.awaits.Load():
		return errSession
	}
	return nil
}

// examine says whether an audit is due, or has waited for too long.
func (g *guard) examine(now time.Time, still time.Duration) error {
	switch at := g.audit.Load(); {
	case g.awaits.Load():
		if still >= g.open {
			return errLate
		}
	case at != 0 && now.UnixNano() >= at:
		return errAudit
	}
	return nil
}

// busy: a batch is in our hands.
func (g *guard) busy() bool { return g.turns.Load()%2 == 1 }

// await shows a call into the source as stuck when it does not return within
// stuckAfter of the end of ctx. g, if any, tells when the source is waiting for
// us and cannot return. The function that await gives is called when the call
// has returned.
func (c *cycle[T]) await(ctx context.Context, call string, g *guard) (returned func()) {
	back, done := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		told := time.Now()
		t := time.NewTimer(stuckAfter)
		defer t.Stop()
		for {
			select {
			case <-back:
				return
			case <-t.C:
			}
			if g == nil || !g.busy() {
				c.track.stuck(told, call)
				return
			}
			told = time.Now()
			t.Reset(stuckAfter)
		}
	})
	return func() {
		close(back)
		if !stop() {
			<-done
		}
	}
}
