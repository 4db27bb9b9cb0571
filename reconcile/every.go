package reconcile

import (
	"hash/maphash"
	"math"
	"math/rand/v2"
	"time"
)

// lookLater arms the next look of Options.Every at a key that has nothing else to
// wait for.
//
// A key's looks come at a phase of its own, told by a hash of it, and not so long
// after its last run: keys that once ran together (at the start, after an outage)
// would stay together for ever.
func (c *Controller[T]) lookLater(key string) {
	every := c.opts.Every
	if every <= 0 {
		return
	}
	now := time.Now()
	c.mu.Lock()
	if c.state >= Stopping {
		c.mu.Unlock()
		return
	}
	phase := time.Duration(maphash.String(c.seed, key) % uint64(every))
	after := plus(nextPhase(now.Sub(c.started), phase, every), rand.N(every/10+1))
	c.keyLocked(key).due = now.Add(after)
	c.mu.Unlock()
	c.queue.AddAfter(key, after)
}

// nextPhase is how long it is from elapsed to the next time, later than it, that
// lies at phase of a period.
func nextPhase(elapsed, phase, every time.Duration) time.Duration {
	d := (phase - elapsed) % every
	if d <= 0 {
		d += every
	}
	return d
}

// plus adds durations that are not negative; what is too long for a Duration is
// the longest there is.
func plus(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
