package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/bolt"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
)

// gate holds every commit until it is told to let one go.
type gate struct {
	reached chan struct{}
	release chan error
}

func gated(s *bolt.Store[pod]) gate {
	g := gate{make(chan struct{}), make(chan error)}
	bolt.AfterCommit(s, func() error {
		g.reached <- struct{}{}
		return <-g.release
	})
	return g
}

// TestWritesShareACommit: who comes while one is under way is written by the next,
// all at once, each as a revision with its own preconditions and answer.
func TestWritesShareACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := fresh(t, nil)
		must(s.Create(ctx, "a", pod{}))
		start := cursorOf(t, s)
		commits := bolt.Commits(s)
		g := gated(s)
		var writers sync.WaitGroup
		writers.Go(func() { must(s.Create(ctx, "first", pod{})) })
		<-g.reached

		const n = 100
		var refused atomic.Int64
		versions := make([]object.Version, n)
		for i := range n {
			writers.Go(func() {
				var got item
				var err error
				switch i % 4 {
				case 0:
					got, err = s.Create(ctx, strconv.Itoa(i), pod{N: i})
				case 1: // of all these, one wins
					got, err = s.Update(ctx, item{Key: "a", Version: "1", Object: pod{N: i}})
				case 2:
					got, err = s.Create(ctx, "one of many", pod{N: i})
				case 3:
					got, err = s.Create(ctx, "x"+strconv.Itoa(i), pod{N: i})
				}
				if errors.Is(err, backend.ErrConflict) || errors.Is(err, backend.ErrExists) {
					refused.Add(1)
					return
				}
				if err != nil {
					t.Error(err)
				}
				versions[i] = got.Version
			})
		}
		synctest.Wait()
		require.Equal(t, n, bolt.Queued(s))
		g.release <- nil
		<-g.reached
		require.Zero(t, bolt.Queued(s), "all go together")
		g.release <- nil
		writers.Wait()
		require.Equal(t, 2, bolt.Commits(s)-commits)
		require.EqualValues(t, 48, refused.Load())

		seen := map[object.Version]bool{}
		for _, v := range versions {
			require.False(t, v != "" && seen[v], "each has a version of its own")
			seen[v] = true
		}
		bolt.AfterCommit(s, nil)
		got, err := told(t, s, reflector.WatchOptions{After: start})
		require.NoError(t, err)
		require.Len(t, got, 1+1+52)
		for _, b := range got[1:] {
			require.Len(t, b.Events, 1, "each is a step of its own")
		}
	})
}

// TestNothingIsToldBeforeItIsSafe: while a commit is on its way to the disk, no
// watch, read or list shows it; reads wait for it, since they can't show less.
func TestNothingIsToldBeforeItIsSafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := fresh(t, nil)
		must(s.Create(ctx, "a", pod{N: 1}))
		before := cursorOf(t, s)
		g := gated(s)
		var all sync.WaitGroup
		var acked, read, listed, seen atomic.Bool
		all.Go(func() {
			must(s.Update(ctx, item{Key: "a", Version: "1", Object: pod{N: 2}}))
			acked.Store(true)
		})
		<-g.reached
		all.Go(func() {
			got, err := s.Get(ctx, "a")
			if err != nil || got.Object.N != 2 {
				t.Errorf("%v, %v", got, err)
			}
			read.Store(true)
		})
		all.Go(func() {
			p, err := s.List(ctx, reflector.ListOptions{})
			if err != nil || p.Cursor == before {
				t.Errorf("%v, %v", p, err)
			}
			listed.Store(true)
		})
		all.Go(func() {
			for b := range s.Watch(ctx, reflector.WatchOptions{After: before}) {
				if len(b.Events) > 0 {
					seen.Store(true)
					return
				}
			}
		})
		impatient, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := s.Get(impatient, "a")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, before, cursorOf(t, s))
		synctest.Wait()
		require.False(t, acked.Load() || read.Load() || listed.Load() || seen.Load())
		g.release <- nil
		all.Wait()
		require.True(t, acked.Load() && read.Load() && listed.Load() && seen.Load())
		bolt.AfterCommit(s, nil)
	})
}

// TestContextEndsWhileAWriteWaits: what has not begun is withdrawn, and nothing was
// written; what has begun is waited for, so that the answer is never "perhaps".
func TestContextEndsWhileAWriteWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fresh(t, nil)
		g := gated(s)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var begun, waiting sync.WaitGroup
		begun.Go(func() {
			if _, err := s.Create(ctx, "begun", pod{}); err != nil {
				t.Error(err)
			}
		})
		<-g.reached
		waiting.Go(func() {
			_, err := s.Create(ctx, "waiting", pod{})
			if !errors.Is(err, context.Canceled) || errors.Is(err, backend.ErrOutcomeUnknown) {
				t.Error(err)
			}
		})
		synctest.Wait()
		require.Equal(t, 1, bolt.Queued(s))
		cancel()
		waiting.Wait()
		g.release <- nil
		begun.Wait()
		bolt.AfterCommit(s, nil)
		require.Equal(t, "begun", keysOf(list(t, s).Items))
	})
}

// TestFullDisk: a commit that finds no room is undone, says so, and the store goes
// on as it was.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		path := filepath.Join(t.TempDir(), "pods.db")
		s := opened(t, path, nil)
		a := must(s.Create(ctx, "a", pod{N: 1}))
		before := list(t, s)
		bolt.MaxSize(s, 64<<10)
		big := pod{Tags: map[string]string{"x": strings.Repeat("x", 1<<20)}}
		for range 3 {
			_, err := s.Create(ctx, "b", big)
			failed(t, err, backend.Error{Op: "create", Key: "b", Err: must(asError(err))})
			require.ErrorContains(t, err, "maximum size")
			require.NotErrorIs(t, err, backend.ErrOutcomeUnknown)
			_, err = s.Update(ctx, item{Key: "a", Version: a.Version, Object: big})
			require.ErrorContains(t, err, "maximum size")
			require.Equal(t, before, list(t, s))
			got, err := told(t, s, reflector.WatchOptions{After: before.Cursor})
			require.NoError(t, err)
			require.Len(t, got, 1, "no revision either")
		}
		bolt.MaxSize(s, 0)
		got := must(s.Update(ctx, item{Key: "a", Version: a.Version, Object: big}))
		require.Equal(t, object.Version("2"), got.Version)
		require.NoError(t, s.Close())
		s = opened(t, path, nil)
		require.Equal(t, got, must(s.Get(ctx, "a")))
	})
}

// asError is what an error of a write wraps.
func asError(err error) (error, error) {
	var e *backend.Error
	if !errors.As(err, &e) {
		return nil, fmt.Errorf("not a *backend.Error: %w", err)
	}
	return e.Err, nil
}

// TestUnpluggedDisk: every write fails, all who wait for the same commit are told,
// and what was there can be read.
func TestUnpluggedDisk(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "pods.db")
	s, err := bolt.Open[pod](path, nil, nil)
	require.NoError(t, err)
	must(s.Create(ctx, "a", pod{N: 1}))
	before := list(t, s)
	require.NoError(t, bolt.Unplug(s))
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			_, err := s.Create(ctx, strconv.Itoa(i), pod{})
			if err == nil || errors.Is(err, backend.ErrOutcomeUnknown) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Error(t, s.Compact(ctx))
	require.Equal(t, before, list(t, s))
	require.Error(t, s.Close())
	s = opened(t, path, nil)
	require.Equal(t, before, list(t, s))
}

// TestCommitThatMayHaveHappened: the disk failed after the last page was written, so
// nobody knows. The writer is told, and nobody is shown what may be gone tomorrow.
func TestCommitThatMayHaveHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		path := filepath.Join(t.TempDir(), "pods.db")
		s := opened(t, path, nil)
		a := must(s.Create(ctx, "a", pod{N: 1}))
		before := cursorOf(t, s)
		var watching, reading sync.WaitGroup
		watching.Go(func() {
			var last error
			for b, err := range s.Watch(ctx, reflector.WatchOptions{After: before}) {
				if last = err; len(b.Events) > 0 {
					t.Error("told", b)
				}
			}
			if !errors.Is(last, bolt.ErrFailed) {
				t.Error(last)
			}
		})
		synctest.Wait()
		bolt.AfterCommit(s, func() error {
			reading.Go(func() {
				if _, err := s.Get(ctx, "a"); !errors.Is(err, bolt.ErrFailed) {
					t.Error(err)
				}
			})
			synctest.Wait() // it waits for this commit
			return errors.New("input/output error")
		})
		_, err := s.Update(ctx, item{Key: "a", Version: a.Version, Object: pod{N: 2}})
		require.ErrorIs(t, err, backend.ErrOutcomeUnknown)
		require.ErrorContains(t, err, "input/output error")
		watching.Wait()
		reading.Wait()
		bolt.AfterCommit(s, nil)

		_, err = s.Get(ctx, "a")
		require.ErrorIs(t, err, bolt.ErrFailed)
		require.ErrorContains(t, err, "input/output error")
		require.True(t, retry.IsPermanent(err))
		_, err = s.Create(ctx, "b", pod{})
		require.ErrorIs(t, err, bolt.ErrFailed)
		_, err = s.List(ctx, reflector.ListOptions{})
		require.ErrorIs(t, err, bolt.ErrFailed)
		_, err = s.Powers().Head(ctx)
		require.ErrorIs(t, err, bolt.ErrFailed)

		require.NoError(t, s.Close())
		s = opened(t, path, nil)
		got, err := told(t, s, reflector.WatchOptions{After: before})
		require.NoError(t, err)
		require.Len(t, got, 2, "here it did happen")
		require.Equal(t, 2, must(s.Get(ctx, "a")).Object.N)
	})
}

// TestWritesThatWaitBehindAFailure: nothing is built on a commit that may be gone.
func TestWritesThatWaitBehindAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := fresh(t, nil)
		g := gated(s)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := s.Create(ctx, "a", pod{}); !errors.Is(err, backend.ErrOutcomeUnknown) {
				t.Error(err)
			}
		})
		<-g.reached
		wg.Go(func() {
			if _, err := s.Create(ctx, "b", pod{}); !errors.Is(err, bolt.ErrFailed) {
				t.Error(err)
			}
		})
		synctest.Wait()
		g.release <- errors.New("input/output error")
		wg.Wait()
		bolt.AfterCommit(s, nil)
	})
}

// overtaking is a patch that somebody else is faster than, however often.
type overtaking struct {
	meddling
	tries atomic.Int64
	do    func()
}

func (o *overtaking) Apply(doc []byte) ([]byte, error) {
	o.tries.Add(1)
	o.do()
	return o.Patch.Apply(doc)
}

// TestAPatchIsNotOvertakenForEver: rule 3 of the write side, "waits its turn".
func TestAPatchIsNotOvertakenForEver(t *testing.T) {
	ctx := t.Context()
	s, _ := seeded(t)
	var others sync.WaitGroup
	n := 0
	p := &overtaking{do: func() {
		n++
		done := make(chan struct{})
		others.Go(func() {
			must(s.Update(ctx, item{Key: "a", Version: object.Any, Object: pod{N: n}}))
			close(done)
		})
		if n <= 2 { // later ones can't be done before this patch is
			<-done
		}
	}}
	p.Patch = merge(`{"tags":{"x":"y"}}`)
	got, err := s.Patch(ctx, "a", p, object.Any)
	require.NoError(t, err)
	require.Equal(t, "y", got.Object.Tags["x"])
	require.EqualValues(t, 3, p.tries.Load())
	others.Wait()
}

// TestF03_ManyPatchesOfOneKey: none is refused, whoever else writes.
func TestF03_ManyPatchesOfOneKey(t *testing.T) {
	ctx := t.Context()
	s, _ := seeded(t)
	stop := make(chan struct{})
	var busy, patches sync.WaitGroup
	for range 4 {
		busy.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if _, err := s.Patch(ctx, "a", merge(`{"n":%d}`, time.Now().UnixNano()), object.Any); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for i := range 50 {
		patches.Go(func() {
			if _, err := s.Patch(ctx, "a", merge(`{"tags":{"t%d":"x"}}`, i), object.Any); err != nil {
				t.Error(err)
			}
		})
	}
	patches.Wait()
	close(stop)
	busy.Wait()
	require.Len(t, must(s.Get(ctx, "a")).Object.Tags, 50)
}
