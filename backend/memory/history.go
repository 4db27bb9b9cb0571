package memory

import (
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// history is a ring of the last changes. Revisions have no gaps, so a revision's
// place follows from its number.
type history[T any] struct {
	keep  int        // its most entries
	ring  []entry[T] // grows up to keep, then wraps
	first int64      // the oldest revision there is; last+1 when there is none
}

// entry is one change. It can be undone: that is how earlier states are worked
// out.
type entry[T any] struct {
	was, is *object.Item[T] // was is nil for a create, is for a delete
	at      reflector.Cursor
	serial  int64 // tells it from another change that was given the same revision
}

func (e *entry[T]) key() string {
	if e.is != nil {
		return e.is.Key
	}
	return e.was.Key
}

// event is the change as watches tell it.
func (e *entry[T]) event() reflector.Event[T] {
	if e.is != nil {
		return reflector.Event[T]{Op: reflector.OpPut, Known: true, Item: *e.is}
	}
	gone := *e.was
	gone.Version = version(e.at)
	return reflector.Event[T]{Op: reflector.OpDelete, Known: true, Item: gone}
}

func newHistory[T any](keep int) history[T] { return history[T]{keep: keep, first: 1} }

func (h *history[T]) entry(rev int64) *entry[T] { return &h.ring[h.place(rev)] }

func (h *history[T]) place(rev int64) int { return int((rev - 1) % int64(h.keep)) }

// add appends rev, which follows the last one added.
func (h *history[T]) add(rev int64, e entry[T]) {
	if i := h.place(rev); i < len(h.ring) {
		h.ring[i] = e
	} else {
		// After forget the ring may begin in its middle.
		for len(h.ring) < i {
			h.ring = append(h.ring, entry[T]{})
		}
		h.ring = append(h.ring, e)
	}
	h.first = max(h.first, rev-int64(h.keep)+1)
}

// after copies what follows rev, up to last and to the room in buf; false when
// some of it is gone.
func (h *history[T]) after(rev, last int64, buf []entry[T]) (n int, ok bool) {
	if !h.reaches(rev) {
		return 0, false
	}
	n = int(min(last-rev, int64(len(buf))))
	for i := range n {
		buf[i] = *h.entry(rev + 1 + int64(i))
	}
	return n, true
}

// reaches says that nothing after rev is gone.
func (h *history[T]) reaches(rev int64) bool { return rev >= h.first-1 }

// has says that rev is there, and is the change with this serial number.
func (h *history[T]) has(rev, serial int64) bool {
	return rev >= h.first && h.entry(rev).serial == serial
}

// forget drops everything; rev+1 is the next to be added.
func (h *history[T]) forget(rev int64) {
	h.first = rev + 1
	clear(h.ring)
}

// undo drops what follows rev, up to last.
func (h *history[T]) undo(rev, last int64) {
	for ; last > rev; last-- {
		*h.entry(last) = entry[T]{}
	}
}
