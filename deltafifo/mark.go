package deltafifo

import (
	"context"
	"slices"
)

// mark is a place in the order of keys, and who waits for it to be passed.
type mark struct {
	turn    uint64 // of the last key before it
	waiting int
	passed  chan struct{}
}

// WaitPopped waits until everything that was pushed before the call has been handed
// over, by whichever Pop, or has been merged away. What is pushed meanwhile is not
// waited for, except when it is merged into what is. It ends with [ErrClosed] after
// Close, and with the context's cause.
//
// Handed over is not done with: what the consumer made of it, only the consumer knows.
func (b *Buffer[T]) WaitPopped(ctx context.Context) error {
	b.mu.Lock()
	if b.shut {
		b.mu.Unlock()
		return ErrClosed
	}
	if b.q.front == nil {
		b.mu.Unlock()
		return nil
	}
	// Many may wait for one place.
	if n := len(b.marks); n == 0 || b.marks[n-1].turn != b.q.turns {
		b.marks = append(b.marks, &mark{turn: b.q.turns, passed: make(chan struct{})})
	}
	m := b.marks[len(b.marks)-1]
	m.waiting++
	b.mu.Unlock()
	select {
	case <-m.passed:
		return nil
	case <-b.closed:
		return ErrClosed
	case <-ctx.Done():
		b.leave(m)
		return context.Cause(ctx)
	}
}

// leave drops a mark that nobody waits for any more.
func (b *Buffer[T]) leave(m *mark) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.waiting--; m.waiting > 0 {
		return
	}
	if at := slices.Index(b.marks, m); at >= 0 {
		b.marks = slices.Delete(b.marks, at, at+1)
	}
}

// passLocked lets those go who wait for what is not pending any more.
func (b *Buffer[T]) passLocked() {
	n := 0
	for n < len(b.marks) && (b.q.front == nil || b.q.front.turn > b.marks[n].turn) {
		close(b.marks[n].passed)
		n++
	}
	if n == 0 {
		return
	}
	if b.marks = b.marks[n:]; len(b.marks) == 0 {
		b.marks = nil
	}
}

// WaitPopped waits until everything that was told before the call has been handed
// over; see [Buffer.WaitPopped].
func (f *FIFO[T]) WaitPopped(ctx context.Context) error { return f.b.WaitPopped(ctx) }
