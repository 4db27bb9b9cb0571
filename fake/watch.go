package fake

import (
	"context"
	"iter"

	"github.com/homeostat/homeostat/reflector"
)

// session is one open watch.
type session struct {
	who string
	cut context.CancelFunc
}

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
			if b.hold(ctx, Watch, true) == nil && ctx.Err() == nil {
				yield(reflector.Batch[T]{}, err)
			}
			return
		}
		c.Fault = 0
		t := &telling[T]{b: b, ctx: ctx, call: &c, yield: yield}
		t.run(opts)
	}
}

// open makes a watch known to Cut; the answer undoes it.
func (b *Backend[T]) open(cut context.CancelFunc) func() {
	s := &session{who: b.who.name, cut: cut}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watches[s] = struct{}{}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watches, s)
	}
}
