package reflector

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// Reflector keeps a sink equal to a source through every fault: it takes a full
// state, follows the watch, resumes it where it can and takes a full state again
// where it can't. Make one with [New]; all methods may be called at any time and
// from any goroutine, but not from the sink's methods if they would wait there.
type Reflector[T any] struct {
	src    ListWatcher[T]
	sink   Sink[T]
	opts   Options
	faults []error

	ran   atomic.Bool
	bell  bell
	track *tracker
}

// New makes a reflector of a source and a sink. opts may be nil. What is wrong
// with any of them comes out of Run.
func New[T any](src ListWatcher[T], sink Sink[T], opts *Options) *Reflector[T] {
	o, faults := resolve(opts)
	if src == nil {
		faults = append(faults, fmt.Errorf("%w: no source", ErrInvalidOptions))
	}
	if sink == nil {
		faults = append(faults, fmt.Errorf("%w: no sink", ErrInvalidOptions))
	}
	return &Reflector[T]{src: src, sink: sink, opts: o, faults: faults, track: newTracker(o.Name, o.Logger, o.Trace)}
}

// Run keeps the sink equal to the source until ctx ends; then it waits until the
// source has returned and gives nil. Nothing else ends it but [ErrInvalidOptions]
// from the options or from the source, and, with Options.StopOnPermanent, what is
// retry.Permanent: every other failure is shown in Status, logged and tried again. A second call gives [ErrAlreadyRunning].
//
// All calls of the source, the sink and their functions are made on the
// goroutine that calls Run. ctx, with its values, reaches the source.
func (r *Reflector[T]) Run(ctx context.Context) error {
	if !r.ran.CompareAndSwap(false, true) {
		return fmt.Errorf("reflector %q: %w", r.opts.Name, ErrAlreadyRunning)
	}
	err := errors.Join(r.faults...)
	if err == nil {
		c := cycle[T]{src: r.src, sink: r.sink, opts: r.opts, bell: &r.bell, track: r.track, full: true}
		err = c.run(ctx)
	}
	r.track.stopped(err)
	return err
}

// Status says what the reflector is doing. It is cheap and never waits for the
// source or the sink.
func (r *Reflector[T]) Status() Status { return r.track.get() }

// Relist asks for a full state that is begun after this call. It ends the
// present session, or the wait after a failure (not one that the source asked
// for with retry.After). A full state that is being taken is finished first, and
// one more follows. Calls before that one begins are answered by it together; no
// call is lost, whenever it is made. It returns at once; reason is for the log.
func (r *Reflector[T]) Relist(reason string) { r.bell.ring(reason) }

// ConfirmDeletes lets a full state through that is held for what it would delete
// (Options.MaxDelete): one that deletes no more than Status.WouldDelete says. It is
// false when none is held. The full state is taken anew, at once, by whoever calls
// Run.
func (r *Reflector[T]) ConfirmDeletes() bool {
	if !r.track.confirm() {
		return false
	}
	r.bell.ring("deletes confirmed")
	return true
}
