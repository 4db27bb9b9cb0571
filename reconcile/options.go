package reconcile

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/homeostat/homeostat/retry"
	"github.com/homeostat/homeostat/workqueue"
)

// Options are a controller's choices; nil stands for the zero value, whose
// fields are all defaults.
type Options struct {
	// Workers is how many keys are reconciled at once. Defaults to 4.
	Workers int
	// Timeout ends a run's context after so long, with [ErrTimeout] as its cause.
	// Defaults to 0: no limit.
	Timeout time.Duration
	// Backoff is when a key that failed runs again. Its zero value is retry's own:
	// from 100 ms to a minute, doubling, jittered.
	Backoff retry.Backoff
	// Park says when to give up on a key that keeps failing. Defaults to never;
	// what wraps retry.Permanent parks its key in any case.
	Park workqueue.Park
	// Every looks at each existing key again about so often, though nothing has
	// changed: at a phase of its own, spread over the period, and up to a tenth of
	// the period later. Keys that wait to be retried or are parked are left alone.
	// Defaults to 0: never.
	Every time.Duration
	// Logger hears of starts and stops (Info), what is degraded (Warn) and single
	// runs (Debug). Defaults to none.
	Logger *slog.Logger
}

const (
	defaultWorkers = 4
	defaultGrace   = 30 * time.Second
	// unwind is what work gets to return once its context was cancelled at the
	// end of the grace period.
	unwind = time.Second
	// barrierDeadline is how long a key is held for its own writes at most,
	// counted from the end of the run that wrote.
	barrierDeadline = 30 * time.Second
	// conflictWait is how long a key is held for the state it conflicted with. It
	// is shorter than an informer's patience, for a conflict is not worth a list.
	conflictWait = 900 * time.Millisecond
)

func (o Options) validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: %w", ErrInvalidOptions, fmt.Errorf(format, args...)))
	}
	if o.Workers < 0 {
		bad("Workers is %d", o.Workers)
	}
	if o.Timeout < 0 {
		bad("Timeout is %v", o.Timeout)
	}
	if o.Every < 0 {
		bad("Every is %v", o.Every)
	}
	if o.Park.Attempts < 0 || o.Park.Age < 0 {
		bad("Park is %+v", o.Park)
	}
	if err := o.Backoff.Validate(); err != nil {
		bad("Backoff: %w", err)
	}
	return errors.Join(errs...)
}
