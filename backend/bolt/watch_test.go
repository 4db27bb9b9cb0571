package bolt_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/backend/bolt"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

func TestWatchTellsEveryRevisionAfterACursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a := seeded(t)
		b := must(s.Get(t.Context(), "b"))
		from := list(t, s).Cursor
		c := must(s.Create(t.Context(), "c", pod{N: 4}))
		a2 := must(s.Update(t.Context(), item{Key: "a", Version: a.Version, Object: pod{N: 5}}))
		gone := must(s.Delete(t.Context(), "b", object.Any))
		require.Equal(t, b.ID, gone.ID)

		got, err := told(t, s, reflector.WatchOptions{After: from})
		require.NoError(t, err)
		at := func(n int) reflector.Cursor { return reflector.Cursor(string(from)[:len(from)-1] + fmt.Sprint(n)) }
		put := func(it item) []reflector.Event[pod] {
			return []reflector.Event[pod]{{Op: reflector.OpPut, Known: true, Item: it}}
		}
		require.Equal(t, []reflector.Batch[pod]{
			{Cursor: from}, // says where it stands
			{Events: put(c), Cursor: at(4), Prev: from},
			{Events: put(a2), Cursor: at(5), Prev: at(4)},
			{Events: []reflector.Event[pod]{{Op: reflector.OpDelete, Known: true, Item: gone}}, Cursor: at(6), Prev: at(5)},
		}, got)
		require.Equal(t, at(6), cursorOf(t, s))

		got, err = told(t, s, reflector.WatchOptions{After: at(5)})
		require.NoError(t, err)
		require.Len(t, got, 2, "strictly after the cursor")
		got, err = told(t, s, reflector.WatchOptions{After: at(0)})
		require.NoError(t, err)
		require.Len(t, got, 7, "the beginning is a place too")
	})
}

func TestWatchTellsWhatHappensMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := seeded(t)
		ctx, cancel := context.WithCancel(t.Context())
		var keys []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			for b, err := range s.Watch(ctx, reflector.WatchOptions{After: cursorOf(t, s)}) {
				require.NoError(t, err)
				for _, e := range b.Events {
					keys = append(keys, e.Key)
				}
			}
		}()
		synctest.Wait()
		for i := range 200 { // more than are pulled at once
			must(s.Create(ctx, fmt.Sprintf("k%03d", i), pod{}))
			if i%30 == 0 {
				synctest.Wait()
				require.Len(t, keys, i+1, "each write wakes the watch")
			}
		}
		synctest.Wait()
		cancel()
		<-done
		require.Len(t, keys, 200)
		for i, k := range keys {
			require.Equal(t, fmt.Sprintf("k%03d", i), k)
		}
	})
}

func TestStreamedList(t *testing.T) {
	for _, n := range []int{0, 1, 499, 500, 501, 1000, 1001} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := fresh(t, nil)
				for i := range n {
					must(s.Create(t.Context(), fmt.Sprintf("%04d", i), pod{N: i}))
				}
				page := list(t, s)
				for _, opts := range []reflector.WatchOptions{
					{},
					{Initial: true},
					{Initial: true, After: page.Cursor},
					{Initial: true, After: "of somebody else"},
				} {
					got, err := told(t, s, opts)
					require.NoError(t, err)
					require.Len(t, got, max(1, (n+499)/500))
					var items []item
					for i, b := range got {
						last := i == len(got)-1
						require.Equal(t, i == 0, b.Reset)
						require.Equal(t, last, b.Synced)
						require.Equal(t, last, b.Cursor != "", "only the end is a place to resume")
						for _, e := range b.Events {
							require.Equal(t, reflector.OpPut, e.Op)
							require.True(t, e.Known)
							items = append(items, e.Item)
						}
					}
					require.Equal(t, page.Cursor, got[len(got)-1].Cursor)
					require.Len(t, items, n)
					for i := range items {
						require.Equal(t, page.Items[i], items[i])
					}
				}
			})
		})
	}
}

func TestStreamedListGoesOnWithoutAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fresh(t, nil)
		for i := range 600 {
			must(s.Create(t.Context(), fmt.Sprintf("%04d", i), pod{}))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var after []string
		wrote := false
		for b, err := range s.Watch(ctx, reflector.WatchOptions{Initial: true}) {
			require.NoError(t, err)
			if !wrote { // while the list is half told
				wrote = true
				must(s.Create(ctx, "new", pod{}))
				must(s.Delete(ctx, "0599", object.Any))
			}
			if !b.Synced && !b.Reset {
				for _, e := range b.Events {
					after = append(after, e.Key)
				}
			}
		}
		require.Equal(t, []string{"new", "0599"}, after, "the list is of one state; what changed comes after it")
	})
}

func TestWatchFromWhereNothingIsKnown(t *testing.T) {
	s, _ := seeded(t)
	head := cursorOf(t, s)
	other := cursorOf(t, fresh(t, nil))
	cases := []struct {
		name  string
		after reflector.Cursor
		err   error
	}{
		{"another store's, R31", other, reflector.ErrExpired},
		{"nobody's", "x", reflector.ErrExpired},
		{"a version", "3", reflector.ErrExpired},
		{"not a number", head + "x", reflector.ErrExpired},
		{"a negative number", reflector.Cursor(string(head)[:len(head)-1]) + "-1", reflector.ErrExpired},
		{"the future", head + "0", reflector.ErrFutureCursor},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			n := 0
			for b, err := range s.Watch(t.Context(), reflector.WatchOptions{After: c.after}) {
				n++
				require.ErrorIs(t, err, c.err)
				require.Empty(t, b)
			}
			require.Equal(t, 1, n, "one final error")
		})
	}
}

func TestHistoryIsBounded(t *testing.T) {
	for _, keep := range []int{1, 2, 7, 64, 100} {
		t.Run(fmt.Sprint(keep), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := fresh(t, &bolt.Options{History: keep})
				cursors := []reflector.Cursor{cursorOf(t, s)}
				for i := range 250 {
					must(s.Create(t.Context(), fmt.Sprint(i), pod{N: i}))
					cursors = append(cursors, cursorOf(t, s))
				}
				for i, c := range cursors {
					got, err := told(t, s, reflector.WatchOptions{After: c})
					if i < 250-keep {
						require.ErrorIs(t, err, reflector.ErrExpired, "after %d", i)
						require.Empty(t, got)
						continue
					}
					require.NoError(t, err, "after %d", i)
					require.Len(t, got, 1+250-i)
					for j, b := range got[1:] {
						require.Equal(t, i+j, b.Events[0].Object.N)
						require.Equal(t, cursors[i+j+1], b.Cursor)
					}
				}
			})
		})
	}
}

func TestHistoryDefault(t *testing.T) {
	s := fresh(t, nil)
	start := cursorOf(t, s)
	must(s.Create(t.Context(), "a", pod{}))
	second := cursorOf(t, s)
	resumes := func(after reflector.Cursor) (err error) {
		for _, err = range s.Watch(t.Context(), reflector.WatchOptions{After: after}) {
			break
		}
		return err
	}
	for range 9_999 {
		must(s.Update(t.Context(), item{Key: "a", Version: object.Any}))
	}
	require.NoError(t, resumes(start))
	must(s.Update(t.Context(), item{Key: "a", Version: object.Any}))
	require.ErrorIs(t, resumes(start), reflector.ErrExpired)
	require.NoError(t, resumes(second))
}

func TestCompact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := seeded(t)
		old := list(t, s).Cursor
		must(s.Create(t.Context(), "c", pod{}))
		head := cursorOf(t, s)
		require.NoError(t, s.Compact(t.Context()))
		_, err := told(t, s, reflector.WatchOptions{After: old})
		require.ErrorIs(t, err, reflector.ErrExpired)
		got, err := told(t, s, reflector.WatchOptions{After: head})
		require.NoError(t, err, "who is up to date misses nothing")
		require.Len(t, got, 1)
		for i := range 3 {
			must(s.Create(t.Context(), fmt.Sprint(i), pod{N: i}))
		}
		got, err = told(t, s, reflector.WatchOptions{After: head})
		require.NoError(t, err)
		require.Len(t, got, 4)
		require.Len(t, list(t, s).Items, 6, "the objects stay")
	})
}

func TestSlowWatchIsExpiredAndHoldsUpNobody(t *testing.T) {
	s := fresh(t, &bolt.Options{History: 100})
	start := cursorOf(t, s)
	var told int
	var last error
	for b, err := range s.Watch(t.Context(), reflector.WatchOptions{After: start}) {
		if last = err; err != nil {
			break
		}
		told += len(b.Events)
		if told == 0 {
			for i := range 1000 { // inside yield: a lock held there would be forever
				must(s.Create(t.Context(), fmt.Sprint(i), pod{}))
			}
		}
	}
	require.ErrorIs(t, last, reflector.ErrExpired)
	require.Zero(t, told, "nothing is left out in silence")
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := seeded(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		start, last := time.Now(), time.Now()
		go func() {
			time.Sleep(4*time.Minute + 30*time.Second)
			must(s.Create(ctx, "c", pod{}))
		}()
		var bookmarks, events int
		for b, err := range s.Watch(ctx, reflector.WatchOptions{After: cursorOf(t, s), ProgressEvery: time.Minute}) {
			require.NoError(t, err)
			require.LessOrEqual(t, time.Since(last), time.Minute)
			last = time.Now()
			require.Equal(t, cursorOf(t, s), b.Cursor)
			if len(b.Events) > 0 {
				events++
			} else {
				bookmarks++
			}
		}
		require.Equal(t, 10*time.Minute, time.Since(start))
		require.Equal(t, 1, events)
		// The first, 1…4 min, and from 4:30 on 5:30…9:30.
		require.Equal(t, 1+4+5, bookmarks)
	})
}

func TestWithoutProgressAWatchIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := seeded(t)
		ctx, cancel := context.WithTimeout(t.Context(), 1000*time.Hour)
		defer cancel()
		n := 0
		for range s.Watch(ctx, reflector.WatchOptions{After: cursorOf(t, s)}) {
			n++
		}
		require.Equal(t, 1, n)
	})
}

func TestWatchEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fresh(t, nil)
		for i := range 1200 {
			must(s.Create(t.Context(), fmt.Sprint(i), pod{}))
		}
		start := reflector.Cursor(string(cursorOf(t, s))[:27] + "0")
		for name, opts := range map[string]reflector.WatchOptions{"list": {}, "history": {After: start}} {
			for stop := range 3 { // before, at the first batch, at the second
				ctx, cancel := context.WithCancel(t.Context())
				n := 0
				if stop == 0 {
					cancel()
				}
				for _, err := range s.Watch(ctx, opts) {
					require.NoError(t, err)
					if n++; n == stop {
						cancel()
					}
				}
				require.Equal(t, stop, n, name)
				cancel()
			}
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range s.Watch(ctx, reflector.WatchOptions{}) {
		}
		require.Equal(t, time.Minute, time.Since(began), "idle")
	})
}

func TestWatchEndsWithItsConsumer(t *testing.T) {
	s := fresh(t, nil)
	for i := range 1200 {
		must(s.Create(t.Context(), fmt.Sprint(i), pod{}))
	}
	for _, opts := range []reflector.WatchOptions{{}, {After: list(t, s).Cursor}} {
		for range s.Watch(t.Context(), opts) { // a yield after false would panic
			break
		}
	}
	for b := range s.Watch(t.Context(), reflector.WatchOptions{}) {
		if b.Synced {
			break
		}
	}
}

func TestWatchEndsAtABookmark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fresh(t, nil)
		n := 0
		for range s.Watch(t.Context(), reflector.WatchOptions{ProgressEvery: time.Minute}) {
			if n++; n == 3 {
				break
			}
		}
		require.Equal(t, 3, n)
	})
}

func TestConsumersCannotSpoilTheHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := seeded(t)
		start := reflector.Cursor(string(cursorOf(t, s))[:27] + "0")
		for range 2 {
			got, err := told(t, s, reflector.WatchOptions{After: start})
			require.NoError(t, err)
			require.Equal(t, 1, got[1].Events[0].Object.N)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			for b := range s.Watch(ctx, reflector.WatchOptions{After: start}) {
				for i := range b.Events {
					b.Events[i].Object.N = 99
				}
			}
			cancel()
		}
	})
}
