package reflector

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/homeostat/homeostat/retry"
)

// audit is a full state that was listed to see whether the watch has lost anything.
// It waits until the watch has come to where it was listed: what differs then
// was lost.
type audit[T any] struct {
	into *staged[T]
	at   Cursor
	keys bool // it has but keys and versions
}

// inspect takes an audit of a source that can be resumed: it lists, goes on with
// the watch where that was, and compares once the watch has come to the list.
func (c *cycle[T]) inspect(ctx context.Context) end {
	lagging := c.lagging
	a, err := c.look(ctx)
	c.buffer, c.lagging = false, lagging // what an audit sees of it is no insisting
	if _, held := errors.AsType[*implausibleError](err); held {
		c.full = true
		return end{err: err}
	}
	c.auditing = false                       // whatever begins next is none
	if _, asked := retry.Delay(err); asked { // whatever for: the source wants to be left alone
		c.inconclusive(err)
		return end{err: err}
	}
	if ctx.Err() != nil || c.full || c.bell.ringing() {
		if a != nil {
			a.into.abort()
		}
		return end{ours: true}
	}
	if err != nil { // the watch was well, and is not given up for this
		c.inconclusive(err)
	}
	return c.session(ctx, WatchOptions{After: c.cursor}, nil, a)
}

// look lists for an audit. Without an error and without an audit there is nothing
// left to compare.
func (c *cycle[T]) look(ctx context.Context) (a *audit[T], err error) {
	if err := c.opts.Budget.Wait(ctx); err != nil {
		return nil, err
	}
	c.auditing = true
	c.track.enter(Listing)
	l := listing[T]{cycle: c, into: c.begin()}
	defer func() {
		if a == nil {
			l.into.abort() // also when the source panics
		}
	}()
	l.opts.KeysOnly = c.powers.KeysOnly && !c.objects
	c.objects = false
	// Of pages that show different states each would have to be compared at another
	// time.
	if c.powers.Paged && c.powers.SnapshotPages && c.opts.PageSize > 0 {
		l.opts.Limit = c.opts.PageSize
	}
	err = l.read(ctx)
	if errors.Is(err, errSame) {
		return nil, l.into.unchanged(c.cursor)
	}
	switch {
	case err != nil:
	case l.torn, l.first != l.last:
		err = errors.New("the pages of the list show different states")
	default:
		err = l.release()
	}
	if errors.Is(err, errNoVersion) {
		c.objects = true
		l.into.abort()
		return c.look(ctx)
	}
	if err != nil {
		c.objects = c.drift // soon again
		return nil, err
	}
	a = &audit[T]{into: l.into, at: l.first, keys: l.opts.KeysOnly}
	switch c.relate(l.first, c.cursor) {
	case same:
		equal, err := a.end()
		if err == nil && !equal {
			c.objects, c.drift = true, true
			l.into.abort()
			return c.look(ctx)
		}
		return nil, err
	case later:
		return a, nil
	case foreign:
		c.full = true // nobody told us of a reset
		return nil, nil
	}
	return nil, fmt.Errorf("the list is at %q, the watch came to %q", l.first, c.cursor)
}

// errNoVersion: what has no version is compared by its object.
var errNoVersion = errors.New("reflector: a key without a version")

// keys takes a page of keys and versions.
func (l *listing[T]) keys(page Page[T]) error {
	for i := range page.Items {
		if page.Items[i].Version == "" {
			return errNoVersion
		}
	}
	if err := l.into.keep(page.Faults); err != nil {
		return err
	}
	return l.into.stageKeys(page.Items)
}

// end compares, now that the sink is where the list was. It is not equal when keys
// and versions show that something was lost: to put it right takes the objects.
func (a *audit[T]) end() (equal bool, err error) {
	if !a.keys {
		return true, a.into.commit(a.at)
	}
	if d := a.into.diff(); d.Puts+d.Deletes > 0 {
		return false, nil
	}
	return true, a.into.unchanged(a.at)
}

// inconclusive: an audit came to nothing. The next one is due as if it had.
func (c *cycle[T]) inconclusive(err error) {
	c.fresh = time.Now()
	c.track.inconclusive(err)
}

func (t *tracker) inconclusive(err error) {
	t.mu.Lock()
	was := t.status.AuditErr
	t.status.AuditErr = err
	t.mu.Unlock()
	if text(was) != text(err) {
		t.log.Warn("an audit came to no end; the watch goes on", "err", err)
	}
}

// audited: an audit was committed, which changed so much.
func (t *tracker) audited(d Diff) {
	t.mu.Lock()
	t.status.Audits++
	t.status.Drift = d.Puts + d.Deletes
	t.status.Corrections += uint64(t.status.Drift)
	t.status.AuditErr = nil
	t.mu.Unlock()
	if d.Puts+d.Deletes > 0 {
		t.log.Warn("an audit put right what the watch had lost", "puts", d.Puts, "deletes", d.Deletes, "of", d.Of)
	}
}

// audits says how often the source is to be audited; 0 is never.
func (c *cycle[T]) audits() time.Duration {
	switch {
	case c.opts.Audit > 0:
		return c.opts.Audit
	case c.opts.Audit == 0 && !c.powers.ResumeProven && c.cursor != "":
		return defaultAudit
	}
	return 0
}

// due is when the next audit is, jittered down by up to a quarter; zero for never.
func (c *cycle[T]) due() time.Time {
	every := c.audits()
	if every == 0 || !c.synced {
		return time.Time{}
	}
	if c.drift { // something is known to be lost
		every = min(every, time.Minute)
	}
	return c.fresh.Add(every - time.Duration(rand.Int64N(int64(every)/4+1)))
}

// due says when the next audit of this session is.
func (s *session[T]) due() {
	at := s.cycle.due()
	s.guard.due(at)
	s.cycle.track.update(func(st *Status) { st.NextAudit = at })
}

// reach ends an audit when the watch has come to it: with a batch at that very
// place, once it was applied; with one after it, before.
func (s *session[T]) reach(at Cursor, want relation) error {
	if s.audit == nil || s.cycle.relate(at, s.audit.at) != want {
		return nil
	}
	return s.compare()
}

// compare ends the audit: whatever differs was lost. But not when the sink has changes
// without a position: they may have been made after the list.
func (s *session[T]) compare() error {
	if s.cycle.behind {
		s.drop("the watch told changes without a position")
		s.due()
		return nil
	}
	a := s.audit
	s.audit = nil
	s.guard.awaits.Store(false)
	defer a.into.abort() // if it was refused
	equal, err := a.end()
	if err != nil {
		return err
	}
	if !equal {
		s.cycle.objects, s.cycle.drift = true, true
		s.stop(errAudit)
		return nil
	}
	s.due()
	return nil
}

// leave ends an audit that the session has not come to. When the watch was well and
// told nothing for a good while, nothing is on its way any more: what differs was
// lost.
func (s *session[T]) leave(cause error) error {
	switch {
	case s.audit == nil:
		return nil
	case errors.Is(cause, errLate):
		return s.compare()
	}
	s.drop("the watch ended before it came to the list")
	return nil
}

func (s *session[T]) drop(why string) {
	if s.audit == nil {
		return
	}
	s.audit.into.abort()
	s.audit = nil
	s.guard.awaits.Store(false)
	s.cycle.inconclusive(errors.New(why))
}
