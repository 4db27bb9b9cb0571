package indexer_test

import (
	"fmt"
	"iter"
	"maps"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/object"
)

// reads are all the iterators of a view, each over all keys of team t.
func reads(v indexer.View[user]) map[string]iter.Seq2[string, user] {
	return map[string]iter.Seq2[string, user]{
		"All":    v.All(),
		"Sorted": v.Sorted(),
		"Prefix": v.Prefix("k"),
		"Lookup": byTeam.Lookup(v, "t"),
	}
}

func team(n int) *userCache {
	c := indexer.New[user](byTeam, byTag, byMail)
	if err := c.Write(func(b *userBatch) error {
		for i := range n {
			b.Put(userItem{Key: fmt.Sprintf("k%05d", i), Object: user{Team: "t", Mail: fmt.Sprint(i)}})
		}
		return nil
	}); err != nil {
		panic(err)
	}
	return c
}

func TestPrefix(t *testing.T) {
	c := users(t)
	for _, key := range []string{"a", "a/", "a/1", "a/1/x", "a/2", "a0", "b", "\xff", "\xff\xff", "\xff\xff\xff", "\xfe"} {
		require.NoError(t, c.Put(userItem{Key: key}))
	}
	for _, tc := range []struct {
		prefix string
		want   []string
	}{
		{"", []string{"a", "a/", "a/1", "a/1/x", "a/2", "a0", "b", "\xfe", "\xff", "\xff\xff", "\xff\xff\xff"}},
		{"a/", []string{"a/", "a/1", "a/1/x", "a/2"}},
		{"a/1", []string{"a/1", "a/1/x"}},
		{"a/1/x", []string{"a/1/x"}},
		{"a/1/xy", nil},
		{"b", []string{"b"}},
		{"c", nil},
		{"\xff", []string{"\xff", "\xff\xff", "\xff\xff\xff"}},
		{"\xff\xff\xff\xff", nil},
	} {
		var got []string
		for key := range c.Prefix(tc.prefix) {
			got = append(got, key)
		}
		require.Equal(t, tc.want, got, "%q", tc.prefix)
	}
}

// A read is the state as of its call, ranged over whenever and however often.
func TestG5_ReadsStay(t *testing.T) {
	c := team(300)
	snap := c.Snapshot()
	seqs, values := reads(c), byTeam.Values(c)
	require.NoError(t, c.Write(func(b *userBatch) error {
		for i := range 300 {
			if key := fmt.Sprintf("k%05d", i); i%2 == 0 {
				b.Delete(key)
			} else {
				b.Put(userItem{Key: key, Object: user{Team: "other"}})
			}
		}
		b.Put(userItem{Key: "k1", Object: user{Team: "t"}})
		return nil
	}))
	for range 2 {
		for name, seq := range seqs {
			n := 0
			for _, obj := range seq {
				same(t, obj.Team == "t", "%s: %v", name, obj)
				n++
			}
			require.Equal(t, 300, n, name)
		}
		require.Equal(t, map[string]int{"t": 300}, maps.Collect(values))
	}
	require.Equal(t, 300, snap.Len())
	require.Same(t, snap, snap.Snapshot())
	for i := range 300 { // moved, gone, or its slot taken by another key
		item, ok := snap.Item(fmt.Sprintf("k%05d", i))
		require.True(t, ok)
		require.Equal(t, fmt.Sprint(i), item.Object.Mail)
	}
	_, ok := snap.Get("k1")
	require.False(t, ok, "put later")
	require.Equal(t, 151, c.Len())
}

// The key of an old snapshot may have got another slot meanwhile, and its slot
// another key.
func TestG5_SnapshotGetAfterSlotsMoved(t *testing.T) {
	c := users(t, mail("a", "1"), mail("b", "2"))
	first := c.Snapshot()
	c.Delete("a")
	c.Delete("b")
	require.NoError(t, c.Put(mail("b", "3")))
	require.NoError(t, c.Put(mail("a", "4")))
	second := c.Snapshot()
	c.Delete("a")
	for _, tc := range []struct {
		v    indexer.View[user]
		a, b string
	}{{first, "1", "2"}, {second, "4", "3"}, {c, "", "3"}} {
		for key, want := range map[string]string{"a": tc.a, "b": tc.b} {
			got, ok := tc.v.Get(key)
			require.Equal(t, want, got.Mail)
			require.Equal(t, want != "", ok)
			item, ok := tc.v.Item(key)
			require.Equal(t, want, item.Object.Mail)
			require.Equal(t, want != "", ok)
		}
	}
}

// What did not change is shared between states.
func TestG5_ObjectsAreShared(t *testing.T) {
	byOne := indexer.By("one", func(*user) int { return 1 })
	c := indexer.New[*user](byOne)
	obj := &user{Team: "t"}
	require.NoError(t, c.Put(object.Item[*user]{Key: "a", Object: obj}))
	snap := c.Snapshot()
	require.NoError(t, c.Put(object.Item[*user]{Key: "b", Object: &user{}}))
	for _, v := range []indexer.View[*user]{c, snap} {
		got, _ := v.Get("a")
		require.Same(t, obj, got)
		_, got, _ = byOne.One(v, 1)
		require.Same(t, obj, got)
	}
	require.NotSame(t, snap, c.Snapshot())
	require.Same(t, c.Snapshot(), c.Snapshot(), "and a state that did not change is one")
}

func TestIteratorsStopEarly(t *testing.T) {
	c := team(200)
	for name, seq := range reads(c) {
		for _, stop := range []int{1, 31, 32, 33, 100, 199} {
			n := 0
			for range seq {
				if n++; n == stop {
					break
				}
			}
			require.Equal(t, stop, n, name)
		}
		next, end := iter.Pull2(seq)
		_, _, ok := next()
		require.True(t, ok)
		end()
	}
	n := 0
	for range byMail.Values(c) {
		if n++; n == 50 {
			break
		}
	}
	require.Equal(t, 50, n)
}

func TestIteratorsNest(t *testing.T) {
	c := team(60)
	for name, outer := range reads(c) {
		pairs := 0
		for range outer {
			for range reads(c)[name] {
				pairs++
			}
		}
		require.Equal(t, 3600, pairs, name)
	}
}

// The body of a loop may write to the cache that it iterates.
func TestIteratorsAllowWrites(t *testing.T) {
	for _, name := range []string{"All", "Sorted", "Prefix", "Lookup"} {
		c := team(100)
		n := 0
		for key := range reads(c)[name] {
			n++
			require.True(t, c.Delete(key))
			require.NoError(t, c.Put(userItem{Key: "new" + key, Object: user{Team: "t"}}))
			require.NoError(t, c.Write(func(b *userBatch) error { b.Delete("new" + key); return nil }))
		}
		require.Equal(t, 100, n, name)
		require.Zero(t, c.Len())
	}
}

// Readers go on while a writer stands in the middle of its batch, and see nothing
// of it; a writer goes on while readers stand in the middle of their loops.
func TestNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := team(100)
		before := c.Snapshot()
		hold, done := make(chan struct{}), make(chan error)
		go func() {
			done <- c.Write(func(b *userBatch) error {
				for i := range 50 {
					b.Delete(fmt.Sprintf("k%05d", i))
				}
				b.Put(userItem{Key: "new", Object: user{Team: "t"}})
				<-hold
				return nil
			})
		}()
		synctest.Wait()
		second := make(chan error)
		go func() { second <- c.Put(userItem{Key: "second"}) }()
		synctest.Wait() // also proves that waiting for the turn is durable
		require.Same(t, before, c.Snapshot())
		require.Equal(t, 100, c.Len())
		for name, seq := range reads(c) {
			require.Len(t, keysOf(seq), 100, name)
		}
		_, ok := c.Get("k00000")
		require.True(t, ok)
		_, ok = c.Get("new")
		require.False(t, ok)

		next, stop := iter.Pull2(c.Sorted()) // stands in the middle while they write
		next()
		close(hold)
		require.NoError(t, <-done)
		require.NoError(t, <-second)
		n := 1
		for {
			if _, _, ok := next(); !ok {
				break
			}
			n++
		}
		stop()
		require.Equal(t, 100, n)
		require.Equal(t, 52, c.Len())
	})
}

func TestX11_ReadsAllocateNothingPerObject(t *testing.T) {
	// The loops are called by hand: what the compiler makes of a range statement is
	// the caller's, and differs from build to build.
	visit := func(string, user) bool { return true }
	count := func(string, int) bool { return true }
	c := team(10_000)
	for name, read := range map[string]func(){
		"All":    func() { c.All()(visit) },
		"Sorted": func() { c.Sorted()(visit) },
		"Prefix": func() { c.Prefix("k0")(visit) },
		"Lookup": func() { byTeam.Lookup(c, "t")(visit) },
		"Values": func() { byMail.Values(c)(count) },
	} {
		require.LessOrEqual(t, testing.AllocsPerRun(5, read), 2.0, name)
	}
	snap := c.Snapshot()
	require.NoError(t, c.Put(userItem{Key: "k1", Object: user{Team: "t"}}))
	for name, read := range map[string]func(){
		"Get":            func() { c.Get("k00007") },
		"Get, absent":    func() { c.Get("absent") },
		"Item":           func() { c.Item("k00007") },
		"Len":            func() { c.Len() },
		"Snapshot":       func() { c.Snapshot() },
		"Snapshot's Get": func() { snap.Get("k00007"); snap.Get("k1") },
		"Count":          func() { byTeam.Count(c, "t") },
		"One":            func() { byMail.One(c, "7") },
	} {
		require.Zero(t, testing.AllocsPerRun(5, read), name)
	}
}

// A write costs a path of nodes, not the cache.
func TestWritesAreFarFromN(t *testing.T) {
	allocs := func(n int, write func(c *userCache, i int)) float64 {
		c := team(n)
		i := 0
		return testing.AllocsPerRun(50, func() {
			write(c, i*37%n)
			i++
		})
	}
	for name, write := range map[string]func(c *userCache, i int){
		"update": func(c *userCache, i int) {
			if err := c.Put(userItem{Key: fmt.Sprintf("k%05d", i), Object: user{Team: "t", Mail: fmt.Sprint(i)}}); err != nil {
				panic(err)
			}
		},
		"delete and insert": func(c *userCache, i int) {
			key := fmt.Sprintf("k%05d", i)
			if !c.Delete(key) {
				panic("lost")
			}
			if err := c.Put(userItem{Key: key, Object: user{Team: "t", Mail: fmt.Sprint(i)}}); err != nil {
				panic(err)
			}
		},
	} {
		small, large := allocs(500, write), allocs(20_000, write)
		require.LessOrEqual(t, large, 3*small+10, name)
	}
}

// Who is given a View of a cache can read all of it, by its indexes too, and write
// nothing.
func TestViewIsForReadingOnly(t *testing.T) {
	size := indexer.By("size", func(s string) int { return len(s) })
	c := indexer.New[string](size)
	v := c.View()
	if err := c.Put(object.Item[string]{Key: "a", Object: "xx"}); err != nil {
		t.Fatal(err)
	}
	if obj, ok := v.Get("a"); !ok || obj != "xx" || v.Len() != 1 || v.Snapshot() != c.Snapshot() {
		t.Errorf("Get: %q, %v", obj, ok)
	}
	if key, _, ok := size.One(v, 2); !ok || key != "a" {
		t.Errorf("One: %q, %v", key, ok)
	}
	if n := size.Count(v, 2); n != 1 {
		t.Errorf("Count: %d", n)
	}
	switch v.(type) {
	case *indexer.Indexer[string],
		interface {
			Put(object.Item[string]) error
		},
		interface{ Delete(string) bool },
		interface {
			Write(func(*indexer.Batch[string]) error) error
		},
		interface {
			AddIndex(indexer.Indexed[string]) error
		}:
		t.Errorf("%T can be written to", v)
	}
}
