package reflector

import (
	"time"

	"github.com/homeostat/homeostat/object"
)

// Trace are functions that are told what a [Reflector] does, each nil or not: for
// counters and histograms; what can be read at any time is in [Status]. They run
// on goroutines of the reflector, now and then on two at once, and hold it up for as
// long as they take; they must not wait for the reflector. A panic is caught and logged.
type Trace struct {
	// State is called after each change of state.
	State func(from, to State)
	// Listed is called after each list, complete or not: its pages and items, how
	// long it took, and its error.
	Listed func(pages, items int, took time.Duration, err error)
	// Batch is called after each live batch was applied, with its events and how long
	// the sink took.
	Batch func(events int, took time.Duration)
	// Full is called after each full state was committed, with what it changed.
	// Only here is that counted when nobody else asks for it, which costs the sink a
	// look at each of its keys.
	Full func(why object.Cause, changed Diff)
	// Failed is called for each failure, with how many there were in a row.
	Failed func(err error, inARow int)
}

// to calls f with the functions there are, and catches what it panics with.
func (t *tracker) to(f func(*Trace)) {
	if t.trace == nil {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			p := caught("trace", "", v)
			t.log.Error("a function of Trace panicked", "err", p, "stack", string(p.Stack))
		}
	}()
	f(t.trace)
}
