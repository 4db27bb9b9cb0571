package indexer

import "sync/atomic"

// points is a hash table from keys to slots for one writer and any number of
// readers. It is a hint: whoever finds a slot looks whether his own state has the
// key there. So it need not be versioned, is not touched by updates, and may hold
// keys too many. What it promises is that it has all keys of the newest state.
//
// A cell is empty (0), removed (1), or has 32 bits of the key's hash above the
// slot + 2. Cells are probed one after the other; an empty one ends the search, so
// removed ones stay until the table is built anew.
type points struct {
	table atomic.Pointer[pointTable]
	// The writer's:
	live, used int // keys; cells that are not empty
}

type pointTable struct {
	mask  uint32
	cells []atomic.Uint64
}

const (
	pointRemoved  = 1
	pointsAtLeast = 16 // cells
)

func newPointTable(size int) *pointTable {
	return &pointTable{mask: uint32(size - 1), cells: make([]atomic.Uint64, size)}
}

// probe gives the next slot that the key of this hash may be in. step counts the
// cells looked at, beginning with 0.
func (t *pointTable) probe(hash uint32, step *uint32) (slot uint32, ok bool) {
	for {
		cell := t.cells[(hash+*step)&t.mask].Load()
		*step++
		if cell == 0 {
			return 0, false
		}
		if cell != pointRemoved && uint32(cell>>32) == hash {
			return uint32(cell) - 2, true
		}
	}
}

// place puts cell in the first free place; it says whether an empty one was used.
func (t *pointTable) place(cell uint64) bool {
	for i := uint32(cell >> 32); ; i++ {
		at := &t.cells[i&t.mask]
		if old := at.Load(); old <= pointRemoved {
			at.Store(cell)
			return old == 0
		}
	}
}

// insert adds a key that is not there.
func (p *points) insert(hash uint32, slot uint32) {
	t := p.table.Load()
	if 4*(p.used+1) > 3*len(t.cells) {
		t = p.rebuild()
	}
	if t.place(uint64(hash)<<32 | uint64(slot+2)) {
		p.used++
	}
	p.live++
}

// remove takes a key away that is there.
func (p *points) remove(hash uint32, slot uint32) {
	t := p.table.Load()
	gone := uint64(hash)<<32 | uint64(slot+2)
	for i := hash; ; i++ {
		if at := &t.cells[i&t.mask]; at.Load() == gone {
			at.Store(pointRemoved)
			break
		}
	}
	p.live--
	if len(t.cells) > pointsAtLeast && 8*p.live < len(t.cells) {
		p.rebuild()
	}
}

// rebuild gives the keys a new table that is between a quarter and a half full. A
// reader in the old one still finds there what it had.
func (p *points) rebuild() *pointTable {
	size := pointsAtLeast
	for 2*p.live >= size {
		size *= 2
	}
	t := newPointTable(size)
	for i, old := 0, p.table.Load(); i < len(old.cells); i++ {
		if cell := old.cells[i].Load(); cell > pointRemoved {
			t.place(cell)
		}
	}
	p.used = p.live
	p.table.Store(t)
	return t
}
