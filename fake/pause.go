package fake

import (
	"context"
	"errors"
	"sync"
)

// Pause is a point at which calls are held. Make one with [Backend.PauseBefore] or
// [Backend.PauseAfter], wait until those are there that shall be, do what is to be
// done meanwhile, and release them.
type Pause struct {
	op    Op
	after bool

	mu       sync.Mutex // guards what follows; never held while anybody waits
	came     int
	more     chan struct{} // closed, and replaced, by the next call that comes
	over     chan struct{} // closed by Release
	released bool
}

// PauseBefore holds each call of an operation in op (none means all), from now on
// and until Release, when it has been counted and nothing else was done: before
// any interceptor and any fault.
func (b *Backend[T]) PauseBefore(op Op) *Pause { return b.pause(op, false) }

// PauseAfter holds each call of an operation in op (none means all), from now on
// and until Release, when it has been done and not yet answered: a list has read
// what it will tell, a write is seen by others. A watch is held once it stands,
// before it tells its first batch.
//
// A call whose context ends is held no longer, and its answer is lost: of a write
// it is backend.ErrOutcomeUnknown.
func (b *Backend[T]) PauseAfter(op Op) *Pause { return b.pause(op, true) }

func (b *Backend[T]) pause(op Op, after bool) *Pause {
	if op == 0 {
		op = all
	}
	p := &Pause{op: op, after: after, more: make(chan struct{}), over: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hooksLocked()
	kept := []*Pause{p}
	for _, old := range h.pauses {
		if !old.isReleased() {
			kept = append(kept, old)
		}
	}
	h.pauses = kept
	return p
}

// Wait waits until n calls in all have come to the pause. The error is ctx's, or
// says that the pause was released before.
func (p *Pause) Wait(ctx context.Context, n int) error {
	for {
		p.mu.Lock()
		came, more := p.came, p.more
		p.mu.Unlock()
		if came >= n {
			return nil
		}
		select {
		case <-more:
		case <-p.over:
			return errors.New("fake: the pause was released before as many calls had come to it")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Release lets all calls go on that are held; later ones are not held any more. A
// second call does nothing.
func (p *Pause) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.released {
		p.released = true
		close(p.over)
	}
}

func (p *Pause) isReleased() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.released
}

// hold keeps a call here.
func (p *Pause) hold(ctx context.Context) error {
	p.mu.Lock()
	if p.released {
		p.mu.Unlock()
		return nil
	}
	p.came++
	close(p.more)
	p.more = make(chan struct{})
	p.mu.Unlock()
	select {
	case <-p.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hold keeps a call at every pause that it meets.
func (b *Backend[T]) hold(ctx context.Context, op Op, after bool) error {
	b.mu.Lock()
	var met []*Pause
	for _, h := range []*hooks{&b.hooks, &b.who.hooks} {
		for _, p := range h.pauses {
			if p.after == after && p.op&op != 0 {
				met = append(met, p)
			}
		}
	}
	b.mu.Unlock()
	for _, p := range met {
		if err := p.hold(ctx); err != nil {
			return err
		}
	}
	return nil
}
