package reflector_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

// R32: who needs no newest state at the start is not kept waiting for it. What is
// listed later has to be the latest: who waits for a write waits for that.
func TestR32_AnyIsAskedForAtFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: resumable, list: one("e/10", "a=1"), watch: idle}
		r := start(t, src, newSink(t), &reflector.Options{Freshness: reflector.Any})
		after(0)
		want(t, "first", src.lists[0].Freshness, reflector.Any)
		r.Relist("test")
		after(0)
		want(t, "later", src.lists[1].Freshness, reflector.Latest)
		want(t, "synced", r.Status().Synced, true)
	})
}

// R06: no replica has what is asked for; one such answer is enough.
func TestR06_FallsBackToTheLatest(t *testing.T) {
	for name, no := range map[string]error{"expired": reflector.ErrExpired, "future": reflector.ErrFutureCursor} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := &source{powers: resumable, watch: idle}
				src.list = func(_ context.Context, _ int, o reflector.ListOptions) (page, error) {
					if o.Freshness == reflector.Any {
						return page{}, no
					}
					return page{Items: items("a=1"), Cursor: "e/10"}, nil
				}
				s := newSink(t)
				r := start(t, src, s, &reflector.Options{Freshness: reflector.Any, Backoff: exact})
				after(0)
				want(t, "lists", len(src.lists), 2)
				want(t, "holds", s.holds(), "a=1")
				want(t, "failures", r.Status().Failures, 0)
			})
		})
	}
}

func TestStopOnPermanent(t *testing.T) {
	for _, stop := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			denied := retry.Permanent(errors.New("denied"))
			src := &source{list: func(context.Context, int, reflector.ListOptions) (page, error) { return page{}, denied }}
			r := reflector.New[string](src, newSink(t), &reflector.Options{StopOnPermanent: stop})
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			err := r.Run(ctx)
			want(t, "stopped by it", errors.Is(err, denied), stop)
			want(t, "asked again", len(src.lists) > 1, !stop)
			want(t, "state", r.Status().State, reflector.Stopped)
		})
	}
}

func TestTrace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var told []string
		note := func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
		src := &source{powers: powers{ResumeProven: true, Compare: compare, Paged: true, SnapshotPages: true}}
		src.list = func(_ context.Context, n int, o reflector.ListOptions) (page, error) {
			time.Sleep(time.Second)
			switch {
			case n == 1:
				return page{}, errBoom
			case o.Page == "":
				return page{Items: items("a=1", "b=1"), Cursor: "e/10", Next: "2"}, nil
			}
			return page{Items: items("c=1"), Cursor: "e/10"}, nil
		}
		src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
			play(ctx, o, yield, live("e/11", "a=11", "b=11"))
		}
		s := newSink(t)
		s.onApply = func(batch) error { time.Sleep(time.Second / 2); return nil }
		start(t, src, s, &reflector.Options{Backoff: exact, Trace: &reflector.Trace{
			State: func(from, to reflector.State) { note("%v > %v", from, to) },
			Listed: func(pages, items int, took time.Duration, err error) {
				note("listed %d, %d, %v, %v", pages, items, took, err)
			},
			Batch:  func(events int, took time.Duration) { note("batch %d, %v", events, took) },
			Full:   func(why object.Cause, d reflector.Diff) { note("full %v %+v", why, d) },
			Failed: func(err error, n int) { note("failed %v, %d", err, n) },
		}})
		after(time.Minute)
		wantAll(t, "told", told,
			"starting > listing", "listed 0, 0, 1s, boom", "listing > backing off", "failed boom, 1", "backing off > listing",
			"listed 2, 3, 2s, <nil>", "full initial {Puts:3 Deletes:0 Of:0 Gone:0}", "listing > opening", "opening > watching", "batch 2, 500ms")
	})
}

// A function that panics harms nobody.
func TestTraceThatPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: resumable, list: one("e/10", "a=1"), watch: idle}
		var log bytes.Buffer
		r := start(t, src, newSink(t), &reflector.Options{Logger: logger(&log), Trace: &reflector.Trace{
			State: func(_, to reflector.State) { panic(to) },
			Full:  func(object.Cause, reflector.Diff) { panic("full") },
		}})
		after(0)
		want(t, "state", r.Status().State, reflector.Watching)
		want(t, "failures", r.Status().Failures, 0)
		if !strings.Contains(log.String(), "a function of Trace panicked") {
			t.Error("nothing was logged")
		}
	})
}
