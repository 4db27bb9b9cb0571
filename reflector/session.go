package reflector

import (
	"context"
	"errors"
	"time"
)

// session is one watch, from the call to its end.
type session[T any] struct {
	cycle *cycle[T]
	guard *guard
	stop  context.CancelCauseFunc

	// into is begun from before the watch to its end, but for the moment of a
	// commit: the source may start a full state in any batch.
	into *staged[T]
	// owed: nothing is live before a full state came in this session.
	owed    bool
	staging bool     // between Reset and Synced
	held    *held[T] // a list that waits for this watch (rule 5)
	audit   *audit[T]
	fulls   int    // full states that were committed or confirmed
	at      Cursor // where the watch stands; ahead of the sink while held
	opened  time.Time
	barren  bool // nothing moved yet

	verdict error // ours on what the source or the sink did
	last    error // the source's own
}

// session follows one watch to its end, showing h, or looking at a, on the way.
func (c *cycle[T]) session(ctx context.Context, opts WatchOptions, h *held[T], a *audit[T]) end {
	s := &session[T]{cycle: c, held: h, audit: a, at: opts.After, barren: true}
	if h != nil {
		s.into = h.into
	}
	defer s.abort()
	if err := c.opts.Budget.Wait(ctx); err != nil {
		return end{err: err}
	}
	s.owed = opts.Initial || opts.After == ""
	opts.IfModified = c.whole
	if c.powers.Progress {
		opts.ProgressEvery = progressEvery
	}
	ctx, s.stop = context.WithCancelCause(ctx)
	defer s.stop(nil)
	// While a full state is on its way Relist does not end it: calls that come
	// faster than full states would starve the sink.
	if !s.pending() && !s.arm() {
		return end{ours: true}
	}
	if s.into == nil {
		if opts.Initial {
			c.answer()
		}
		s.into = c.begin()
	}
	s.follow(ctx, opts)
	return s.ended(ctx, opts)
}

// abort ends what the session still has begun.
func (s *session[T]) abort() {
	if s.into != nil {
		s.into.abort()
	}
	if s.audit != nil {
		s.audit.into.abort()
	}
}

// pending: there is a full state to come before this session is of use.
func (s *session[T]) pending() bool { return s.owed || s.held != nil }

func (s *session[T]) arm() bool {
	return s.cycle.bell.arm(func() { s.stop(errRelist) })
}

// follow calls Watch and takes what it yields, on this goroutine.
func (s *session[T]) follow(ctx context.Context, opts WatchOptions) {
	c := s.cycle
	c.track.update(func(st *Status) { st.Watches++ })
	c.track.enter(Opening)
	c.track.tick() // the last session's sign of life is not this one's
	s.guard = newGuard(c.track, c.opts, c.powers.Progress, c.audits())
	s.due()
	s.guard.awaits.Store(s.audit != nil)
	defer s.guard.start(ctx, s.stop)()
	defer c.await(ctx, "Watch", s.guard)()
	c.inside = "source Watch"
	for b, err := range c.src.Watch(ctx, opts) {
		if err != nil {
			s.last = err
			break
		}
		s.guard.enter()
		c.track.alive(len(b.Events) > 0)
		s.verdict = s.take(b)
		s.guard.leave()
		// What was yielded is taken, also after the end of ctx: for a source
		// with a memory of what it gave (ErrNotModified) it would be lost.
		if s.verdict != nil || ctx.Err() != nil {
			break
		}
	}
	ask(s.last)
}

// ended says how the session ended and what the next attempt has to do.
func (s *session[T]) ended(ctx context.Context, opts WatchOptions) (e end) {
	c := s.cycle
	if !s.opened.IsZero() {
		e.life = time.Since(s.opened)
	}
	cause := error(nil)
	if ctx.Err() != nil {
		cause = context.Cause(ctx)
	}
	if s.verdict == nil {
		s.verdict = s.leave(cause)
	}
	moot := errors.Is(s.last, ErrExpired) || errors.Is(s.last, ErrFutureCursor)
	miss, missed := errors.AsType[*missError](cause)
	switch {
	case errors.Is(s.verdict, errAgain):
		e.ours, c.full = true, true
	case s.verdict != nil:
		e.err, c.full = s.verdict, true
	case cause != nil:
		e.err = cause
		e.ours = errors.Is(cause, errSession) || errors.Is(cause, errRelist) || errors.Is(cause, errAudit) || errors.Is(cause, errLate)
		if missed {
			c.track.update(func(st *Status) { st.Missed++ })
		}
	default:
		e.err = s.last
	}
	if opts.Initial && s.owed && (missed || errors.Is(s.last, errors.ErrUnsupported)) {
		why := s.last
		if missed {
			why = miss
		}
		c.fallBack(why)
	}
	// Without an order this is the only word of a source that was set back.
	c.ahead = c.ahead || c.powers.Compare == nil && errors.Is(s.last, ErrFutureCursor)
	// After a history that is gone "not modified" would lead to the same place again.
	if spoilt(s.last) || moot {
		c.whole = false
	}
	// A source that breaks each time before anything moved is not helped by the
	// same question again.
	if s.last != nil && cause == nil && s.barren && !s.opened.IsZero() {
		c.barren++
	} else if !s.barren {
		c.barren = 0
	}
	if moot || c.barren >= maxBarren || !c.powers.ResumeProven || c.cursor == "" || c.behind {
		c.full, c.barren = true, 0
	}
	// A full state that follows a session which was well is an audit, unless the
	// source has told full states all along.
	well := s.verdict == nil && e.ours && !errors.Is(cause, errRelist)
	c.audit = well && (errors.Is(cause, errAudit) || c.objects)
	if c.audit && c.powers.Compare == nil { // there is no telling when a watch has come to a list
		c.audit, c.full = false, true
	}
	c.auditing = well && c.full && s.fulls <= 1
	return e
}

const maxBarren = 3

// spoilt: a list that an adapter got did not come through it.
func spoilt(err error) bool {
	_, panicked := errors.AsType[*PanicError](err)
	return panicked || errors.Is(err, ErrDuplicateKey) || errors.Is(err, ErrEmptyKey)
}
