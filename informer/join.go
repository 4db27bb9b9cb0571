package informer

import (
	"context"
	"fmt"
	"slices"

	"github.com/homeostat/homeostat/deltafifo"
	"github.com/homeostat/homeostat/object"
)

// AddHandler registers f, which is called once for each change, one call at a
// time, in the order in which the cache changed for each key. It may be called
// before, during and after Run, and inside handlers.
//
// A handler that is added when the cache is synced is first given, as Added, each
// object that the cache holds at that moment; everything later follows, nothing
// is missed or told twice. A handler added earlier is given the first list as soon
// as that is complete. An inline handler that joins late is given its first
// objects on the caller's goroutine, before AddHandler returns.
//
// After Run has returned the Subscription is ended at once. f must not be nil.
func (i *Informer[T]) AddHandler(f func(Change[T]), opts *HandlerOptions) *Subscription {
	if f == nil {
		panic("informer: AddHandler(nil)")
	}
	return i.add(&handler[T]{one: f}, opts)
}

// AddBatchHandler is [Informer.AddHandler] for a function that takes many changes
// in one call: what is pending, up to about a thousand changes; inline, all of one
// batch of the source. A call never has no changes. The slice is valid until f
// returns and shared with other handlers: it is to be read, not kept.
func (i *Informer[T]) AddBatchHandler(f func([]Change[T]), opts *HandlerOptions) *Subscription {
	if f == nil {
		panic("informer: AddBatchHandler(nil)")
	}
	return i.add(&handler[T]{many: f}, opts)
}

func (i *Informer[T]) add(h *handler[T], opts *HandlerOptions) *Subscription {
	var o HandlerOptions
	if opts != nil {
		o = *opts
	}
	if o.Logger == nil {
		o.Logger = i.log
	}
	h.inf, h.owner = i, i
	h.name, h.inline, h.log = o.Name, o.Inline, o.Logger
	h.done, h.synced = make(chan struct{}), make(chan struct{})
	h.buf = deltafifo.NewBuffer[T](nil)
	h.queued = h.buf.Stats

	i.mu.Lock()
	i.named++
	if h.name == "" {
		h.name = fmt.Sprintf("handler-%d", i.named)
	}
	switch {
	case i.state == stopped:
		i.mu.Unlock()
		h.end()
		h.buf.Close()
		return &h.Subscription
	case i.told:
		h.catching = h.inline
		i.startLocked(h, i.firstLocked())
	}
	i.handlers = append(i.handlers, h)
	i.registered.Add(1)
	catching := h.catching
	if catching {
		i.running.Add(1) // under mu: not once Run has begun to wait
	}
	i.mu.Unlock()

	if catching {
		i.catchUp(h)
	}
	return &h.Subscription
}

// firstLocked is the cache as it is now, as what a handler is told first.
func (i *Informer[T]) firstLocked() []deltafifo.Delta[T] {
	snap := i.cache.Snapshot()
	first := make([]deltafifo.Delta[T], 0, snap.Len())
	for key := range snap.All() {
		item, _ := snap.Item(key)
		first = append(first, deltafifo.Delta[T]{Type: deltafifo.Put, Item: item, Cause: object.Initial})
	}
	return first
}

// startLocked gives a buffered handler, or one that has to catch up, its first
// objects.
func (i *Informer[T]) startLocked(h *handler[T], first []deltafifo.Delta[T]) {
	if len(first) == 0 {
		close(h.synced)
	} else {
		h.left.Store(int64(len(first)))
		if !h.inline {
			h.first, h.drained = context.WithCancel(context.Background())
		}
		h.push(first)
	}
	if !h.inline {
		i.running.Go(h.run)
	}
}

// catchUp feeds an inline handler that joins late from its buffer until nothing is
// left, and then, in the same step in which it sees that, hands it over to the
// writer: its calls never overlap.
func (i *Informer[T]) catchUp(h *handler[T]) {
	defer i.running.Done()
	returned := false
	defer func() {
		if !returned {
			h.quit()
		}
	}()
	buf := make([]deltafifo.Delta[T], 0, 64)
	var changes []Change[T]
	for {
		deltas, more := i.takeOrSwitch(h, buf)
		if !more {
			break
		}
		changes = appendChanges(changes[:0], deltas)
		h.feed(changes)
	}
	if h.left.Load() > 0 {
		h.sync()
	}
	returned = true
}

func (i *Informer[T]) takeOrSwitch(h *handler[T], buf []deltafifo.Delta[T]) ([]deltafifo.Delta[T], bool) {
	// Pushes are made under mu: what is pending can't cancel out between the look
	// and the pop, which therefore never waits.
	i.mu.Lock()
	defer i.mu.Unlock()
	if h.buf.Stats().Keys == 0 {
		h.catching = false
		return nil, false
	}
	deltas, err := h.buf.PopBatch(context.Background(), buf)
	return deltas, err == nil
}

// forget is what Cancel leaves to the informer: nothing of the handler stays.
func (i *Informer[T]) forget(s *Subscription) {
	i.mu.Lock()
	defer i.mu.Unlock()
	at := slices.IndexFunc(i.handlers, func(h *handler[T]) bool { return &h.Subscription == s })
	if at < 0 {
		return
	}
	i.handlers[at].buf.Close()
	i.handlers = slices.Delete(i.handlers, at, at+1)
	i.registered.Add(-1)
}
