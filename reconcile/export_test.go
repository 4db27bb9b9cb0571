package reconcile

import "time"

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
