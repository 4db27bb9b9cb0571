package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/homeostat/homeostat/retry"
)

// work is one worker: it takes keys until the intake ends.
func (c *Controller[T]) work(l *lifetime) {
	ended := false
	defer func() {
		if !ended { // f called runtime.Goexit: the goroutine is lost, the worker is not
			l.crew.hire(func() { c.work(l) })
		}
	}()
	for {
		key, err := c.queue.Get(l.intake)
		if err != nil {
			ended = true
			return
		}
		c.one(l, key)
	}
}

// one is the whole of one run.
func (c *Controller[T]) one(l *lifetime, key string) {
	r, req, ran := c.begin(l, key)
	ctx, cancel := context.WithCancelCause(context.WithValue(l.hard, runKey{}, r))
	if c.opts.Timeout > 0 {
		var timeout context.CancelFunc
		ctx, timeout = context.WithTimeoutCause(ctx, c.opts.Timeout, c.timedOut)
		defer timeout()
	}
	err, panicked := error(&PanicError{Where: c.where(key), Value: "runtime.Goexit was called"}), true
	defer func() {
		d := c.judge(ctx, err, panicked)
		cancel(nil)
		c.end(l, r, req, ran, d, err)
	}()
	err, panicked = c.call(ctx, req)
}

// call is the one place where a Func is called, and where its panics end.
func (c *Controller[T]) call(ctx context.Context, req Request[T]) (err error, panicked bool) {
	defer func() {
		if v := recover(); v != nil {
			err, panicked = caught(c.where(req.Key), v), true
		}
	}()
	err = c.f(ctx, req)
	readable(err)
	return err, false
}

// readable panics, if anything in err does that is asked of it later: a nil pointer
// in an error, say, that only its methods notice. It is for calling where panics
// are recovered.
func readable(err error) {
	if err == nil {
		return
	}
	_ = Decide(err)
	_ = errors.Is(err, context.Canceled)
	_, _ = errors.AsType[*StillRunning](err)
	_ = err.Error()
}

func (c *Controller[T]) where(key string) string {
	return fmt.Sprintf("controller %q, key %q", c.name, key)
}

// caught makes a *PanicError of what recover gave. (Of a stack of more than a
// hundred frames the runtime leaves out the middle.)
func caught(where string, v any) *PanicError {
	return &PanicError{Where: where, Value: v, Stack: debug.Stack()}
}

// begin takes what is known of the key into its run.
func (c *Controller[T]) begin(l *lifetime, key string) (*run, Request[T], *Ran) {
	req := Request[T]{Key: key, Attempt: 1, run: &request[T]{c: c}}
	if e, ok := c.queue.Explain(key); ok {
		req.Attempt += e.Attempts
	}
	r := newRun(l.intake)
	now := time.Now()
	c.mu.Lock()
	s := c.keyLocked(key)
	s.run = r
	req.run.last = s.last
	if !s.due.IsZero() && !s.due.After(now) {
		s.causes = addCause(s.causes, c.name, key, "every", now)
	}
	s.due = time.Time{} // whatever runs the key takes the place of the look
	if len(s.causes) == 0 {
		// A trigger that came between the queue's Get and here left its cause to
		// the run before.
		s.causes = addCause(nil, c.name, key, "triggered as the run before began", now)
	}
	req.Causes, s.causes = s.causes, nil
	c.mu.Unlock()
	// After the causes: what triggers from here on makes another run.
	req.run.item, req.run.exists = c.item(key)
	return r, req, &Ran{At: now, Attempt: req.Attempt, Causes: slices.Clone(req.Causes)}
}

// judge is Decide with what only the run itself tells.
func (c *Controller[T]) judge(ctx context.Context, err error, panicked bool) Decision {
	if panicked {
		return Decision{Outcome: Panicked, Failure: true}
	}
	d := Decide(err)
	if d.Outcome == Done || d.Outcome == Later {
		return d
	}
	switch cause := context.Cause(ctx); {
	case cause == ErrStopping:
		return Decision{Outcome: Interrupted}
	case cause == c.timedOut && d.Outcome == Failed:
		d.Outcome = TimedOut
	}
	return d
}

// end tells of a run and gives its key back: now or, when it wrote, once the
// caches have what it wrote. The worker is free in either case.
func (c *Controller[T]) end(l *lifetime, r *run, req Request[T], ran *Ran, d Decision, err error) {
	open, hints := r.end()
	ran.Took, ran.Err = time.Since(ran.At), err
	c.mu.Lock()
	if c.state == Stopped { // Run has given up on this one
		c.mu.Unlock()
		r.release()
		return
	}
	s := c.keyLocked(req.Key)
	switch d.Outcome {
	case Conflict:
		// The first of a row is nobody's fault. A row of them is a store that says
		// so whatever one reads, or a fight: both need a pause.
		s.conflicts++
		d.Failure = s.conflicts > 1
	case Done, Later:
		s.conflicts = 0
	}
	ran.Outcome = d.Outcome
	c.counts.add(d)
	if len(open) > 0 {
		c.barred++
	}
	c.mu.Unlock()
	c.history.add(req.Key, ran)
	c.tell(req, ran)

	if len(open) == 0 && (d.Outcome != Conflict || len(hints) == 0) {
		c.settle(req, d, err, false)
		return
	}
	l.crew.hire(func() {
		c.hold(r, req, ran, open)
		moved := d.Outcome == Conflict && r.moved()
		c.settle(req, d, err, moved)
	})
}

// settle gives the key back to the queue, which decides by the outcome.
func (c *Controller[T]) settle(req Request[T], d Decision, err error, moved bool) {
	key, now := req.Key, time.Now()
	c.mu.Lock()
	if c.state == Stopped { // as in end
		c.mu.Unlock()
		return
	}
	s := c.keyLocked(key)
	s.run = nil
	if d.Outcome == Done && s.last == req.run.last {
		s.last = nil // unless it went once more, meanwhile
	}
	switch d.Outcome {
	case Later, Conflict, Failed, Panicked, TimedOut:
		s.causes = addCause(s.causes, c.name, key, d.Outcome.String(), now)
	}
	c.dropLocked(key, s)
	c.mu.Unlock()

	if d.Outcome == Conflict && !d.Failure {
		err = retry.Later(c.pause(moved), "conflict")
	}
	// The look is planned while the key is still in work: afterwards it may be in
	// its next run already, and that may end in something that has no looks.
	if _, exists := req.Item(); exists && (d.Outcome == Done || d.Outcome == Later) {
		c.lookLater(key)
	}
	_ = c.queue.Done(key, err) // it fails when Run has given up meanwhile
}

// pause is how long to wait after a conflict. A change of the key's own object
// makes it run earlier.
func (c *Controller[T]) pause(moved bool) time.Duration {
	if moved {
		return 0
	}
	return c.opts.Backoff.Delay(1)
}

// tell logs a run: loudly only what somebody has to look at.
func (c *Controller[T]) tell(req Request[T], ran *Ran) {
	level := slog.LevelDebug
	switch ran.Outcome {
	case Failed, TimedOut, Parked:
		level = slog.LevelWarn
	case Panicked:
		level = slog.LevelError
	}
	ctx := context.Background()
	if !c.log.Enabled(ctx, level) {
		return
	}
	log := req.Log().With("outcome", ran.Outcome.String(), "took", ran.Took)
	if ran.Err != nil {
		log = log.With("err", ran.Err)
	}
	if p, ok := ran.Err.(*PanicError); ok && ran.Outcome == Panicked {
		log = log.With("stack", string(p.Stack))
	}
	log.Log(ctx, level, "ran")
}
