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
	// Freshness is how old the first full state may be. With Any it is taken from
	// whatever replica answers, so that nobody waits at the start for a source that
	// lags; when none can, and for every later full state, the latest one is asked
	// for. Defaults to Latest.
	Freshness Freshness
	// Audit is how often a full state is taken only to see whether the watch has
	// lost anything, jittered down by up to a quarter and counted from the last full
	// state. 0 is 10 min for sources without Powers.ResumeProven, and never for
	// others, nor for those without positions, whose watches begin with a full state
	// at least once a Session; negative is never.
	//
	// What an audit finds is told with object.Audit as its cause, and counted in
	// Status.Corrections. Of a source that can be resumed, with an order, this is
	// just what its watch had lost; of others also what was on its way.
	Audit time.Duration
	// MaxDelete and MaxDeleteShare guard against a source that seems to have lost
	// its objects: a full state that would delete more objects than MaxDelete, and
	// more than MaxDeleteShare of all (0.5 is half), is held. With one of them 0 the
	// other decides alone; with both, the default, nothing is held.
	MaxDelete      int
	MaxDeleteShare float64
	// Believe is how many full states in a row have to agree, each taken after a
	// backoff, until one that would be held is believed: at least 2. 0 is never: it
	// takes [Reflector.ConfirmDeletes].
	Believe int
	// Strict has an object that the source cannot decode ([Fault]) fail the list or
	// watch that tells of it. Else the sink keeps the last state of it that could be
	// read, and Status.Unreadable names it.
	Strict bool
	// StopOnPermanent has Run return the error of a source that says retry.Permanent,
	// rather than try again at the longest backoff.
	StopOnPermanent bool
	// Trace is told what happens as it happens, for metrics. nil is nobody.
	Trace *Trace
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
	defaultAudit      = 10 * time.Minute
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
	if o.Freshness > Any {
		fault("there is no Freshness %d", o.Freshness)
	}
	if o.MaxDelete < 0 {
		fault("MaxDelete is negative: %d", o.MaxDelete)
	}
	if !(o.MaxDeleteShare >= 0 && o.MaxDeleteShare < 1) { // NaN neither
		fault("MaxDeleteShare is %v, must be from 0 to less than 1", o.MaxDeleteShare)
	}
	if o.Believe < 0 || o.Believe == 1 {
		fault("Believe is %d, must be 0 or at least 2", o.Believe)
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
