package indexer

import (
	"cmp"
	"slices"
)

const (
	treeMax = 32          // most keys of a node
	treeMin = treeMax / 4 // fewer, and it is joined with a neighbour
)

// tree is an ordered map: a B+ tree that is copied as it is written, by the rule
// of owners that vec tells.
type tree[K cmp.Ordered, V any] struct {
	root *treeNode[K, V]
	n    int
}

// treeNode is a leaf (keys and vals) or an inner node (keys and kids). In an inner
// node keys[i] bounds kids[i] from below and everything before it from above;
// keys[0] is not looked at.
type treeNode[K cmp.Ordered, V any] struct {
	owner uint64
	keys  []K
	vals  []V
	kids  []*treeNode[K, V]
}

// kid is the child where key belongs.
func (n *treeNode[K, V]) kid(key K) int {
	i, found := slices.BinarySearch(n.keys[1:], key)
	if found {
		return i + 1
	}
	return i
}

func (t *tree[K, V]) get(key K) (V, bool) {
	var none V
	n := t.root
	if n == nil {
		return none, false
	}
	for n.kids != nil {
		n = n.kids[n.kid(key)]
	}
	i, found := slices.BinarySearch(n.keys, key)
	if !found {
		return none, false
	}
	return n.vals[i], true
}

// first is the least key. The tree must not be empty.
func (t *tree[K, V]) first() K {
	n := t.root
	for n.kids != nil {
		n = n.kids[0]
	}
	return n.keys[0]
}

func (n *treeNode[K, V]) edit(owner uint64) *treeNode[K, V] {
	if n.owner == owner {
		return n
	}
	c := &treeNode[K, V]{owner: owner, keys: roomy(n.keys)}
	if n.kids != nil {
		c.kids = roomy(n.kids)
	} else {
		c.vals = roomy(n.vals)
	}
	return c
}

// roomy is a clone with room for one more, which is what an edit mostly adds.
func roomy[E any](s []E) []E { return append(make([]E, 0, len(s)+1), s...) }

// set says whether key is new.
func (t *tree[K, V]) set(owner uint64, key K, val V) bool {
	if t.root == nil {
		t.root = &treeNode[K, V]{owner: owner, keys: []K{key}, vals: []V{val}}
		t.n = 1
		return true
	}
	left, right, added := t.root.set(owner, key, val)
	t.root = left
	if right != nil {
		t.root = &treeNode[K, V]{
			owner: owner,
			keys:  []K{left.keys[0], right.keys[0]},
			kids:  []*treeNode[K, V]{left, right},
		}
	}
	if added {
		t.n++
	}
	return added
}

// set gives back the edited node, and a second one to its right if it had to be
// split.
func (n *treeNode[K, V]) set(owner uint64, key K, val V) (left, right *treeNode[K, V], added bool) {
	n = n.edit(owner)
	if n.kids == nil {
		i, found := slices.BinarySearch(n.keys, key)
		if found {
			n.vals[i] = val
			return n, nil, false
		}
		n.keys, n.vals = slices.Insert(n.keys, i, key), slices.Insert(n.vals, i, val)
	} else {
		i := n.kid(key)
		kid, split, isNew := n.kids[i].set(owner, key, val)
		added, n.kids[i] = isNew, kid
		if split == nil {
			return n, nil, added
		}
		n.keys, n.kids = slices.Insert(n.keys, i+1, split.keys[0]), slices.Insert(n.kids, i+1, split)
	}
	if len(n.keys) > treeMax {
		right = n.split(owner)
	}
	return n, right, n.kids == nil || added
}

// split takes the upper half away from n, which must be owned.
func (n *treeNode[K, V]) split(owner uint64) *treeNode[K, V] {
	mid := len(n.keys) / 2
	right := &treeNode[K, V]{owner: owner, keys: slices.Clone(n.keys[mid:])}
	n.keys = slices.Delete(n.keys, mid, len(n.keys))
	if n.kids != nil {
		right.kids = slices.Clone(n.kids[mid:])
		n.kids = slices.Delete(n.kids, mid, len(n.kids))
	} else {
		right.vals = slices.Clone(n.vals[mid:])
		n.vals = slices.Delete(n.vals, mid, len(n.vals))
	}
	return right
}

// del says whether key was there. Nothing is copied when it was not.
func (t *tree[K, V]) del(owner uint64, key K) bool {
	if _, found := t.get(key); !found {
		return false
	}
	t.root = t.root.del(owner, key)
	t.n--
	switch {
	case t.n == 0:
		t.root = nil
	case len(t.root.kids) == 1:
		t.root = t.root.kids[0]
	}
	return true
}

// del removes key, which must be there.
func (n *treeNode[K, V]) del(owner uint64, key K) *treeNode[K, V] {
	n = n.edit(owner)
	if n.kids == nil {
		i, _ := slices.BinarySearch(n.keys, key)
		n.keys, n.vals = slices.Delete(n.keys, i, i+1), slices.Delete(n.vals, i, i+1)
		return n
	}
	i := n.kid(key)
	n.kids[i] = n.kids[i].del(owner, key)
	if len(n.kids[i].keys) < treeMin {
		n.join(owner, max(i-1, 0))
	}
	return n
}

// join makes one node of kids i and i+1, or two of equal size when one would be
// too large. An inner node has always two kids or more.
func (n *treeNode[K, V]) join(owner uint64, i int) {
	left, right := n.kids[i].edit(owner), n.kids[i+1]
	end := len(left.keys)
	left.keys = append(left.keys, right.keys...)
	left.vals = append(left.vals, right.vals...)
	if left.kids != nil {
		left.keys[end] = n.keys[i+1] // the bound that holds; right did not look at its own
		left.kids = append(left.kids, right.kids...)
	}
	n.kids[i] = left
	if len(left.keys) <= treeMax {
		n.keys, n.kids = slices.Delete(n.keys, i+1, i+2), slices.Delete(n.kids, i+1, i+2)
		return
	}
	right = left.split(owner)
	n.keys[i+1], n.kids[i+1] = right.keys[0], right
}

// walk visits all in order until yield says no; it says whether it came to the end.
func (t *tree[K, V]) walk(yield func(K, V) bool) bool {
	return t.root == nil || t.root.walk(yield)
}

func (n *treeNode[K, V]) walk(yield func(K, V) bool) bool {
	for _, kid := range n.kids {
		if !kid.walk(yield) {
			return false
		}
	}
	for i := range n.vals {
		if !yield(n.keys[i], n.vals[i]) {
			return false
		}
	}
	return true
}

// from is walk, beginning with the first key that is not less than key.
func (t *tree[K, V]) from(key K, yield func(K, V) bool) bool {
	return t.root == nil || t.root.from(key, yield)
}

func (n *treeNode[K, V]) from(key K, yield func(K, V) bool) bool {
	if n.kids == nil {
		i, _ := slices.BinarySearch(n.keys, key)
		for ; i < len(n.keys); i++ {
			if !yield(n.keys[i], n.vals[i]) {
				return false
			}
		}
		return true
	}
	i := n.kid(key)
	if !n.kids[i].from(key, yield) {
		return false
	}
	for _, kid := range n.kids[i+1:] {
		if !kid.walk(yield) {
			return false
		}
	}
	return true
}
