package informer

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/homeostat/homeostat/deltafifo"
)

// Subscription is one handler's tie to its informer. All methods may be called
// from any goroutine, also inside the handler and inside other handlers.
type Subscription struct {
	name  string
	owner owner
	// queued tells what is pending, whatever the type of the objects.
	queued func() deltafifo.Stats
	// flags says whether a call may start; it alone decides, so that Cancel needs
	// no lock that a handler could hold up.
	flags  atomic.Int32
	done   chan struct{}
	synced chan struct{}
	// left is how many of the first objects' keys have still to be handed over;
	// written by whoever feeds the handler, read by WaitForSync's error.
	left atomic.Int64
	// busy is when the handler was given what it works on now, in Unix
	// nanoseconds; 0 when it does not work.
	busy atomic.Int64
	// canceled: by Cancel, and not by the end of Run.
	canceled atomic.Bool
}

// owner is what a Subscription needs of its Informer, without the type of the
// objects.
type owner interface {
	forget(s *Subscription)
	waitError(handler, what string, cause error) *WaitError
}

const (
	subEnded   int32 = 1 << iota // no call starts any more
	subCalling                   // a call has started and not ended
)

// Cancel ends the subscription: once it has returned, no call of the handler
// starts. It does not wait for a call that has started (so it may be called
// inside the handler); that is what [Subscription.Done] tells. What was pending
// is dropped. Cancelling twice is fine.
func (s *Subscription) Cancel() {
	if !s.ended() {
		s.canceled.Store(true)
	}
	s.end()
	s.owner.forget(s)
}

// Done is closed once the handler will never be called again and its last call
// has ended: after Cancel, or when the informer's Run ends.
func (s *Subscription) Done() <-chan struct{} { return s.done }

// WaitForSync waits until the handler has returned from all objects of the first
// list or, when it joined later, from all that the cache held at that time. A
// panic counts as a return; no objects are synced at once. It does not say that
// work which the handler handed on elsewhere is done.
//
// The error is a *[WaitError] with the context's cause, [ErrStopped] when the
// informer ended before, or [ErrCanceled] when the subscription did.
func (s *Subscription) WaitForSync(ctx context.Context) error {
	select {
	case <-s.synced:
		return nil
	default:
	}
	select {
	case <-s.synced:
		return nil
	case <-s.done:
		// Both may have come meanwhile; being synced stays true.
		select {
		case <-s.synced:
			return nil
		default:
		}
		if s.canceled.Load() {
			return s.waitError(ErrCanceled)
		}
		return s.waitError(ErrStopped)
	case <-ctx.Done():
		return s.waitError(context.Cause(ctx))
	}
}

// Lag says how far the handler is behind: how many keys are pending for it (what
// it is working on not counted), and for how long the oldest of them, or the one
// that it is working on, has waited. Inline handlers are never behind by a key.
func (s *Subscription) Lag() (keys int, oldest time.Duration) {
	var since time.Time
	if at := s.busy.Load(); at != 0 {
		since = time.Unix(0, at)
	}
	st := s.queued()
	if !st.Oldest.IsZero() && (since.IsZero() || st.Oldest.Before(since)) {
		since = st.Oldest
	}
	if since.IsZero() {
		return st.Keys, 0
	}
	return st.Keys, max(0, time.Since(since))
}

func (s *Subscription) waitError(cause error) *WaitError {
	what := "the first list"
	if left := s.left.Load(); left > 0 {
		what = fmt.Sprintf("it to return from its first objects (%d keys left)", left)
	}
	return s.owner.waitError(s.name, what, cause)
}

// begin asks to start a call; every true is followed by one finish.
func (s *Subscription) begin() bool { return s.flags.CompareAndSwap(0, subCalling) }

// finish ends a call. The last one closes done: end saw it running.
func (s *Subscription) finish() {
	if s.flags.And(^subCalling)&subEnded != 0 {
		close(s.done)
	}
}

// end lets no call start any more.
func (s *Subscription) end() {
	if s.flags.Or(subEnded) == 0 {
		close(s.done)
	}
}

func (s *Subscription) ended() bool { return s.flags.Load()&subEnded != 0 }
