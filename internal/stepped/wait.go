package stepped

import (
	"context"
	"sync"
	"time"

	"github.com/homeostat/homeostat/object"
)

// written is a write that somebody may wait for.
type written struct {
	key     int
	version object.Version
	of      *point
	life    int // the model's
}

// wait is a call of WaitFor.
type wait struct {
	written
	olds int // how many old lists the client was given before

	mu   sync.Mutex
	done bool
	err  error
}

// wait has the client wait for the last write; false when there is none.
func (c *client) wait(unknown bool) bool {
	w := &wait{written: c.w.written, olds: c.olds}
	// When an audit begins is a matter of chance, though always before the next step.
	if w.of == nil || c.kind.has("audit") {
		return false
	}
	version := w.version
	if unknown {
		version = ""
	}
	// Each begins a moment later, at a time of its own: its deadlines must not be
	// those of anything else, for then their order would be chance.
	c.w.waits++
	delay := time.Duration(c.w.waits) * 1003 * time.Microsecond
	inf, ctx, key := c.inf, c.ctx, c.w.keys[w.key]
	c.waits = append(c.waits, w)
	go func() {
		if !sleep(ctx, delay) {
			return
		}
		err := inf.WaitFor(ctx, key, version)
		if ctx.Err() != nil {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.done, w.err = true, err
	}()
	return true
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// waited checks the waits that have ended: what they waited for is in the cache
// (G7). A source that has lied, or was set back, proves nothing.
func (c *client) waited() {
	var left []*wait
	for _, w := range c.waits {
		w.mu.Lock()
		done, err := w.done, w.err
		w.mu.Unlock()
		switch {
		case !done:
			left = append(left, w)
		case err != nil:
			c.w.fault("c%d: WaitFor of k%d, written at %s: %v", c.id, w.key, w.of, err)
		case c.w.model.life != w.life || c.olds != w.olds || c.loose():
		case !c.isAt(w.of):
			c.w.fault("c%d: WaitFor of k%d, written at %s, has ended at %s", c.id, w.key, w.of, c.w.names(c.position()...))
		}
	}
	c.waits = left
}

// isAt: the cache is at p or after it.
func (c *client) isAt(p *point) bool {
	for _, cur := range c.position() {
		if place, ok := c.w.model.places[cur]; ok && place >= p.place {
			return true
		}
	}
	return false
}
