package informer

import (
	"log/slog"
	"time"

	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

// Options are the choices of an [Informer]. nil and the zero value are the
// defaults. Indexes are arguments of [New]; what filters or changes objects is a
// decorator of the source (reflector.Filter, reflector.Transform).
type Options struct {
	// Name tells this informer from others in errors, logs and status. Defaults
	// to the name of the object's type.
	Name string
	// Backoff spaces the attempts on a failing source. Defaults to the zero
	// Backoff: 100 ms, doubled up to 1 min, jittered.
	Backoff retry.Backoff
	// Budget bounds the rate of calls to the source. Defaults to nil: no bound.
	Budget *retry.Budget
	// PageSize is the most objects of one page of a list. Defaults to 500; less
	// than 0 is everything in one page. Sources without pages ignore it.
	PageSize int
	// Open is how long a watch may take to be established, and a streamed full
	// state to go without another object. It must be longer than one list of a
	// reflector.Poll or Hint takes. Defaults to 30 s.
	Open time.Duration
	// Session is the longest watch of a source that can't prove that it is alive
	// (Powers.Progress), jittered down by up to a quarter, and the longest that a
	// streamed full state may take in all. Defaults to 10 min; negative is no limit.
	Session time.Duration
	// ResetAfter is how long lists must agree on an older state before it is
	// taken for a reset of the source. Defaults to 1 min.
	ResetAfter time.Duration
	// Freshness is how old the first list may be: with reflector.Any, what a replica
	// answers. What WaitFor waits for before that list may then be missing from it.
	// Defaults to reflector.Latest.
	Freshness reflector.Freshness
	// Audit is how often a list is taken only to see whether the watch has lost
	// anything, jittered down by up to a quarter. 0 is 10 min for sources with
	// positions but without Powers.ResumeProven, and never for others; negative is
	// never. What it finds has object.Audit as its cause.
	Audit time.Duration
	// MaxDelete and MaxDeleteShare hold a list that would delete more objects than
	// MaxDelete and more than MaxDeleteShare of all, until [Informer.ConfirmDeletes]
	// is called, or until Believe lists in a row, at least 2, have said the same (0:
	// never). With one
	// of the two 0 the other decides alone; with both, the default, nothing is held.
	MaxDelete      int
	MaxDeleteShare float64
	Believe        int
	// Strict has an object that the source cannot decode fail the list or watch that
	// tells of it, rather than be set aside in Status.Refused.
	Strict bool
	// StopOnPermanent has Run return a source's retry.Permanent rather than try again
	// at the longest backoff.
	StopOnPermanent bool
	// Trace is told what the source's reflector does, for metrics. nil is nobody.
	Trace *reflector.Trace
	// Logger takes one line per transition (Info), refused object (Warn) and
	// panic (Error). Defaults to nil: discarded.
	Logger *slog.Logger
}

func (o *Options) reflector() *reflector.Options {
	return &reflector.Options{
		Name:       o.Name,
		Backoff:    o.Backoff,
		Budget:     o.Budget,
		PageSize:   o.PageSize,
		Open:       o.Open,
		Session:    o.Session,
		ResetAfter: o.ResetAfter,

		Freshness:       o.Freshness,
		Audit:           o.Audit,
		MaxDelete:       o.MaxDelete,
		MaxDeleteShare:  o.MaxDeleteShare,
		Believe:         o.Believe,
		Strict:          o.Strict,
		StopOnPermanent: o.StopOnPermanent,
		Trace:           o.Trace,
		Logger:          o.Logger,
	}
}

// HandlerOptions are the choices of one handler. nil and the zero value are the
// defaults.
type HandlerOptions struct {
	// Name tells this handler from others in errors and logs. Defaults to
	// "handler-1", "handler-2", … in the order of registration.
	Name string
	// Inline calls the handler on the informer's own goroutine, batch by batch,
	// with no buffer between: for work that is as cheap as adding a key to a
	// queue. An inline handler that is slow holds up the cache and every other
	// handler; one that waits for its own informer waits for ever. Defaults to
	// false: a goroutine and a compacting buffer of its own.
	Inline bool
	// Logger takes the handler's panics. Defaults to the informer's.
	Logger *slog.Logger
}
