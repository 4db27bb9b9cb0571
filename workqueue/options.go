package workqueue

import (
	"errors"
	"fmt"
	"time"

	"github.com/homeostat/homeostat/retry"
)

// Options of a queue. nil and the zero value are the defaults.
type Options[K comparable] struct {
	// Name tells queues apart in the faults of their options. Defaults to
	// "queue".
	Name string
	// Backoff is how long a key waits after a failure that names no delay itself.
	// Defaults to the zero [retry.Backoff].
	Backoff retry.Backoff
	// Budget, if set, is asked for one turn for each key that Get hands out. The
	// key stays in the queue until the turn comes, so what is added again
	// meanwhile costs nothing. nil is no limit.
	Budget *retry.Budget
	// Park is when to give up on a key. Defaults to never.
	Park Park
}

// Park is when a key that keeps failing is parked: it then stays with its last
// error and runs no more until somebody asks for it. An outcome that is
// [retry.Permanent] always parks.
type Park struct {
	// Attempts parks at so many failures in a row. 0 is no limit.
	Attempts int
	// Age parks at the first failure that comes so long or longer after the first
	// of the row. 0 is no limit.
	Age time.Duration
}

// AddOptions are what AddWith asks for. The zero value is Add.
type AddOptions struct {
	// After is how long to wait before the key is due, as in AddAfter. 0 or less
	// is at once.
	After time.Duration
	// Reason is why, for [Entry].Reasons. An empty one is not counted.
	Reason string
}

func (o *Options[K]) validate() error {
	var errs []error
	fault := func(err error) {
		errs = append(errs, fmt.Errorf("%w: %q: %w", ErrInvalidOptions, o.Name, err))
	}
	if err := badKey[K](); err != nil {
		fault(err)
	}
	if err := o.Backoff.Validate(); err != nil {
		fault(err)
	}
	if o.Park.Attempts < 0 {
		fault(fmt.Errorf("Park.Attempts %d is negative", o.Park.Attempts))
	}
	if o.Park.Age < 0 {
		fault(fmt.Errorf("Park.Age %v is negative", o.Park.Age))
	}
	return errors.Join(errs...)
}
