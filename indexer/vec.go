package indexer

const (
	vecBits  = 5
	vecWidth = 1 << vecBits
)

// vec is an array of pointers by slot number: a radix tree of 32-way nodes, which
// is copied as it is written. A copy of the struct is another version of it.
//
// A node is edited in place by the one edit that made it, known by its owner
// number, and is immutable once that edit is published: no later edit has the
// number. The same holds for tree and trie.
type vec[P any] struct {
	root   *vecNode[P]
	height uint // levels above the leaves
}

// vecNode has one of the two arrays, allocated together with the node.
type vecNode[P any] struct {
	owner uint64
	kids  *[vecWidth]*vecNode[P]
	vals  *[vecWidth]*P
}

func newVecNode[P any](owner uint64, leaf bool) *vecNode[P] {
	if leaf {
		block := &struct {
			node vecNode[P]
			vals [vecWidth]*P
		}{}
		block.node.owner, block.node.vals = owner, &block.vals
		return &block.node
	}
	block := &struct {
		node vecNode[P]
		kids [vecWidth]*vecNode[P]
	}{}
	block.node.owner, block.node.kids = owner, &block.kids
	return &block.node
}

// get is nil where nothing was set.
func (v *vec[P]) get(i uint32) *P {
	if i>>(vecBits*(v.height+1)) != 0 {
		return nil
	}
	n := v.root
	for shift := vecBits * v.height; shift > 0 && n != nil; shift -= vecBits {
		n = n.kids[i>>shift%vecWidth]
	}
	if n == nil {
		return nil
	}
	return n.vals[i%vecWidth]
}

// set puts p at i; nil removes. Nodes that become empty are dropped, so that a
// walk costs what is there, not what once was.
func (v *vec[P]) set(owner uint64, i uint32, p *P) {
	for i>>(vecBits*(v.height+1)) != 0 {
		if p == nil {
			return
		}
		if v.root != nil {
			root := newVecNode[P](owner, false)
			root.kids[0] = v.root
			v.root = root
		}
		v.height++
	}
	v.root = v.root.set(owner, vecBits*v.height, i, p)
	if v.root == nil {
		v.height = 0
	}
}

func (n *vecNode[P]) set(owner uint64, shift uint, i uint32, p *P) *vecNode[P] {
	switch {
	case n == nil && p == nil:
		return nil
	case n == nil:
		n = newVecNode[P](owner, shift == 0)
	case n.owner != owner:
		old := n
		n = newVecNode[P](owner, shift == 0)
		if shift == 0 {
			*n.vals = *old.vals
		} else {
			*n.kids = *old.kids
		}
	}
	if shift == 0 {
		n.vals[i%vecWidth] = p
		if p == nil && *n.vals == [vecWidth]*P{} {
			return nil
		}
		return n
	}
	at := i >> shift % vecWidth
	n.kids[at] = n.kids[at].set(owner, shift-vecBits, i, p)
	if n.kids[at] == nil && *n.kids == [vecWidth]*vecNode[P]{} {
		return nil
	}
	return n
}

// walk visits what is set, by slot, until yield says no; it says whether it came
// to the end.
func (v *vec[P]) walk(yield func(uint32, *P) bool) bool {
	return v.root.walk(vecBits*v.height, 0, yield)
}

func (n *vecNode[P]) walk(shift uint, base uint32, yield func(uint32, *P) bool) bool {
	if n == nil {
		return true
	}
	if shift == 0 {
		for i, p := range n.vals {
			if p != nil && !yield(base+uint32(i), p) {
				return false
			}
		}
		return true
	}
	for i, kid := range n.kids {
		if !kid.walk(shift-vecBits, base+uint32(i)<<shift, yield) {
			return false
		}
	}
	return true
}
