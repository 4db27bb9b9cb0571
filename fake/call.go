package fake

import (
	"context"
	"fmt"
	"math/bits"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// call is one call on its way.
type call struct {
	Call
	want  object.Version // the precondition of a write
	under *weather       // the plan as it began
	later []int          // what weather.call answered
	lost  bool           // its answer will be

	partial bool  // half of the answer will be missing
	back    int   // how many revisions ago it reads
	waited  int64 // what had happened up to this revision did so before a wait that is over
	line    int   // its place in the log
}

// begin counts a call, and does to it what the test and the plan want before it is
// done. Its error is the call's answer.
func (b *Backend[T]) begin(ctx context.Context, op Op, key string, want object.Version) (call, error) {
	i := bits.TrailingZeros16(uint16(op))
	b.mu.Lock()
	b.who.calls[i]++
	c := call{Call: Call{Caller: b.who.name, Op: op, N: b.who.calls[i], Key: key, DryRun: b.dry}, want: want, under: b.weather}
	var now []Fault
	now, c.later = b.weather.call(b.who, op, c.N)
	c.line = len(b.log)
	b.log = append(b.log, line{})
	b.mu.Unlock()

	if b.bad != nil {
		return c, c.failed(b.bad)
	}
	if err := b.hold(ctx, op, false); err != nil {
		return c, c.failed(err)
	}
	for _, f := range b.interceptors(i) {
		if err := f(ctx, key); err != nil {
			return c, err
		}
	}
	for _, f := range now {
		c.Fault = f.Do
		if err := b.strike(ctx, &c, f); err != nil {
			return c, err
		}
	}
	return c, nil
}

// interceptors are those of the i-th operation: for all callers, then for this one.
func (b *Backend[T]) interceptors(i int) (all []func(context.Context, string) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range []*hooks{&b.hooks, &b.who.hooks} {
		if f := h.intercept[i]; f != nil {
			all = append(all, f)
		}
	}
	return all
}

// strike does what can be done before the call itself.
func (b *Backend[T]) strike(ctx context.Context, c *call, f Fault) error {
	switch f.Do {
	case Fail:
		if f.Err == nil {
			f.Err = ErrFault
		}
		return c.failed(f.Err)
	case Expire:
		return fmt.Errorf("fake: %v: %w", c.Op, reflector.ErrExpired)
	case Delay:
		c.waited = b.head()
		if err := wait(ctx, f.For, c.under.over); err != nil {
			return c.failed(err)
		}
	case FailAfterCommit:
		c.lost = true
	case PartialPage:
		c.partial = true
	case StaleRead:
		c.back = max(c.back, f.Back, 1)
	case Conflict:
		if item, err := b.store.Get(ctx, c.Key); err == nil {
			b.store.Update(ctx, item) // it fails only if somebody else writes, which will do
		}
	case Restore:
		b.back(f, c.under)
	}
	return nil
}

// end writes a call into the place in the log that begin took for it: a watch may
// tell of a write before the write returns.
func (b *Backend[T]) end(c call, err error) {
	c.Err = err
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log[c.line] = line{c.Call, true}
}

// note adds a line to the log.
func (b *Backend[T]) note(c Call, err error) {
	c.Err = err
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, line{c, true})
}

// failed is err as a store would tell it.
func (c *call) failed(err error) error {
	if c.Op&(List|Watch) != 0 {
		return fmt.Errorf("fake: %v: %w", c.Op, err)
	}
	return &backend.Error{Op: c.Op.String(), Key: c.Key, Want: c.want, Err: err}
}

// wait waits for d, or until over is closed; with d 0 for that alone.
func wait(ctx context.Context, d time.Duration, over <-chan struct{}) error {
	var passed <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		passed = timer.C
	}
	select {
	case <-passed:
		return nil
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
