package indexer_test

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/object"
)

func keysOf[T any](seq iter.Seq2[string, T]) []string {
	var keys []string
	for key := range seq {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func TestX01_AnyCardinality(t *testing.T) {
	many := func(from, to int) (tags []string) {
		for i := from; i < to; i++ {
			tags = append(tags, fmt.Sprint(i))
		}
		return tags
	}
	sets := map[string][]string{
		"none":       nil,
		"x":          {"x"},
		"y":          {"y"},
		"x,y":        {"x", "y"},
		"y,x":        {"y", "x"},
		"x,x":        {"x", "x"},
		"x,y,x,z,z":  {"x", "y", "x", "z", "z"},
		"many":       many(0, 40),
		"many more":  many(20, 90),
		"many twice": append(many(0, 40), many(0, 40)...),
		"many and x": append(many(0, 17), "x"),
	}
	for from, old := range sets {
		for to, tags := range sets {
			t.Run(from+" to "+to, func(t *testing.T) {
				c := users(t, userItem{Key: "other", Object: user{Tags: []string{"x", "0"}}},
					userItem{Key: "k", Object: user{Tags: old}})
				snap := c.Snapshot()
				given := slices.Clone(tags)
				require.NoError(t, c.Put(userItem{Key: "k", Object: user{Tags: tags}}))
				require.Equal(t, given, tags, "the function's slice was changed")
				for v, want := range map[indexer.View[user]][]string{c: tags, snap: old} {
					got := map[string]bool{}
					for value, n := range byTag.Values(v) {
						keys := keysOf(byTag.Lookup(v, value))
						require.Len(t, keys, n)
						require.Equal(t, n, byTag.Count(v, value))
						if slices.Contains(keys, "k") {
							got[value] = true
						}
					}
					require.Equal(t, toSet(want), got)
				}
				c.Delete("k")
				require.Equal(t, []string{"other"}, keysOf(byTag.Lookup(c, "x")))
				require.Len(t, maps.Collect(byTag.Values(c)), 2)
			})
		}
	}
}

// The slice that an index function returns is its own.
func TestX01_SlicesAreNotKept(t *testing.T) {
	shared := []string{"a", "b"}
	x := indexer.ByEach("shared", func(user) []string { return shared })
	c := indexer.New[user](x)
	require.NoError(t, c.Put(userItem{Key: "1"}))
	shared[0], shared[1] = "c", "d"
	require.Equal(t, map[string]int{"a": 1, "b": 1}, maps.Collect(x.Values(c)))
	require.NoError(t, c.Put(userItem{Key: "1"}))
	require.Equal(t, map[string]int{"c": 1, "d": 1}, maps.Collect(x.Values(c)))
	shared = nil
	require.True(t, c.Delete("1"))
	require.Empty(t, maps.Collect(x.Values(c)))
}

func TestX02_PanicLeavesAllAsItWas(t *testing.T) {
	c := users(t, userItem{Key: "a", Version: "1", Object: user{Team: "t", Mail: "m", Tags: []string{"x"}}})
	last := indexer.By("last", func(u user) int {
		if u.Mail == "bad" {
			panic(errors.New("bad mail"))
		}
		return len(u.Mail)
	})
	require.NoError(t, c.AddIndex(last)) // a function before it sees the object first
	before := contents(c)

	err := c.Put(userItem{Key: "a", Version: "2", Object: user{Team: "other", Mail: "bad", Tags: []string{"y"}}})
	var fault *indexer.IndexError
	require.ErrorAs(t, err, &fault)
	require.Equal(t, "a", fault.Key)
	require.Equal(t, "last", fault.Index)
	require.Contains(t, string(fault.Stack), "TestX02_PanicLeavesAllAsItWas")
	require.EqualError(t, fault, `indexer: index "last" panicked on "a": bad mail`)
	require.EqualError(t, errors.Unwrap(fault), "bad mail")

	require.Equal(t, before, contents(c))
	require.Equal(t, []string{"a"}, keysOf(last.Lookup(c, 1)))
	require.True(t, c.Delete("a"))
	for _, x := range []*indexer.Index[user, string]{byTeam, byTag, byMail} {
		require.Empty(t, maps.Collect(x.Values(c)), x.Name())
	}
	require.Empty(t, maps.Collect(last.Values(c)))
}

func TestX03_PanicLeavesNoLock(t *testing.T) {
	c := users(t)
	for _, key := range []string{"a", "b"} {
		require.Error(t, c.Put(userItem{Key: key, Object: user{Team: "panic"}}))
		require.NoError(t, c.Put(userItem{Key: key + "-good"}))
	}
	require.Equal(t, []string{"a-good", "b-good"}, keysOf(c.All()))
}

// All faults of a batch are told at once; the stacks are bounded.
func TestX03_ManyPanics(t *testing.T) {
	c := users(t)
	err := c.Write(func(b *userBatch) error {
		for i := range 30 {
			b.Put(userItem{Key: fmt.Sprint(i), Object: user{Team: "panic"}})
			b.Put(userItem{Key: fmt.Sprint("good", i)})
		}
		return nil
	})
	refused, stacks := indexer.Refused(err), 0
	require.Len(t, refused, 30)
	for _, err := range refused {
		var fault *indexer.IndexError
		require.ErrorAs(t, err, &fault)
		if fault.Stack != nil {
			stacks++
		}
	}
	require.Equal(t, 8, stacks)
}

// A value is found by what == it. NaN is not; neither is it left behind.
func TestValuesUnequalToThemselves(t *testing.T) {
	type point struct{ x, y float64 }
	nan := math.NaN()
	each := indexer.ByEach("each", func(f []float64) []float64 { return f })
	one := indexer.By("one", func(f []float64) float64 { return f[0] })
	at := indexer.By("at", func(f []float64) point { return point{1, f[0]} })
	unique := indexer.Unique("unique", func(f []float64) (float64, bool) { return f[0], f[0] != f[0] })
	c := indexer.New[[]float64](each, one, at, unique)
	put := func(key string, values ...float64) {
		require.NoError(t, c.Put(object.Item[[]float64]{Key: key, Object: values}))
	}
	put("a", nan, 1, nan, 2, 1, nan)
	put("b", nan)
	require.Equal(t, 2, c.Len())
	require.Equal(t, map[float64]int{1: 1, 2: 1}, maps.Collect(each.Values(c)))
	require.Empty(t, maps.Collect(one.Values(c)))
	require.Empty(t, maps.Collect(at.Values(c)))
	require.Empty(t, maps.Collect(unique.Values(c)))
	require.Zero(t, one.Count(c, nan))
	put("a", math.Copysign(0, -1), 2, nan)
	put("b", 0)
	require.Equal(t, []string{"a", "b"}, keysOf(each.Lookup(c, 0)), "-0 == 0")
	require.Equal(t, 2, one.Count(c, math.Copysign(0, -1)))
	require.Equal(t, 2, at.Count(c, point{1, 0}))
	put("a", nan)
	put("b", nan)
	require.Empty(t, maps.Collect(each.Values(c)))
	require.Empty(t, maps.Collect(one.Values(c)))
}

// A value that can't be compared is the index function's fault.
func TestValuesThatCannotBeCompared(t *testing.T) {
	one := indexer.By("any", func(v any) any { return v })
	each := indexer.ByEach("each", func(v any) []any { return []any{1, v} })
	maybe := indexer.Unique("maybe", func(v any) (any, bool) { return v, true })
	for _, x := range []*indexer.Index[any, any]{one, each, maybe} {
		c := indexer.New[any](x)
		require.NoError(t, c.Put(object.Item[any]{Key: "ok", Object: "text"}))
		err := c.Put(object.Item[any]{Key: "k", Object: []int{1}})
		var fault *indexer.IndexError
		require.ErrorAs(t, err, &fault, x.Name())
		require.Equal(t, x.Name(), fault.Index)
		require.Equal(t, []string{"ok"}, keysOf(x.Lookup(c, "text")))
		require.Equal(t, 1, c.Len())
	}
}

func TestX07_Names(t *testing.T) {
	other := indexer.By("team", func(u user) int { return len(u.Team) }) // declared here
	c := users(t, userItem{Key: "a", Object: user{Team: "t"}})
	snap := c.Snapshot()

	require.NoError(t, c.AddIndex(byTeam), "the same handle again")
	require.Same(t, snap, c.Snapshot())
	require.Equal(t, []string{"team", "tag", "mail"}, c.Indexes())

	err := c.AddIndex(other)
	require.ErrorIs(t, err, indexer.ErrNameTaken)
	require.ErrorContains(t, err, `"team"`)
	require.ErrorContains(t, err, "index_test.go:")
	require.ErrorContains(t, err, "write_test.go:", "names the first registrant")
	require.Same(t, snap, c.Snapshot())
	require.Equal(t, 1, byTeam.Count(c, "t"))

	// One handle, two caches.
	d := indexer.New[user](byTeam, byTeam)
	require.NoError(t, d.Put(userItem{Key: "a", Object: user{Team: "u"}}))
	require.Equal(t, []string{"team"}, d.Indexes())
	require.Equal(t, 1, byTeam.Count(d, "u"))
	require.Zero(t, byTeam.Count(c, "u"))

	names := c.Indexes()
	names[0] = "mine"
	require.Equal(t, "team", c.Indexes()[0])
}

func TestInvalidIndexes(t *testing.T) {
	var none *indexer.Index[user, string]
	var noFunc func(user) string
	cases := map[string]indexer.Indexed[user]{
		"nil":         nil,
		"nil handle":  none,
		"no name":     indexer.By("", func(u user) string { return u.Team }),
		"no function": indexer.By("x", noFunc),
	}
	for name, x := range cases {
		t.Run(name, func(t *testing.T) {
			c := users(t, mail("a", ""))
			require.ErrorIs(t, c.AddIndex(x), indexer.ErrInvalidIndex)
			require.Len(t, c.Indexes(), 3)

			bad := indexer.New(x, byTeam, indexer.By("team", func(u user) string { return "" }))
			require.ErrorIs(t, bad.Put(mail("a", "")), indexer.ErrInvalidIndex)
			err := bad.Write(func(*userBatch) error { t.Error("called"); return nil })
			require.ErrorIs(t, err, indexer.ErrInvalidIndex)
			require.ErrorIs(t, err, indexer.ErrNameTaken, "all faults joined")
			require.ErrorIs(t, bad.AddIndex(byTag), indexer.ErrInvalidIndex)
			require.False(t, bad.Delete("a"))
			require.Equal(t, []string{"team"}, bad.Indexes())
			require.Zero(t, byTeam.Count(bad, "x"))
		})
	}
}

func TestX08_Unregistered(t *testing.T) {
	stranger := indexer.By("stranger", func(u user) string { return u.Team })
	c := users(t, userItem{Key: "a", Object: user{Team: "t"}})
	before := c.Snapshot()
	for name, use := range map[string]func(v indexer.View[user]){
		"Lookup": func(v indexer.View[user]) { stranger.Lookup(v, "t") },
		"One":    func(v indexer.View[user]) { stranger.One(v, "t") },
		"Count":  func(v indexer.View[user]) { stranger.Count(v, "t") },
		"Values": func(v indexer.View[user]) { stranger.Values(v) },
	} {
		for _, v := range []indexer.View[user]{c, before} {
			func() {
				defer func() { require.Contains(t, fmt.Sprint(recover()), `"stranger"`, name) }()
				use(v)
			}()
		}
	}
	_, err := c.Named("stranger", "t")
	require.ErrorIs(t, err, indexer.ErrNoIndex)
	require.ErrorContains(t, err, "stranger")

	require.NoError(t, c.AddIndex(stranger))
	require.Equal(t, 1, stranger.Count(c, "t"))
	require.Panics(t, func() { stranger.Count(before, "t") }, "a snapshot from before has it not")
}

func TestNamed(t *testing.T) {
	type level int
	length := indexer.By("length", func(u user) level { return level(len(u.Team)) })
	kinds := indexer.ByEach("kinds", func(u user) []any { return []any{len(u.Team), fmt.Sprint(len(u.Team)), "3"} })
	c := users(t, userItem{Key: "a", Object: user{Team: "red"}}, userItem{Key: "b", Object: user{Team: "blue"}},
		userItem{Key: "c", Object: user{Team: "tan"}})
	require.NoError(t, c.AddIndex(length))
	require.NoError(t, c.AddIndex(kinds))
	for _, tc := range []struct {
		index, value string
		want         []string
	}{
		{"team", "blue", []string{"b"}},
		{"team", "green", nil},
		{"length", "3", []string{"a", "c"}},
		{"length", "5", nil},
		{"kinds", "3", []string{"a", "b", "c"}},
		{"kinds", "4", []string{"b"}},
	} {
		seq, err := c.Named(tc.index, tc.value)
		require.NoError(t, err)
		c.Put(userItem{Key: "later", Object: user{Team: tc.value}})
		require.Equal(t, tc.want, keysOf(seq), tc.index+"="+tc.value)
		require.Equal(t, tc.want, keysOf(seq), "ranged over again")
		for range seq {
			break
		}
		c.Delete("later")
	}
}

func TestKeys(t *testing.T) {
	u := user{Team: "t", Tags: []string{"a", "a"}, Mail: "m"}
	require.Equal(t, []string{"t"}, byTeam.Keys(u))
	require.Equal(t, []string{"a", "a"}, byTag.Keys(u))
	require.Equal(t, []string{"m"}, byMail.Keys(u))
	require.Empty(t, byMail.Keys(user{}))
	require.Panics(t, func() { byTeam.Keys(user{Team: "panic"}) })
}

func TestAddIndexFaults(t *testing.T) {
	c := indexer.New[user]()
	for key, u := range map[string]user{
		"a": {Team: "panic"}, "b": {Team: "panic"}, "c": {Mail: "m"}, "d": {Mail: "m"}, "e": {Mail: "m"}, "f": {Mail: "n"},
	} {
		require.NoError(t, c.Put(userItem{Key: key, Object: u}))
	}
	snap := c.Snapshot()
	err := c.AddIndex(byTeam)
	require.Equal(t, []string{"a", "b"}, slices.Sorted(maps.Keys(indexer.Refused(err))))
	err = c.AddIndex(byMail)
	require.ErrorIs(t, err, indexer.ErrTaken)
	require.Len(t, indexer.Refused(err), 2, "all but one")
	require.Same(t, snap, c.Snapshot())

	require.NoError(t, c.Write(func(b *userBatch) error {
		b.Delete("a")
		b.Delete("b")
		b.Delete("c")
		b.Delete("e")
		return nil
	}))
	require.NoError(t, c.AddIndex(byTeam))
	require.NoError(t, c.AddIndex(byMail))
	require.Equal(t, map[string]int{"m": 1, "n": 1}, maps.Collect(byMail.Values(c)))
	require.Equal(t, 2, byTeam.Count(c, ""))
	require.ErrorIs(t, c.Put(mail("g", "m")), indexer.ErrTaken)
}

// Taken tells beforehand what Put would be refused for.
func TestTaken(t *testing.T) {
	size := indexer.Unique("size", func(s string) (int, bool) {
		if s == "!" {
			panic(s)
		}
		return len(s), s != ""
	})
	c := indexer.New[string](size, indexer.By("first", func(s string) string { return s[:min(1, len(s))] }))
	if err := c.Put(object.Item[string]{Key: "a", Object: "xx"}); err != nil {
		t.Fatal(err)
	}
	for _, free := range []object.Item[string]{
		{Key: "a", Object: "yy"}, {Key: "b", Object: "x"}, {Key: "b", Object: ""}, {Key: "b", Object: "!"},
	} {
		if got := c.Taken(free); got != nil {
			t.Errorf("%+v: %v", free, got[0])
		}
	}
	it := object.Item[string]{Key: "b", Object: "yy"}
	got, put := c.Taken(it), c.Put(it)
	if len(got) != 1 || put == nil || got[0].Error() != put.Error() {
		t.Errorf("%v, but Put is refused with %v", got, put)
	}
	c.Delete("a")
	if got := c.Taken(it); got != nil {
		t.Errorf("after the delete: %v", got[0])
	}
}
