package reflector_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

func TestRelistEndsTheSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true}, list: one("10", "a=1"), watch: idle}
		s := newSink(t)
		r := start(t, src, s, nil)
		after(time.Second)
		r.Relist("test")
		after(0)
		want(t, "lists", len(src.lists), 2)
		want(t, "watches", len(src.watches), 2)
		st := r.Status()
		want(t, "failures", st.Failures, 0)
		want(t, "err", st.Err, nil)
		want(t, "state", st.State, reflector.Watching)
		wantAll(t, "log", s.lines(), "begin", "commit a=1 @10", "begin", "abort", "begin", "commit a=1 @10", "begin")
		after(time.Hour)
		want(t, "lists", len(src.lists), 2)
	})
}

// Resumed sessions are ended as well as first ones.
func TestRelistEndsAResumedSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true}, list: one("10", "a=1"), watch: script(ends(errBoom), func(ctx context.Context, _ reflector.WatchOptions, _ yield) { <-ctx.Done() }, stay)}
		r := start(t, src, newSink(t), &reflector.Options{Backoff: exact})
		after(2 * time.Second)
		want(t, "state", r.Status().State, reflector.Opening)
		r.Relist("test")
		after(0)
		want(t, "lists", len(src.lists), 2)
	})
}

func TestRelistEndsTheBackoff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true}, list: one("10", "a=1"), watch: script(fails(errBoom), stay)}
		r := start(t, src, newSink(t), &reflector.Options{Backoff: retry.Backoff{Base: time.Hour, Max: time.Hour}})
		after(time.Second)
		want(t, "state", r.Status().State, reflector.BackingOff)
		r.Relist("test")
		after(0)
		want(t, "state", r.Status().State, reflector.Watching)
		want(t, "lists", len(src.lists), 2)
		want(t, "next", r.Status().Next, time.Time{})
	})
}

// The first full state begins after a call before Run, and answers it.
func TestRelistBeforeRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log bytes.Buffer
		src := &source{list: one("10", "a=1"), watch: idle}
		s := newSink(t)
		r := reflector.New(src, s, &reflector.Options{Logger: logger(&log)})
		r.Relist("early")
		r.Relist("again")
		begin(t, r, s)
		after(time.Minute)
		want(t, "lists", len(src.lists), 1)
		want(t, "reasons", strings.Count(log.String(), "reason="), 1)
		want(t, "first reason", strings.Count(log.String(), "reason=early"), 1)
	})
}

// A full state on its way may have missed what the caller did: one more follows.
func TestRelistDuringAList(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Paged: true, SnapshotPages: true}, watch: idle}
		src.list = func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
			nap(ctx, 10*time.Second)
			return pages(page{Items: items("a=1"), Cursor: "10"}, page{Cursor: "10"})(ctx, n, o)
		}
		s := newSink(t)
		r := start(t, src, s, nil)
		for _, at := range []time.Duration{1, 4, 6} { // 1 s, 5 s, 11 s
			after(at * time.Second)
			r.Relist("test")
		}
		after(time.Minute)
		want(t, "lists", len(src.lists), 4)
		want(t, "watches", len(src.watches), 1)
		wantAll(t, "log", s.lines(), "begin", "commit a=1 @10", "begin", "commit a=1 @10", "begin")
	})
}

// The watch that would owe another full state is not even opened.
func TestRelistDuringAListWithoutPositions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{watch: idle}
		src.list = func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
			nap(ctx, 10*time.Second)
			return one("", "a=1")(ctx, n, o)
		}
		r := start(t, src, newSink(t), nil)
		after(time.Second)
		r.Relist("test")
		after(10 * time.Second)
		lists, watches := src.calls()
		want(t, "lists", lists, 2)
		want(t, "watches", watches, 0)
	})
}

func TestRelistDuringAStreamedState(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Initial: true}}
		src.watch = func(ctx context.Context, n int, _ reflector.WatchOptions, yield yield) {
			yield(batch{Reset: true, Events: events("a=1")}, nil)
			nap(ctx, 5*time.Second)
			if yield(batch{Synced: true, Cursor: "5"}, nil) {
				<-ctx.Done()
			}
		}
		s := newSink(t)
		r := start(t, src, s, nil)
		for range 4 {
			after(time.Second)
			r.Relist("test")
		}
		after(time.Minute)
		want(t, "watches", len(src.watches), 2)
		wantAll(t, "shown", s.shown(), "commit a=1 @5", "commit a=1 @5")
	})
}

// Calls that come faster than full states do not starve the sink.
func TestRelistInALoop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Initial: true}}
		src.watch = func(ctx context.Context, n int, _ reflector.WatchOptions, yield yield) {
			nap(ctx, 5*time.Second)
			if yield(whole("5", "a=1"), nil) {
				<-ctx.Done()
			}
		}
		s := newSink(t)
		r := start(t, src, s, nil)
		for range 1000 {
			after(100 * time.Millisecond)
			r.Relist("test")
		}
		want(t, "commits", s.commits, 20) // one each 5 s
	})
}

// While a list waits for its watch (rule 5), it is a full state on its way.
func TestRelistDuringRule5(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Paged: true, Compare: compare, ResumeProven: true}}
		src.list = func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
			if n > 2 {
				return one("e/12", "a=1", "b=1")(ctx, n, o)
			}
			return pages(page{Items: items("a=1"), Cursor: "e/10"}, page{Items: items("b=1"), Cursor: "e/12"})(ctx, n, o)
		}
		src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
			yield(batch{Cursor: o.After}, nil)
			nap(ctx, 5*time.Second)
			yield(batch{Cursor: "e/12"}, nil)
			<-ctx.Done()
		}
		s := newSink(t)
		r := start(t, src, s, nil)
		after(time.Second)
		r.Relist("test")
		after(time.Second)
		want(t, "lists", len(src.lists), 2)
		after(10 * time.Second)
		want(t, "lists", len(src.lists), 3)
		want(t, "commits", s.commits, 2)
	})
}

// A call is not lost to a full state that fails.
func TestRelistThatFailsIsTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true}, watch: idle}
		src.list = func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
			if n == 2 || n == 3 {
				return page{}, errBoom
			}
			return one("10", "a=1")(ctx, n, o)
		}
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		after(time.Second)
		r.Relist("test")
		after(time.Minute)
		want(t, "lists", len(src.lists), 4)
		want(t, "commits", s.commits, 2)
	})
}

// A call during the wait for the budget is answered by what is begun then.
func TestRelistDuringTheBudgetsWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		budget := retry.NewBudget(0, 0)
		src := &source{powers: powers{ResumeProven: true}, list: one("10", "a=1"), watch: idle}
		budget.Pause(10 * time.Second)
		r := start(t, src, newSink(t), &reflector.Options{Budget: budget})
		after(time.Second)
		r.Relist("test")
		after(time.Minute)
		want(t, "lists", len(src.lists), 1)
		want(t, "watches", len(src.watches), 1)

		// Before a resumed watch it takes the full state instead.
		src.watch = script(stay, ends(errBoom), stay)
		r.Relist("test")
		budget.Pause(10 * time.Second)
		after(11 * time.Second)
		budget.Pause(10 * time.Second)
		after(time.Second)
		r.Relist("test")
		after(20 * time.Second)
		want(t, "lists", len(src.lists), 3)
	})
}

func TestRelistFromManyGoroutines(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		begun := 0
		src := &source{powers: powers{ResumeProven: true}, watch: idle}
		src.list = func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
			mu.Lock()
			begun = n
			mu.Unlock()
			return one("10", "a=1")(ctx, n, o)
		}
		r := start(t, src, newSink(t), nil)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 200 {
					mu.Lock()
					before := begun
					mu.Unlock()
					r.Relist("test")
					after := before
					for after == before {
						time.Sleep(time.Millisecond)
						mu.Lock()
						after = begun
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
	})
}

// A sink that does not accept that nothing changed is given a full state.
func TestUnchangedIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{watch: idle, powers: powers{ResumeProven: true}}
		src.list = func(_ context.Context, n int, _ reflector.ListOptions) (page, error) {
			if n == 2 {
				return page{}, reflector.ErrNotModified
			}
			return page{Items: items("a=1"), Cursor: "5"}, nil
		}
		s := newSink(t)
		s.onUnchanged = func(cursor) error { return errBoom }
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		after(0)
		r.Relist("test")
		after(0)
		wantErr(t, "err", r.Status().Err, errBoom)
		after(time.Second)
		wantAll(t, "shown", s.shown(), "commit a=1 @5", "commit a=1 @5")
		want(t, "err", r.Status().Err, nil)
	})
}

// A watch that opens with an empty batch has not said that nothing changed: its
// full state may be on its way.
func TestOpeningIsNotUnchanged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Initial: true}}
		src.watch = func(ctx context.Context, n int, _ reflector.WatchOptions, yield yield) {
			if !yield(batch{}, nil) {
				return
			}
			nap(ctx, time.Second)
			yield(whole("", fmt.Sprintf("a=%d", n)), nil)
			<-ctx.Done()
		}
		s := newSink(t)
		r := start(t, src, s, nil)
		after(2 * time.Second)
		r.Relist("test")
		after(time.Second / 2)
		want(t, "state", r.Status().State, reflector.Streaming)
		after(time.Second)
		want(t, "unchanged", s.same, 0)
		want(t, "holds", s.holds(), "a=2")
	})
}

// Events in it are a breach: a full state has to begin.
func TestSyncedWithoutReset(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{list: one("5", "a=1")}
		src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
			b := live("6", "b=1")
			b.Synced = true
			play(ctx, o, yield, b)
		}
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		after(0)
		wantErr(t, "err", r.Status().Err, reflector.ErrContract)
		want(t, "unchanged", s.same, 0)
	})
}
