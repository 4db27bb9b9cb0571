package indexer_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/indexer"
)

func sorted(m map[int]int) []int { return slices.Sorted(maps.Keys(m)) }

// A tree equals a map at each step, keeps its shape, and old versions of it stay.
func TestTree(t *testing.T) {
	t.Parallel()
	orders := map[string]func(r *rand.Rand, i int) int{
		"random":     func(r *rand.Rand, i int) int { return r.IntN(3000) },
		"ascending":  func(r *rand.Rand, i int) int { return i },
		"descending": func(r *rand.Rand, i int) int { return -i },
	}
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			var tree indexer.Tree
			want := map[int]int{}
			type version struct {
				tree indexer.Tree
				want map[int]int
			}
			var versions []version
			owner := uint64(1)
			verify := func(tree *indexer.Tree, want map[int]int) {
				require.NoError(t, tree.Check())
				require.Equal(t, len(want), tree.Len())
				var keys []int
				for key, val := range tree.All() {
					keys = append(keys, key)
					same(t, want[key] == val, "%d is %d", key, val)
				}
				require.Equal(t, sorted(want), keys)
				if len(keys) == 0 {
					return
				}
				require.Equal(t, keys[0], tree.First())
				at := keys[r.IntN(len(keys))]
				for _, from := range []int{at, at + 1, keys[0] - 1, keys[len(keys)-1] + 1} {
					var got []int
					for key := range tree.From(from) {
						got = append(got, key)
					}
					i, _ := slices.BinarySearch(keys, from)
					require.Equal(t, append([]int(nil), keys[i:]...), got)
				}
			}
			step := func(i int, del bool) {
				key := order(r, i)
				if del {
					if r.IntN(4) > 0 { // one that is there, mostly
						for next := range tree.From(key / 2) {
							key = next
							break
						}
					}
					_, there := want[key]
					same(t, there == tree.Del(owner, key), "Del of %d, which was there: %v", key, there)
					delete(want, key)
				} else {
					_, there := want[key]
					same(t, there != tree.Set(owner, key, i), "Set of %d, which was there: %v", key, there)
					want[key] = i
				}
				got, ok := tree.Get(key)
				same(t, ok != del && got == want[key], "%d is %d, %v", key, got, ok)
				if r.IntN(3) == 0 {
					owner++
				}
				if r.IntN(200) == 0 {
					versions = append(versions, version{tree, maps.Clone(want)})
					owner++
					verify(&tree, want)
				}
			}
			for i := range 4000 {
				step(i, r.IntN(4) == 0)
			}
			for i := 0; len(want) > 0; i++ { // down to nothing, from anywhere
				if i < 6000 {
					step(i, r.IntN(20) > 0)
					continue
				}
				key := tree.First()
				require.True(t, tree.Del(owner, key))
				delete(want, key)
			}
			verify(&tree, want)
			for _, v := range versions {
				verify(&v.tree, v.want)
			}
		})
	}
}

func TestTreeStopsEarly(t *testing.T) {
	var tree indexer.Tree
	for i := range 500 {
		tree.Set(1, i, i)
	}
	for _, stop := range []int{0, 1, 31, 32, 33, 250, 499} {
		n := 0
		for key := range tree.All() {
			n++
			if key == stop {
				break
			}
		}
		require.Equal(t, stop+1, n)
		n = 0
		for key := range tree.From(100) {
			n++
			if key == 100+stop {
				break
			}
		}
		require.Equal(t, min(stop+1, 400), n)
	}
}

func TestVec(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	indices := func() uint32 {
		switch r.IntN(10) {
		case 0:
			return ^uint32(0) - uint32(r.IntN(40))
		case 1, 2:
			return uint32(r.IntN(2_000_000))
		default:
			return uint32(r.IntN(1200))
		}
	}
	var v indexer.Vec
	want := map[uint32]*int{}
	type version struct {
		vec  indexer.Vec
		want map[uint32]*int
	}
	var versions []version
	verify := func(v *indexer.Vec, want map[uint32]*int) {
		var at []uint32
		for i, p := range v.All() {
			at = append(at, i)
			same(t, want[i] == p && p == v.Get(i), "%d", i)
		}
		require.Equal(t, slices.Sorted(maps.Keys(want)), at)
		for range 50 {
			i := indices()
			same(t, v.Get(i) == want[i], "get: %d", i)
		}
	}
	owner := uint64(1)
	set := func(i uint32, p *int) {
		v.Set(owner, i, p)
		if want[i] = p; p == nil {
			delete(want, i)
		}
	}
	for i := range 6000 {
		if r.IntN(3) == 0 {
			set(indices(), nil)
		} else {
			set(indices(), &i)
		}
		if r.IntN(3) == 0 {
			owner++
		}
		if r.IntN(400) == 0 {
			versions = append(versions, version{v, maps.Clone(want)})
			owner++
			verify(&v, want)
		}
	}
	for i := range maps.Clone(want) {
		set(i, nil)
	}
	require.Zero(t, v.Nodes(), "empty nodes are dropped")
	set(7, new(int))
	require.Equal(t, 1, v.Nodes(), "and an empty array begins low again")
	verify(&v, want)
	for _, old := range versions {
		verify(&old.vec, old.want)
	}
	n := 0
	for range versions[len(versions)-1].vec.All() {
		if n++; n == 40 {
			break
		}
	}
	require.Equal(t, 40, n)
}

// Values are told apart whatever their hashes do.
func TestTrie(t *testing.T) {
	t.Parallel()
	hash := func(s string) uint64 {
		h := uint64(14695981039346656037)
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
		return h
	}
	for name, f := range map[string]func(string) uint64{
		"good":        hash,
		"all alike":   func(string) uint64 { return 42 },
		"four":        func(s string) uint64 { return hash(s) % 4 },
		"only at top": func(s string) uint64 { return hash(s) << 57 },
		"late":        func(s string) uint64 { return hash(s)<<60 | 12345 },
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, 6))
			trie := indexer.Trie{Hash: f}
			want := map[string]map[uint32]bool{}
			type version struct {
				trie indexer.Trie
				want map[string][]uint32
			}
			var versions []version
			flat := func() map[string][]uint32 {
				m := map[string][]uint32{}
				for value, slots := range want {
					m[value] = slices.Sorted(maps.Keys(slots))
				}
				return m
			}
			verify := func(trie *indexer.Trie, want map[string][]uint32) {
				require.NoError(t, trie.Check())
				require.Equal(t, len(want), trie.Len())
				got := map[string][]uint32{}
				for value, n := range trie.All() {
					got[value] = trie.Find(value)
					require.Len(t, got[value], n)
				}
				require.Equal(t, want, got)
				require.Nil(t, trie.Find("none"))
			}
			owner := uint64(1)
			step := func(drop bool) {
				value, slot := fmt.Sprint("v", r.IntN(80)), uint32(r.IntN(50))
				if drop {
					if len(want) == 0 {
						return
					}
					values := slices.Sorted(maps.Keys(want))
					value = values[r.IntN(len(values))]
					all := slices.Sorted(maps.Keys(want[value]))
					slot = all[r.IntN(len(all))]
					trie.Drop(owner, value, slot)
					if delete(want[value], slot); len(want[value]) == 0 {
						delete(want, value)
					}
				} else {
					trie.Add(owner, value, slot)
					if want[value] == nil {
						want[value] = map[uint32]bool{}
					}
					want[value][slot] = true
				}
				if r.IntN(3) == 0 {
					owner++
				}
				if r.IntN(100) == 0 {
					versions = append(versions, version{trie, flat()})
					owner++
					verify(&trie, flat())
				}
			}
			for range 1500 {
				step(r.IntN(5) < 2)
			}
			for len(want) > 0 {
				step(r.IntN(10) > 0)
			}
			verify(&trie, flat())
			for _, v := range versions {
				verify(&v.trie, v.want)
				for range v.trie.All() { // stops early
					break
				}
			}
		})
	}
}

func TestPoints(t *testing.T) {
	t.Parallel()
	for name, bits := range map[string]uint{"spread": 32, "crowded": 3, "all alike": 0} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 8))
			p := indexer.NewPoints()
			hashes := map[uint32]uint32{} // slot → hash
			verify := func() {
				for slot, hash := range hashes {
					if bits == 0 && slot%16 != 0 { // each is a search through all
						continue
					}
					same(t, slices.Contains(p.Probe(hash), slot), "slot %d is lost", slot)
				}
				require.GreaterOrEqual(t, p.Empty(), p.Cells()/4, "what ends a search")
				require.LessOrEqual(t, p.Cells(), max(16, 8*len(hashes)))
			}
			insert := func(slot uint32) {
				hash := uint32(uint64(r.Uint32()) & (1<<bits - 1))
				p.Insert(hash, slot)
				hashes[slot] = hash
			}
			remove := func(slot uint32) {
				hash := hashes[slot]
				p.Remove(hash, slot)
				delete(hashes, slot)
				same(t, !slices.Contains(p.Probe(hash), slot), "slot %d is still there", slot)
			}
			for i := range uint32(200) {
				insert(i)
			}
			verify()
			built, table := 0, p.Table()
			for range 1500 { // as many come as go: the removed cells must not pile up
				slot := uint32(r.IntN(200))
				remove(slot)
				insert(slot)
				if p.Table() != table {
					built, table = built+1, p.Table()
				}
			}
			require.LessOrEqual(t, built, 1500/100, "built anew too often")
			if bits == 0 {
				require.Zero(t, built, "the removed cells are used again")
			}
			verify()
			for i := range uint32(195) {
				remove(i)
				if i%50 == 0 {
					verify()
				}
			}
			verify()
		})
	}
}
