package reflector

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/homeostat/homeostat/retry"
)

// Options are what a [Reflector] may be told. The zero value, and nil, are the
// defaults.
type Options struct {
	// Name tells this reflector from others in logs, errors and Status.
	// Defaults to "reflector".
	Name string
	// Backoff is the one schedule for everything that fails: lists, opening a
	// watch, a session that broke, a sink that refused. Defaults to the zero
	// Backoff: 100 ms, doubling, at most a minute, jittered.
	Backoff retry.Backoff
	// Budget is asked before each call of List and Watch, and paused by what a
	// source says with retry.After. nil is no limit. The calls that an adapter
	// makes within a watch ([Poll] after the first) are not counted.
	Budget *retry.Budget
	// PageSize is how many objects a page of a list may have, asked of sources
	// with Powers.Paged. 0 is 500; negative is one page for everything.
	PageSize int
	// Open is how long a watch may take until its first batch, and how long a
	// full state that is streamed may go without another object. A stream that
	// misses it is given up, and the full state listed instead. 0 is 30 s.
	//
	// It must be longer than one list of a [Poll] or [Hint] takes.
	Open time.Duration
	// Session is the longest a watch without Powers.Progress may go on before it
	// is opened anew, counted from its opening or its last full state, and
	// jittered down by up to a quarter. It is also the longest a streamed full
	// state may take in all. 0 is 10 min; negative is no limit.
	Session time.Duration
	// ResetAfter is how long the source must insist on an older state, within
	// one epoch, until it is believed that it was set back (rule 6). 0 is 1 min.
	ResetAfter time.Duration
	// Logger gets what changes: Info when it is well again, Warn when it is not.
	// nil discards.
	Logger *slog.Logger
}

// The defaults of Options.
const (
	defaultPageSize   = 500
	defaultOpen       = 30 * time.Second
	defaultSession    = 10 * time.Minute
	defaultResetAfter = time.Minute
)

// resolve gives the options with defaults filled in, and all faults found.
func resolve(opts *Options) (Options, []error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("%w: "+format, append([]any{ErrInvalidOptions}, args...)...))
	}
	if err := o.Backoff.Validate(); err != nil {
		fault("Backoff: %w", err)
	}
	if o.Open < 0 {
		fault("Open is negative: %v", o.Open)
	}
	if o.ResetAfter < 0 {
		fault("ResetAfter is negative: %v", o.ResetAfter)
	}
	if o.Name == "" {
		o.Name = "reflector"
	}
	if o.PageSize == 0 {
		o.PageSize = defaultPageSize
	}
	if o.Open == 0 {
		o.Open = defaultOpen
	}
	if o.Session == 0 {
		o.Session = defaultSession
	}
	if o.ResetAfter == 0 {
		o.ResetAfter = defaultResetAfter
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, faults
}
