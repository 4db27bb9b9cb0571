package reflector_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

func gapsOf(n int, from func() []time.Duration, every int) []time.Duration {
	var out []time.Duration
	for i, g := range from() {
		if i%every == every-1 && len(out) < n {
			out = append(out, g)
		}
	}
	return out
}

// R03, R04: closes, clean or not, stay within the schedule.
func TestR03_R04_ShortSessionsBackOff(t *testing.T) {
	for _, c := range []struct {
		name  string
		watch func(context.Context, int, reflector.WatchOptions, yield)
		life  time.Duration
	}{
		{"closed at once, without a batch", func(context.Context, int, reflector.WatchOptions, yield) {}, 0},
		{"closed at once", script(ends(nil)), 0},
		{"error at once", script(fails(errBoom)), 0},
		{"closed after 2 s", func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
			if yield(batch{Cursor: o.After}, nil) {
				nap(ctx, 2*time.Second)
			}
		}, 2 * time.Second},
		{"closed after 59 s", func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
			if yield(batch{Cursor: o.After}, nil) {
				nap(ctx, 59*time.Second)
			}
		}, 59 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := &source{powers: powers{ResumeProven: true}, list: one("10", "a=1"), watch: c.watch}
				s := newSink(t)
				r := start(t, src, s, &reflector.Options{Backoff: exact})
				after(time.Hour)
				wantAll(t, "gaps", src.gaps()[:9], 0, time.Second+c.life, 2*time.Second+c.life, 4*time.Second+c.life,
					8*time.Second+c.life, 16*time.Second+c.life, 32*time.Second+c.life, time.Minute+c.life, time.Minute+c.life)
				want(t, "lists", len(src.lists), 1)
				wantAll(t, "shown", s.shown(), "commit a=1 @10")
				if st := r.Status(); st.Failures < 8 {
					t.Errorf("failures: %d", st.Failures)
				}
			})
		})
	}
}

// R03, with the default backoff: a thousand closes would take hours.
func TestR03_DefaultBackoffHolds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true}, list: one("10")}
		src.watch = func(context.Context, int, reflector.WatchOptions, yield) {}
		start(t, src, newSink(t), nil)
		after(time.Minute)
		// The shortest the schedule allows is 100 ms each, the most likely far more.
		if n := len(src.watches); n < 4 || n > 60 {
			t.Errorf("%d watches in a minute", n)
		}
	})
}

// R04, R24: a session that lived ends the row of failures, whatever ended it.
func TestR04_R24_LongSessionEndsTheRow(t *testing.T) {
	for _, how := range []error{nil, errBoom} {
		t.Run(fmt.Sprint(how), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := &source{powers: powers{ResumeProven: true, Progress: true}, list: one("10")}
				long := func(ctx context.Context, o reflector.WatchOptions, yield yield) {
					for range 65 {
						if !yield(batch{Cursor: o.After}, nil) {
							return
						}
						nap(ctx, time.Second)
					}
					if how != nil {
						yield(batch{}, how)
					}
				}
				src.watch = script(fails(errBoom), fails(errBoom), fails(errBoom), long, fails(errBoom), fails(errBoom), stay)
				r := start(t, src, newSink(t), &reflector.Options{Backoff: exact})
				after(8 * time.Second)
				want(t, "failures", r.Status().Failures, 3)
				want(t, "err while well", r.Status().Err, nil)
				after(61*time.Second + 500*time.Millisecond)
				want(t, "failures once it has lived", r.Status().Failures, 0)
				after(10 * time.Second)
				second := 2 * time.Second // after a failure that follows another one
				if how == nil {
					second = time.Second // a clean end was none
				}
				wantAll(t, "gaps", src.gaps()[:6], 0, time.Second, 2*time.Second, 4*time.Second, 66*time.Second, second)
			})
		})
	}
}

// A minute is a minute, whenever the clock is looked at.
func TestR04_ALifeOfAMinute(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true}, list: one("10")}
		src.watch = script(fails(errBoom), fails(errBoom), func(ctx context.Context, o reflector.WatchOptions, yield yield) {
			yield(batch{Cursor: o.After}, nil)
			nap(ctx, time.Minute)
			yield(batch{}, errBoom)
		}, stay)
		start(t, src, newSink(t), &reflector.Options{Backoff: exact})
		after(2 * time.Minute)
		wantAll(t, "gaps", src.gaps(), 0, time.Second, 2*time.Second, 61*time.Second)
	})
}

// R24: list and watch share one backoff: lists that work do not reset what
// watches earned.
func TestR24_OneBackoffForTheCycle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{list: one("10", "a=1"), watch: script(fails(errBoom))}
		r := start(t, src, newSink(t), &reflector.Options{Backoff: exact})
		after(5 * time.Minute)
		wantAll(t, "gaps", gapsOf(8, src.gaps, 2), time.Second, 2*time.Second, 4*time.Second, 8*time.Second,
			16*time.Second, 32*time.Second, time.Minute, time.Minute)
		wantErr(t, "err", r.Status().Err, errBoom)
	})
}

// R24: what fails together does not come back together.
func TestR24_ManyAreSpread(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var fifth []time.Time
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		for range 200 {
			src := &source{list: func(_ context.Context, n int, _ reflector.ListOptions) (page, error) {
				if n == 6 {
					mu.Lock()
					fifth = append(fifth, time.Now())
					mu.Unlock()
				}
				return page{}, errBoom
			}}
			wg.Go(func() { _ = reflector.New(src, newSink(t), nil).Run(ctx) })
		}
		after(time.Minute)
		cancel()
		wg.Wait()
		first, last := fifth[0], fifth[0]
		for _, at := range fifth {
			if at.Before(first) {
				first = at
			}
			if at.After(last) {
				last = at
			}
		}
		want(t, "fifth retries", len(fifth), 200)
		if spread := last.Sub(first); spread < 1500*time.Millisecond {
			t.Errorf("fifth retries within %v", spread)
		}
	})
}

// Rule 10: a source may say when it is to be asked again.
func TestRule10_After(t *testing.T) {
	asked := retry.After(errBoom, 20*time.Second)
	for _, c := range []struct {
		name string
		src  *source
	}{
		{"list", &source{watch: idle, list: func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
			if n == 1 {
				return page{}, asked
			}
			return one("5")(ctx, n, o)
		}}},
		{"opening a watch", &source{powers: powers{ResumeProven: true}, list: one("5"), watch: script(fails(asked), stay)}},
		{"in the stream", &source{powers: powers{ResumeProven: true}, list: one("5"), watch: script(ends(asked), stay)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				budget := retry.NewBudget(0, 0)
				r := start(t, c.src, newSink(t), &reflector.Options{Backoff: exact, Budget: budget})
				after(time.Second)
				st := r.Status()
				wantErr(t, "err", st.Err, errBoom)
				want(t, "next", time.Until(st.Next), 19*time.Second)
				r.Relist("does not go before what was asked for")
				begun := time.Now()
				if budget.Wait(t.Context()); time.Since(begun) != 19*time.Second {
					t.Errorf("others who hold the budget waited %v", time.Since(begun))
				}
				after(0)
				gaps := c.src.gaps()
				if len(c.src.lists) == 1 || len(gaps) > 2 {
					gaps = gaps[1:]
				}
				want(t, "gap", gaps[0], 20*time.Second)
				want(t, "state", r.Status().State, reflector.Watching)
			})
		})
	}
	t.Run("no Relist cuts it short", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			src := &source{watch: idle, list: func(context.Context, int, reflector.ListOptions) (page, error) {
				return page{}, retry.After(errBoom, 20*time.Second)
			}}
			r := start(t, src, newSink(t), &reflector.Options{Backoff: retry.Backoff{Base: time.Minute, NoJitter: true}})
			after(time.Second)
			r.Relist("only what comes after it")
			after(time.Minute)
			wantAll(t, "gaps", src.gaps(), 20*time.Second)
		})
	})
	t.Run("shorter than the backoff", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			src := &source{list: func(context.Context, int, reflector.ListOptions) (page, error) {
				return page{}, retry.After(errBoom, 3*time.Second)
			}}
			start(t, src, newSink(t), &reflector.Options{Backoff: exact})
			after(time.Minute)
			wantAll(t, "gaps", src.gaps(), 3*time.Second, 3*time.Second, 4*time.Second, 8*time.Second, 16*time.Second)
		})
	})
}

// Rule 10: what is permanent is tried at the longest delay, and shown.
func TestRule10_Permanent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{list: func(context.Context, int, reflector.ListOptions) (page, error) {
			return page{}, retry.Permanent(errBoom)
		}}
		r := start(t, src, newSink(t), &reflector.Options{Backoff: exact})
		after(90 * time.Second)
		wantAll(t, "gaps", src.gaps(), time.Minute)
		want(t, "permanent", retry.IsPermanent(r.Status().Err), true)
		src.list, src.watch = one("5"), idle
		r.Relist("it was mended")
		after(0)
		want(t, "state", r.Status().State, reflector.Watching)
	})
}

// retry.Later is no failure, but is not asked again before.
func TestRule10_Later(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{list: func(context.Context, int, reflector.ListOptions) (page, error) {
			return page{}, retry.Later(7*time.Second, "not there yet")
		}}
		budget := retry.NewBudget(0, 0)
		r := start(t, src, newSink(t), &reflector.Options{Backoff: exact, Budget: budget})
		after(22 * time.Second)
		wantAll(t, "gaps", src.gaps(), 7*time.Second, 7*time.Second, 7*time.Second)
		want(t, "failures", r.Status().Failures, 0)
		if r.Status().Err == nil {
			t.Error("it is not shown")
		}
		begun := time.Now()
		if budget.Wait(t.Context()); time.Since(begun) != 0 {
			t.Error("others were paused")
		}
	})
	t.Run("never spins", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			src := &source{list: func(context.Context, int, reflector.ListOptions) (page, error) {
				return page{}, retry.Later(0, "now")
			}}
			start(t, src, newSink(t), &reflector.Options{Backoff: exact})
			after(10500 * time.Millisecond)
			want(t, "lists", len(src.lists), 11)
		})
	})
}

// The budget is asked before each page and each watch.
func TestBudget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Paged: true, SnapshotPages: true}, watch: idle}
		src.list = pages(page{Items: items("a=1"), Cursor: "5"}, page{Cursor: "5"}, page{Cursor: "5"})
		s := newSink(t)
		start(t, src, s, &reflector.Options{Budget: retry.NewBudget(0.1, 1)})
		after(time.Minute)
		wantAll(t, "gaps", src.gaps(), 10*time.Second, 10*time.Second, 10*time.Second)
		want(t, "holds", s.holds(), "a=1")
	})
}

func TestBackoffNeverOverflows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{list: func(context.Context, int, reflector.ListOptions) (page, error) {
			return page{}, retry.After(errBoom, math.MaxInt64)
		}}
		start(t, src, newSink(t), nil)
		after(24 * time.Hour)
		want(t, "lists", len(src.lists), 1)
	})
}
