package retry

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Budget is a rate of calls that all who hold it share. When one of them is told
// to come back later ([After]), all of them wait: such an answer is about the
// account, not about one key.
//
// A nil *Budget and the zero Budget limit no rate; a nil one does not pause
// either. All methods may be called at the same time.
type Budget struct {
	limiter *rate.Limiter // nil: no limit

	mu     sync.Mutex
	paused time.Time // nobody goes before it
}

// NewBudget lets through perSecond calls a second, and up to burst at once after
// a time without any (less than 1 is 1). rate.Inf is no limit, and so is a perSecond
// of 0 or less (unlike rate.NewLimiter, where 0 lets nothing through).
func NewBudget(perSecond rate.Limit, burst int) *Budget {
	if !(perSecond > 0) {
		return &Budget{}
	}
	return &Budget{limiter: rate.NewLimiter(perSecond, max(burst, 1))}
}

// Wait returns nil when it is the caller's turn for one call, in the order of
// asking. It returns the cause of ctx's end when that comes first; the turn is
// then given back.
func (b *Budget) Wait(ctx context.Context) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if b == nil {
			return nil
		}
		if d := b.pause(); d > 0 {
			if err := sleep(ctx, d); err != nil {
				return err
			}
			continue // the pause may have been extended meanwhile
		}
		if b.limiter == nil {
			return nil
		}
		turn := b.limiter.Reserve()
		d := turn.Delay()
		if d <= 0 {
			return nil
		}
		if err := sleep(ctx, d); err != nil {
			turn.Cancel()
			return err
		}
		// A turn that came up during a pause is void. Were it kept, all that
		// waited for one would go together when the pause ends.
		if b.pause() <= 0 {
			return nil
		}
	}
}

// Pause lets nobody through for d from now. It never shortens a longer pause
// that holds already. Calls under way are not touched. 0 or less does nothing.
func (b *Budget) Pause(d time.Duration) {
	if b == nil || d <= 0 {
		return
	}
	until := time.Now().Add(d)
	b.mu.Lock()
	defer b.mu.Unlock()
	if until.After(b.paused) {
		b.paused = until
	}
}

// Do waits, calls, and pauses everybody when the call's error is an [After] (or
// a foreign RetryAfter) for as long as that says. [Later] pauses nobody: nothing
// failed. It returns the error of the call as it is, or of the wait.
func (b *Budget) Do(ctx context.Context, call func() error) error {
	if err := b.Wait(ctx); err != nil {
		return err
	}
	err := call()
	b.heed(err)
	return err
}

func (b *Budget) heed(err error) {
	if d, named := longest(err, false); named {
		b.Pause(d)
	}
}

// pause is what is left of the pause. Without one it reads no clock.
func (b *Budget) pause() time.Duration {
	b.mu.Lock()
	until := b.paused
	b.mu.Unlock()
	if until.IsZero() {
		return 0
	}
	return time.Until(until)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
