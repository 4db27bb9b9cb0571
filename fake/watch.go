package fake

import (
	"context"
	"fmt"
	"iter"

	"github.com/homeostat/homeostat/reflector"
)

// session is one open watch.
type session struct{ cut context.CancelFunc }

// Watch tells what happens, as backend/memory does, until something strikes. It is
// counted when it is ranged over.
func (b *Backend[T]) Watch(ctx context.Context, opts reflector.WatchOptions) iter.Seq2[reflector.Batch[T], error] {
	return func(yield func(reflector.Batch[T], error) bool) {
		ctx, cut := context.WithCancel(ctx)
		defer cut()
		defer b.open(cut)()

		c, err := b.begin(ctx, Watch, "", "")
		c.Revision = revision(opts.After)
		b.end(c, err)
		if err != nil {
			if ctx.Err() == nil {
				yield(reflector.Batch[T]{}, err)
			}
			return
		}
		c.Fault = 0
		b.tell(ctx, &c, opts, yield)
	}
}

// tell passes the store's batches on and looks after each one what strikes.
func (b *Backend[T]) tell(ctx context.Context, c *call, opts reflector.WatchOptions, yield func(reflector.Batch[T], error) bool) {
	k := 0
	listing := false // between Reset and Synced
	for batch, err := range b.to.Watch(ctx, opts) {
		if err != nil {
			b.note(c.Call, err)
			yield(batch, err)
			return
		}
		if !yield(batch, nil) {
			return
		}
		k++
		if batch.Cursor != "" {
			c.Revision = revision(batch.Cursor)
		}
		plain := !listing && !batch.Reset && len(batch.Events) > 0
		listing = (listing || batch.Reset) && !batch.Synced
		now, over := b.after(c, k)
		for _, f := range now {
			if ctx.Err() != nil {
				return
			}
			if f.Do == Duplicate && !plain {
				continue
			}
			strike := c.Call
			strike.Fault = f.Do
			var err error
			if f.Do == Cut && f.Err != nil {
				err = fmt.Errorf("fake: watch cut: %w", f.Err)
			}
			b.note(strike, err)
			switch f.Do {
			case Silence:
				if wait(ctx, f.For, over) != nil {
					return
				}
			case Duplicate:
				if !yield(batch, nil) {
					return
				}
			case Cut:
				if err != nil {
					yield(reflector.Batch[T]{}, err)
				}
				return
			}
		}
	}
}

// after answers what strikes after a watch's k-th batch, and when the plan that
// says so ends.
func (b *Backend[T]) after(c *call, k int) ([]Fault, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	later := c.later
	if c.under != b.weather {
		later = nil
	}
	return b.weather.batch(c.N, k, later), b.weather.over
}

// open makes a watch known to Cut; the answer undoes it.
func (b *Backend[T]) open(cut context.CancelFunc) func() {
	s := &session{cut: cut}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watches[s] = struct{}{}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watches, s)
	}
}
