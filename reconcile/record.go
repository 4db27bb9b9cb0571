package reconcile

import (
	"context"
	"sync"
	"time"

	"github.com/homeostat/homeostat/object"
)

// runKey finds the run in a context.
type runKey struct{}

func runOf(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{}).(*run)
	return r
}

// run is the record of what one run wrote. Writes are entered by whatever
// goroutine makes them; those that begin after the run has ended are not.
type run struct {
	mu     sync.Mutex
	ended  bool // no more writes
	closed bool // no more waits
	writes []*write
	hints  []hint
	behind bool               // the hints are being waited for
	cancel context.CancelFunc // of waits; nil before the first write
	waits  context.Context    // for the waits alone, which outlive the call that made the write
	intake context.Context
	wg     sync.WaitGroup
}

func newRun(intake context.Context) *run { return &run{intake: intake} }

// write is one write, from its beginning until its cache has it.
type write struct {
	run     *run
	barrier Barrier
	done    chan struct{} // closed when proven, or when nothing was written
	once    sync.Once
}

// hint is a state that a write conflicted with, and how to wait for it.
type hint struct {
	barrier Barrier
	wait    func(context.Context) error
}

// begin enters a write that is about to be made; nil when the run has ended. Each
// is followed by one of await and drop.
func (r *run) begin(kind, key string, stale bool) *write {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil
	}
	if r.cancel == nil {
		r.waits, r.cancel = context.WithCancel(r.intake)
	}
	w := &write{
		run:     r,
		barrier: Barrier{Kind: kind, Key: key, Since: time.Now(), StaleLists: stale},
		done:    make(chan struct{}),
	}
	r.writes = append(r.writes, w)
	return w
}

// over says that writes are not entered any more.
func (r *run) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// drop takes a write back that was not done.
func (w *write) drop() { w.once.Do(func() { close(w.done) }) }

// await starts to wait for the write. It begins at once and not at the end of the
// run: what comes in while the run goes on counts.
func (w *write) await(v object.Version, wait func(context.Context) error) {
	r := w.run
	r.mu.Lock()
	defer r.mu.Unlock()
	w.barrier.Version = v
	if r.closed {
		return
	}
	r.wg.Go(func() {
		if err := wait(r.waits); err == nil {
			w.drop()
		} else if r.waits.Err() == nil {
			// The cache can't tell any more (its informer has ended). Only the
			// deadline opens this one.
			r.mu.Lock()
			w.barrier.Err = err
			r.mu.Unlock()
		}
	})
}

// conflicted remembers a state that a write conflicted with.
func (r *run) conflicted(h hint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.hints = append(r.hints, h)
	}
}

// end closes the record; open are the writes that no cache has yet. When there are
// none, nothing is left of the waits.
func (r *run) end() (open []*write, hints []hint) {
	r.mu.Lock()
	r.ended = true
	for _, w := range r.writes {
		if !w.proven() {
			open = append(open, w)
		}
	}
	hints = r.hints
	r.mu.Unlock()
	if len(open) == 0 {
		r.release()
	}
	return open, hints
}

func (w *write) proven() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// release ends all waits, and returns when they have.
func (r *run) release() {
	r.mu.Lock()
	r.closed = true
	if r.cancel != nil {
		r.cancel()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// barriers are what the caches do not have yet.
func (r *run) barriers() []Barrier {
	r.mu.Lock()
	defer r.mu.Unlock()
	var open []Barrier
	for _, w := range r.writes {
		if !w.proven() {
			open = append(open, w.barrier)
		}
	}
	if r.behind {
		for _, h := range r.hints {
			open = append(open, h.barrier)
		}
	}
	return open
}

// moved waits a moment until the caches have the states that the run conflicted
// with.
func (r *run) moved() bool {
	r.mu.Lock()
	r.behind = true
	hints := r.hints
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(r.intake, conflictWait)
	defer cancel()
	for _, h := range hints {
		if h.wait(ctx) != nil {
			return false
		}
	}
	return len(hints) > 0
}
