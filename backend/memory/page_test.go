package memory_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

type page = reflector.Page[pod]

// pageOf is one page that there must be.
func pageOf(t *testing.T, s *memory.Store[pod], token reflector.PageToken, limit int) page {
	t.Helper()
	p, err := s.List(t.Context(), reflector.ListOptions{Page: token, Limit: limit})
	require.NoError(t, err)
	return p
}

func keysOf(items []item) string {
	var keys []string
	for _, it := range items {
		keys = append(keys, it.Key)
	}
	return strings.Join(keys, " ")
}

func TestPagesAreOfOneState(t *testing.T) {
	s := memory.New[pod](nil)
	for _, key := range []string{"d", "b/x", "a", "c"} {
		must(s.Create(t.Context(), key, pod{N: 1}))
	}
	first := pageOf(t, s, "", 2)
	require.Equal(t, "a b/x", keysOf(first.Items))
	require.Len(t, first.Items, 2)

	must(s.Delete(t.Context(), "d", object.Any))
	must(s.Create(t.Context(), "bb", pod{}))
	must(s.Update(t.Context(), item{Key: "c", Version: object.Any, Object: pod{N: 2}}))
	second := pageOf(t, s, first.Next, 1)
	require.Equal(t, "c", keysOf(second.Items))
	require.Equal(t, 1, second.Items[0].Object.N, "as it was")
	require.Equal(t, first.Cursor, second.Cursor)
	third := pageOf(t, s, second.Next, 5)
	require.Equal(t, "d", keysOf(third.Items), "deleted since")
	require.Empty(t, third.Next)
	require.Equal(t, second, pageOf(t, s, first.Next, 1), "a page may be asked for again")
	require.Equal(t, "c d", keysOf(pageOf(t, s, first.Next, 0).Items), "without a limit all the rest")

	got := must(s.List(t.Context(), reflector.ListOptions{Page: first.Next, Limit: 1, KeysOnly: true}))
	require.Zero(t, got.Items[0].Object.N)
	require.Equal(t, second.Items[0].Version, got.Items[0].Version)

	require.Equal(t, "a b/x bb c", keysOf(pageOf(t, s, "", 4).Items), "a new list shows what is now")
	require.Empty(t, pageOf(t, s, "", 4).Next, "the last page is known to be the last")
}

func TestPageTokensExpire(t *testing.T) {
	s := memory.New[pod](&memory.Options{History: 3})
	for i := range 5 {
		must(s.Create(t.Context(), fmt.Sprint(i), pod{}))
	}
	expired := func(token reflector.PageToken) {
		t.Helper()
		p, err := s.List(t.Context(), reflector.ListOptions{Page: token})
		require.ErrorIs(t, err, reflector.ErrExpired)
		require.Empty(t, p)
	}
	next := pageOf(t, s, "", 2).Next
	for i := range 3 {
		require.Len(t, pageOf(t, s, next, 0).Items, 3)
		must(s.Create(t.Context(), fmt.Sprint("x", i), pod{}))
	}
	require.Len(t, pageOf(t, s, next, 0).Items, 3, "history just reaches")
	must(s.Create(t.Context(), "one too many", pod{}))
	expired(next)

	next = pageOf(t, s, "", 2).Next
	s.Compact()
	pageOf(t, s, next, 2) // nothing was changed since
	must(s.Create(t.Context(), "y", pod{}))
	pageOf(t, s, next, 2)
	s.Compact()
	expired(next)

	other := memory.New[pod](nil)
	must(other.Create(t.Context(), "a", pod{}))
	must(other.Create(t.Context(), "b", pod{}))
	expired(pageOf(t, other, "", 1).Next)
	epoch, _, _ := strings.Cut(string(cursorOf(t, s)), ".")
	for _, garbage := range []string{"x", "/", "///", epoch, epoch + "/0/", epoch + "/0/-1/a", epoch + "/0/99/a", epoch + "/1/9/a", epoch + "/0/9x/a"} {
		expired(reflector.PageToken(garbage))
	}

	next = pageOf(t, s, "", 2).Next
	must(s.Create(t.Context(), "z", pod{}))
	_, err := s.List(t.Context(), reflector.ListOptions{Page: next, NotBefore: cursorOf(t, s)})
	require.ErrorIs(t, err, reflector.ErrExpired, "it can't be as new as that")
}

// Any number of lists at once, given up or gone on with at any time while objects
// come and go, each show what there was when they began.
func TestPagesUnderWrites(t *testing.T) {
	type listing struct {
		next  reflector.PageToken
		got   []item
		state map[string]item
		rev   int
	}
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 3))
		keep := 20 + r.IntN(500)
		s := memory.New[pod](&memory.Options{History: keep})
		m := &model{now: map[string]item{}, ids: map[string]bool{}, states: []map[string]item{{}}}
		var lists []*listing
		whole, expired := 0, 0
		for step := range 1500 {
			key := fmt.Sprintf("%04d", r.IntN(900)) // more than a run holds
			_, there := m.now[key]
			switch {
			case !there:
				require.NoError(t, m.stored(must(s.Create(t.Context(), key, pod{N: step})), false))
			case r.IntN(3) == 0:
				require.NoError(t, m.stored(must(s.Delete(t.Context(), key, object.Any)), true))
			default:
				require.NoError(t, m.stored(must(s.Update(t.Context(), item{Key: key, Version: object.Any, Object: pod{N: step}})), false))
			}
			if r.IntN(20) == 0 {
				p := pageOf(t, s, "", 1+r.IntN(100))
				rev := len(m.states) - 1
				lists = append(lists, &listing{next: p.Next, got: p.Items, state: m.states[rev], rev: rev})
			}
			if len(lists) == 0 || r.IntN(3) > 0 {
				continue
			}
			i := r.IntN(len(lists))
			l := lists[i]
			if l.next == "" {
				require.NoError(t, is(l.got, l.state), "seed %d, step %d", seed, step)
				whole++
				lists = append(lists[:i], lists[i+1:]...)
				continue
			}
			p, err := s.List(t.Context(), reflector.ListOptions{Page: l.next, Limit: 1 + r.IntN(200)})
			if l.rev < len(m.states)-1-keep {
				require.ErrorIs(t, err, reflector.ErrExpired)
				expired++
				lists = append(lists[:i], lists[i+1:]...)
				continue
			}
			require.NoError(t, err, "seed %d, step %d", seed, step)
			l.got, l.next = append(l.got, p.Items...), p.Next
		}
		if whole == 0 {
			t.Errorf("seed %d: no list was finished, %d expired", seed, expired)
		}
	}
}

// A list that nobody goes on with, and the states that were made for it, hold no
// object for longer than the history does.
func TestAbandonedListsHoldNothing(t *testing.T) {
	s := memory.New[*[1 << 16]byte](&memory.Options{History: 3})
	obj := new([1 << 16]byte)
	w := weak.Make(obj)
	must(s.Create(t.Context(), "a", obj))
	for i := range 600 {
		must(s.Create(t.Context(), fmt.Sprintf("b%d", i), nil))
	}
	must(s.List(t.Context(), reflector.ListOptions{Limit: 1}))
	must(s.Update(t.Context(), object.Item[*[1 << 16]byte]{Key: "a", Version: object.Any}))
	obj = nil
	for i := range 3 {
		must(s.List(t.Context(), reflector.ListOptions{Limit: 1}))
		runtime.GC()
		require.NotNil(t, w.Value(), "history has it")
		must(s.Update(t.Context(), object.Item[*[1 << 16]byte]{Key: "b7", Version: object.Any}))
		if i == 2 {
			break
		}
	}
	runtime.GC()
	require.Nil(t, w.Value())
	runtime.KeepAlive(s)
}

func TestFewStatesAreKept(t *testing.T) {
	s := memory.New[pod](nil)
	for i := range 30 {
		must(s.Create(t.Context(), fmt.Sprint(i), pod{}))
		list(t, s)
		list(t, s)
		require.Equal(t, min(i+1, 8), s.States())
	}
	must(s.SnapshotAt(at(cursorOf(t, s), 3)))
	require.Equal(t, 8, s.States())
	s.Compact()
	require.Equal(t, 1, s.States())
}

// What a batch follows is told, by bookmarks too.
func TestPrev(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := seeded(t)
		start := cursorOf(t, s)
		for range 150 { // more than are pulled at once
			must(s.Update(t.Context(), item{Key: "a", Version: object.Any}))
		}
		for name, opts := range map[string]reflector.WatchOptions{
			"resumed":  {After: start, ProgressEvery: 300_000_000},
			"streamed": {Initial: true, ProgressEvery: 300_000_000},
		} {
			got, err := told(t, s, opts)
			require.NoError(t, err)
			require.Empty(t, got[0].Prev, name)
			for i, b := range got[1:] {
				require.Equal(t, got[i].Cursor, b.Prev, name)
			}
			require.Empty(t, got[len(got)-1].Events, "a bookmark")
		}
	})
}
