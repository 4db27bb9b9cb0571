package nats_test

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

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/internal/stores/nats"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

const long = time.Minute // for what comes at once on a quiet machine

func TestOpen_RefusesValuesThatExpireInSilence(t *testing.T) {
	js := harness(t)
	_, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "silent", TTL: time.Hour})
	require.NoError(t, err)
	_, err = nats.Open[int](t.Context(), js, "silent", nil)
	require.ErrorIs(t, err, errors.ErrUnsupported)

	_, err = js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "marked", TTL: time.Hour, LimitMarkerTTL: time.Minute})
	require.NoError(t, err)
	_, err = nats.Open[int](t.Context(), js, "marked", nil)
	require.NoError(t, err)

	_, err = nats.Open[int](t.Context(), js, "none", nil)
	require.ErrorIs(t, err, jetstream.ErrBucketNotFound)
}

func TestStore_TakesAnyKey(t *testing.T) {
	s, _ := open[int](t, harness(t), 1)
	keys := []string{"a.b", "*", ">", " ", "a/b", "ä", "\x00", ".", "$KV", strings.Repeat("k", 300)}
	for i, key := range keys {
		_, err := s.Create(t.Context(), key, i)
		require.NoError(t, err, "%q", key)
	}
	has := state(t, s)
	require.Len(t, has, len(keys))
	for i, key := range keys {
		require.Equal(t, i, has[key].Object)
		item, err := s.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, has[key], item)
	}
}

func TestDelete_ADeleteIsNotAVersionToWriteOver(t *testing.T) {
	s, _ := open[int](t, harness(t), 5)
	_, err := s.Create(t.Context(), "a", 1)
	require.NoError(t, err)
	gone, err := s.Delete(t.Context(), "a", object.Any)
	require.NoError(t, err)
	require.Equal(t, 1, gone.Object)
	_, err = s.Update(t.Context(), gone)
	require.ErrorIs(t, err, backend.ErrNotFound, "the server alone would take the marker's number")
	head, err := s.Powers().Head(t.Context())
	require.NoError(t, err)
	require.True(t, s.Powers().Reached(head, gone.Version))
}

// Row R12: a delete that was purged while the watch could not hear of it is found
// missing, also when nothing comes after it.
func TestR12_ADeleteThatWasPurgedUnseenIsNotPassedOver(t *testing.T) {
	for _, later := range []bool{false, true} {
		t.Run(fmt.Sprintf("written to later %t", later), func(t *testing.T) {
			js, p := harness(t), behind(t)
			direct, name := open[int](t, js, 5)
			for _, key := range []string{"a", "b"} {
				_, err := direct.Create(t.Context(), key, 1)
				require.NoError(t, err)
			}
			s, err := nats.Open[int](t.Context(), through(t, p.Addr()), name, nil)
			require.NoError(t, err)

			var at reflector.Cursor
			for b, err := range s.Watch(within(t, long), reflector.WatchOptions{Initial: true, ProgressEvery: time.Second}) {
				if err != nil {
					t.Log(err) // that it was removed, or that it was lost on its way
					return
				}
				if b.Synced {
					at = b.Cursor
					p.Down()
					_, err := direct.Delete(t.Context(), "a", object.Any)
					require.NoError(t, err)
					require.NoError(t, forget(t.Context(), js, name))
					if later {
						_, err := direct.Update(t.Context(), object.Item[int]{Key: "b", Version: object.Any, Object: 2})
						require.NoError(t, err)
					}
					p.Up()
				}
				require.Equal(t, at, b.Cursor, "nothing can follow what is lost")
			}
			t.Fatal("the watch ended and said nothing")
		})
	}
}

// A full state is one that the bucket had, however fast it changes: here every key
// is there at any time.
func TestList_UnderWritesMissesNoKey(t *testing.T) {
	for _, history := range []uint8{1, 64} {
		t.Run(fmt.Sprintf("history %d", history), func(t *testing.T) {
			js := harness(t)
			s, _ := open[int](t, js, history)
			const keys = 30
			for i := range keys {
				_, err := s.Create(t.Context(), strconv.Itoa(i), 0)
				require.NoError(t, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			defer wg.Wait()
			defer cancel()
			for w := range 2 {
				wg.Go(func() {
					for n := 0; ctx.Err() == nil; n++ {
						s.Update(ctx, object.Item[int]{Key: strconv.Itoa((n*2 + w) % keys), Version: object.Any, Object: n})
					}
				})
			}
			done := 0
			for range 20 {
				page, err := s.List(within(t, long), reflector.ListOptions{})
				if history == 1 && errors.Is(err, reflector.ErrExpired) {
					continue // too much was replaced meanwhile
				}
				require.NoError(t, err)
				require.Len(t, page.Items, keys)
				done++
			}
			t.Logf("%d of 20 lists", done)
		})
	}
}

func TestList_AsksForNoStateThatIsNotThere(t *testing.T) {
	js := harness(t)
	s, name := open[int](t, js, 5)
	empty, err := s.List(t.Context(), reflector.ListOptions{})
	require.NoError(t, err)
	_, err = s.Create(t.Context(), "a", 1)
	require.NoError(t, err)
	_, err = s.Delete(t.Context(), "a", object.Any)
	require.NoError(t, err)
	require.NoError(t, forget(t.Context(), js, name))
	head, err := s.Powers().Head(t.Context())
	require.NoError(t, err)

	page, err := s.List(within(t, long), reflector.ListOptions{NotBefore: head})
	require.NoError(t, err)
	require.Empty(t, page.Items)
	require.Equal(t, head, page.Cursor, "though the last messages are gone")
	require.Positive(t, s.Powers().Compare(head, empty.Cursor))
	_, err = s.List(t.Context(), reflector.ListOptions{NotBefore: head + "0"})
	require.ErrorIs(t, err, reflector.ErrFutureCursor)
	_, err = s.List(t.Context(), reflector.ListOptions{NotBefore: "other.1"})
	require.ErrorIs(t, err, reflector.ErrExpired)
	for after, want := range map[reflector.Cursor]error{
		empty.Cursor: reflector.ErrExpired, // the delete is gone
		head + "0":   reflector.ErrFutureCursor,
		"other.1":    reflector.ErrExpired,
		"nonsense":   reflector.ErrExpired,
	} {
		var last error
		for b, err := range s.Watch(within(t, long), reflector.WatchOptions{After: after, ProgressEvery: 200 * time.Millisecond}) {
			require.Empty(t, b.Events)
			last = err
		}
		require.ErrorIs(t, last, want, after)
	}
}

func TestWrite_SaysWhatItDoesNotKnow(t *testing.T) {
	p := behind(t)
	s, _ := open[string](t, through(t, p.Addr()), 5)
	item, err := s.Create(t.Context(), "a", "x")
	require.NoError(t, err)
	_, err = s.Create(t.Context(), "huge", strings.Repeat("x", 2<<20))
	require.True(t, retry.IsPermanent(err), err)

	p.Hold()
	_, err = s.Create(within(t, time.Second), "b", "x")
	require.ErrorIs(t, err, backend.ErrOutcomeUnknown)
	_, err = s.Update(within(t, time.Second), item)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, backend.ErrOutcomeUnknown, "it reads first, and could not")
	p.Up()
	_, err = s.DryRun()
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// A connection that says nothing is found out, without anybody's writing.
func TestWatch_EndsWhenItsConnectionIsDead(t *testing.T) {
	p := behind(t)
	s, _ := open[int](t, through(t, p.Addr()), 5)
	began := time.Now()
	for b, err := range s.Watch(within(t, long), reflector.WatchOptions{Initial: true, ProgressEvery: 10 * time.Second}) {
		if err != nil {
			t.Logf("after %v: %v", time.Since(began), err)
			return
		}
		require.True(t, b.Synced)
		p.Hold()
	}
	t.Fatal("the watch ended and said nothing")
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
	require.NoError(t, err, "%+v", i.Status().Source)
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
func TestServerStoppedInMidWork(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	p := behind(t)
	s, name := open[int](t, through(t, p.Addr()), 5)
	js := harness(t)
	cache := run(t, s)
	require.NoError(t, cache.WaitForSync(within(t, long)))

	const writers, each = 4, 150
	wrote := make(chan struct{}, writers*each)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(w)))
			for n := range each {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
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
		case 250, 450:
			forget(within(t, time.Second), js, name) // or not, if the server is just gone
		}
	}
	wg.Wait()
	require.Eventually(t, func() bool {
		_, err := s.Powers().Head(t.Context())
		return err == nil // connected again
	}, long, 10*time.Millisecond)
	converges(t, cache, state(t, s))
}

func TestWatch_ManyAtOnce(t *testing.T) {
	js := harness(t)
	s, name := open[int](t, js, 5)
	many := 20_000
	if racing || testing.Short() {
		many = 2_000
	}
	for i := range many {
		_, err := js.PublishAsync(fmt.Sprintf("$KV.%s.%s", name, token(strconv.Itoa(i))), []byte(strconv.Itoa(i)), jetstream.WithStallWait(long))
		require.NoError(t, err)
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-within(t, long).Done():
		t.Fatal("the server takes nothing")
	}
	cache := run(t, s)
	require.NoError(t, cache.WaitForSync(within(t, long)))
	require.Equal(t, many, cache.Cache().Len())
	_, err := s.Delete(t.Context(), "7", object.Any)
	require.NoError(t, err)
	want := state(t, s)
	require.Len(t, want, many-1)
	converges(t, cache, want)
	require.EqualValues(t, 1, cache.Status().Source.Watches)
}
