package reflector

import (
	"errors"
	"fmt"
	"time"
)

// ErrImplausible: a full state would delete so much that the source is more likely
// to be wrong than right (Options.MaxDelete). It is held.
var ErrImplausible = errors.New("reflector: a full state would delete too much")

// implausibleError: a full state that is held.
type implausibleError struct{ deletes, of int }

func (e *implausibleError) Error() string {
	return fmt.Sprintf("a full state would delete %d of %d objects; it is held", e.deletes, e.of)
}

func (e *implausibleError) Unwrap() error { return ErrImplausible }

// implausible says that a full state deletes more than the options let it.
func (o *Options) implausible(d Diff) bool {
	return o.guards() && d.Deletes > o.MaxDelete && float64(d.Deletes) > o.MaxDeleteShare*float64(d.Of)
}

// guards: there is something to hold a full state by.
func (o *Options) guards() bool { return o.MaxDelete > 0 || o.MaxDeleteShare > 0 }

// weigh holds a full state that deletes implausibly much, until it was confirmed or
// has come often enough.
func (c *cycle[T]) weigh(d Diff) error {
	if !c.opts.implausible(d) {
		c.suspects = 0
		return nil
	}
	// Only full states that say the same agree, and only those taken after a backoff,
	// not at somebody's call, are counted.
	switch now := time.Now(); {
	case c.suspects == 0 || d.Gone != c.suspect.Gone || d.Deletes != c.suspect.Deletes:
		c.suspects, c.counted = 1, true
	case !now.Before(c.believe):
		c.suspects++
		c.counted = true
	}
	c.suspect = d
	if c.track.confirmed() >= d.Deletes || c.opts.Believe > 0 && c.suspects >= c.opts.Believe {
		c.suspects = 0
		return nil
	}
	c.track.suspect(d)
	return &implausibleError{deletes: d.Deletes, of: d.Of}
}

// suspect shows what is held.
func (t *tracker) suspect(d Diff) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status.WouldDelete = d.Deletes
}

// confirm notes that somebody wants what is held; false when nothing is.
func (t *tracker) confirm() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.status.WouldDelete == 0 {
		return false
	}
	t.wanted = t.status.WouldDelete
	return true
}

// confirmed is how many deletes somebody wants.
func (t *tracker) confirmed() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wanted
}
