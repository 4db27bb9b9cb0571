package bolt_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

func TestListIsSortedAndOfOneState(t *testing.T) {
	s := fresh(t, nil)
	require.Empty(t, list(t, s).Items)
	for _, k := range []string{"c", "a", "b"} {
		must(s.Create(t.Context(), k, pod{}))
	}
	p := list(t, s)
	require.Equal(t, cursorOf(t, s), p.Cursor)
	require.Empty(t, p.Next)
	var keys []string
	for _, it := range p.Items {
		require.Equal(t, must(s.Get(t.Context(), it.Key)), it)
		keys = append(keys, it.Key)
	}
	require.Equal(t, []string{"a", "b", "c"}, keys)

	p.Items[0].Object.N = 99 // the slice is the caller's
	require.Zero(t, list(t, s).Items[0].Object.N)

	must(s.Delete(t.Context(), "b", object.Any))
	require.Len(t, list(t, s).Items, 2, "no stale snapshot")
	require.Len(t, p.Items, 3)
}

// A list has every write that returned before it began, whoever lists and writes
// meanwhile.
func TestListIsNeverOlderThanTheCall(t *testing.T) {
	s := fresh(t, nil)
	for i := range 200 {
		must(s.Create(t.Context(), fmt.Sprint(i), pod{}))
	}
	p := s.Powers()
	var listers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		listers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				head := must(p.Head(t.Context()))
				if got := list(t, s).Cursor; p.Compare(got, head) < 0 {
					t.Errorf("listed %s, was at %s before", got, head)
					return
				}
			}
		})
	}
	for i := range 200 {
		must(s.Update(t.Context(), item{Key: "7", Version: object.Any, Object: pod{N: i}}))
		list(t, s)
	}
	close(stop)
	listers.Wait()
}

func TestListOptions(t *testing.T) {
	s, a := seeded(t)
	other := cursorOf(t, fresh(t, nil))
	head := cursorOf(t, s)
	ahead := cursorOf(t, s) + "0"
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	cases := []struct {
		name string
		ctx  context.Context
		opts reflector.ListOptions
		err  error
	}{
		{"not before now", nil, reflector.ListOptions{NotBefore: head}, nil},
		{"not before, any will do", nil, reflector.ListOptions{NotBefore: head, Freshness: reflector.Any}, nil},
		{"not before the future", nil, reflector.ListOptions{NotBefore: ahead}, reflector.ErrFutureCursor},
		{"not before a place in another epoch", nil, reflector.ListOptions{NotBefore: other}, reflector.ErrExpired},
		{"a page of somebody else's", nil, reflector.ListOptions{Page: "x"}, reflector.ErrExpired},
		{"a limit that holds everything", nil, reflector.ListOptions{Limit: 2}, nil},
		{"too late", ended, reflector.ListOptions{}, context.Canceled},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ctx := c.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			p, err := s.List(ctx, c.opts)
			require.ErrorIs(t, err, c.err)
			if c.err != nil {
				require.Empty(t, p)
				return
			}
			require.Len(t, p.Items, 2)
		})
	}
	p := must(s.List(t.Context(), reflector.ListOptions{KeysOnly: true}))
	require.Equal(t, item{Key: "a", Version: a.Version, ID: a.ID}, p.Items[0])
}

func TestPowers(t *testing.T) {
	s, a := seeded(t)
	p := s.Powers()
	require.True(t, p.Initial && p.Progress && p.ResumeProven && p.KeysOnly && p.Paged && p.SnapshotPages)
	require.False(t, p.StaleLists)

	early := list(t, s).Cursor
	for range 9 { // from 3 to 12: compared as numbers, not as text
		must(s.Update(t.Context(), item{Key: "a", Version: object.Any}))
	}
	late := must(p.Head(t.Context()))
	other := list(t, fresh(t, nil)).Cursor
	require.Negative(t, p.Compare(early, late))
	require.Positive(t, p.Compare(late, early))
	require.Zero(t, p.Compare(late, late))
	for _, foreign := range []reflector.Cursor{other, "", "x", "12", early + "x"} {
		require.Zero(t, p.Compare(early, foreign), foreign)
		require.Zero(t, p.Compare(foreign, early), foreign)
	}

	require.True(t, p.Reached(early, a.Version))
	require.True(t, p.Reached(early, "3"), "a cursor has reached the write at it")
	require.False(t, p.Reached(early, "4"))
	require.True(t, p.Reached(late, "9"))
	require.False(t, p.Reached(other, "0"))
	require.False(t, p.Reached(early, ""))
	require.False(t, p.Reached(early, object.Any))

	require.Equal(t, must(s.Get(t.Context(), "b")), must(p.Get(t.Context(), "b")))
	_, err := p.Get(t.Context(), "c")
	require.ErrorIs(t, err, reflector.ErrNotFound)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.Head(ended)
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Get(ended, "a")
	failed(t, err, backend.Error{Op: "get", Key: "a", Err: context.Canceled})
}
