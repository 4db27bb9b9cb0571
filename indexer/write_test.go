package indexer_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/object"
)

// user is the object of most tests.
type user struct {
	Team string
	Mail string
	Tags []string
}

type (
	userItem  = object.Item[user]
	userCache = indexer.Indexer[user]
	userBatch = indexer.Batch[user]
)

var (
	byTeam = indexer.By("team", func(u user) string {
		if u.Team == "panic" {
			panic("no such team")
		}
		return u.Team
	})
	byTag  = indexer.ByEach("tag", func(u user) []string { return u.Tags })
	byMail = indexer.Unique("mail", func(u user) (string, bool) { return u.Mail, u.Mail != "" })
)

func users(t testing.TB, items ...userItem) *userCache {
	c := indexer.New[user](byTeam, byTag, byMail)
	for _, item := range items {
		require.NoError(t, c.Put(item))
	}
	return c
}

func mail(key, mail string) userItem {
	return userItem{Key: key, Version: "1", Object: user{Mail: mail}}
}

// contents prints all of a view, indexes included, to compare it before and after.
func contents(v indexer.View[user]) string {
	var b strings.Builder
	for key := range v.Sorted() {
		item, _ := v.Item(key)
		fmt.Fprintf(&b, "%v\n", item)
		for _, x := range []*indexer.Index[user, string]{byTeam, byTag, byMail} {
			for value := range x.Values(v) {
				for at := range x.Lookup(v, value) {
					if at == key {
						fmt.Fprintf(&b, " %s=%s", x.Name(), value)
						break
					}
				}
			}
		}
	}
	return b.String()
}

func TestPutNeedsAKey(t *testing.T) {
	c := users(t)
	require.ErrorIs(t, c.Put(userItem{}), indexer.ErrNoKey)
	err := c.Write(func(b *userBatch) error {
		b.Put(mail("a", ""))
		_, existed := b.Put(userItem{Version: "1"})
		require.False(t, existed)
		return nil
	})
	require.ErrorIs(t, err, indexer.ErrNoKey)
	require.ErrorIs(t, c.Write(func(b *userBatch) error { b.PutIf(userItem{}, "1"); return nil }), indexer.ErrNoKey)
	require.Nil(t, indexer.Refused(err))
	require.Zero(t, c.Len())
	require.False(t, c.Delete(""))
}

func TestDelete(t *testing.T) {
	c := users(t, mail("a", "x"))
	require.False(t, c.Delete("b"))
	require.True(t, c.Delete("a"))
	require.False(t, c.Delete("a"))
	require.Zero(t, c.Len())
	require.Zero(t, byMail.Count(c, "x"))
}

func TestWriteIsAllOrNothing(t *testing.T) {
	enough := errors.New("enough")
	cases := map[string]struct {
		write func(b *userBatch) error
		check func(t *testing.T, err error)
	}{
		"its own error": {
			func(*userBatch) error { return enough },
			func(t *testing.T, err error) { require.Equal(t, enough, err) },
		},
		"a panic": {
			func(*userBatch) error { panic("oh no") },
			func(t *testing.T, err error) {
				var p *indexer.PanicError
				require.ErrorAs(t, err, &p)
				require.Equal(t, "oh no", p.Value)
				require.Contains(t, string(p.Stack), "TestWriteIsAllOrNothing")
				require.Equal(t, "indexer: the function given to Write panicked: oh no", p.Error())
			},
		},
		"a panic with an error": {
			func(*userBatch) error { panic(enough) },
			func(t *testing.T, err error) { require.ErrorIs(t, err, enough) },
		},
		"a stale version": {
			func(b *userBatch) error { b.PutIf(mail("a", ""), "0"); return nil },
			func(t *testing.T, err error) { require.ErrorIs(t, err, indexer.ErrStale) },
		},
		"an index function": {
			func(b *userBatch) error { b.Put(userItem{Key: "z", Object: user{Team: "panic"}}); return nil },
			func(t *testing.T, err error) { require.Contains(t, indexer.Refused(err), "z") },
		},
		"a unique index": {
			func(b *userBatch) error { b.Put(mail("z", "b@")); return nil },
			func(t *testing.T, err error) { require.ErrorIs(t, err, indexer.ErrTaken) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := users(t, mail("a", "a@"), mail("b", "b@"), mail("c", "c@"))
			before, snap := contents(c), c.Snapshot()
			err := c.Write(func(b *userBatch) error {
				b.Put(userItem{Key: "a", Object: user{Team: "t", Mail: "a@", Tags: []string{"x"}}})
				b.Delete("c")
				b.Put(mail("new", "new@"))
				return tc.write(b)
			})
			tc.check(t, err)
			require.Equal(t, before, contents(c))
			require.Same(t, snap, c.Snapshot(), "nothing was published")
			_, found := c.Get("new")
			require.False(t, found)

			require.NoError(t, c.Put(mail("after", "new@")), "the turn was given back")
			require.True(t, c.Delete("a"))
			require.Equal(t, 3, c.Len())
		})
	}
}

func TestWriteGivesTheTurnBackAtGoexit(t *testing.T) {
	c := users(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Write(func(b *userBatch) error {
			b.Put(mail("a", ""))
			runtime.Goexit()
			return nil
		})
	}()
	<-done
	require.NoError(t, c.Put(mail("b", "")))
	require.Equal(t, 1, c.Len())
}

func TestBatchAfterItsFunction(t *testing.T) {
	c := users(t)
	var kept *userBatch
	require.NoError(t, c.Write(func(b *userBatch) error { kept = b; return nil }))
	for name, use := range map[string]func(){
		"Put":    func() { kept.Put(mail("a", "")) },
		"PutIf":  func() { kept.PutIf(mail("a", ""), "") },
		"Delete": func() { kept.Delete("a") },
		"Item":   func() { kept.Item("a") },
	} {
		require.Panics(t, use, name)
	}
	require.Zero(t, c.Len())
}

// What Put and Delete give back, and Item reads, is the batch's own view; readers
// see nothing of it.
func TestBatchReadsItself(t *testing.T) {
	for _, others := range []int{0, 40} { // few keys, and so many that they are hashed
		c := users(t, userItem{Key: "a", Version: "1", ID: "i"})
		version := func(item userItem, there bool) string { return fmt.Sprint(item.Key, item.Version, there) }
		require.NoError(t, c.Write(func(b *userBatch) error {
			for i := range others {
				b.Put(userItem{Key: fmt.Sprint("other", i)})
			}
			require.Equal(t, "a1true", version(b.Item("a")))
			require.Equal(t, "a1true", version(b.Put(userItem{Key: "a", Version: "2"})))
			require.Equal(t, "a2true", version(b.Item("a")))
			require.Equal(t, "a2true", version(b.Delete("a")))
			require.Equal(t, "false", version(b.Item("a")))
			require.Equal(t, "false", version(b.Delete("a")))
			require.Equal(t, "false", version(b.Put(userItem{Key: "a", Version: "3"})))
			require.Equal(t, "false", version(b.Put(userItem{Key: "b", Version: "4"})))
			require.Equal(t, "b4true", version(b.Delete("b")))
			require.Equal(t, "false", version(b.Delete("never")))
			require.Equal(t, "a1true", version(c.Item("a")))
			require.Equal(t, 1, c.Len())
			return nil
		}))
		require.Equal(t, "a3true", version(c.Item("a")))
		require.Equal(t, "false", version(c.Item("b")))
		require.Equal(t, 1+others, c.Len())
	}
}

func TestPutIf(t *testing.T) {
	cases := map[string]struct {
		key, was object.Version
		held     bool
		message  string
	}{
		"the version":             {key: "a", was: "1", held: true},
		"another version":         {key: "a", was: "0", message: `indexer: version moved: "a": want "0", found "1"`},
		"any":                     {key: "a", was: object.Any, held: true},
		"any, but absent":         {key: "b", was: object.Any, message: `indexer: version moved: "b": want "*", found none`},
		"absent":                  {key: "b", was: "", held: true},
		"absent, but there":       {key: "a", was: "", message: `indexer: version moved: "a": want none, found "1"`},
		"absent, but versionless": {key: "v", was: "", message: `indexer: version moved: "v": want none, found ""`},
		"a version, but absent":   {key: "b", was: "1", message: `indexer: version moved: "b": want "1", found none`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := users(t, mail("a", ""), userItem{Key: "v"})
			err := c.Write(func(b *userBatch) error {
				b.PutIf(userItem{Key: string(tc.key), Version: "2"}, tc.was)
				return nil
			})
			item, _ := c.Item(string(tc.key))
			require.Equal(t, tc.held, item.Version == "2")
			if tc.held {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, tc.message)
			var stale *indexer.StaleError
			require.ErrorAs(t, err, &stale)
			require.ErrorIs(t, err, indexer.ErrStale)
			require.Equal(t, map[string]error{string(tc.key): stale}, indexer.Refused(err))
		})
	}
	t.Run("within the batch", func(t *testing.T) {
		c := users(t, mail("a", ""))
		require.NoError(t, c.Write(func(b *userBatch) error {
			b.PutIf(userItem{Key: "a", Version: "2"}, "1")
			b.PutIf(userItem{Key: "a", Version: "3"}, "2")
			b.Delete("a")
			b.PutIf(userItem{Key: "a", Version: "4"}, "")
			return nil
		}))
		item, _ := c.Item("a")
		require.Equal(t, object.Version("4"), item.Version)
	})
}

// A write that changes nothing is no new state.
func TestNothingWritten(t *testing.T) {
	c := users(t, mail("a", "x"))
	snap := c.Snapshot()
	require.NoError(t, c.Write(func(b *userBatch) error { return nil }))
	require.NoError(t, c.Write(func(b *userBatch) error {
		b.Delete("none")
		b.Put(mail("b", ""))
		b.Delete("b")
		return nil
	}))
	require.Same(t, snap, c.Snapshot())
	require.NoError(t, c.Put(mail("a", "x")))
	require.NotSame(t, snap, c.Snapshot())
}

// Only the last word for a key is put before index functions and unique indexes.
func TestOnlyTheLastWordCounts(t *testing.T) {
	c := users(t, mail("a", "x"))
	require.NoError(t, c.Write(func(b *userBatch) error {
		b.Put(userItem{Key: "b", Object: user{Team: "panic"}})
		b.Put(mail("b", "x"))
		b.Put(mail("b", "y"))
		b.Put(userItem{Key: "c", Object: user{Team: "panic"}})
		b.Delete("c")
		return nil
	}))
	require.Equal(t, 2, c.Len())
	require.Equal(t, 1, byMail.Count(c, "y"))
}

func TestUniqueValuesMoveInAnyOrder(t *testing.T) {
	swap := func(items ...userItem) func(*userBatch) error {
		return func(b *userBatch) error {
			for _, item := range items {
				b.Put(item)
			}
			return nil
		}
	}
	for name, write := range map[string]func(*userBatch) error{
		"swap":           swap(mail("a", "2"), mail("b", "1"), mail("c", "3")),
		"swap, reversed": swap(mail("c", "3"), mail("b", "1"), mail("a", "2")),
		"ring":           swap(mail("a", "2"), mail("b", "3"), mail("c", "1")),
		"ring, reversed": swap(mail("c", "1"), mail("b", "3"), mail("a", "2")),
		"take, then give up": func(b *userBatch) error {
			b.Put(mail("d", "1"))
			b.Delete("a")
			return nil
		},
		"give up, then take": func(b *userBatch) error {
			b.Put(mail("a", ""))
			b.Put(mail("d", "1"))
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := users(t, mail("a", "1"), mail("b", "2"), mail("c", "3"))
			require.NoError(t, c.Write(write))
			for value, n := range byMail.Values(c) {
				require.Equal(t, 1, n)
				key, obj, ok := byMail.One(c, value)
				require.True(t, ok)
				require.Equal(t, value, obj.Mail)
				got, _ := c.Get(key)
				require.Equal(t, value, got.Mail)
			}
		})
	}
}

func TestUniqueRefuses(t *testing.T) {
	cases := map[string]struct {
		puts []userItem
		want []string // key<holder
	}{
		"held before":               {[]userItem{mail("b", "1")}, []string{"b<a"}},
		"twice in the batch":        {[]userItem{mail("z", "9"), mail("b", "9")}, []string{"b<z"}},
		"thrice":                    {[]userItem{mail("z", "9"), mail("y", "9"), mail("x", "9")}, []string{"y<z", "x<z"}},
		"held before, both written": {[]userItem{mail("b", "1"), mail("a", "1")}, []string{"b<a"}},
		"moved by another":          {[]userItem{mail("a", "2"), mail("c", "1")}, nil},
		"in favour of the refused":  {[]userItem{mail("a", "5"), mail("c", "5"), mail("d", "5")}, []string{"c<a", "d<a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := users(t, mail("a", "1"))
			err := c.Write(func(b *userBatch) error {
				for _, item := range tc.puts {
					b.Put(item)
				}
				return nil
			})
			if tc.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, indexer.ErrTaken)
			refused := indexer.Refused(err)
			require.Len(t, refused, len(tc.want))
			for _, want := range tc.want {
				key, holder, _ := strings.Cut(want, "<")
				var taken *indexer.TakenError
				require.ErrorAs(t, refused[key], &taken)
				require.Equal(t, "mail", taken.Index)
				require.Equal(t, holder, taken.Holder)
			}
			require.Equal(t, 1, c.Len())
		})
	}
	c := users(t, mail("a", "1"))
	require.EqualError(t, c.Put(mail("b", "1")), `indexer: value taken in unique index "mail": "b" asks for 1, which "a" has`)
	require.NoError(t, c.Put(mail("a", "1")), "by the holder itself")
}

type badge struct{ desk, car int }

var (
	byDesk = indexer.Unique("desk", func(b badge) (int, bool) { return b.desk, b.desk != 0 })
	byCar  = indexer.Unique("car", func(b badge) (int, bool) { return b.car, b.car != 0 })
)

// Who would be refused only in favour of one that is refused itself is not blamed:
// without that one it may be let in.
func TestUniqueBlamesNoMoreThanNeeded(t *testing.T) {
	put := func(c *indexer.Indexer[badge], items map[string]badge, order ...string) error {
		return c.Write(func(b *indexer.Batch[badge]) error {
			for _, key := range order {
				b.Put(object.Item[badge]{Key: key, Object: items[key]})
			}
			return nil
		})
	}
	t.Run("a chain", func(t *testing.T) {
		c := indexer.New[badge](byDesk, byCar)
		items := map[string]badge{"boss": {desk: 1}, "a": {desk: 1, car: 7}, "b": {car: 7}}
		require.NoError(t, put(c, items, "boss"))
		err := put(c, items, "a", "b")
		require.Contains(t, indexer.Refused(err), "a")
		require.NotContains(t, indexer.Refused(err), "b")
		require.NoError(t, put(c, items, "b"))
	})
	t.Run("a circle", func(t *testing.T) {
		c := indexer.New[badge](byDesk, byCar)
		require.NoError(t, put(c, map[string]badge{"a": {desk: 1}, "b": {car: 1}}, "a", "b"))
		err := put(c, map[string]badge{"a": {desk: 1, car: 1}, "b": {desk: 1, car: 1}}, "a", "b")
		require.Len(t, indexer.Refused(err), 2, "each holds what the other asks for")
	})
}

// An index fault leaves open who is refused a unique value, so it is told alone.
func TestIndexFaultsComeFirst(t *testing.T) {
	c := users(t, mail("a", "1"))
	err := c.Write(func(b *userBatch) error {
		b.Put(userItem{Key: "a", Object: user{Team: "panic", Mail: "2"}})
		b.Put(userItem{Key: "b", Object: user{Team: "panic"}})
		b.Put(mail("c", "2"))
		b.Put(mail("d", "2"))
		return nil
	})
	refused := indexer.Refused(err)
	require.Len(t, refused, 2)
	require.Contains(t, refused, "a")
	require.Contains(t, refused, "b")
	require.NotErrorIs(t, err, indexer.ErrTaken)
}

func TestRefused(t *testing.T) {
	require.Nil(t, indexer.Refused(nil))
	require.Nil(t, indexer.Refused(errors.New("other")))
	first := &indexer.StaleError{Key: "a"}
	err := fmt.Errorf("cache: %w", errors.Join(
		first,
		&indexer.IndexError{Key: "a", Value: "x"},
		fmt.Errorf("wrapped: %w", &indexer.TakenError{Key: "b"}),
		indexer.ErrNoKey,
		&indexer.IndexError{Key: "c", Value: errors.New("y")},
	))
	refused := indexer.Refused(err)
	require.Len(t, refused, 3)
	require.Same(t, first, refused["a"])
	require.ErrorIs(t, refused["b"], indexer.ErrTaken)
	require.ErrorContains(t, refused["c"], "y")
}

// Slots and table go back to the beginning when all is gone, and are used again.
func TestMemoryGoesBack(t *testing.T) {
	c := users(t)
	fill := func(n int) {
		require.NoError(t, c.Write(func(b *userBatch) error {
			for i := range n {
				b.Put(mail(fmt.Sprint(i), ""))
			}
			return nil
		}))
	}
	empty := func(n int) {
		require.NoError(t, c.Write(func(b *userBatch) error {
			for i := range n {
				b.Delete(fmt.Sprint(i))
			}
			return nil
		}))
	}
	fill(5000)
	require.Equal(t, 5000, indexer.Slots(c))
	require.GreaterOrEqual(t, indexer.PointCells(c), 5000)
	for range 3 { // the same slots again, also after a refusal
		empty(4000)
		require.Error(t, c.Write(func(b *userBatch) error {
			for i := range 3000 {
				b.Put(mail(fmt.Sprint(i), ""))
			}
			b.Put(userItem{Key: "bad", Object: user{Team: "panic"}})
			return nil
		}))
		fill(4000)
		require.Equal(t, 5000, indexer.Slots(c))
		require.Equal(t, 5000, c.Len())
	}
	empty(5000)
	require.Zero(t, indexer.Slots(c))
	require.Equal(t, 16, indexer.PointCells(c))
}
