package informer

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/homeostat/homeostat/deltafifo"
)

// maxPop is the most deltas that a batch handler is given at once.
const maxPop = 1024

// handler is a Subscription with what its informer knows of it.
type handler[T any] struct {
	Subscription
	inf *Informer[T]
	// one or many is set.
	one  func(Change[T])
	many func([]Change[T])
	log  *slog.Logger
	// inline handlers have a buffer too, while they join late.
	inline bool
	buf    *deltafifo.Buffer[T]

	// first is what run waits under until the handler is synced; drained ends it
	// when none of the first objects is left in buf. Set before run starts, if
	// there are any.
	first   context.Context
	drained context.CancelFunc

	// catching: an inline handler that is being fed from buf by whoever added it.
	// Guarded by Informer.mu.
	catching bool
}

// run feeds a buffered handler until its subscription ends.
func (h *handler[T]) run() {
	returned := false
	defer func() {
		// The handler ended this goroutine (runtime.Goexit, a test's FailNow): it
		// will not be called again, so let it be seen.
		if !returned {
			h.quit()
		}
	}()
	var deltas []deltafifo.Delta[T]
	var changes []Change[T]
	for {
		// A handler of single changes takes one key at a time, so that the rest
		// goes on being compacted while it works. (Cap 1: room for a key's second
		// delta must not make room for a second key.)
		buf := deltas[:0]
		if h.one != nil && cap(buf) > 1 {
			buf = buf[:0:1]
		}
		ctx := h.first
		if h.left.Load() == 0 {
			ctx = context.Background()
		}
		var err error
		deltas, err = h.buf.PopBatch(ctx, buf)
		switch {
		case h.ended():
			returned = true
			return
		case err != nil:
			// Drained, by deltas that cancelled out; and what was taken before that
			// has been handed over, since here is who does it.
			h.sync()
			continue
		}
		full := len(deltas) >= cap(buf)
		changes = appendChanges(changes[:0], deltas)
		h.feed(changes)
		h.fed(keysOf(deltas))
		// Let go of the objects, and of the room when a burst is over.
		clear(changes)
		clear(deltas)
		switch n := cap(deltas); {
		case h.one != nil:
		case full && n < maxPop:
			deltas = make([]deltafifo.Delta[T], 0, min(maxPop, max(16, 2*n)))
		case len(deltas) < n/4 && n > 16:
			deltas, changes = make([]deltafifo.Delta[T], 0, n/2), nil
		}
	}
}

// quit is called when the handler has ended the goroutine that called it.
func (h *handler[T]) quit() {
	h.busy.Store(0)
	h.log.Error("handler ended its goroutine; its subscription is cancelled",
		"informer", h.inf.name, "handler", h.name)
	h.Cancel()
}

// feed hands over what was taken from the buffer.
func (h *handler[T]) feed(changes []Change[T]) {
	h.busy.Store(time.Now().UnixNano())
	h.give(changes)
	h.busy.Store(0)
}

// fed counts down to the handler's sync. The keys that were pending when the
// handler joined are at the front of the buffer, in their order, and leave it by
// being handed over or by cancelling out. So they are through when as many keys
// were handed over, or when nothing is left: a stream that never pauses can't
// keep the handler from being synced.
func (h *handler[T]) fed(keys int) {
	left := h.left.Load()
	if left == 0 {
		return
	}
	left = max(0, left-int64(keys))
	if left == 0 || h.buf.Stats().Keys == 0 {
		h.sync()
		return
	}
	h.left.Store(left)
}

// sync marks the handler as synced. Ended, it may have been given less than was
// taken from the buffer.
func (h *handler[T]) sync() {
	if !h.ended() {
		h.left.Store(0)
		close(h.synced)
	}
}

// push is for the writer, under Informer.mu. It never fails but on a buffer that
// is closed, which is the end of the subscription.
func (h *handler[T]) push(deltas []deltafifo.Delta[T]) {
	_ = h.buf.Push(deltas...)
	// What cancels out in the buffer wakes nobody, and may have been the last of
	// what the handler had to be given to be synced.
	if h.drained != nil && h.left.Load() > 0 && h.buf.Stats().Keys == 0 {
		h.drained()
	}
}

// give calls the handler, for each change or for all, until its subscription ends.
func (h *handler[T]) give(changes []Change[T]) {
	if h.many != nil {
		if len(changes) > 0 {
			h.call(nil, changes)
		}
		return
	}
	for i := range changes {
		if !h.call(&changes[i], nil) {
			return
		}
	}
}

// call is the boundary: one call of the user's function, its panic caught.
// It is false when the subscription has ended.
func (h *handler[T]) call(one *Change[T], many []Change[T]) (ok bool) {
	if !h.begin() {
		return false
	}
	ok = true // also after a panic
	defer h.finish()
	defer func() {
		if v := recover(); v != nil {
			h.panicked(v, one, many)
		}
	}()
	if one != nil {
		h.one(*one)
	} else {
		h.many(many)
	}
	return ok
}

func (h *handler[T]) panicked(v any, one *Change[T], many []Change[T]) {
	e := &PanicError{
		Informer: h.inf.name,
		What:     fmt.Sprintf("handler %q", h.name),
		Value:    v,
		Stack:    debug.Stack(),
	}
	switch {
	case one != nil:
		e.Key = one.Key
	case len(many) == 1:
		e.Key = many[0].Key
	}
	h.inf.stats.panicked(e)
	h.log.Error("handler panicked", "informer", e.Informer, "handler", h.name,
		"key", e.Key, "error", e, "stack", string(e.Stack))
}

func appendChanges[T any](changes []Change[T], deltas []deltafifo.Delta[T]) []Change[T] {
	for i := range deltas {
		changes = append(changes, changeOf(&deltas[i]))
	}
	return changes
}

// keysOf counts the keys; those of one key stand together.
func keysOf[T any](deltas []deltafifo.Delta[T]) int {
	n := 0
	for i := range deltas {
		if i == 0 || deltas[i].Item.Key != deltas[i-1].Item.Key {
			n++
		}
	}
	return n
}
