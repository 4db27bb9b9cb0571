package reflector_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/homeostat/homeostat/reflector"
)

// seq answers the n-th list with the n-th cursor, the last one for ever.
func seq(at ...cursor) func(context.Context, int, reflector.ListOptions) (page, error) {
	return func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
		c := at[min(n, len(at))-1]
		return one(c, "a="+string(c[2:]))(ctx, n, o)
	}
}

// R07: within an epoch nobody is shown an older state than before.
func TestR07_OlderListIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Compare: compare}, list: seq("e/100", "e/90", "e/95", "e/100", "e/99", "e/101"), watch: idle}
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		after(0)
		r.Relist("test")
		after(time.Second / 2)
		st := r.Status()
		wantErr(t, "err", st.Err, reflector.ErrFutureCursor)
		want(t, "state", st.State, reflector.BackingOff)
		after(6 * time.Second) // 95 is refused too, 100 is as good as before
		wantAll(t, "shown", s.shown(), "commit a=100 @e/100", "commit a=100 @e/100")
		r.Relist("test") // 99, then 101
		after(time.Minute / 2)
		wantAll(t, "shown", s.shown()[2:], "commit a=101 @e/101")
		want(t, "resets", r.Status().Resets, 0)
		want(t, "err", r.Status().Err, nil)
	})
}

// The pages after one that is too old are not asked for.
func TestR07_OlderListIsRefusedEarly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Compare: compare, Paged: true, SnapshotPages: true}, list: seq("e/100"), watch: idle}
		r := start(t, src, newSink(t), &reflector.Options{Backoff: exact})
		after(0)
		src.list = pages(page{Cursor: "e/90", Items: items("b=1")}, page{Cursor: "e/90"})
		r.Relist("test")
		after(time.Second / 2)
		want(t, "lists", len(src.lists), 2)
	})
}

func TestR07_OlderStreamedStateIsRefused(t *testing.T) {
	for _, mid := range []bool{false, true} {
		t.Run(fmt.Sprintf("in mid-session %v", mid), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := &source{powers: powers{Compare: compare, Initial: true}}
				src.watch = func(ctx context.Context, n int, o reflector.WatchOptions, yield yield) {
					switch n {
					case 1:
						if yield(whole("e/100", "a=100"), nil) && mid {
							yield(whole("e/90", "a=90"), nil)
						}
					case 2:
						yield(whole("e/90", "a=90"), nil)
					default:
						if yield(whole("e/101", "a=101"), nil) {
							<-ctx.Done()
						}
					}
				}
				s := newSink(t)
				r := start(t, src, s, &reflector.Options{Backoff: exact})
				after(1500 * time.Millisecond)
				wantErr(t, "err", r.Status().Err, reflector.ErrFutureCursor)
				after(10 * time.Second)
				wantAll(t, "shown", s.shown(), "commit a=100 @e/100", "commit a=101 @e/101")
			})
		})
	}
}

// R08: a source that was set back is believed, at once when it says so by its
// epoch, else once it has insisted for ResetAfter.
func TestR08_SetBack(t *testing.T) {
	for _, c := range []struct {
		name       string
		older      cursor
		resetAfter time.Duration
		no, yes    time.Duration // not yet, and by then
	}{
		{"another epoch", "f/40", 0, time.Second / 2, 2 * time.Second},
		{"insists", "e/40", 0, 55 * time.Second, 65 * time.Second},
		{"insists, option", "e/40", 10 * time.Second, 9 * time.Second, 20 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := &source{powers: powers{Compare: compare, ResumeProven: true}, list: seq("e/500", c.older)}
				src.watch = func(ctx context.Context, n int, o reflector.WatchOptions, yield yield) {
					if o.After == "e/500" {
						if n == 1 {
							ends(errBoom)(ctx, o, yield)
						} else {
							fails(reflector.ErrFutureCursor)(ctx, o, yield)
						}
						return
					}
					idle(ctx, n, o, yield)
				}
				s := newSink(t)
				o := reflector.Options{Backoff: exact, ResetAfter: c.resetAfter}
				o.Backoff.Max = 4 * time.Second
				r := start(t, src, s, &o)
				after(c.no)
				wantAll(t, "shown", s.shown(), "commit a=500 @e/500")
				want(t, "resets", r.Status().Resets, 0)
				after(c.yes - c.no + 3*time.Second)
				wantAll(t, "shown", s.shown(), "commit a=500 @e/500", "commit a=40 @"+string(c.older))
				want(t, "resets", r.Status().Resets, 1)
				want(t, "cursor", r.Status().Cursor, c.older)
				after(time.Hour)
				want(t, "resets", r.Status().Resets, 1)
			})
		})
	}
}

// Without an order the source's word is all there is.
func TestR08_SetBackWithoutAnOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true}, list: seq("e/500", "e/40")}
		src.watch = script(ends(errBoom), fails(reflector.ErrFutureCursor), ends(errBoom), fails(reflector.ErrExpired), stay)
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		after(time.Minute)
		wantAll(t, "shown", s.shown(), "commit a=500 @e/500", "commit a=40 @e/40", "commit a=40 @e/40")
		want(t, "resets", r.Status().Resets, 1)
	})
}

// That word is kept until a full state came, and needed only without an order.
func TestR08_TheSourcesWord(t *testing.T) {
	for _, c := range []struct {
		name   string
		powers powers
		resets uint64
	}{
		{"no order", powers{Initial: true, ResumeProven: true}, 1},
		{"order, and nothing older", powers{Initial: true, ResumeProven: true, Compare: compare}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				full := func(ctx context.Context, _ reflector.WatchOptions, yield yield) {
					if yield(whole("e/50", "a=1"), nil) {
						nap(ctx, time.Minute)
					}
				}
				src := &source{powers: c.powers, watch: script(full, fails(reflector.ErrFutureCursor), fails(errBoom), full, stay)}
				r := start(t, src, newSink(t), &reflector.Options{Backoff: exact})
				after(3 * time.Minute)
				want(t, "watches", len(src.watches), 5)
				want(t, "resets", r.Status().Resets, c.resets)
			})
		})
	}
}

// Only the same answer all the time is insisting.
func TestR08_LagThatEndsIsForgotten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Compare: compare}, list: seq("e/100", "e/90", "e/110", "e/100", "e/120"), watch: idle}
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		after(0)
		r.Relist("90 is lag, 110 is fine")
		after(50 * time.Second)
		r.Relist("100 is lag again, 120 is fine")
		after(30 * time.Second)
		wantAll(t, "shown", s.shown(), "commit a=100 @e/100", "commit a=110 @e/110", "commit a=120 @e/120")
		want(t, "resets", r.Status().Resets, 0)
	})
}

// Nor are an old answer before an outage and another one after it.
func TestR08_OutageIsNoInsisting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Compare: compare}, watch: idle}
		src.list = func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
			if n > 2 && n < 9 { // for about two minutes
				return page{}, errBoom
			}
			return seq("e/100", "e/90", "", "", "", "", "", "", "e/90", "e/100")(ctx, n, o)
		}
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		after(0)
		r.Relist("test")
		after(10 * time.Minute)
		wantAll(t, "shown", s.shown(), "commit a=100 @e/100", "commit a=100 @e/100")
		want(t, "resets", r.Status().Resets, 0)
	})
}

// A watch that stands before where it was asked to begin, or falls back, lags.
func TestRule6_WatchThatLags(t *testing.T) {
	for _, c := range []struct {
		name  string
		first func(context.Context, reflector.WatchOptions, yield)
	}{
		{"at opening", func(_ context.Context, _ reflector.WatchOptions, yield yield) { yield(batch{Cursor: "e/9"}, nil) }},
		{"later", ends(nil, batch{Cursor: "e/9"})},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := &source{powers: powers{Compare: compare, ResumeProven: true}, list: seq("e/10", "e/11"), watch: script(c.first, stay)}
				s := newSink(t)
				r := start(t, src, s, &reflector.Options{Backoff: exact})
				after(time.Second / 2)
				wantErr(t, "err", r.Status().Err, reflector.ErrFutureCursor)
				after(time.Second)
				wantAll(t, "shown", s.shown(), "commit a=10 @e/10", "commit a=11 @e/11")
			})
		})
	}
}

// R09: positions that go backwards are another epoch, and a source without any
// is asked no more often than the backoff says.
func TestR09_PositionsThatGoBackwards(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Compare: compare, ResumeProven: true}, list: seq("e/7", "f/3")}
		src.watch = script(ends(nil, live("e/9", "a=9"), live("f/3", "x=3")),
			func(ctx context.Context, o reflector.WatchOptions, yield yield) {
				play(ctx, o, yield, live("f/4", "b=4"))
			})
		s := newSink(t)
		start(t, src, s, &reflector.Options{Backoff: exact})
		after(5 * time.Second)
		wantAll(t, "shown", s.shown(), "commit a=7 @e/7", "apply a=9 @e/9", "commit a=3 @f/3", "apply b=4 @f/4")
	})
}

func TestR09_NoPositionNeverSpins(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{list: one("", "a=1")}
		src.watch = func(context.Context, int, reflector.WatchOptions, yield) {}
		start(t, src, newSink(t), &reflector.Options{Backoff: exact})
		after(59 * time.Second) // 1+2+4+8+16 s, and 32 s more are not over
		want(t, "lists", len(src.lists), 6)
	})
}
