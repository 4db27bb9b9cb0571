package workqueue

// heap orders the entries that wait for a time, the earliest first and, of equal
// times, the one planned first. It has four children a node: half the levels of
// two, which is what a heap of a million cold entries pays for.
type heap[K comparable] struct {
	slots []*entry[K]
	seq   uint32
}

func (h *heap[K]) first() *entry[K] {
	if len(h.slots) == 0 {
		return nil
	}
	return h.slots[0]
}

// fix puts e where its time says, or takes it out when it has none. It is called
// after each change of e.at().
func (h *heap[K]) fix(e *entry[K]) {
	if e.at() == 0 {
		h.remove(e)
		return
	}
	h.seq++
	e.seq = h.seq
	if e.place == 0 {
		h.slots = append(h.slots, e)
		e.place = int32(len(h.slots))
	}
	h.settle(int(e.place) - 1)
}

func (h *heap[K]) remove(e *entry[K]) {
	if e.place == 0 {
		return
	}
	i := int(e.place) - 1
	e.place = 0
	last := len(h.slots) - 1
	moved := h.slots[last]
	h.slots[last] = nil
	h.slots = h.slots[:last]
	if moved != e {
		h.slots[i] = moved
		moved.place = int32(i + 1)
		h.settle(i)
	}
	if c := cap(h.slots); c > keep && last < c/4 { // memory goes back
		h.slots = append(make([]*entry[K], 0, c/2), h.slots...)
	}
}

// settle moves the entry at i up or down to its place.
func (h *heap[K]) settle(i int) {
	e := h.slots[i]
	for i > 0 {
		parent := (i - 1) / 4
		if !before(e, h.slots[parent]) {
			break
		}
		h.put(i, h.slots[parent])
		i = parent
	}
	for {
		least := 4*i + 1
		if least >= len(h.slots) {
			break
		}
		for c := least + 1; c < min(4*i+5, len(h.slots)); c++ {
			if before(h.slots[c], h.slots[least]) {
				least = c
			}
		}
		if !before(h.slots[least], e) {
			break
		}
		h.put(i, h.slots[least])
		i = least
	}
	h.put(i, e)
}

func (h *heap[K]) put(i int, e *entry[K]) {
	h.slots[i] = e
	e.place = int32(i + 1)
}

// before compares seq by difference, so that it may wrap around.
func before[K comparable](a, b *entry[K]) bool {
	if x, y := a.at(), b.at(); x != y {
		return x < y
	}
	return int32(a.seq-b.seq) < 0
}
