package deltafifo

import (
	"context"
	"sync"
	"time"
)

// Buffer is the compacting queue: per pending key at most two deltas, keys in
// the order of their first pending delta. It knows nothing of what it has handed
// over; whoever pushes says in Had and Old what the consumer holds. Make one with
// [NewBuffer]. All methods may be called from any goroutine.
type Buffer[T any] struct {
	// ready holds a token whenever something may be pending; a consumer that
	// leaves something behind puts it back. Waiting on a channel, not on a
	// sync.Cond, can be ended by a context.
	ready  chan struct{}
	closed chan struct{}
	start  time.Time // what the pending keys' ages count from

	mu    sync.Mutex
	q     queue[T]
	marks []*mark // ascending
	// shut is closed's twin under mu, so that no push slips in after Close.
	shut bool
}

// NewBuffer makes an empty Buffer.
func NewBuffer[T any](opts *Options) *Buffer[T] {
	b := &Buffer[T]{}
	b.init(opts)
	return b
}

func (b *Buffer[T]) init(opts *Options) {
	b.ready = make(chan struct{}, 1)
	b.closed = make(chan struct{})
	b.start = time.Now()
	if opts != nil {
		b.q.keepAll = opts.KeepAll
	}
}

// Push adds deltas, all in one step: no consumer sees a part of them pending. Had
// and Old of each delta say what a consumer holds that has taken everything of
// its key pushed so far, so a key that is pending keeps the first ones. A Delete
// whose Item has nothing but a key carries the newest state known instead. Push
// never waits for consumers. It fails, and takes nothing, with [ErrClosed] after
// Close and with [ErrInvalidDelta].
func (b *Buffer[T]) Push(ds ...Delta[T]) error {
	if err := validate(ds); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shut {
		return ErrClosed
	}
	c := clock{start: b.start}
	for i := range ds {
		b.q.push(b.q.pending(ds[i].Item.Key), &ds[i], &c)
	}
	b.wakeLocked()
	return nil
}

// Pop waits for the key that has been pending longest and takes its deltas, in
// order. It ends with [ErrClosed] after Close, and with the context's cause.
func (b *Buffer[T]) Pop(ctx context.Context) ([]Delta[T], error) {
	return b.PopBatch(ctx, nil)
}

// PopBatch is Pop for many keys at once: it waits until something is pending and
// appends to buf, oldest keys first and each key whole, what fits in buf's
// capacity, but at least one key. Use the returned slice as the next buf, cut to
// length 0, to pop without allocating. On error it returns buf as it was.
func (b *Buffer[T]) PopBatch(ctx context.Context, buf []Delta[T]) ([]Delta[T], error) {
	return b.pop(ctx, buf, nil)
}

// pop is PopBatch; taken, under mu, is told what is handed over.
func (b *Buffer[T]) pop(ctx context.Context, buf []Delta[T], taken func([]Delta[T])) ([]Delta[T], error) {
	for {
		// First, so that a consumer that was told to stop gets nothing more.
		if ctx.Err() != nil {
			return buf, context.Cause(ctx)
		}
		b.mu.Lock()
		if b.shut {
			b.mu.Unlock()
			return buf, ErrClosed
		}
		if b.q.len() > 0 {
			from := len(buf)
			buf = b.takeLocked(buf)
			if taken != nil {
				taken(buf[from:])
			}
			b.wakeLocked()
			b.mu.Unlock()
			return buf, nil
		}
		b.mu.Unlock()
		select {
		case <-b.ready:
		case <-b.closed:
		case <-ctx.Done():
		}
	}
}

func (b *Buffer[T]) takeLocked(buf []Delta[T]) []Delta[T] {
	for first := true; b.q.front != nil; first = false {
		e := b.q.front
		if !first && len(buf)+e.len() > cap(buf) {
			break
		}
		buf = append(append(buf, e.first), e.rest...)
		b.q.remove(e)
	}
	return buf
}

// wakeLocked is called after every change of what is pending.
func (b *Buffer[T]) wakeLocked() {
	b.passLocked()
	if b.q.len() == 0 {
		return
	}
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// Close ends the Buffer: what is pending is dropped, every Pop, waiting or to
// come, and every further push gets [ErrClosed]. Closing twice is fine.
func (b *Buffer[T]) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closeLocked()
}

func (b *Buffer[T]) closeLocked() {
	if b.shut {
		return
	}
	b.shut = true
	b.q.drop()
	b.marks = nil
	close(b.closed)
}

// Stats tells what is pending.
func (b *Buffer[T]) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Stats{Keys: b.q.len(), Deltas: b.q.deltas, Compacted: b.q.compacted}
	if e := b.q.front; e != nil {
		s.Oldest = b.start.Add(e.since)
	}
	return s
}
