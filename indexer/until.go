package indexer

import (
	"context"
	"runtime/debug"
)

// Until waits until ok answers true, and is nil then; or until ctx ends, and is
// ctx's cause then. ok is called at once, even if ctx has ended, and then after
// changes, always with the newest state: states that come quickly one after the
// other may be skipped, the last one never is. It runs on the caller's goroutine,
// holds up nobody, and may do anything. A panic of it is returned as [*PanicError].
func (c *Indexer[T]) Until(ctx context.Context, ok func(*Snapshot[T]) bool) error {
	for {
		changed := c.next() // before the state is read, so that no change falls in between
		done, err := meets(ok, c.state())
		if done || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

func meets[T any](ok func(*Snapshot[T]) bool, s *Snapshot[T]) (_ bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Where: "Until", Value: v, Stack: debug.Stack()}
		}
	}()
	return ok(s), nil
}

// next is closed at the first change published after the call.
func (c *Indexer[T]) next() <-chan struct{} {
	for {
		if p := c.changed.Load(); p != nil {
			return *p
		}
		fresh := make(chan struct{})
		if c.changed.CompareAndSwap(nil, &fresh) {
			return fresh
		}
	}
}

// wake comes after the new state was published: who called next too late for this
// one sees that state.
func (c *Indexer[T]) wake() {
	if p := c.changed.Load(); p != nil {
		c.changed.Store(nil) // only the one who holds the turn does this
		close(*p)
	}
}
