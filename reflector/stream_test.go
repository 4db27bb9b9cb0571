package reflector_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

// That everything is as it was can only be said where there are no positions.
func TestOnlyNoPositionMeansAsItWas(t *testing.T) {
	for _, c := range []struct {
		name         string
		first, again cursor
	}{
		{"the sink has a position", "5", ""},
		{"the watch has one", "", "7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := &source{powers: powers{Initial: true}}
				src.watch = script(
					func(_ context.Context, _ reflector.WatchOptions, yield yield) { yield(whole(c.first, "a=1"), nil) },
					func(_ context.Context, _ reflector.WatchOptions, yield yield) {
						if yield(batch{Cursor: c.again}, nil) {
							yield(live("8", "b=1"), nil)
						}
					},
					func(ctx context.Context, _ reflector.WatchOptions, _ yield) { <-ctx.Done() })
				s := newSink(t)
				r := start(t, src, s, &reflector.Options{Backoff: exact})
				after(1500 * time.Millisecond)
				wantErr(t, "err", r.Status().Err, reflector.ErrContract)
				want(t, "holds", s.holds(), "a=1")
			})
		})
	}
}

// After a full state the watch stands there: what comes from before is a replay.
func TestResetMovesTheWatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true, Compare: compare}, list: one("e/10", "a=1")}
		src.watch = script(func(ctx context.Context, o reflector.WatchOptions, yield yield) {
			play(ctx, o, yield, whole("e/20", "b=1"), live("e/15", "c=1"), live("e/21", "d=1"))
		})
		s := newSink(t)
		r := start(t, src, s, nil)
		after(0)
		wantAll(t, "shown", s.shown(), "commit a=1 @e/10", "commit b=1 @e/20", "apply d=1 @e/21")
		want(t, "replays", r.Status().Replays, 1)
	})
}

// A full state may come at any time of a session.
func TestResetInMidSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true}, list: one("10", "a=1", "b=1")}
		src.watch = script(func(ctx context.Context, o reflector.WatchOptions, yield yield) {
			play(ctx, o, yield, live("11", "c=1"),
				batch{Reset: true, Events: events("a=2", "x=1", "y=1")},
				batch{Events: events("-x", "a=3", "-y", "y=2", "-nobody")},
				batch{},
				batch{Synced: true, Cursor: "20", Events: events("z=1")},
				live("21", "-z"),
				whole("30", "q=1"))
		})
		s := newSink(t)
		r := start(t, src, s, nil)
		after(0)
		wantAll(t, "log", s.lines(),
			"begin", "commit a=1 b=1 @10", "begin", "apply c=1 @11",
			"commit a=3 y=2 z=1 @20", "begin", "apply -z @21",
			"commit q=1 @30", "begin")
		want(t, "cursor", r.Status().Cursor, "30")
	})
}

// Full states of any size reach the sink in pieces, all of them.
func TestLargeStreamedState(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var kv []string
		for i := range 1537 {
			kv = append(kv, fmt.Sprintf("k%d=1", i))
		}
		src := &source{powers: powers{Initial: true}}
		src.watch = script(func(ctx context.Context, o reflector.WatchOptions, yield yield) {
			if yield(whole("5", kv...), nil) {
				<-ctx.Done()
			}
		})
		s := newSink(t)
		var sizes []int
		s.onStage = func(items []item) error { sizes = append(sizes, len(items)); return nil }
		start(t, src, s, nil)
		after(0)
		want(t, "objects", len(s.state), 1537)
		wantAll(t, "pieces", sizes, 512, 512, 512, 1)
	})
}

// R20: a streamed full state that does not end is given up and listed.
func TestR20_StreamThatNeverEnds(t *testing.T) {
	five := []batch{{Reset: true, Events: events("a=1", "b=1", "c=1")}, {Events: events("d=1", "e=1")}}
	for _, c := range []struct {
		name  string
		watch func(ctx context.Context, o reflector.WatchOptions, yield yield)
		miss  time.Duration
	}{
		{"silence in mid-stream", func(ctx context.Context, o reflector.WatchOptions, yield yield) {
			for _, b := range five {
				nap(ctx, 20*time.Second)
				if !yield(b, nil) {
					return
				}
			}
			<-ctx.Done()
		}, 70 * time.Second},
		{"signs of life but no objects", func(ctx context.Context, o reflector.WatchOptions, yield yield) {
			for _, b := range five {
				if !yield(b, nil) {
					return
				}
			}
			for ctx.Err() == nil && yield(batch{Cursor: "7"}, nil) {
				nap(ctx, time.Second)
			}
		}, 30 * time.Second},
		{"no batch at all", func(ctx context.Context, o reflector.WatchOptions, yield yield) {
			<-ctx.Done()
		}, 30 * time.Second},
		{"no Reset", func(ctx context.Context, o reflector.WatchOptions, yield yield) {
			for ctx.Err() == nil && yield(batch{}, nil) {
				nap(ctx, time.Second)
			}
		}, 30 * time.Second},
		{"objects for ever", func(ctx context.Context, o reflector.WatchOptions, yield yield) {
			for b := (batch{Reset: true, Events: events("a=1")}); ctx.Err() == nil && yield(b, nil); b.Reset = false {
				nap(ctx, 20*time.Second)
			}
		}, 10 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := &source{powers: powers{Initial: true, ResumeProven: true}, list: one("9", "a=1", "b=1")}
				src.watch = func(ctx context.Context, n int, o reflector.WatchOptions, yield yield) {
					if o.Initial {
						c.watch(ctx, o, yield)
						return
					}
					stay(ctx, o, yield)
				}
				s := newSink(t)
				r := start(t, src, s, &reflector.Options{Backoff: retry.Backoff{Schedule: []time.Duration{5 * time.Second}}})
				after(c.miss - time.Second/2)
				want(t, "missed", r.Status().Missed, 0)
				want(t, "lists", len(src.lists), 0)
				after(1900 * time.Millisecond)
				st := r.Status()
				want(t, "missed", st.Missed, 1)
				want(t, "state", st.State, reflector.BackingOff)
				if st.Fallback == nil || st.Err == nil {
					t.Errorf("fallback %v, err %v", st.Fallback, st.Err)
				}
				wantAll(t, "R21: nothing was shown", s.shown())
				after(10 * time.Second)
				wantAll(t, "shown", s.shown(), "commit a=1 b=1 @9")
				st = r.Status()
				want(t, "state", st.State, reflector.Watching)
				want(t, "err", st.Err, nil)
				if st.Fallback == nil {
					t.Error("fallback is not told any more")
				}
				// And so is the next.
				r.Relist("test")
				after(time.Second)
				want(t, "lists", len(src.lists), 2)
				want(t, "watches", len(src.watches), 3)
			})
		})
	}
}

func TestR20_FallbackWhoseListFailsStreamsAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Initial: true}}
		src.list = func(context.Context, int, reflector.ListOptions) (page, error) { return page{}, errBoom }
		src.watch = script(func(ctx context.Context, _ reflector.WatchOptions, _ yield) { <-ctx.Done() },
			func(ctx context.Context, _ reflector.WatchOptions, yield yield) {
				if yield(whole("5", "a=1"), nil) {
					<-ctx.Done()
				}
			})
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		after(32 * time.Second)
		wantErr(t, "err", r.Status().Err, errBoom)
		after(5 * time.Second)
		want(t, "lists", len(src.lists), 1)
		want(t, "holds", s.holds(), "a=1")
		want(t, "fallback", r.Status().Fallback, nil)
	})
}

func TestR20_UnsupportedStreamIsListed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Initial: true}, list: one("5", "a=1")}
		src.watch = script(fails(fmt.Errorf("streaming: %w", errors.ErrUnsupported)), stay)
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		after(2 * time.Second)
		want(t, "holds", s.holds(), "a=1")
		wantErr(t, "fallback", r.Status().Fallback, errors.ErrUnsupported)
	})
}

// A stream that merely breaks is streamed again.
func TestR21_BrokenStreamShowsNothing(t *testing.T) {
	for _, how := range []error{errBoom, nil, reflector.ErrExpired} {
		t.Run(fmt.Sprint(how), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := &source{powers: powers{Initial: true, ResumeProven: true, Compare: compare}}
				full := func(at cursor, kv ...string) func(context.Context, reflector.WatchOptions, yield) {
					return func(ctx context.Context, o reflector.WatchOptions, yield yield) {
						want(t, "initial", o.Initial, true)
						want(t, "after", o.After, "")
						yield(batch{Cursor: at}, nil)
						yield(batch{Reset: true, Events: events(kv[:1]...), Cursor: "e/1"}, nil)
						if yield(batch{Synced: true, Events: events(kv[1:]...), Cursor: at}, nil) {
							<-ctx.Done()
						}
					}
				}
				breaks := func(_ context.Context, _ reflector.WatchOptions, yield yield) {
					if yield(batch{Reset: true, Events: events("x=1", "y=1", "z=1"), Cursor: "e/99"}, nil) && how != nil {
						yield(batch{}, how)
					}
				}
				src.watch = script(breaks, full("e/5", "b=7", "a=1"), breaks, full("e/8", "a=2", "b=7"))
				s := newSink(t)
				r := start(t, src, s, &reflector.Options{Backoff: exact})
				after(time.Second / 2)
				want(t, "synced", r.Status().Synced, false)
				want(t, "cursor", r.Status().Cursor, "")
				want(t, "state", r.Status().State, reflector.BackingOff)
				after(time.Second)
				r.Relist("test")
				after(10 * time.Second)
				wantAll(t, "shown", s.shown(), "commit a=1 b=7 @e/5", "commit a=2 b=7 @e/8")
				want(t, "lists", len(src.lists), 0)
				want(t, "missed", r.Status().Missed, 0)
			})
		})
	}
}

// Silence after the full state is no reason to list what can be streamed.
func TestR20_LaterSilenceIsNoFallback(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Initial: true, Progress: true}}
		src.watch = func(ctx context.Context, _ int, _ reflector.WatchOptions, yield yield) {
			if yield(whole("5", "a=1"), nil) {
				<-ctx.Done()
			}
		}
		r := start(t, src, newSink(t), &reflector.Options{Backoff: exact})
		after(40 * time.Second)
		want(t, "missed", r.Status().Missed, 1)
		want(t, "fallback", r.Status().Fallback, nil)
		want(t, "watches", len(src.watches), 2)
	})
}

// A relist is begun before the source can read, each time.
func TestBeginComesBeforeTheRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var trace []string
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			trace = append(trace, what)
		}
		src := &source{powers: powers{Initial: true}}
		src.watch = func(ctx context.Context, n int, _ reflector.WatchOptions, yield yield) {
			for i := range 2 {
				note("read")
				if i == 1 && n == 2 {
					yield(batch{}, errBoom)
					return
				}
				if !yield(whole("", "a=1"), nil) {
					return
				}
				time.Sleep(time.Minute)
			}
			note("end")
		}
		src.list = func(context.Context, int, reflector.ListOptions) (page, error) {
			note("read")
			return page{}, errBoom
		}
		s := newSink(t)
		s.onAbort = func() { note("abort") }
		s.onCommit = func(cursor) error { note("commit"); return nil }
		s.onBegin = func(object.Cause) { note("begin") }
		start(t, src, s, &reflector.Options{Backoff: exact})
		after(2*time.Minute + time.Second/2)
		session := []string{"begin", "read", "commit", "begin", "read", "commit", "begin", "end", "abort"}
		mu.Lock()
		wantAll(t, "first session", trace, session...)
		trace = nil
		mu.Unlock()
		after(2 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(trace[:6], []string{"begin", "read", "commit", "begin", "read", "abort"}) {
			t.Errorf("second session: %v", trace)
		}
	})
}
