package retry

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// What the zero Backoff stands for.
const (
	defaultBase   = 100 * time.Millisecond
	defaultMax    = time.Minute
	defaultFactor = 2
)

// Backoff says how long to wait after the n-th failure in a row. It is data: the
// same value answers for any number of keys, and nothing is remembered between
// two calls.
//
// The zero value starts between 100 ms and 200 ms and doubles its upper end up
// to one minute. Without jitter that is 100 ms, 200 ms, 400 ms, 800 ms, 1.6 s …
// 1 min.
type Backoff struct {
	// Base is the shortest delay. Defaults to 100 ms, or to Max when that is
	// shorter.
	Base time.Duration
	// Max is the longest delay, whatever the number of failures. Defaults to one
	// minute, or to Base when that is longer.
	Max time.Duration
	// Factor is how much longer each delay may be than the one before, at least
	// 1. Defaults to 2. With 1 every delay is Base, so nothing is spread.
	Factor float64
	// Schedule, when it is not empty, gives the delays themselves and is followed
	// exactly: the first after the first failure, the last one for ever. Base,
	// Max, Factor and NoJitter then mean nothing.
	Schedule []time.Duration
	// NoJitter gives exactly Base·Factor^(n-1), at most Max. By default a delay
	// is drawn evenly from Base to Base·Factor^n (at most Max), so that what
	// failed together does not come back together.
	NoJitter bool
}

// Delay is how long to wait after so many failures in a row, counted from 1
// (less is 1). It lies within Base and Max for every attempt there can be, also
// of a Backoff that [Backoff.Validate] objects to.
func (b Backoff) Delay(attempt int) time.Duration {
	attempt = max(attempt, 1)
	if n := len(b.Schedule); n > 0 {
		return max(b.Schedule[min(attempt, n)-1], 0)
	}
	b = b.withDefaults()
	if b.NoJitter {
		return b.power(attempt - 1)
	}
	return between(b.Base, b.power(attempt))
}

// Longest is for what is to be tried as rarely as possible, such as something
// that failed for good: evenly from half of Max to Max and never below Base, Max
// itself with NoJitter, the last of the Schedule when there is one.
func (b Backoff) Longest() time.Duration {
	if n := len(b.Schedule); n > 0 {
		return max(b.Schedule[n-1], 0)
	}
	b = b.withDefaults()
	if b.NoJitter {
		return b.Max
	}
	return between(max(b.Base, b.Max/2), b.Max)
}

// Validate names everything that is wrong with b, joined; each matches
// [ErrInvalidOptions].
func (b Backoff) Validate() error {
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: backoff: "+format, append([]any{ErrInvalidOptions}, args...)...))
	}
	if b.Base < 0 {
		fault("Base %v is negative", b.Base)
	}
	if b.Max < 0 {
		fault("Max %v is negative", b.Max)
	}
	if b.Max > 0 && b.Max < b.Base {
		fault("Max %v is shorter than Base %v", b.Max, b.Base)
	}
	if b.Factor != 0 && !(b.Factor >= 1) || math.IsInf(b.Factor, 0) { // NaN too
		fault("Factor %v is not a number from 1", b.Factor)
	}
	for i, d := range b.Schedule {
		if d < 0 {
			fault("Schedule[%d] %v is negative", i, d)
		}
	}
	return errors.Join(errs...)
}

// withDefaults also repairs what Validate objects to: a delay is asked for in the
// middle of a failure, which is no place to fail again.
func (b Backoff) withDefaults() Backoff {
	if b.Base <= 0 {
		b.Base = defaultBase
		if b.Max > 0 {
			b.Base = min(b.Base, b.Max)
		}
	}
	if b.Max <= 0 {
		b.Max = defaultMax
	}
	b.Max = max(b.Max, b.Base)
	if !(b.Factor >= 1) {
		b.Factor = defaultFactor
	}
	return b
}

// power is Base·Factor^n within Base and Max. It saturates before the conversion
// to an integer: what a float holds beyond 2^63 has no defined conversion.
func (b Backoff) power(n int) time.Duration {
	f := float64(b.Base) * math.Pow(b.Factor, float64(n))
	if !(f < float64(b.Max)) {
		return b.Max
	}
	return min(max(time.Duration(f), b.Base), b.Max)
}

// between draws evenly, both ends included. low is positive, so the width can't
// overflow.
func between(low, high time.Duration) time.Duration {
	return low + rand.N(high-low+1)
}
