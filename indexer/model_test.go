package indexer_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/object"
)

// thing is the object of the model test.
type thing struct {
	Team string
	Tags []string // with doubles
	Mail string   // "" = none
	Bad  bool     // an index function panics on it
}

// rig is a cache beside the plain map that it must be equal to. It runs for
// things by value and by pointer.
type rig[T any] struct {
	cache *indexer.Indexer[T]
	team  *indexer.Index[T, string]
	tags  *indexer.Index[T, string]
	mail  *indexer.Index[T, string]
	wrap  func(thing) T
	bare  func(T) thing
	want  map[string]object.Item[thing]
	kept  []kept[T]
}

// kept is a snapshot with what it showed when it was taken.
type kept[T any] struct {
	snap *indexer.Snapshot[T]
	want map[string]object.Item[thing]
}

func newRig[T any](wrap func(thing) T, bare func(T) thing) *rig[T] {
	r := &rig[T]{wrap: wrap, bare: bare, want: map[string]object.Item[thing]{}}
	var scratch []string // given out at each call, to catch whoever keeps it
	r.team = indexer.By("team", func(obj T) string { return bare(obj).Team })
	r.tags = indexer.ByEach("tags", func(obj T) []string {
		clear(scratch)
		if bare(obj).Bad {
			panic("bad thing")
		}
		scratch = append(scratch[:0], bare(obj).Tags...)
		return scratch
	})
	r.mail = indexer.Unique("mail", func(obj T) (string, bool) { return bare(obj).Mail, bare(obj).Mail != "" })
	r.cache = indexer.New[T](r.team, r.tags, r.mail)
	return r
}

func byValue() *rig[thing] {
	return newRig(func(x thing) thing { return x }, func(x thing) thing { return x })
}

func byPointer() *rig[*thing] {
	return newRig(func(x thing) *thing { return &x }, func(x *thing) thing { return *x })
}

func (x thing) equal(y thing) bool {
	return x.Team == y.Team && x.Mail == y.Mail && x.Bad == y.Bad && slices.Equal(x.Tags, y.Tags)
}

// same is require.True without its cost.
func same(t testing.TB, ok bool, format string, args ...any) {
	if !ok {
		t.Helper()
		t.Fatalf(format, args...)
	}
}

// check compares all that v shows with want, by every way of reading.
func (r *rig[T]) check(t testing.TB, v indexer.View[T], want map[string]object.Item[thing]) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(want))
	require.Equal(t, len(keys), v.Len())

	var sorted []string
	for key, obj := range v.Sorted() {
		sorted = append(sorted, key)
		same(t, want[key].Object.equal(r.bare(obj)), "Sorted: %q is %v", key, obj)
	}
	require.Equal(t, keys, sorted)

	all := map[string]thing{}
	for key, obj := range v.All() {
		_, twice := all[key]
		same(t, !twice, "All: %q twice", key)
		all[key] = r.bare(obj)
	}
	require.Len(t, all, len(keys))

	teams, tags, mails := map[string]int{}, map[string]int{}, map[string]int{}
	found := map[[3]string]bool{} // index, value, key
	for key, item := range want {
		same(t, item.Object.equal(all[key]), "All: %q is %v", key, all[key])
		got, ok := v.Item(key)
		same(t, ok && got.Key == key && got.Version == item.Version && got.ID == item.ID && item.Object.equal(r.bare(got.Object)),
			"Item: %q is %v, %v", key, got, ok)
		obj, ok := v.Get(key)
		same(t, ok && item.Object.equal(r.bare(obj)), "Get: %q is %v, %v", key, obj, ok)
		teams[item.Object.Team]++
		found[[3]string{"team", item.Object.Team, key}] = true
		for tag := range maps.Keys(toSet(item.Object.Tags)) {
			tags[tag]++
			found[[3]string{"tags", tag, key}] = true
		}
		if item.Object.Mail != "" {
			mails[item.Object.Mail]++
			found[[3]string{"mail", item.Object.Mail, key}] = true
		}
	}
	for _, x := range []struct {
		name   string
		index  *indexer.Index[T, string]
		counts map[string]int
	}{{"team", r.team, teams}, {"tags", r.tags, tags}, {"mail", r.mail, mails}} {
		values := map[string]int{}
		for value, n := range x.index.Values(v) {
			same(t, values[value] == 0, "Values: %q twice", value)
			values[value] = n
		}
		require.Equal(t, x.counts, values, x.name)
		for value, n := range x.counts {
			same(t, n == x.index.Count(v, value), "Count: %s=%s is not %d", x.name, value, n)
			seen := 0
			for key, obj := range x.index.Lookup(v, value) {
				same(t, found[[3]string{x.name, value, key}] && want[key].Object.equal(r.bare(obj)),
					"Lookup: %s=%s has %q: %v", x.name, value, key, obj)
				delete(found, [3]string{x.name, value, key})
				seen++
			}
			same(t, n == seen, "Lookup: %s=%s has %d, not %d", x.name, value, seen, n)
			key, obj, ok := x.index.One(v, value)
			same(t, ok && want[key].Object.equal(r.bare(obj)), "One: %s=%s is %q: %v, %v", x.name, value, key, obj, ok)
		}
		require.Zero(t, x.index.Count(v, "nobody has this"))
		_, _, ok := x.index.One(v, "nobody has this")
		require.False(t, ok)
	}
	require.Empty(t, found, "not found by look-up")

	for _, absent := range []string{"", "absent", "\xff\xff\xff\xff"} {
		if _, in := want[absent]; !in {
			_, ok := v.Get(absent)
			require.False(t, ok)
			_, ok = v.Item(absent)
			require.False(t, ok)
		}
	}
	prefixes := []string{"", "a", "a/", "\xff", "\xff\xff", "b/1", "zz"}
	if len(keys) > 0 {
		prefixes = append(prefixes, keys[0], keys[len(keys)-1], keys[len(keys)/2])
	}
	for _, prefix := range prefixes {
		var got, expect []string
		for key, obj := range v.Prefix(prefix) {
			got = append(got, key)
			same(t, want[key].Object.equal(r.bare(obj)), "Prefix: %q is %v", key, obj)
		}
		for _, key := range keys {
			if strings.HasPrefix(key, prefix) {
				expect = append(expect, key)
			}
		}
		require.Equal(t, expect, got, "prefix %q", prefix)
	}
}

func toSet(values []string) map[string]bool {
	set := map[string]bool{}
	for _, v := range values {
		set[v] = true
	}
	return set
}

// dice are the choices of a history: random numbers, or a fuzzer's bytes.
type dice func(n int) int

func seeded(seed uint64) dice { return rand.New(rand.NewPCG(seed, seed)).IntN }

func fuzzed(data []byte) (_ dice, more func() bool) {
	return func(n int) int {
		if len(data) == 0 {
			return 0
		}
		x := data[0]
		data = data[1:]
		return int(x) % n
	}, func() bool { return len(data) > 0 }
}

var parts = []string{"a", "a/", "b/", "\xff", "\xff\xff", "z", "é"}

func (r *rig[T]) key(d dice, keys int) string {
	n := d(keys)
	if n < len(parts) {
		return parts[n]
	}
	return parts[n%len(parts)] + fmt.Sprint(n)
}

func (r *rig[T]) thing(d dice, keys int) thing {
	x := thing{Team: fmt.Sprint("team-", d(4))}
	for range d(4) {
		x.Tags = append(x.Tags, fmt.Sprint("tag-", d(6)))
	}
	if d(30) == 0 {
		for i := range 40 { // enough for the ways of many
			x.Tags = append(x.Tags, fmt.Sprint("tag-", d(6)+i/2))
		}
	}
	if d(3) == 0 {
		x.Mail = fmt.Sprint("mail-", d(2*keys))
	}
	x.Bad = d(40) == 0
	return x
}

// step does one random batch, or the same by single writes, and checks how it ends.
func (r *rig[T]) step(t testing.TB, d dice, keys, version int) {
	t.Helper()
	type write struct {
		item   object.Item[thing]
		was    object.Version // of a PutIf
		onlyIf bool
		del    bool
	}
	var writes []write
	size := d(6)
	if d(10) == 0 {
		size = 40
	}
	for i := range size + 1 {
		w := write{item: object.Item[thing]{
			Key:     r.key(d, keys),
			Version: object.Version(fmt.Sprint(version, ".", i)),
			ID:      fmt.Sprint("id", d(3)),
			Object:  r.thing(d, keys),
		}}
		switch d(10) {
		case 0, 1, 2:
			w.del = true
		case 3:
			w.onlyIf, w.was = true, r.want[w.item.Key].Version
		case 4:
			w.onlyIf, w.was = d(4) == 0, []object.Version{"", object.Any, "old"}[d(3)]
		}
		writes = append(writes, w)
	}

	refused := map[string]bool{}
	for round := 0; ; round++ {
		require.Less(t, round, 30, "a batch that is never let in")
		after := maps.Clone(r.want)
		stale := map[string]bool{}
		written := map[string]bool{}
		err := r.cache.Write(func(b *indexer.Batch[T]) error {
			for _, w := range writes {
				key := w.item.Key
				if refused[key] {
					continue
				}
				before, there := after[key]
				item := object.Item[T]{Key: key, Version: w.item.Version, ID: w.item.ID, Object: r.wrap(w.item.Object)}
				was, existed := b.Item(key)
				switch {
				case w.del:
					was, existed = b.Delete(key)
					delete(after, key)
				case w.onlyIf:
					b.PutIf(item, w.was)
					if there != (w.was != "") || there && w.was != object.Any && w.was != before.Version {
						stale[key] = true
					} else {
						after[key] = w.item
					}
				default:
					was, existed = b.Put(item)
					after[key] = w.item
				}
				same(t, there == existed && before.Version == was.Version, "%q was %v, not %v", key, was, before)
				now, _ := b.Item(key)
				same(t, now.Version == after[key].Version, "%q is now %v, not %v", key, now, after[key])
				written[key] = true
			}
			return nil
		})

		bad, mails := map[string]bool{}, map[string][]string{}
		for key, item := range after {
			if item.Object.Bad && written[key] && item.Version != r.want[key].Version {
				bad[key] = true
			}
			if item.Object.Mail != "" {
				mails[item.Object.Mail] = append(mails[item.Object.Mail], key)
			}
		}
		blamed := indexer.Refused(err)
		switch {
		case len(stale) > 0:
			require.ErrorIs(t, err, indexer.ErrStale)
			require.Equal(t, stale, keySet(blamed))
		case len(bad) > 0:
			require.Equal(t, bad, keySet(blamed), "%v", err)
			var fault *indexer.IndexError
			require.ErrorAs(t, err, &fault)
			require.Equal(t, "tags", fault.Index)
		default:
			clash := false
			for _, holders := range mails {
				clash = clash || len(holders) > 1
			}
			if !clash {
				require.NoError(t, err)
				r.want = after
				return
			}
			require.ErrorIs(t, err, indexer.ErrTaken)
			for key, err := range blamed {
				var taken *indexer.TakenError
				require.ErrorAs(t, err, &taken)
				require.Equal(t, key, taken.Key)
				require.True(t, written[key])
				require.NotEqual(t, key, taken.Holder)
				require.Equal(t, taken.Value, after[key].Object.Mail)
				require.Equal(t, taken.Value, after[taken.Holder].Object.Mail)
				require.NotEqual(t, taken.Value, r.want[key].Object.Mail, "had it before")
				require.Nil(t, blamed[taken.Holder], "only one index is unique: no circles")
			}
		}
		r.check(t, r.cache, r.want) // nothing was written
		for key := range blamed {
			refused[key] = true
		}
	}
}

func keySet(blamed map[string]error) map[string]bool {
	set := map[string]bool{}
	for key := range blamed {
		set[key] = true
	}
	return set
}

func (r *rig[T]) keep() {
	r.kept = append(r.kept, kept[T]{r.cache.Snapshot(), maps.Clone(r.want)})
}

// settled checks the cache, and that no snapshot has changed since it was taken.
func (r *rig[T]) settled(t testing.TB) {
	t.Helper()
	r.check(t, r.cache, r.want)
	for _, k := range r.kept {
		r.check(t, k.snap, k.want)
	}
}

func history[T any](r *rig[T], steps, keys int) func(t *testing.T, seed uint64) {
	return func(t *testing.T, seed uint64) {
		d := seeded(seed)
		for i := range steps {
			r.step(t, d, keys, i)
			if d(8) == 0 {
				r.keep()
			}
			if d(steps) == 0 { // all gone: slots and tables begin anew
				require.NoError(t, r.cache.Write(func(b *indexer.Batch[T]) error {
					for key := range r.want {
						b.Delete(key)
					}
					return nil
				}))
				r.want = map[string]object.Item[thing]{}
			}
			if i%10 == 0 {
				r.check(t, r.cache, r.want)
			}
		}
		r.settled(t)
	}
}

// X01, X02 and G5 over random histories: every way of reading equals a plain map,
// and every snapshot stays what it was.
func TestG5_RandomHistories(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		for _, keys := range []int{8, 60, 400} {
			t.Run(fmt.Sprintf("seed=%d,keys=%d", seed, keys), func(t *testing.T) {
				history(byValue(), 40, keys)(t, seed)
				history(byPointer(), 40, keys)(t, seed+1000)
			})
		}
	}
}

func FuzzHistory(f *testing.F) {
	f.Add([]byte("a few bytes to begin with, and some more of them"))
	f.Add(slices.Repeat([]byte{3, 7, 1, 9, 0, 255, 30}, 30))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 2000 {
			return
		}
		r := byValue()
		d, more := fuzzed(data)
		keys := 4 + d(250)
		for i := 0; more(); i++ {
			r.step(t, d, keys, i)
			if i%5 == 0 && len(r.kept) < 20 {
				r.keep()
			}
		}
		r.settled(t)
	})
}
