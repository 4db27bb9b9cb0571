package reflector

import (
	"fmt"
	"time"
)

// relation is how one cursor stands to another.
type relation uint8

const (
	unknown relation = iota // no order, or one of them is no position
	same
	earlier
	later
	foreign // of another epoch
)

// relate says how a stands to b.
func (c *cycle[T]) relate(a, b Cursor) relation {
	switch {
	case a == b && a != "":
		return same
	case c.powers.Compare == nil || a == "" || b == "":
		return unknown
	}
	was := c.inside
	c.inside = "source Compare"
	d := c.powers.Compare(a, b)
	c.inside = was
	switch {
	case d < 0:
		return earlier
	case d > 0:
		return later
	}
	return foreign // unequal, yet neither before the other
}

// judge says whether a full state as of the cursor at may be shown (rule 6): it
// must not lie before what the sink has. It may when the epoch is another, or
// once the source has insisted for ResetAfter; that is a reset.
func (c *cycle[T]) judge(at Cursor) (reset bool, err error) {
	switch c.relate(at, c.cursor) {
	case foreign:
		return true, nil
	case earlier:
	default:
		return false, nil
	}
	now := time.Now()
	if c.lagging.IsZero() {
		c.lagging = now
	}
	if now.Sub(c.lagging) >= c.opts.ResetAfter {
		return true, nil
	}
	return false, &lagError{at: at, has: c.cursor}
}

// errWary: a full state that was streamed turned out to be a reset, and is taken once
// more.
var errWary = fmt.Errorf("reflector: the source was set back: %w", errAgain)

// lagError: a full state is older than what the sink has.
type lagError struct{ at, has Cursor }

func (e *lagError) Error() string {
	return fmt.Sprintf("the source is at %q, which lies before %q", e.at, e.has)
}

func (e *lagError) Unwrap() error { return ErrFutureCursor }
