package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/internal/stores/etcd"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

const long = time.Minute // for what comes at once on a quiet machine

// collect takes n batches of a watch.
func collect[T any](t *testing.T, s reflector.ListWatcher[T], after reflector.Cursor, n int) []reflector.Batch[T] {
	t.Helper()
	var got []reflector.Batch[T]
	for b, err := range s.Watch(within(t, long), reflector.WatchOptions{After: after}) {
		require.NoError(t, err)
		if got = append(got, b); len(got) == n {
			break
		}
	}
	require.Len(t, got, n)
	return got
}

// failure is what a watch ends with.
func failure[T any](t *testing.T, s reflector.ListWatcher[T], opts reflector.WatchOptions) error {
	t.Helper()
	for _, err := range s.Watch(within(t, long), opts) {
		if err != nil {
			return err
		}
	}
	t.Fatal("the watch ended without an error")
	return nil
}

func head[T any](t *testing.T, s reflector.ListWatcher[T]) reflector.Cursor {
	t.Helper()
	at, err := s.Powers().Head(within(t, long))
	require.NoError(t, err)
	return at
}

func TestWatch_ATransactionIsOneBatch(t *testing.T) {
	c := client(t, server.Addr())
	p := prefix()
	s := etcd.New[int](c, p, nil)
	start := head(t, s)
	for range 20 { // several revisions come in one response
		_, err := c.Txn(t.Context()).Then(
			clientv3.OpPut(p+"a", "1"), clientv3.OpPut("elsewhere", "1"), clientv3.OpPut(p+"b", "2"), clientv3.OpDelete(p+"c"),
		).Commit()
		require.NoError(t, err)
	}
	_, err := c.Txn(t.Context()).Then(clientv3.OpDelete(p+"a"), clientv3.OpPut(p+"c", "3")).Commit()
	require.NoError(t, err)

	got := collect(t, s, start, 22)
	require.Empty(t, got[0].Events)
	require.Equal(t, start, got[0].Cursor)
	for _, b := range got[1:] {
		require.Len(t, b.Events, 2)
		require.Equal(t, b.Events[0].Version, b.Events[1].Version)
		require.True(t, s.Powers().Reached(b.Cursor, b.Events[0].Version))
	}
	last := got[21].Events
	require.Equal(t, reflector.OpDelete, last[0].Op)
	require.True(t, last[0].Known)
	require.Equal(t, 1, last[0].Object, "the final state")
	require.Equal(t, "c", last[1].Key)
}

// Row R10: what was compacted is never passed over, whichever side of the
// compaction the delete lies on.
func TestR10_ADeleteInACompactedGapIsNotLost(t *testing.T) {
	for _, after := range []int{0, 1, 2} {
		t.Run(fmt.Sprintf("%d writes after the delete", after), func(t *testing.T) {
			c := client(t, server.Addr())
			p := prefix()
			s := etcd.New[int](c, p, nil)
			_, err := s.Create(t.Context(), "a", 1)
			require.NoError(t, err)
			before := head(t, s)
			gone, err := s.Delete(t.Context(), "a", object.Any)
			require.NoError(t, err)
			for i := range after {
				_, err = c.Put(t.Context(), p+"b", strconv.Itoa(i))
				require.NoError(t, err)
			}
			rev, err := strconv.ParseInt(string(gone.Version), 10, 64)
			require.NoError(t, err)
			_, err = c.Compact(t.Context(), rev+int64(after), clientv3.WithCompactPhysical())
			require.NoError(t, err)

			for b, err := range s.Watch(within(t, long), reflector.WatchOptions{After: before}) {
				if err != nil {
					require.ErrorIs(t, err, reflector.ErrExpired)
					return
				}
				if len(b.Events) > 0 {
					require.Equal(t, reflector.OpDelete, b.Events[0].Op, "the delete comes first, or an error")
					return
				}
			}
			t.Fatal("the watch ended without a word")
		})
	}
}

// A watch of a quiet store shows that it is alive, after an outage by a new session
// at the latest.
func TestWatch_ShowsLifeAfterACut(t *testing.T) {
	p := behind(t)
	s := etcd.New[int](client(t, p.Addr()), prefix(), nil)
	at := head(t, s)
	ctx := within(t, long)
	for signs, sessions := 0, 0; signs < 4; sessions++ {
		opened := false
		for b, err := range s.Watch(ctx, reflector.WatchOptions{After: at, ProgressEvery: 200 * time.Millisecond}) {
			require.NoError(t, err)
			require.Equal(t, at, b.Cursor, "nobody writes")
			if !opened { // that any session can say
				opened = true
				continue
			}
			if signs++; signs == 2 {
				p.Cut()
			}
			if signs == 4 {
				break
			}
		}
		require.NoError(t, ctx.Err())
		t.Logf("session %d ended after %d signs of life in all", sessions, signs)
	}
}

func TestList_EndsWhenItsStateIsCompacted(t *testing.T) {
	c := client(t, server.Addr())
	s := etcd.New[int](c, prefix(), nil)
	for i := range 3 {
		_, err := s.Create(t.Context(), strconv.Itoa(i), i)
		require.NoError(t, err)
	}
	page, err := s.List(t.Context(), reflector.ListOptions{Limit: 1})
	require.NoError(t, err)
	require.NotEmpty(t, page.Next)
	gone, err := s.Delete(t.Context(), "2", object.Any)
	require.NoError(t, err)
	second, err := s.List(t.Context(), reflector.ListOptions{Limit: 5, Page: page.Next})
	require.NoError(t, err)
	require.Len(t, second.Items, 2, "pages show one state")
	require.Equal(t, page.Cursor, second.Cursor)

	rev, _ := strconv.ParseInt(string(gone.Version), 10, 64)
	_, err = c.Compact(t.Context(), rev)
	require.NoError(t, err)
	_, err = s.List(t.Context(), reflector.ListOptions{Limit: 1, Page: page.Next})
	require.ErrorIs(t, err, reflector.ErrExpired)
	_, err = s.List(t.Context(), reflector.ListOptions{Page: "nonsense"})
	require.ErrorIs(t, err, reflector.ErrExpired)
}

// Rows R09 and R31: neither a cursor ahead of the cluster nor one of another
// cluster is waited for.
func TestR31_CursorsOfOtherClustersExpire(t *testing.T) {
	s := etcd.New[int](client(t, server.Addr()), prefix(), nil)
	here := head(t, s)
	tests := map[string]struct {
		after reflector.Cursor
		want  error
	}{
		"ahead":           {here + "0", reflector.ErrFutureCursor},
		"another cluster": {"abc.1", reflector.ErrExpired},
		"none of etcd's":  {"17", reflector.ErrExpired},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, failure(t, s, reflector.WatchOptions{After: tt.after}), tt.want)
			_, err := s.List(t.Context(), reflector.ListOptions{NotBefore: tt.after})
			require.ErrorIs(t, err, tt.want)
			if tt.want == reflector.ErrExpired {
				require.Zero(t, s.Powers().Compare(here, tt.after))
			}
		})
	}
}

func TestWrite_SaysWhatItDoesNotKnow(t *testing.T) {
	p := behind(t)
	s := etcd.New[string](client(t, p.Addr()), prefix(), nil)
	item, err := s.Create(t.Context(), "a", "x")
	require.NoError(t, err)

	p.Hold()
	item.Object = "y"
	_, err = s.Update(within(t, time.Second), item)
	require.ErrorIs(t, err, backend.ErrOutcomeUnknown)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Update(ended, item)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, backend.ErrOutcomeUnknown, "it was not sent")
	p.Up()

	_, err = s.Create(within(t, long), "huge", strings.Repeat("x", 1_700_000))
	require.Error(t, err)
	require.True(t, retry.IsPermanent(err), err)
	require.NotErrorIs(t, err, backend.ErrOutcomeUnknown)
	_, err = s.DryRun()
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// state is what the store has, by one list.
func state(t *testing.T, s reflector.ListWatcher[int]) map[string]object.Item[int] {
	t.Helper()
	page, err := s.List(within(t, long), reflector.ListOptions{})
	require.NoError(t, err)
	has := map[string]object.Item[int]{}
	for _, item := range page.Items {
		has[item.Key] = item
	}
	return has
}

// converges waits until the informer's cache is what the store has.
func converges(t *testing.T, i *informer.Informer[int], want map[string]object.Item[int]) {
	t.Helper()
	err := i.Until(within(t, long), func(snap *indexer.Snapshot[int]) bool {
		has := map[string]object.Item[int]{}
		for key := range snap.All() {
			has[key], _ = snap.Item(key)
		}
		return maps.Equal(has, want)
	})
	require.NoError(t, err)
}

// run runs an informer until the test ends.
func run(t *testing.T, s reflector.ListWatcher[int]) *informer.Informer[int] {
	i := informer.New(s, &informer.Options{Backoff: retry.Backoff{Base: 10 * time.Millisecond, Max: 200 * time.Millisecond}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- i.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return i
}

// The server dies again and again while writers write and connections break. At
// the end the cache is what the store has.
func TestServerKilledInMidWork(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	p := behind(t)
	c := client(t, p.Addr())
	s := etcd.New[int](c, prefix(), nil)
	cache := run(t, s)
	require.NoError(t, cache.WaitForSync(within(t, long)))

	const writers, each = 4, 150
	wrote := make(chan struct{}, writers*each)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(w)))
			for n := range each {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				key := strconv.Itoa(rng.IntN(20))
				switch _, err := s.Get(ctx, key); {
				case errors.Is(err, backend.ErrNotFound):
					s.Create(ctx, key, n)
				case rng.IntN(3) == 0:
					s.Delete(ctx, key, object.Any)
				default:
					s.Update(ctx, object.Item[int]{Key: key, Version: object.Any, Object: n})
				}
				cancel()
				wrote <- struct{}{}
			}
		})
	}
	for i := range writers * each {
		<-wrote
		switch i {
		case 100, 300, 500:
			server.Stop()
			require.NoError(t, server.Restart())
		case 200, 400:
			p.Cut()
		}
	}
	wg.Wait()
	require.NoError(t, up(within(t, long), c))
	converges(t, cache, state(t, s))
}

func TestList_ManyInPages(t *testing.T) {
	c := client(t, server.Addr())
	p := prefix()
	s := etcd.New[int](c, p, nil)
	many := 20_000
	if racing || testing.Short() {
		many = 2_000
	}
	for from := 0; from < many; from += 100 {
		var ops []clientv3.Op
		for i := from; i < from+100; i++ {
			ops = append(ops, clientv3.OpPut(fmt.Sprintf("%s%05d", p, i), strconv.Itoa(i)))
		}
		_, err := c.Txn(t.Context()).Then(ops...).Commit()
		require.NoError(t, err)
	}
	cache := run(t, s)
	require.NoError(t, cache.WaitForSync(within(t, long)))
	require.Equal(t, many, cache.Cache().Len())
	_, err := s.Delete(t.Context(), "00007", object.Any)
	require.NoError(t, err)
	want := state(t, s)
	require.Len(t, want, many-1)
	converges(t, cache, want)
	require.EqualValues(t, many/500, cache.Status().Source.Lists, "one list, page by page")
}
