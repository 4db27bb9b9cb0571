package reflector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/homeostat/homeostat/retry"
)

// minLife is how long a session must live, from its opening, to be no failure
// however it ended, and to end the row of failures before it.
const minLife = time.Minute

// cycle is Run at work: attempts, one after the other, each a full state or a
// resumed watch, with one backoff between them. It belongs to Run's goroutine.
type cycle[T any] struct {
	src   ListWatcher[T]
	sink  Sink[T]
	opts  Options
	bell  *bell
	track *tracker

	powers Powers[T] // as of this attempt
	// inside says whose code runs now. It is set back when a call returns, not
	// when it panics: then it says who did.
	inside string

	// full: the next attempt takes a full state. Only a commit ends that, so
	// that a full state that was asked for and failed is still asked for.
	full bool
	// cursor is up to where the sink has everything; behind says that it also
	// has changes for which the source named no position. To resume at cursor
	// would then tell them a second time, older ones after newer ones.
	cursor Cursor
	behind bool
	synced bool
	// whole: the sink holds what the last full state said and no more, so that
	// ErrNotModified is as good as a full state.
	whole bool

	// fresh is when the last full state was committed, or an audit came to nothing;
	// audit, that the next attempt is to see whether the watch has lost anything;
	// auditing, that the full state which begins now is taken for that.
	fresh    time.Time
	audit    bool
	auditing bool
	wary     bool      // the source was set back: versions of before mean nothing
	objects  bool      // keys and versions are not enough for the next audit
	drift    bool      // they have proven that something was lost
	latest   bool      // no replica could answer: the latest state is asked for
	suspects int       // full states in a row that were held and agree
	suspect  Diff      // what the last of them would do
	counted  bool      // the last of them is one of those
	believe  time.Time // the next one counts from here on
	unread   bool      // there are objects that cannot be read

	ahead    bool      // the source said that cursor is, and cannot be asked for an order
	lagging  time.Time // since when the source insists on an older state
	buffer   bool      // the next list holds its pages back (rule 5)
	tokens   int       // lists in a row that ended in an expired page token
	barren   int       // resumed sessions in a row that broke before they moved
	fallback bool      // full states are listed though they could be streamed
}

// end is how an attempt ended.
type end struct {
	err  error
	ours bool          // we ended it: no failure, no wait
	life time.Duration // of the session, from its opening
}

func (c *cycle[T]) run(ctx context.Context) error {
	for ctx.Err() == nil {
		e := c.attempt(ctx)
		if ctx.Err() != nil {
			break
		}
		// No retry can mend what was given to a constructor.
		if errors.Is(e.err, ErrInvalidOptions) || c.opts.StopOnPermanent && retry.IsPermanent(e.err) {
			return e.err
		}
		// Only what is said again and again, and nothing else, is insisting: not
		// one old answer before an outage and one after it.
		if _, lags := errors.AsType[*lagError](e.err); !lags && !c.wary {
			c.lagging = time.Time{}
		}
		c.rest(ctx, e)
	}
	return nil
}

// attempt takes a full state, if one is due, and follows the watch to its end.
func (c *cycle[T]) attempt(ctx context.Context) (e end) {
	defer func() {
		if v := recover(); v != nil {
			c.full, c.whole, c.auditing = true, false, false
			e = end{err: caught(c.inside, "", v)}
		}
	}()
	if c.bell.ringing() {
		c.full = true
	}
	c.inside = "source Powers"
	c.powers = c.src.Powers()
	audit := c.audit
	c.audit = false
	switch {
	case !c.full && audit:
		return c.inspect(ctx)
	case !c.full:
		return c.session(ctx, WatchOptions{After: c.cursor}, nil, nil)
	case c.powers.Initial && !c.fallback:
		return c.session(ctx, WatchOptions{Initial: true}, nil, nil)
	}
	held, err := c.list(ctx)
	switch {
	case errors.Is(err, errAgain):
		return end{ours: true}
	case err != nil:
		c.fallBack(nil)
		return end{err: err}
	case held != nil:
		return c.session(ctx, WatchOptions{After: held.from}, held, nil)
	case c.bell.ringing(): // during the list
		return end{ours: true}
	}
	return c.session(ctx, WatchOptions{After: c.cursor}, nil, nil)
}

// rest waits as long as the end of an attempt asks for.
func (c *cycle[T]) rest(ctx context.Context, e end) {
	if e.life >= minLife {
		c.track.settled()
	}
	if e.ours {
		return
	}
	asked, _ := retry.Delay(e.err)
	var delay time.Duration
	switch {
	case retry.IsLater(e.err): // no failure
		c.track.settled()
		delay = c.opts.Backoff.Delay(1)
	case e.err == nil && e.life >= minLife: // nor this; but not all at once after a restart
		delay = c.opts.Backoff.Delay(1)
	default:
		if e.err == nil {
			e.err = errShort
		}
		delay = c.opts.Backoff.Delay(c.track.failed())
		if retry.IsPermanent(e.err) {
			delay = c.opts.Backoff.Longest()
		}
		c.opts.Budget.Pause(asked)
	}
	delay = max(delay, asked)
	if c.counted {
		c.believe, c.counted = time.Now().Add(delay), false
	}
	c.track.backOff(e.err, delay)

	// A call of Relist may cut the wait short, but not what the source asked for.
	if !sleep(ctx, asked) {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.bell.arm(cancel) {
		sleep(ctx, delay-asked)
	}
}

var (
	// errAgain: list again at once, holding the pages back.
	errAgain = errors.New("reflector: list again")
	errShort = fmt.Errorf("the source ended the watch within %v", minLife)
)

// sleep is false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// fallBack lists full states from now on, or with nil streams them again.
func (c *cycle[T]) fallBack(why error) {
	c.fallback = why != nil
	c.track.fallback(why)
}
