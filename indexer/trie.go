package indexer

import (
	"math/bits"
	"slices"
)

const trieBits = 5

// trie maps the values of one index to the slots of the objects that have them: a
// hash trie that is copied as it is written, by the rule of owners that vec tells.
type trie[K comparable] struct {
	root twig[K]
	n    int // values
}

// slots is a set of slot numbers.
type slots = tree[uint32, struct{}]

// branch has a kid for each bit that is set.
type branch[K comparable] struct {
	owner uint64
	bits  uint32
	kids  []twig[K]
}

// twig is either.
type twig[K comparable] struct {
	branch *branch[K]
	leaf   *leaf[K]
}

// leaf is one value and who has it. next is of another value with the same hash.
type leaf[K comparable] struct {
	owner uint64
	cell  *cell[K]
	slots slots
	next  *leaf[K]
}

// cell is a value with its hash. All objects under a value share one cell.
type cell[K comparable] struct {
	value K
	hash  uint64
	alone places[K] // the list of this cell alone: an object with one value has no list of its own
	one   [1]*cell[K]
}

// places is the list of values that one object has in one index.
type places[K comparable] struct{ cells []*cell[K] }

func newCell[K comparable](hash uint64, value K) *cell[K] {
	c := &cell[K]{value: value, hash: hash}
	c.one[0] = c
	c.alone.cells = c.one[:]
	return c
}

// find is nil when there is no such value.
func (t *trie[K]) find(hash uint64, value K) *leaf[K] {
	at := t.root
	for rest := hash; at.branch != nil; rest >>= trieBits {
		bit := hashBit(rest, 0)
		if at.branch.bits&bit == 0 {
			return nil
		}
		at = at.branch.kids[at.branch.rank(bit)]
	}
	for l := at.leaf; l != nil; l = l.next {
		if l.cell.hash == hash && l.cell.value == value {
			return l
		}
	}
	return nil
}

// hashBit is the bit that stands for hash in a branch at this depth.
func hashBit(hash uint64, shift uint) uint32 { return 1 << (hash >> shift % (1 << trieBits)) }

func (b *branch[K]) rank(bit uint32) int { return bits.OnesCount32(b.bits & (bit - 1)) }

func (b *branch[K]) edit(owner uint64) *branch[K] {
	if b.owner == owner {
		return b
	}
	return &branch[K]{owner: owner, bits: b.bits, kids: roomy(b.kids)}
}

// add puts slot under value.
func (t *trie[K]) add(owner uint64, hash uint64, value K, slot uint32) *cell[K] {
	root, c, isNew := t.root.add(owner, 0, hash, value, slot)
	t.root = root
	if isNew {
		t.n++
	}
	return c
}

func (w twig[K]) add(owner uint64, shift uint, hash uint64, value K, slot uint32) (_ twig[K], c *cell[K], isNew bool) {
	if w.branch == nil && (w.leaf == nil || w.leaf.cell.hash == hash) {
		w.leaf, c, isNew = w.leaf.add(owner, hash, value, slot)
		return w, c, isNew
	}
	if w.branch == nil { // another hash: they part here or further down
		w = twig[K]{branch: &branch[K]{owner: owner, bits: hashBit(w.leaf.cell.hash, shift), kids: []twig[K]{w}}}
	}
	b := w.branch.edit(owner)
	bit := hashBit(hash, shift)
	at := b.rank(bit)
	if b.bits&bit == 0 {
		b.bits |= bit
		b.kids = slices.Insert(b.kids, at, twig[K]{})
	}
	b.kids[at], c, isNew = b.kids[at].add(owner, shift+trieBits, hash, value, slot)
	return twig[K]{branch: b}, c, isNew
}

func (l *leaf[K]) edit(owner uint64) *leaf[K] {
	if l.owner == owner {
		return l
	}
	return &leaf[K]{owner: owner, cell: l.cell, slots: l.slots, next: l.next}
}

func (l *leaf[K]) add(owner uint64, hash uint64, value K, slot uint32) (*leaf[K], *cell[K], bool) {
	if l == nil {
		l = &leaf[K]{owner: owner, cell: newCell(hash, value)}
		l.slots.set(owner, slot, struct{}{})
		return l, l.cell, true
	}
	l = l.edit(owner)
	if l.cell.value == value {
		l.slots.set(owner, slot, struct{}{})
		return l, l.cell, false
	}
	next, c, isNew := l.next.add(owner, hash, value, slot)
	l.next = next
	return l, c, isNew
}

// drop takes slot, which must be there, away from c's value. A value that nobody
// has is gone.
func (t *trie[K]) drop(owner uint64, c *cell[K], slot uint32) {
	root, gone := t.root.drop(owner, 0, c, slot)
	t.root = root
	if gone {
		t.n--
	}
}

// drop gives back what is left: nothing, a leaf in the place of a branch that has
// no more than that, or the branch. So a branch has always two kids or more, or one
// branch.
func (w twig[K]) drop(owner uint64, shift uint, c *cell[K], slot uint32) (left twig[K], gone bool) {
	if w.branch == nil {
		w.leaf, gone = w.leaf.drop(owner, c, slot)
		return w, gone
	}
	b := w.branch.edit(owner)
	bit := hashBit(c.hash, shift)
	at := b.rank(bit)
	kid, gone := b.kids[at].drop(owner, shift+trieBits, c, slot)
	if b.kids[at] = kid; kid == (twig[K]{}) {
		b.bits &^= bit
		b.kids = slices.Delete(b.kids, at, at+1)
	}
	if len(b.kids) == 1 && b.kids[0].leaf != nil {
		return b.kids[0], gone
	}
	return twig[K]{branch: b}, gone
}

func (l *leaf[K]) drop(owner uint64, c *cell[K], slot uint32) (left *leaf[K], gone bool) {
	l = l.edit(owner)
	if l.cell.value != c.value {
		l.next, gone = l.next.drop(owner, c, slot)
		return l, gone
	}
	l.slots.del(owner, slot)
	if l.slots.n == 0 {
		return l.next, true
	}
	return l, false
}

// walk visits all leaves until yield says no; it says whether it came to the end.
func (t *trie[K]) walk(yield func(*leaf[K]) bool) bool {
	return t.root.walk(yield)
}

func (w twig[K]) walk(yield func(*leaf[K]) bool) bool {
	for l := w.leaf; l != nil; l = l.next {
		if !yield(l) {
			return false
		}
	}
	if w.branch == nil {
		return true
	}
	for _, kid := range w.branch.kids {
		if !kid.walk(yield) {
			return false
		}
	}
	return true
}
