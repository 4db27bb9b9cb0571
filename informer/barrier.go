package informer

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// How long a barrier waits for the write to come by itself, before the informer
// asks for a list.
const (
	patience        = time.Second
	patienceReached = 5 * time.Second // where a position in the stream will tell, sooner or later
)

// WaitFor waits until the cache provably contains the write that made version v of
// key, or a later state of the key, its absence included. Call it after the write
// has returned; from the moment of the call on nothing that comes in is missed. v
// == "" stands for a write whose version is not known: its answer was lost, or it
// was a delete. The first proof counts:
//
//  1. the source says that what the cache has applied reaches v (Powers.Reached);
//  2. version v itself came in for key, or is what the cache holds;
//  3. a full list that was begun after the call was applied, whatever it said.
//
// When neither of the first two comes within a second (5 s where there is
// Reached), the informer asks for that list itself: a version that was skipped
// over, or the object's end, is waited for no longer than a list takes. With
// Powers.StaleLists a list may be older than it should, and (3) proves as much
// less; [Status].StaleLists says so.
//
// The error is a *[RefusedError] when the proof came but the cache refuses what
// the source has under key, and else a *[WaitError] with the context's cause or
// [ErrStopped]. Nothing is left of the wait once WaitFor has returned. An inline
// handler must not call it: the proof could not come in.
func (i *Informer[T]) WaitFor(ctx context.Context, key string, v object.Version) error {
	b := i.barriers.register(key, v)
	defer i.barriers.remove(b)

	// Registered first and looked at second: no batch falls between.
	if i.holds(b) {
		return nil
	}
	reached, at := i.barriers.position()
	if i.isReached(reached, at, v) {
		i.barriers.release(b)
	}
	wait := patience
	if reached != nil && v != "" {
		wait = patienceReached
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		// A proof beats whatever else has happened by now.
		select {
		case <-b.met:
			return b.err
		default:
		}
		select {
		case <-b.met:
			return b.err
		case <-i.stopped:
			return i.waitError("", b.String(), ErrStopped)
		case <-ctx.Done():
			return i.waitError("", b.String(), context.Cause(ctx))
		case <-timer.C:
			if i.barriers.ask(b) {
				i.refl.Relist(fmt.Sprintf("to see a write of key %q", key))
			}
		}
	}
}

// holds is the second proof, by the cache.
func (i *Informer[T]) holds(b *barrier) bool {
	if b.version == "" {
		return false
	}
	item, ok := i.cache.Item(b.key)
	return ok && item.Version == b.version
}

// isReached is the first proof. Reached is the source's code: it is called under
// no lock, and a panic of it proves nothing.
func (i *Informer[T]) isReached(reached reachedFunc, at reflector.Cursor, v object.Version) (ok bool) {
	if reached == nil || at == "" || v == "" {
		return false
	}
	defer func() {
		if p := recover(); p != nil {
			ok = false
			i.stats.panicked(&PanicError{Informer: i.name, What: "source Reached", Value: p, Stack: debug.Stack()})
		}
	}()
	return reached(at, v)
}

// settle releases what a batch, or a full state, has proved; the cache has it
// already. seq is that of a full state's Begin, 0 for a batch.
func (i *Informer[T]) settle(events []reflector.Event[T], at reflector.Cursor, seq uint64) {
	met, open := collect(&i.barriers, events, at, seq)
	reached, at := i.barriers.position()
	for _, b := range open {
		if i.isReached(reached, at, b.version) {
			met = append(met, b)
		}
	}
	i.barriers.release(met...)
}

// collect tells the barriers that are met by versions that came in, all of them,
// also those that the same batch overwrote, or by a full state; and the rest.
func collect[T any](s *barriers, events []reflector.Event[T], at reflector.Cursor, seq uint64) (met, open []*barrier) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at != "" || seq > 0 {
		s.at = at
	}
	s.applied = max(s.applied, seq)
	if len(s.waiting) == 0 {
		return nil, nil
	}
	for n := range events {
		for _, b := range s.waiting[events[n].Key] {
			if b.version != "" && b.version == events[n].Version {
				met = append(met, b)
			}
		}
	}
	for _, list := range s.waiting {
		for _, b := range list {
			if seq > b.begun {
				met = append(met, b)
			} else {
				open = append(open, b)
			}
		}
	}
	return met, open
}
