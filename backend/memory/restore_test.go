package memory_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

// written is a store with a at 2, b at 3, a snapshot of then, and c and another a
// since.
func written(t *testing.T) (s *memory.Store[pod], then *memory.Snapshot[pod]) {
	t.Helper()
	s, _ = seeded(t)
	then = s.Snapshot()
	must(s.Create(t.Context(), "c", pod{N: 4}))
	must(s.Update(t.Context(), item{Key: "a", Version: object.Any, Object: pod{N: 5}}))
	return s, then
}

func at(c reflector.Cursor, rev int) reflector.Cursor {
	return reflector.Cursor(string(c)[:27] + strconv.Itoa(rev))
}

func TestSnapshotStaysAsItWas(t *testing.T) {
	s, then := written(t)
	require.Equal(t, 2, then.Len())
	require.Equal(t, at(cursorOf(t, s), 3), then.Cursor())
	got, ok := then.Get("a")
	require.True(t, ok)
	require.Equal(t, 2, got.Object.N)
	_, ok = then.Get("c")
	require.False(t, ok)
	p := then.List(reflector.ListOptions{Limit: 1})
	require.Equal(t, "a", keysOf(p.Items))
	require.Equal(t, "b", keysOf(pageOf(t, s, p.Next, 9).Items), "the store gives the next page of that state")
	again, err := s.SnapshotAt(then.Cursor())
	require.NoError(t, err)
	require.Equal(t, then.List(reflector.ListOptions{}), again.List(reflector.ListOptions{}))

	_, err = s.SnapshotAt(at(then.Cursor(), 6))
	require.ErrorIs(t, err, reflector.ErrFutureCursor)
	_, err = s.SnapshotAt(cursorOf(t, memory.New[pod](nil)))
	require.ErrorIs(t, err, reflector.ErrExpired)
	s.Compact()
	_, err = s.SnapshotAt(then.Cursor())
	require.ErrorIs(t, err, reflector.ErrExpired)
	require.Equal(t, 2, then.Len(), "who has it keeps it")
}

func TestRestoreToTheSameEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, then := written(t)
		late, token := cursorOf(t, s), pageOf(t, s, "", 1).Next
		lost := must(s.Get(t.Context(), "c"))
		s.Restore(then, false)
		require.Equal(t, then.Cursor(), cursorOf(t, s), "the revision goes back too")
		require.Equal(t, then.List(reflector.ListOptions{}), list(t, s))

		_, err := told(t, s, reflector.WatchOptions{After: late})
		require.ErrorIs(t, err, reflector.ErrFutureCursor)
		_, err = s.List(t.Context(), reflector.ListOptions{NotBefore: late})
		require.ErrorIs(t, err, reflector.ErrFutureCursor)
		_, err = s.List(t.Context(), reflector.ListOptions{Page: token})
		require.ErrorIs(t, err, reflector.ErrExpired)
		got, err := told(t, s, reflector.WatchOptions{After: at(late, 1)})
		require.NoError(t, err, "the history up to there is intact")
		require.Len(t, got, 3)

		c := must(s.Create(t.Context(), "c", pod{N: 6}))
		require.Equal(t, lost.Version, c.Version, "given again")
		require.NotEqual(t, lost.ID, c.ID, "an ID never is")
		must(s.Delete(t.Context(), "b", object.Any))
		must(s.Create(t.Context(), "d", pod{}))
		got, err = told(t, s, reflector.WatchOptions{After: late})
		require.NoError(t, err)
		require.Equal(t, "d", got[1].Events[0].Key, "who looks so late is led astray, as documented")
	})
}

func TestRestoreWithANewEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, then := written(t)
		late := cursorOf(t, s)
		s.Restore(then, true)
		now := cursorOf(t, s)
		require.Zero(t, s.Powers().Compare(now, late), "another epoch")
		require.Positive(t, s.Powers().Compare(late, then.Cursor()), "old cursors still compare with each other")
		require.Equal(t, at(now, 5), now, "revisions go on")
		require.Equal(t, then.List(reflector.ListOptions{}).Items, list(t, s).Items, "versions are those of the snapshot")
		for _, c := range []reflector.Cursor{late, then.Cursor(), at(late, 0), at(now, 4)} {
			_, err := told(t, s, reflector.WatchOptions{After: c})
			require.ErrorIs(t, err, reflector.ErrExpired)
		}
		require.Equal(t, object.Version("6"), must(s.Create(t.Context(), "c", pod{})).Version, "none is given twice")
		got, err := told(t, s, reflector.WatchOptions{After: now})
		require.NoError(t, err)
		require.Len(t, got, 2)
		require.False(t, s.Powers().Reached(late, "1"))
		require.True(t, s.Powers().Reached(cursorOf(t, s), "5"))

		// Revisions go on from the highest that there ever was.
		s.Restore(nil, false)
		require.Equal(t, at(now, 0), cursorOf(t, s))
		s.Restore(then, true)
		require.Equal(t, 6, revOf(cursorOf(t, s)))
	})
}

func revOf(c reflector.Cursor) int { return must(strconv.Atoi(string(c)[27:])) }

func TestRestoreOfNothingAndOfAnother(t *testing.T) {
	s, then := written(t)
	s.Restore(nil, false)
	require.Empty(t, list(t, s).Items)
	require.Equal(t, "1", string(must(s.Create(t.Context(), "a", pod{})).Version))

	twin := memory.New[pod](nil)
	twin.Restore(then, false)
	require.Equal(t, then.List(reflector.ListOptions{}), list(t, twin), "a copy, cursor and all")
	var ended error
	for _, ended = range twin.Watch(t.Context(), reflector.WatchOptions{After: at(then.Cursor(), 2)}) {
	}
	require.ErrorIs(t, ended, reflector.ErrExpired, "but without a history")
	b := must(twin.Create(t.Context(), "c", pod{}))
	require.Equal(t, object.Version("4"), b.Version)
}

func TestRestoreEndsWatches(t *testing.T) {
	for _, newEpoch := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, then := written(t)
			for i := range 600 {
				must(s.Create(t.Context(), fmt.Sprint(i), pod{}))
			}
			ended, gate := make(chan error, 3), make(chan struct{})
			for i, opts := range []reflector.WatchOptions{{After: cursorOf(t, s)}, {After: then.Cursor()}, {Initial: true}} {
				go func() { // one idle, one within its history, one within its list
					var last error
					n := 0
					for _, last = range s.Watch(t.Context(), opts) {
						if n++; n > 1 || i == 2 {
							<-gate
						}
					}
					ended <- last
				}()
			}
			synctest.Wait()
			s.Restore(then, newEpoch)
			close(gate)
			for range 3 {
				require.NoError(t, <-ended, "plainly, as when the server goes down")
			}
		})
	}
}

// Whoever is in yield at the time is told nothing more, of its list or of what it
// has to catch up with.
func TestRestoreEndsWhatIsBeingTold(t *testing.T) {
	for name, opts := range map[string]reflector.WatchOptions{"list": {Initial: true}, "history": {}} {
		s, then := written(t)
		if !opts.Initial {
			opts.After = then.Cursor()
		}
		for i := range 1200 {
			must(s.Create(t.Context(), fmt.Sprint(i), pod{}))
		}
		n := 0
		for _, err := range s.Watch(t.Context(), opts) {
			require.NoError(t, err)
			if n++; n == 2 {
				s.Restore(then, false)
			}
		}
		require.Equal(t, 2, n, name)
	}
}

// A copy goes its own way; set back to the original, it does not take its own
// history for the original's, though the revisions are the same.
func TestRestoreOfACopyToItsOriginal(t *testing.T) {
	s, then := written(t)
	twin := memory.New[pod](nil)
	for range 3 {
		twin.Restore(then, false)
	}
	must(twin.Create(t.Context(), "x", pod{}))
	must(twin.Create(t.Context(), "y", pod{}))
	require.Equal(t, cursorOf(t, s), cursorOf(t, twin))
	twin.Restore(s.Snapshot(), false)
	require.Equal(t, list(t, s), list(t, twin))
	_, err := twin.SnapshotAt(then.Cursor())
	require.ErrorIs(t, err, reflector.ErrExpired)
}

// What was undone is let go.
func TestRestoreLetsObjectsGo(t *testing.T) {
	s := memory.New[*[1 << 16]byte](nil)
	must(s.Create(t.Context(), "a", nil))
	then := s.Snapshot()
	obj := new([1 << 16]byte)
	w := weak.Make(obj)
	must(s.Create(t.Context(), "b", obj))
	obj = nil
	s.Restore(then, false)
	runtime.GC()
	require.Nil(t, w.Value())
	runtime.KeepAlive(s)
}

// Histories with restores to any snapshot of before, of whatever line: what the
// history still tells always leads to what is there.
func TestRestoreModel(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 4))
			s := memory.New[pod](&memory.Options{History: 1 + r.IntN(30)})
			var snaps []*memory.Snapshot[pod]
			states := map[reflector.Cursor]map[string]item{} // of this line
			lines := []map[reflector.Cursor]map[string]item{}
			note := func() {
				state := map[string]item{}
				for _, it := range list(t, s).Items {
					state[it.Key] = it
				}
				states[cursorOf(t, s)] = state
			}
			note()
			for range 60 {
				key := string(rune('a' + r.IntN(4)))
				switch r.IntN(8) {
				case 0:
					snaps, lines = append(snaps, s.Snapshot()), append(lines, states)
					continue
				case 1:
					if len(snaps) == 0 {
						continue
					}
					i := r.IntN(len(snaps))
					s.Restore(snaps[i], r.IntN(3) == 0)
					require.NoError(t, is(list(t, s).Items, lines[i][snaps[i].Cursor()]), "seed %d", seed)
					line := map[reflector.Cursor]map[string]item{}
					for c, state := range lines[i] {
						if s.Powers().Compare(c, cursorOf(t, s)) < 0 {
							line[c] = state
						}
					}
					states = line
				case 2, 3:
					s.Delete(t.Context(), key, object.Any)
				case 4:
					must(s.List(t.Context(), reflector.ListOptions{Limit: 1}))
				default:
					if _, err := s.Create(t.Context(), key, pod{N: r.Int()}); err != nil {
						must(s.Update(t.Context(), item{Key: key, Version: object.Any, Object: pod{N: r.Int()}}))
					}
				}
				note()
			}
			now := list(t, s).Items
			for c, state := range states {
				if err := leads(t.Context(), s, c, state, now); err != nil {
					t.Errorf("seed %d: from %s: %v", seed, c, err)
				}
			}
		})
	}
}

// leads says that what is told after c makes of state what is there now, or that
// it is gone.
func leads(ctx context.Context, s *memory.Store[pod], c reflector.Cursor, state map[string]item, now []item) error {
	snap, err := s.SnapshotAt(c)
	if err == nil {
		if err := is(snap.List(reflector.ListOptions{}).Items, state); err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
	}
	got := map[string]item{}
	for key, it := range state {
		got[key] = it
	}
	end, _ := s.Powers().Head(ctx)
	for b, werr := range s.Watch(ctx, reflector.WatchOptions{After: c}) {
		if (werr != nil) != (err != nil) {
			return fmt.Errorf("watch: %v, snapshot: %v", werr, err)
		}
		if werr != nil {
			return nil
		}
		for _, e := range b.Events {
			if e.Op == reflector.OpDelete {
				delete(got, e.Key)
			} else {
				got[e.Key] = e.Item
			}
		}
		if b.Cursor == end {
			return is(now, got)
		}
	}
	return nil
}
