package memory

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sort"

	"github.com/homeostat/homeostat/object"
)

// runs are objects in order of their keys, cut into pieces. Two states share the
// pieces in which they do not differ: a snapshot after few changes costs little,
// in time and in memory. None is empty, and none is ever changed.
type runs[T any] [][]*object.Item[T]

// runLength is how long a new piece is; changes may make it anything from 1 to
// twice that.
const runLength = 256

// inOrder sorts what belongs to it.
func inOrder[T any](all []*object.Item[T]) runs[T] {
	slices.SortFunc(all, func(a, b *object.Item[T]) int { return cmp.Compare(a.Key, b.Key) })
	return runs[T](nil).add(all)
}

// add appends run, in pieces if it is too long. They are copies: a piece that is
// shared for long must not hold on to what its neighbours were.
func (r runs[T]) add(run []*object.Item[T]) runs[T] {
	if 0 < len(run) && len(run) <= 2*runLength {
		return append(r, run)
	}
	for piece := range slices.Chunk(run, runLength) {
		r = append(r, slices.Clone(piece))
	}
	return r
}

// from gives the objects by key, beginning at key.
func (r runs[T]) from(key string) iter.Seq[*object.Item[T]] {
	return func(yield func(*object.Item[T]) bool) {
		i := sort.Search(len(r), func(i int) bool { return r[i][0].Key > key })
		for i = max(0, i-1); i < len(r); i++ {
			run := r[i]
			if run[0].Key < key {
				run = run[sort.Search(len(run), func(j int) bool { return run[j].Key >= key }):]
			}
			for _, item := range run {
				if !yield(item) {
					return
				}
			}
		}
	}
}

// with is r after changes: each key has the object that is given, or none for nil.
func (r runs[T]) with(changes map[string]*object.Item[T]) runs[T] {
	keys := slices.Sorted(maps.Keys(changes))
	if len(r) == 0 {
		return r.add(merged(nil, keys, changes))
	}
	out := make(runs[T], 0, len(r)+1)
	for i, run := range r {
		mine := len(keys) // those before the next run
		if i+1 < len(r) {
			mine, _ = slices.BinarySearch(keys, r[i+1][0].Key)
		}
		if mine > 0 {
			run = merged(run, keys[:mine], changes)
			keys = keys[mine:]
			out = out.add(run)
		} else {
			out = append(out, run)
		}
	}
	return out
}

func merged[T any](run []*object.Item[T], keys []string, changes map[string]*object.Item[T]) []*object.Item[T] {
	out := make([]*object.Item[T], 0, len(run)+len(keys))
	for _, key := range keys {
		for len(run) > 0 && run[0].Key < key {
			out, run = append(out, run[0]), run[1:]
		}
		if len(run) > 0 && run[0].Key == key {
			run = run[1:]
		}
		if item := changes[key]; item != nil {
			out = append(out, item)
		}
	}
	return append(out, run...)
}
