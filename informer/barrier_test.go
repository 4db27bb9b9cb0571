package informer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// reaches lets cursors tell of versions, as source's do: revision against
// revision·100 + n.
func reaches(c reflector.Cursor, v object.Version) bool { return num(c) >= num(v)/100 }

// started is an informer over src that is synced, with a handler that follows.
func started(t *testing.T, src *source) *informer.Informer[*obj] {
	inf := informer.New(src, &informer.Options{Name: "things"})
	run(t, inf)
	if err := inf.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	settle()
	return inf
}

// wait calls WaitFor and says after how long it returned.
func wait(t *testing.T, inf *informer.Informer[*obj], key string, v object.Version) <-chan time.Duration {
	start, done := time.Now(), make(chan time.Duration, 1)
	go func() {
		if err := inf.WaitFor(t.Context(), key, v); err != nil {
			t.Errorf("WaitFor %s %q: %v", key, v, err)
		}
		done <- time.Since(start)
	}()
	synctest.Wait()
	return done
}

func open(done <-chan time.Duration) bool { return len(done) == 1 }

func TestG7_VersionComesIn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		inf := started(t, src)
		release := src.Hold()
		v := src.Put("a", "mine")
		mine := wait(t, inf, "a", v)
		other := wait(t, inf, "b", v)
		if open(mine) || open(other) {
			t.Fatal("open before anything came in")
		}
		if n := inf.Status().Waiting; n != 2 {
			t.Errorf("%d wait, want 2", n)
		}
		src.Put("a", "later") // overwritten before anybody could look
		release()
		synctest.Wait()
		if !open(mine) || open(other) {
			t.Errorf("mine open: %v, the other key's open: %v", open(mine), open(other))
		}
		<-other
		if n := src.Lists(); n != 2 {
			t.Errorf("%d lists", n)
		}
	})
}

func TestG7_VersionsInOneBatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		inf := started(t, src)
		release := src.Hold()
		var v1, v2 object.Version
		src.tx(func() { v1 = src.put("a", "1"); v2 = src.put("a", "2"); src.del("a") })
		first, second, never := wait(t, inf, "a", v1), wait(t, inf, "a", v2), wait(t, inf, "a", "none")
		release()
		synctest.Wait()
		if !open(first) || !open(second) || open(never) {
			t.Errorf("open: %v %v %v", open(first), open(second), open(never))
		}
		if d := <-never; d < time.Second || d > 3*time.Second {
			t.Errorf("a version that never comes: after %v", d)
		}
	})
}

// The second proof by what the cache holds already: also for an informer that has
// stopped, and with an ended context.
func TestG7_CacheHasIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		v := src.Put("a", "mine")
		inf := informer.New(src, nil)
		stop := run(t, inf)
		settle()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := inf.WaitFor(ctx, "a", v); err != nil {
			t.Error(err)
		}
		stop()
		if err := inf.WaitFor(ctx, "a", v); err != nil {
			t.Error(err)
		}
		if err := inf.WaitFor(t.Context(), "b", v); !errors.Is(err, informer.ErrStopped) {
			t.Errorf("after Run: %v", err)
		}
	})
}

func TestG7_CursorReachesIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		src.powers.Reached = reaches
		inf := started(t, src)
		v := src.Put("a", "mine")
		src.Put("a", "later")
		settle()
		// It came in before the call, and was overwritten: the position tells.
		if d := <-wait(t, inf, "a", v); d != 0 {
			t.Errorf("after %v", d)
		}
		release := src.Hold()
		src.tx(func() {}) // this revision's batch has no events, and moves the cursor
		done := wait(t, inf, "x", "400")
		src.tx(func() {})
		release()
		synctest.Wait()
		if !open(done) {
			t.Error("a batch without events moves the cursor, but no barrier")
		}
		lists := src.Lists()
		release = src.Hold()
		late := wait(t, inf, "a", "900")
		time.Sleep(4 * time.Second)
		if n := src.Lists(); n != lists {
			t.Errorf("%d lists within 4 s, were %d", n, lists)
		}
		if d := <-late; d < 5*time.Second || d > 7*time.Second || src.Lists() != lists+1 {
			t.Errorf("after %v and %d lists", d, src.Lists()-lists)
		}
		release()
	})
}

// Reached by the cursor of a full state, which has nothing of the key.
func TestG7_FullStateReachesIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		src.powers.Reached = reaches
		inf := informer.New(src, nil)
		run(t, inf)
		done := make(chan error, 1)
		hang := make(chan struct{})
		src.atList = func() { <-hang }
		src.Put("a", "mine")
		src.Put("b", "other")
		synctest.Wait() // the list has begun
		go func() { done <- inf.WaitFor(t.Context(), "c", "100") }()
		synctest.Wait()
		close(hang)
		synctest.Wait()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("not open after a full state that reaches it")
		}
	})
}

// A panic of Reached proves nothing, and harms nobody.
func TestG10_ReachedPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		src.powers.Reached = func(reflector.Cursor, object.Version) bool { panic("reached") }
		inf := started(t, src)
		src.Put("a", "x")
		settle()
		done := wait(t, inf, "b", "1")
		src.Put("a", "y")
		synctest.Wait()
		if open(done) {
			t.Error("open by a panic")
		}
		<-done
		s := inf.Status()
		var pe *informer.PanicError
		if s.Panics < 2 || !errors.As(s.LastPanic, &pe) || pe.What != "source Reached" {
			t.Errorf("%d panics, the last %v", s.Panics, s.LastPanic)
		}
	})
}

// TestG7_OnlyAListBegunLater: a list that was read before the write proves
// nothing, whenever it is applied.
func TestG7_OnlyAListBegunLater(t *testing.T) {
	for _, initial := range []bool{false, true} {
		t.Run(fmt.Sprintf("streamed %v", initial), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := newSource()
				src.powers.Initial = initial
				src.Put("a", "old")
				inf := started(t, src)
				hang := make(chan struct{})
				src.atList = func() { <-hang }
				if !initial {
					inf.Relist("test")
					synctest.Wait() // the list has its state, and hangs
				}
				release := src.Hold()
				src.Del("a")
				done := wait(t, inf, "a", "")
				close(hang)
				synctest.Wait()
				if open(done) {
					t.Error("open by a list that was begun before")
				}
				if d := <-done; d < time.Second || d > 3*time.Second {
					t.Errorf("open after %v", d)
				}
				if _, ok := inf.Cache().Get("a"); ok {
					t.Error("the cache has what was deleted")
				}
				release()
			})
		})
	}
}

// TestC02_HiddenByARelist: the object that was written is gone, and created
// again, before any watch could tell.
func TestC02_HiddenByARelist(t *testing.T) {
	for name, then := range map[string]func(*source){
		"deleted":       func(s *source) { s.Unseen(func() { s.del("a") }) },
		"created again": func(s *source) { s.Unseen(func() { s.del("a"); s.put("a", "other") }) },
		"overwritten":   func(s *source) { s.Unseen(func() { s.put("a", "other") }) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := newSource()
				inf := started(t, src)
				release := src.Hold()
				v := src.Put("a", "mine")
				done := wait(t, inf, "a", v)
				then(src)
				if d := <-done; d > 3*time.Second {
					t.Errorf("open after %v", d)
				}
				if have, want := cached(inf), src.state(); len(have) != len(want) || have["a"] != want["a"] {
					t.Errorf("the cache has %v, want %v", show(have), show(want))
				}
				if n := inf.Status().Waiting; n != 0 {
					t.Errorf("%d still wait", n)
				}
				release()
			})
		})
	}
}

// No versions, no positions: the source of a Poll. Each of its full states was
// begun before the one before it ended, so the next one proves nothing.
func TestG7_SourceWithoutPositions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		have, lists := "old", 0
		poll := reflector.Poll(func(context.Context) ([]string, error) {
			lists++
			return []string{have}, nil
		}, func(string) string { return "k" }, &reflector.PollOptions{Every: time.Hour})
		inf := informer.New(poll, nil)
		run(t, inf)
		if err := inf.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		settle()
		have = "new"
		start := time.Now()
		if err := inf.WaitFor(t.Context(), "k", ""); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > 3*time.Second {
			t.Errorf("after %v", d)
		}
		if got, _ := inf.Cache().Get("k"); got != "new" {
			t.Errorf("the cache has %q", got)
		}
	})
}

// One list answers all who wait, and is asked for once.
func TestG7_BarriersShareAList(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		src.powers.StaleLists = true
		inf := started(t, src)
		lists := src.Lists()
		var all []<-chan time.Duration
		for n := range 50 {
			all = append(all, wait(t, inf, fmt.Sprint(n%7), ""))
		}
		for _, done := range all {
			<-done
		}
		if n := src.Lists() - lists; n != 1 {
			t.Errorf("%d lists", n)
		}
		s := inf.Status()
		if s.Waiting != 0 || !s.StaleLists {
			t.Errorf("%+v", s)
		}
	})
}

// An event without a version is no proof for a write without one: it may be an
// older event.
func TestG7_NoVersionIsNoProof(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		src.Put("a", "old")
		inf := started(t, src)
		release := src.Hold()
		src.Del("a")
		done := wait(t, inf, "a", "")
		release()
		synctest.Wait()
		if _, ok := inf.Cache().Get("a"); ok || open(done) {
			t.Errorf("in the cache: %v, open: %v", ok, open(done))
		}
		<-done
	})
}

// Who waits after a list was asked for and applied asks for another.
func TestG7_OneListAfterTheOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		inf := started(t, src)
		for n := range 3 {
			if d := <-wait(t, inf, "a", ""); d > 3*time.Second || src.Lists() != n+2 {
				t.Errorf("open after %v and %d lists", d, src.Lists())
			}
		}
	})
}

// The position that Reached is asked about is the last one that was told: a batch
// without one leaves it, a full state without one ends it.
func TestG7_PositionOfTheCache(t *testing.T) {
	src := newSource()
	src.powers.Reached = reaches
	inf := informer.New(src, nil)
	sink := informer.SinkOf(inf)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	commit := func(at reflector.Cursor) {
		if err := sink.Begin(object.Relist).Commit(at); err != nil {
			t.Fatal(err)
		}
	}
	apply := func(at reflector.Cursor) {
		b := reflector.Delete[*obj]("x", at)
		if err := sink.Apply(b, object.Watched); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when string, v object.Version, want bool) {
		t.Helper()
		if err := inf.WaitFor(ended, "a", v); (err == nil) != want {
			t.Errorf("%s: version %s: %v", when, v, err)
		}
	}
	expect("before the first", "100", false)
	commit("5")
	expect("full state at 5", "500", true)
	expect("full state at 5", "600", false)
	apply("6")
	expect("batch at 6", "600", true)
	apply("")
	expect("batch at no position", "600", true)
	expect("batch at no position", "700", false)
	expect("no version", "", false)
	commit("")
	expect("full state at no position", "100", false)
}

// When the list fails, the barrier waits for one that does not.
func TestG7_ListFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		inf := started(t, src)
		src.Fail(errors.New("down"))
		done := wait(t, inf, "a", "")
		time.Sleep(3 * time.Minute)
		if open(done) {
			t.Error("open by a list that failed")
		}
		src.Fail(nil)
		if d := <-done; d > 5*time.Minute {
			t.Errorf("open after %v", d)
		}
	})
}

func TestWaitFor_BeforeRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		v := src.Put("a", "mine")
		inf := informer.New(src, nil)
		done := wait(t, inf, "a", v)
		time.Sleep(3 * time.Second)
		run(t, inf)
		synctest.Wait()
		if !open(done) {
			t.Error("not open after the first list")
		}
	})
}

func TestWaitFor_NothingIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		inf := informer.New(src, &informer.Options{Name: "things"})
		stop := run(t, inf)
		settle()
		release := src.Hold()
		defer release()
		gone := errors.New("deadline of mine")
		ctx, cancel := context.WithCancelCause(t.Context())
		errs := make(chan error, 3)
		go func() { errs <- inf.WaitFor(ctx, "a", "7") }()
		go func() { errs <- inf.WaitFor(ctx, "a", "7") }()
		go func() { errs <- inf.WaitFor(t.Context(), "a", "7") }()
		synctest.Wait()
		if n := inf.Status().Waiting; n != 3 {
			t.Errorf("%d wait", n)
		}
		cancel(gone)
		for range 2 {
			err := <-errs
			if !errors.Is(err, gone) {
				t.Errorf("got %v", err)
			}
			for _, part := range []string{`"things"`, `key "a"`, `version "7"`, "deadline of mine", "watching"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q lacks %q", err, part)
				}
			}
		}
		if n := inf.Status().Waiting; n != 1 {
			t.Errorf("%d wait, want the one with another context", n)
		}
		stop()
		if err := <-errs; !errors.Is(err, informer.ErrStopped) {
			t.Errorf("got %v", err)
		}
		if n := inf.Status().Waiting; n != 0 {
			t.Errorf("%d wait", n)
		}
		err := inf.WaitFor(t.Context(), "a", "")
		if !errors.Is(err, informer.ErrStopped) || !strings.Contains(err.Error(), "a list begun after a write") {
			t.Errorf("got %v", err)
		}
	})
}

// A list that found everything as it was proves as much as one that tells it.
func TestG4_NotModifiedIsAProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		src := reflector.Poll(func(context.Context) ([]string, error) {
			if calls++; calls > 1 {
				return nil, reflector.ErrNotModified
			}
			return []string{"a"}, nil
		}, func(s string) string { return s }, nil)
		i := informer.New(src, nil)
		run(t, i)
		if err := i.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := i.WaitFor(ctx, "a", ""); err != nil {
			t.Error(err)
		}
		if i.Cache().Len() != 1 {
			t.Error("the cache has lost what it had")
		}
	})
}
