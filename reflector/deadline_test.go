package reflector_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/homeostat/homeostat/reflector"
)

// Rule 2: opening a watch has a deadline.
func TestRule2_OpenDeadline(t *testing.T) {
	for _, c := range []struct {
		open time.Duration
		want time.Duration
	}{{0, 30 * time.Second}, {400 * time.Millisecond, 400 * time.Millisecond}, {2 * time.Second, 2 * time.Second}, {time.Minute, time.Minute}} {
		t.Run(c.want.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := &source{powers: powers{ResumeProven: true}, list: one("10", "a=1")}
				src.watch = script(func(ctx context.Context, _ reflector.WatchOptions, _ yield) { <-ctx.Done() }, stay)
				r := start(t, src, newSink(t), &reflector.Options{Backoff: exact, Open: c.open})
				after(c.want - c.want/8)
				want(t, "state", r.Status().State, reflector.Opening)
				after(c.want / 4)
				want(t, "missed", r.Status().Missed, 1)
				after(5 * time.Second)
				wantAll(t, "watches", src.afters(), "10", "10")
				want(t, "lists", len(src.lists), 1)
			})
		})
	}
}

// R13, R14: silence where progress was promised is the death of the watch.
func TestR13_R14_SilenceIsDeath(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true, Progress: true}, list: one("10", "a=1")}
		asked := time.Duration(0)
		src.watch = script(
			func(ctx context.Context, o reflector.WatchOptions, yield yield) {
				asked = o.ProgressEvery
				if !yield(batch{Cursor: "10"}, nil) || !yield(live("11", "b=1"), nil) {
					return
				}
				for range 60 { // alive for ten minutes
					time.Sleep(asked)
					if !yield(batch{}, nil) {
						return
					}
				}
				<-ctx.Done() // then half-open
			},
			func(ctx context.Context, o reflector.WatchOptions, yield yield) {
				play(ctx, o, yield, live("14", "c=1", "d=1", "e=1")) // what came meanwhile
			})
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		after(10*time.Minute + 29*time.Second)
		want(t, "asked", asked, 10*time.Second)
		want(t, "missed", r.Status().Missed, 0)
		want(t, "failures", r.Status().Failures, 0)
		after(2900 * time.Millisecond)
		want(t, "missed", r.Status().Missed, 1)
		after(2 * time.Second)
		wantAll(t, "watches", src.afters(), "10", "11")
		wantAll(t, "shown", s.shown(), "commit a=1 @10", "apply b=1 @11", "apply c=1 d=1 e=1 @14")
		want(t, "lists", len(src.lists), 1)
	})
}

// Time that the sink takes is not the source's silence.
func TestSlowSinkIsNoSilence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true, Progress: true, Initial: true}}
		src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
			yield(batch{Reset: true, Events: events("a=1")}, nil)
			if yield(batch{Synced: true, Cursor: "10"}, nil) {
				play(ctx, o, yield, live("11", "b=1"))
			}
		}
		s := newSink(t)
		slow := func() error { time.Sleep(time.Hour); return nil }
		s.onStage = func([]item) error { return slow() }
		s.onCommit = func(cursor) error { return slow() }
		s.onApply = func(batch) error { return slow() }
		r := start(t, src, s, nil)
		after(3*time.Hour + 5*time.Second)
		want(t, "missed", r.Status().Missed, 0)
		want(t, "watches", r.Status().Watches, 1)
		want(t, "holds", s.holds(), "a=1 b=1")
	})
}

// Rule 7: without progress there is no such deadline, but a longest session.
func TestRule7_LongestSession(t *testing.T) {
	for _, proven := range []bool{true, false} {
		t.Run(fmt.Sprintf("resume proven %v", proven), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := &source{powers: powers{ResumeProven: proven}, list: one("10", "a=1"), watch: idle}
				r := start(t, src, newSink(t), nil)
				after(10*time.Hour + time.Second)
				st := r.Status()
				want(t, "missed", st.Missed, 0)
				want(t, "failures", st.Failures, 0)
				want(t, "err", st.Err, nil)
				want(t, "progress asked", src.watches[0].ProgressEvery, 0)
				if n := len(src.watches); n < 60 || n > 81 {
					t.Errorf("%d watches in 10 h", n)
				}
				gaps := map[time.Duration]bool{}
				for i, g := range src.gaps() {
					if i == 0 || !proven && i%2 == 0 {
						continue // between list and watch
					}
					gaps[g.Round(10*time.Second)] = true
					if g < 450*time.Second || g > 601*time.Second {
						t.Errorf("a session of %v", g)
					}
				}
				if len(gaps) < 4 {
					t.Errorf("not jittered: %v", gaps)
				}
				if lists := len(src.lists); proven && lists != 1 || !proven && lists != len(src.watches) {
					t.Errorf("%d lists, %d watches", lists, len(src.watches))
				}
			})
		})
	}
	t.Run("no limit", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			src := &source{powers: powers{ResumeProven: true}, list: one("10", "a=1"), watch: idle}
			r := start(t, src, newSink(t), &reflector.Options{Session: -1})
			after(24 * time.Hour)
			want(t, "watches", r.Status().Watches, 1)
		})
	})
	t.Run("short", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			src := &source{powers: powers{ResumeProven: true}, list: one("10", "a=1"), watch: idle}
			r := start(t, src, newSink(t), &reflector.Options{Session: 400 * time.Millisecond})
			after(10 * time.Second)
			if n := r.Status().Watches; n < 20 || n > 40 {
				t.Errorf("%d watches in 10 s", n)
			}
		})
	})
	t.Run("progress has none", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			src := &source{powers: powers{ResumeProven: true, Progress: true}, list: one("10", "a=1")}
			src.watch = func(ctx context.Context, _ int, _ reflector.WatchOptions, yield yield) {
				for ctx.Err() == nil && yield(batch{Cursor: "10"}, nil) {
					time.Sleep(10 * time.Second)
				}
			}
			r := start(t, src, newSink(t), nil)
			after(3 * time.Hour)
			want(t, "watches", r.Status().Watches, 1)
		})
	})
	t.Run("a full state in the session counts anew", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			src := &source{powers: powers{Initial: true}}
			src.watch = func(ctx context.Context, _ int, _ reflector.WatchOptions, yield yield) {
				for ctx.Err() == nil && yield(whole("", "a=1"), nil) {
					time.Sleep(5 * time.Minute)
				}
			}
			r := start(t, src, newSink(t), nil)
			after(3 * time.Hour)
			want(t, "watches", r.Status().Watches, 1)
		})
	})
}
