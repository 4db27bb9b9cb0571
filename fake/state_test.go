package fake_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

func TestStaleRead(t *testing.T) {
	ctx := t.Context()
	b := fake.New[pod](fake.Plan{})
	require.False(t, b.Powers().StaleLists)
	feed(b, 1, 5)
	must(b.Update(ctx, item{Key: "b", Version: object.Any, Object: pod{N: 9}}))
	head := must(b.Powers().Head(ctx))

	b.SetPlan(plan(fake.Fault{On: fake.Get, Do: fake.StaleRead}))
	require.True(t, b.Powers().StaleLists)
	require.Equal(t, 1, must(b.Get(ctx, "b")).Object.N, "one revision ago")
	require.Len(t, must(b.List(ctx, listAll)).Items, 5)

	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err := b.Get(ended, "b")
	failed(t, err, backend.Error{Op: "get", Key: "b", Err: context.Canceled})

	b.SetPlan(plan(fake.Fault{Do: fake.StaleRead, Back: 3}))
	_, err = b.Get(ctx, "f")
	failed(t, err, backend.Error{Op: "get", Key: "f", Err: backend.ErrNotFound})
	first := must(b.List(ctx, reflector.ListOptions{Limit: 2}))
	require.Equal(t, at(head, 3), first.Cursor)
	rest := must(b.List(ctx, reflector.ListOptions{Page: first.Next}))
	require.Equal(t, at(head, 3), rest.Cursor, "no older than the first page, and no newer")
	require.Len(t, rest.Items, 1)
	require.Equal(t, "list #2 at 3: stale read", lines(b)[len(b.Log())-2])
	_, err = b.List(ctx, reflector.ListOptions{NotBefore: head})
	require.ErrorIs(t, err, reflector.ErrFutureCursor, "a replica that lags says so")
	must(b.List(ctx, reflector.ListOptions{NotBefore: at(head, 3)}))
	_, err = b.List(ctx, reflector.ListOptions{NotBefore: "x"})
	require.ErrorIs(t, err, reflector.ErrExpired)
	must(b.Create(ctx, "new", pod{})) // writes are where they belong

	b.SetPlan(plan(fake.Fault{Do: fake.StaleRead, Back: 100}))
	require.Empty(t, must(b.List(ctx, listAll)).Items, "as old as can be")
	b.Compact()
	require.Len(t, must(b.List(ctx, listAll)).Items, 6, "nothing older is known")
}

func TestRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		b := fake.New(plan(fake.Fault{On: fake.Get, Do: fake.Restore, Call: 1}), item{Key: "a", Object: pod{N: 1}})
		head := must(b.Powers().Head(ctx))
		feed(b, 1, 5)
		require.Equal(t, 1, must(b.Get(ctx, "a")).Object.N)
		require.Equal(t, head, must(b.Powers().Head(ctx)), "as the plan was set")
		require.Equal(t, `get #1 "a" at 1: restore`, lines(b)[5])

		feed(b, 1, 5)
		b.SetPlan(plan(fake.Fault{On: fake.List, Do: fake.Restore, Call: 1, Back: 2}))
		require.Equal(t, at(head, 4), must(b.List(ctx, listAll)).Cursor)
		_, err := told(t, b, reflector.WatchOptions{After: at(head, 6)})
		require.ErrorIs(t, err, reflector.ErrFutureCursor)
		_, err = told(t, b, reflector.WatchOptions{After: at(head, 2)})
		require.NoError(t, err)

		b.SetPlan(plan(fake.Fault{On: fake.Watch, Do: fake.Restore, NewEpoch: true}))
		_, err = told(t, b, reflector.WatchOptions{After: at(head, 2)})
		require.ErrorIs(t, err, reflector.ErrExpired)
		require.Zero(t, b.Powers().Compare(head, must(b.Powers().Head(ctx))))

		// By hand.
		snap := b.Snapshot()
		must(b.Create(ctx, "x", pod{}))
		b.Restore(snap, false)
		_, err = b.Get(ctx, "x")
		require.ErrorIs(t, err, backend.ErrNotFound)
	})
}

func TestOnPowers(t *testing.T) {
	b := fake.New(fake.Plan{}, item{Key: "a"})
	b.OnPowers(func(p reflector.Powers[pod]) reflector.Powers[pod] {
		p.Initial, p.Compare = false, nil
		return p
	})
	p := must(b.As("ann").DryRun()).Powers()
	require.False(t, p.Initial)
	require.Nil(t, p.Compare)
	require.True(t, p.Progress)
	must(p.Get(t.Context(), "a"))
	b.OnPowers(nil)
	require.True(t, b.Powers().Initial)
}

func TestOverAStoreWithFaultyOptions(t *testing.T) {
	b := fake.Over(plan(fake.Fault{Do: fake.Delay, For: 1}), memory.New[pod](&memory.Options{History: -1}))
	for _, c := range calls {
		require.ErrorIs(t, c.do(t.Context(), b), memory.ErrInvalidOptions)
	}
}
