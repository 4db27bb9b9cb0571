package indexer

import (
	"fmt"
	"hash/maphash"
	"iter"
	"runtime/debug"
	"slices"

	"github.com/homeostat/homeostat/object"
)

// column is what one state has of one index. The methods that change something
// give back the column for the state that owner is making: the same one as long as
// nothing changes.
type column[T any] interface {
	handle() Indexed[T]
	put(owner uint64, slot uint32, obj T) (column[T], *IndexError)
	drop(owner uint64, slot uint32) column[T]
	// settle is called once when all of a batch is in: who is refused?
	settle(items *vec[object.Item[T]]) []*TakenError
	// taken says which other object has obj's value in a unique index.
	taken(items *vec[object.Item[T]], key string, obj T) *TakenError
	// named is Lookup for each value that prints as text.
	named(s *Snapshot[T], text string) iter.Seq2[string, T]
}

type postings[T any, K comparable] struct {
	index  *Index[T, K]
	seed   maphash.Seed
	owner  uint64
	values trie[K]
	at     vec[places[K]] // by slot; nil for an object without values. The old object is never asked again
	claims []claim[K]     // of a unique index, while a batch is being written
}

// claim is a value that an object has got by this batch.
type claim[K comparable] struct {
	cell *cell[K]
	slot uint32
}

func (x *Index[T, K]) column(seed maphash.Seed) column[T] {
	return &postings[T, K]{index: x, seed: seed}
}

func (p *postings[T, K]) handle() Indexed[T] { return p.index }

func (p *postings[T, K]) hash(value K) uint64 { return maphash.Comparable(p.seed, value) }

func (p *postings[T, K]) find(value K) *leaf[K] { return p.values.find(p.hash(value), value) }

func (p *postings[T, K]) counts(yield func(K, int) bool) {
	p.values.walk(func(l *leaf[K]) bool { return yield(l.cell.value, l.slots.n) })
}

func (p *postings[T, K]) edit(owner uint64) *postings[T, K] {
	if p.owner == owner {
		return p
	}
	return &postings[T, K]{index: p.index, seed: p.seed, owner: owner, values: p.values, at: p.at}
}

func (p *postings[T, K]) put(owner uint64, slot uint32, obj T) (column[T], *IndexError) {
	var buf [1]K
	vals, fault := p.evaluate(obj, &buf)
	if fault != nil {
		return p, fault
	}
	old := p.at.get(slot).list()
	if slices.EqualFunc(old, vals, func(c *cell[K], value K) bool { return c.value == value }) {
		return p, nil
	}
	next := p.edit(owner)
	next.move(slot, old, vals)
	return next, nil
}

func (p *postings[T, K]) drop(owner uint64, slot uint32) column[T] {
	old := p.at.get(slot).list()
	if old == nil {
		return p
	}
	next := p.edit(owner)
	next.move(slot, old, nil)
	return next
}

// evaluate calls the index's function and contains its panics, and those of
// comparing what can't be compared. What it gives back is free of values twice or
// unequal to themselves; it may be the function's own slice, or buf's.
func (p *postings[T, K]) evaluate(obj T, buf *[1]K) (vals []K, fault *IndexError) {
	defer func() {
		if v := recover(); v != nil {
			fault = &IndexError{Index: p.index.name, Value: v, Stack: debug.Stack()}
		}
	}()
	x, ok := p.index, true
	switch {
	case x.each != nil:
		return distinct(x.each(obj)), nil
	case x.one != nil:
		buf[0] = x.one(obj)
	default:
		buf[0], ok = x.maybe(obj)
	}
	if !ok || buf[0] != buf[0] {
		return nil, nil
	}
	return buf[:], nil
}

// few values are compared one by one, more of them through a map.
const few = 16

// distinct gives vals without doubles and NaNs. It does not write to vals.
func distinct[K comparable](vals []K) []K {
	seen := set[K]{}
	for i, value := range vals {
		if value == value && seen.add(vals[:i], value) {
			continue
		}
		kept := slices.Clone(vals[:i])
		for _, value := range vals[i+1:] {
			if value == value && seen.add(kept, value) {
				kept = append(kept, value)
			}
		}
		return kept
	}
	return vals
}

// set says whether a value was seen before; as long as there are few, by looking
// at those before it.
type set[K comparable] struct{ many map[K]struct{} }

// add says whether value is new. before are those that were added already.
func (s *set[K]) add(before []K, value K) bool {
	if s.many == nil && len(before) < few {
		return !slices.Contains(before, value)
	}
	if s.many == nil {
		s.many = make(map[K]struct{}, 2*few)
		for _, b := range before {
			s.many[b] = struct{}{}
		}
	}
	n := len(s.many)
	s.many[value] = struct{}{}
	return len(s.many) > n
}

// move takes slot from the values of old to vals: the difference alone is touched.
// p must be owned.
func (p *postings[T, K]) move(slot uint32, old []*cell[K], vals []K) {
	cells := make([]*cell[K], len(vals)) // those kept, then the new ones too
	kept := matcher(vals)
	for _, c := range old {
		if i := kept(c.value); i >= 0 {
			cells[i] = c
		} else {
			p.values.drop(p.owner, c, slot)
		}
	}
	for i, c := range cells {
		if c != nil {
			continue
		}
		cells[i] = p.values.add(p.owner, p.hash(vals[i]), vals[i], slot)
		if p.index.maybe != nil {
			p.claims = append(p.claims, claim[K]{cells[i], slot})
		}
	}
	switch len(cells) {
	case 0:
		p.at.set(p.owner, slot, nil)
	case 1:
		p.at.set(p.owner, slot, &cells[0].alone)
	default:
		p.at.set(p.owner, slot, &places[K]{cells})
	}
}

// matcher gives a function that tells where in vals a value is, or -1.
func matcher[K comparable](vals []K) func(K) int {
	if len(vals) <= few {
		return func(value K) int { return slices.Index(vals, value) }
	}
	at := make(map[K]int, len(vals))
	for i, value := range vals {
		at[value] = i
	}
	return func(value K) int {
		if i, ok := at[value]; ok {
			return i
		}
		return -1
	}
}

func (p *places[K]) list() []*cell[K] {
	if p == nil {
		return nil
	}
	return p.cells
}

// settle refuses all but one of the objects under each value of a unique index.
// The one that had it before the batch stays, else the first that was put.
func (p *postings[T, K]) settle(items *vec[object.Item[T]]) (refused []*TakenError) {
	if p.claims == nil {
		return nil // also when p is published and must not be written to
	}
	var claimed map[uint32]bool
	holders := make(map[*leaf[K]]uint32)
	for _, c := range p.claims {
		l := p.values.find(c.cell.hash, c.cell.value)
		if l.slots.n == 1 {
			continue
		}
		if claimed == nil {
			claimed = make(map[uint32]bool, len(p.claims))
			for _, c := range p.claims {
				claimed[c.slot] = true
			}
		}
		holder, known := holders[l]
		if !known {
			holder = c.slot
			l.slots.walk(func(slot uint32, _ struct{}) bool {
				if !claimed[slot] { // one at most
					holder = slot
				}
				return true
			})
			holders[l] = holder
		}
		if holder != c.slot {
			refused = append(refused, &TakenError{
				Index: p.index.name, Value: fmt.Sprint(c.cell.value),
				Key: items.get(c.slot).Key, Holder: items.get(holder).Key,
			})
		}
	}
	p.claims = nil
	return refused
}

func (p *postings[T, K]) taken(items *vec[object.Item[T]], key string, obj T) *TakenError {
	if p.index.maybe == nil {
		return nil
	}
	var buf [1]K
	vals, fault := p.evaluate(obj, &buf)
	if fault != nil || len(vals) == 0 {
		return nil
	}
	l := p.find(vals[0])
	if l == nil || l.slots.n == 0 {
		return nil
	}
	holder := items.get(l.slots.first()).Key
	if holder == key {
		return nil
	}
	return &TakenError{Index: p.index.name, Value: fmt.Sprint(vals[0]), Key: key, Holder: holder}
}

func (p *postings[T, K]) named(s *Snapshot[T], text string) iter.Seq2[string, T] {
	if _, is := any(*new(K)).(string); is { // not so for an interface that holds strings
		return p.index.Lookup(s, any(text).(K))
	}
	return func(yield func(string, T) bool) {
		var seen map[uint32]bool // an object can have two values that print alike
		p.values.walk(func(l *leaf[K]) bool {
			if fmt.Sprint(l.cell.value) != text {
				return true
			}
			if seen == nil {
				seen = make(map[uint32]bool)
			}
			return l.slots.walk(func(slot uint32, _ struct{}) bool {
				if seen[slot] {
					return true
				}
				seen[slot] = true
				item := s.items.get(slot)
				return yield(item.Key, item.Object)
			})
		})
	}
}
