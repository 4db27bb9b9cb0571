package memory

import "github.com/homeostat/homeostat/reflector"

// history is a ring of the last changes. Revisions have no gaps, so a revision's
// place follows from its number.
type history[T any] struct {
	keep  int        // its most entries
	ring  []entry[T] // grows up to keep, then wraps
	first int64      // the oldest revision there is; last+1 when there is none
}

type entry[T any] struct {
	event reflector.Event[T]
	at    reflector.Cursor
}

func newHistory[T any](keep int) history[T] { return history[T]{keep: keep, first: 1} }

func (h *history[T]) place(rev int64) int { return int((rev - 1) % int64(h.keep)) }

// add appends rev, which follows the last one added.
func (h *history[T]) add(rev int64, e entry[T]) {
	if i := h.place(rev); i < len(h.ring) {
		h.ring[i] = e
	} else {
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
		buf[i] = h.ring[h.place(rev+1+int64(i))]
	}
	return n, true
}

// reaches says that nothing after rev is gone.
func (h *history[T]) reaches(rev int64) bool { return rev >= h.first-1 }

// forget drops everything up to last.
func (h *history[T]) forget(last int64) {
	h.first = last + 1
	clear(h.ring)
}
