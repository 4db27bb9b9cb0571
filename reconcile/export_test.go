package reconcile

import (
	"context"
	"time"
)

// Remembered is how many keys a controller holds anything of, history aside.
func Remembered[T any](c *Controller[T]) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.keys)
}

// NextPhase is when a period's phase comes next.
func NextPhase(elapsed, phase, every time.Duration) time.Duration {
	return nextPhase(elapsed, phase, every)
}

// ProvenRecord is the context that a run's write was waited for with, after the
// write was proven and the run has ended.
func ProvenRecord(intake context.Context) (waits context.Context) {
	r := newRun(intake)
	w := r.begin("kind", "key", false)
	w.await("", func(ctx context.Context) error {
		waits = ctx
		return nil
	})
	<-w.done
	r.end()
	return waits
}

// ReleasedRecord is the same for a write that was not proven and released.
func ReleasedRecord(intake context.Context, wait func(context.Context) error) (waits context.Context) {
	r := newRun(intake)
	r.begin("kind", "key", false).await("", func(ctx context.Context) error {
		waits = ctx
		return wait(ctx)
	})
	r.end()
	r.release()
	return waits
}

// Plus adds durations without overflow.
func Plus(a, b time.Duration) time.Duration { return plus(a, b) }

// Unmapped is how many objects of a WatchFunc anything is held of.
func Unmapped[T, U any](c *Controller[T]) int {
	n := 0
	for _, f := range c.allFeeds() {
		if w, ok := f.(*watchFunc[T, U]); ok {
			w.mu.Lock()
			n += len(w.pending) + len(w.calling) + len(w.lost)
			w.mu.Unlock()
		}
	}
	return n
}
