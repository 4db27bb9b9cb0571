package indexer

import (
	"fmt"
	"iter"
)

// Tree, Vec, Trie and Points let the tests drive the structures by themselves,
// with keys, owners and hashes of their choice.

type Tree struct{ t tree[int, int] }

func (t *Tree) Set(owner uint64, key, val int) bool { return t.t.set(owner, key, val) }
func (t *Tree) Del(owner uint64, key int) bool      { return t.t.del(owner, key) }
func (t *Tree) Get(key int) (int, bool)             { return t.t.get(key) }
func (t *Tree) First() int                          { return t.t.first() }
func (t *Tree) Len() int                            { return t.t.n }
func (t *Tree) All() iter.Seq2[int, int] {
	return func(yield func(int, int) bool) { t.t.walk(yield) }
}
func (t *Tree) From(key int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) { t.t.from(key, yield) }
}

// Check says what is wrong with the shape: nodes too small or too large, leaves at
// different depths, keys out of bounds.
func (t *Tree) Check() error {
	if t.t.root == nil {
		return nil
	}
	depth := -1
	var walk func(n *treeNode[int, int], level int, low, high *int) error
	walk = func(n *treeNode[int, int], level int, low, high *int) error {
		least := treeMin
		if n == t.t.root {
			least = 1
		}
		switch {
		case len(n.keys) > treeMax || len(n.keys) < least:
			return fmt.Errorf("a node of %d keys", len(n.keys))
		case n.kids == nil && len(n.vals) != len(n.keys), n.kids != nil && len(n.kids) != len(n.keys):
			return fmt.Errorf("%d keys, %d values, %d kids", len(n.keys), len(n.vals), len(n.kids))
		case n.kids == nil && depth >= 0 && depth != level:
			return fmt.Errorf("leaves at %d and %d", depth, level)
		case n == t.t.root && len(n.kids) == 1:
			return fmt.Errorf("a root of one kid")
		}
		if n.kids == nil {
			depth = level
			for _, key := range n.keys {
				if low != nil && key < *low || high != nil && key >= *high {
					return fmt.Errorf("key %d out of bounds", key)
				}
			}
		}
		for i, kid := range n.kids {
			l, h := low, high
			if i > 0 {
				l = &n.keys[i]
			}
			if i+1 < len(n.keys) {
				h = &n.keys[i+1]
			}
			if err := walk(kid, level+1, l, h); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(t.t.root, 0, nil, nil)
}

type Vec struct{ v vec[int] }

func (v *Vec) Set(owner uint64, i uint32, p *int) { v.v.set(owner, i, p) }
func (v *Vec) Get(i uint32) *int                  { return v.v.get(i) }
func (v *Vec) All() iter.Seq2[uint32, *int] {
	return func(yield func(uint32, *int) bool) { v.v.walk(yield) }
}

// Nodes counts them; an empty Vec has none.
func (v *Vec) Nodes() int { return v.v.root.count() }

func (n *vecNode[P]) count() int {
	if n == nil {
		return 0
	}
	sum := 1
	if n.kids != nil {
		for _, kid := range n.kids {
			sum += kid.count()
		}
	}
	return sum
}

type Trie struct {
	t    trie[string]
	Hash func(string) uint64
}

func (t *Trie) Add(owner uint64, value string, slot uint32) {
	t.t.add(owner, t.Hash(value), value, slot)
}

// Drop must be of what is there.
func (t *Trie) Drop(owner uint64, value string, slot uint32) {
	t.t.drop(owner, t.t.find(t.Hash(value), value).cell, slot)
}
func (t *Trie) Len() int { return t.t.n }
func (t *Trie) Find(value string) (slots []uint32) {
	if l := t.t.find(t.Hash(value), value); l != nil {
		l.slots.walk(func(slot uint32, _ struct{}) bool {
			slots = append(slots, slot)
			return true
		})
	}
	return slots
}
func (t *Trie) All() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		t.t.walk(func(l *leaf[string]) bool { return yield(l.cell.value, l.slots.n) })
	}
}

// Check says whether there is a branch that should have been a leaf or nothing.
func (t *Trie) Check() error {
	var walk func(w twig[string]) error
	walk = func(w twig[string]) error {
		if w.branch == nil {
			return nil
		}
		if w.leaf != nil || len(w.branch.kids) == 0 || len(w.branch.kids) == 1 && w.branch.kids[0].branch == nil {
			return fmt.Errorf("a branch of %d kids", len(w.branch.kids))
		}
		for _, kid := range w.branch.kids {
			if err := walk(kid); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(t.t.root)
}

type Points struct{ p points }

func NewPoints() *Points {
	p := &Points{}
	p.p.table.Store(newPointTable(pointsAtLeast))
	return p
}
func (p *Points) Insert(hash, slot uint32) { p.p.insert(hash, slot) }
func (p *Points) Remove(hash, slot uint32) { p.p.remove(hash, slot) }
func (p *Points) Cells() int               { return len(p.p.table.Load().cells) }
func (p *Points) Empty() (n int) {
	for i := range p.p.table.Load().cells {
		if p.p.table.Load().cells[i].Load() == 0 {
			n++
		}
	}
	return n
}
func (p *Points) Table() any { return p.p.table.Load() }
func (p *Points) Probe(hash uint32) (slots []uint32) {
	t, step := p.p.table.Load(), uint32(0)
	for {
		slot, ok := t.probe(hash, &step)
		if !ok {
			return slots
		}
		slots = append(slots, slot)
	}
}

// Slots is the number of slots ever given out and not begun anew.
func Slots[T any](c *Indexer[T]) int { return int(c.used) }

// PointCells is the size of the hash table.
func PointCells[T any](c *Indexer[T]) int { return len(c.points.table.Load().cells) }
