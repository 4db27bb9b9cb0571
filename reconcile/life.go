package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// Run waits until the informers that the controller needs are synced (it starts
// none of them: see the function [Run] and [Group]) and then works until ctx
// ends.
//
// When ctx ends, no further key is taken. Work that is running has the grace
// period to end by itself (Group.Grace; 30 s when the controller is run alone),
// then its context is cancelled with the cause [ErrStopping]. Run returns nil
// when all of it has ended, and *[StillRunning] when some of it has not a second
// after that. What such late work returns is dropped.
//
// Other errors are ErrInvalidOptions (joined), ErrAlreadyRunning, and that of an
// informer which ended before it was synced.
func (c *Controller[T]) Run(ctx context.Context) error {
	if err := c.start(ctx); err != nil {
		return err
	}
	base := context.WithoutCancel(ctx)
	hard, cut := context.WithCancelCause(base)
	defer cut(ErrStopping)
	l := &lifetime{intake: ctx, hard: hard, crew: newCrew()}
	defer c.enter(Stopped)

	// The feeds come before the wait, so that nothing that happens during it is
	// missed; the keys wait in the queue.
	for _, f := range c.allFeeds() {
		stop := f.start(l)
		defer stop()
	}
	err := c.awaitSync(ctx)
	if err == nil && ctx.Err() == nil {
		c.enter(Running)
		c.log.InfoContext(ctx, "controller started", "workers", c.opts.Workers)
		for range c.opts.Workers {
			l.crew.hire(func() { c.work(l) })
		}
		<-ctx.Done()
	}
	c.enter(Stopping)
	late := c.wind(l.crew, graceOf(ctx), cut)
	left := c.queue.Abort()
	if late != nil {
		c.log.WarnContext(base, "controller stopped with work still running", "keys", late.Keys[c.name])
		if err != nil {
			return errors.Join(err, late)
		}
		return late
	}
	c.log.InfoContext(base, "controller stopped", "waiting", len(left))
	return err
}

// lifetime is what the goroutines of one Run share.
type lifetime struct {
	intake context.Context // until it ends, keys are taken
	hard   context.Context // what runs' contexts are made of: ends with the grace period
	crew   *crew
}

// crew counts goroutines. Unlike a sync.WaitGroup it can be waited for with a
// time limit without a goroutine that waits.
type crew struct {
	size  atomic.Int64
	ended chan struct{}
}

// newCrew begins with one member, the caller, who leaves by leave.
func newCrew() *crew {
	c := &crew{ended: make(chan struct{})}
	c.size.Store(1)
	return c
}

// hire is for members only: a crew that has ended does not come back.
func (c *crew) hire(f func()) {
	c.size.Add(1)
	go func() {
		defer c.leave() // also when f ends the goroutine
		f()
	}()
}

func (c *crew) leave() {
	if c.size.Add(-1) == 0 {
		close(c.ended)
	}
}

// start makes Run single-use.
func (c *Controller[T]) start(ctx context.Context) error {
	if err := c.wiringError(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != Idle {
		return fmt.Errorf("%w: controller %q", ErrAlreadyRunning, c.name)
	}
	c.started = time.Now()
	c.state, c.since = Waiting, c.started
	return nil
}

func (c *Controller[T]) enter(s State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == s {
		return
	}
	c.state, c.since = s, time.Now()
	if s == Stopped {
		clear(c.keys) // what was to run will not
	}
}

// syncer is what a needed runner may have besides Run.
type syncer interface {
	WaitForSync(ctx context.Context) error
}

// awaitSync waits for each needed informer, and says every ten seconds which one
// it waits for.
func (c *Controller[T]) awaitSync(ctx context.Context) error {
	for _, r := range c.Needs() {
		s, ok := r.(syncer)
		for ok && ctx.Err() == nil {
			soon, cancel := context.WithTimeout(ctx, 10*time.Second)
			err := s.WaitForSync(soon)
			impatient := soon.Err() != nil
			cancel()
			if err == nil || ctx.Err() != nil {
				break
			}
			if !impatient {
				return fmt.Errorf("reconcile: controller %q: %w", c.name, err)
			}
			c.log.WarnContext(ctx, "still waiting for an informer", "err", err)
		}
	}
	return nil
}

// wind waits for what still runs: for so long as grace, then, its contexts
// cancelled, for a moment more.
func (c *Controller[T]) wind(crew *crew, grace time.Duration, cut context.CancelCauseFunc) *StillRunning {
	crew.leave()
	if within(crew.ended, grace) {
		return nil
	}
	cut(ErrStopping)
	if within(crew.ended, unwind) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := []string{}
	for key, s := range c.keys {
		if s.run != nil {
			keys = append(keys, key)
		}
	}
	for _, f := range c.feeds {
		keys = append(keys, f.busy()...)
	}
	slices.Sort(keys)
	return &StillRunning{Keys: map[string][]string{c.name: keys}}
}

func within(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		// Both may be ready; being done is the better news.
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}
