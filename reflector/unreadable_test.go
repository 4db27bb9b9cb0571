package reflector_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/homeostat/homeostat/reflector"
)

func fault(key string) reflector.Fault {
	return reflector.Fault{Key: key, Version: "9", Err: errBoom}
}

// unreadable lists what Status says cannot be read.
func unreadable(r *reflector.Reflector[string]) string {
	return fmt.Sprint(slices.Sorted(maps.Keys(r.Status().Unreadable)))
}

// An object that cannot be decoded neither ends anything nor is passed over: its
// last good state stays, and it is named.
func TestR02_UnreadableObjects(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true, Compare: compare}}
		src.list = func(_ context.Context, n int, _ reflector.ListOptions) (page, error) {
			if n == 1 {
				return page{Items: items("a=1", "b=1"), Faults: []reflector.Fault{fault("c")}, Cursor: "e/10"}, nil
			}
			// a cannot be read either now, b is gone, c is well.
			return page{Items: items("c=2"), Faults: []reflector.Fault{fault("a")}, Cursor: "e/20"}, nil
		}
		tell := make(chan batch)
		src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
			for b := live(o.After); yield(b, nil); {
				select {
				case b = <-tell:
				case <-ctx.Done():
					return
				}
			}
		}
		s := newSink(t)
		r := start(t, src, s, nil)
		after(0)
		want(t, "holds", s.holds(), "a=1 b=1")
		want(t, "unreadable", unreadable(r), "[c]")
		wantErr(t, "why", r.Status().Unreadable["c"], errBoom)

		tell <- batch{Events: events("b=11"), Faults: []reflector.Fault{fault("a")}, Cursor: "e/11"}
		after(0)
		want(t, "holds", s.holds(), "a=1 b=11")
		want(t, "unreadable", unreadable(r), "[a c]")
		tell <- batch{Faults: []reflector.Fault{fault("b")}, Cursor: "e/12"}
		tell <- live("e/13", "a=13", "-c")
		after(0)
		want(t, "holds", s.holds(), "a=13 b=11")
		want(t, "unreadable", unreadable(r), "[b]")
		want(t, "failures", r.Status().Failures, 0)

		r.Relist("test")
		after(0)
		want(t, "holds", s.holds(), "a=13 c=2")
		want(t, "unreadable", unreadable(r), "[a]")
		tell <- live("e/21", "-a")
		after(0)
		want(t, "unreadable", unreadable(r), "[]")
		want(t, "state", r.Status().State, reflector.Watching)
	})
}

// Within a full state that is streamed, what is told last counts.
func TestUnreadableInAStream(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Initial: true, Compare: compare}, watch: func(ctx context.Context, _ int, _ reflector.WatchOptions, yield yield) {
			_ = yield(batch{Reset: true, Events: events("a=1", "b=1"), Faults: []reflector.Fault{fault("c"), fault("d"), fault("e")}}, nil) &&
				yield(batch{Faults: []reflector.Fault{fault("b")}}, nil) &&
				yield(batch{Synced: true, Events: events("c=2", "-d"), Cursor: "e/10"}, nil)
			<-ctx.Done()
		}}
		s := newSink(t)
		r := start(t, src, s, nil)
		after(0)
		want(t, "holds", s.holds(), "a=1 c=2")
		want(t, "unreadable", unreadable(r), "[b e]")
	})
}

// Rule 5: also in pages that are held until the watch has passed them.
func TestUnreadableInPagesThatAreHeld(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true, Compare: compare, Paged: true}}
		src.list = func(_ context.Context, _ int, o reflector.ListOptions) (page, error) {
			if o.Page == "" {
				return page{Items: items("a=1", "b=1"), Faults: []reflector.Fault{fault("c"), fault("d")}, Cursor: "e/10", Next: "2"}, nil
			}
			return page{Items: items("z=1"), Cursor: "e/12"}, nil
		}
		src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
			play(ctx, o, yield, batch{Events: events("c=11"), Faults: []reflector.Fault{fault("b")}, Cursor: "e/11"}, live("e/12"))
		}
		s := newSink(t)
		r := start(t, src, s, nil)
		after(0)
		want(t, "holds", s.holds(), "a=1 c=11 z=1")
		want(t, "unreadable", unreadable(r), "[b d]")
	})
}

// Strict: nothing is set aside.
func TestStrict(t *testing.T) {
	for name, src := range map[string]*source{
		"list": {list: func(_ context.Context, n int, _ reflector.ListOptions) (page, error) {
			if n == 1 {
				return page{Faults: []reflector.Fault{fault("a"), fault("b")}, Cursor: "e/1"}, nil
			}
			return page{Items: items("a=1"), Cursor: "e/1"}, nil
		}, watch: idle},
		"watch": {list: one("e/1", "a=1"), watch: script(ends(errNever, batch{Faults: []reflector.Fault{fault("a"), fault("b")}, Cursor: "e/2"}), stay)},
		"stream": {powers: powers{Initial: true}, watch: func(ctx context.Context, n int, _ reflector.WatchOptions, yield yield) {
			b := whole("e/1", "a=1")
			if n == 1 {
				b.Faults = []reflector.Fault{fault("a"), fault("b")}
			}
			if yield(b, nil) {
				<-ctx.Done()
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, src, newSink(t), &reflector.Options{Backoff: exact, Strict: true})
				after(0)
				wantErr(t, "err", r.Status().Err, reflector.ErrUnreadable)
				wantErr(t, "cause", r.Status().Err, errBoom)
				want(t, "text", r.Status().Err.Error(), `reflector: an object cannot be read: key "a" at version "9", and 1 others: boom`)
				after(time.Second)
				want(t, "state", r.Status().State, reflector.Watching)
				want(t, "unreadable", unreadable(r), "[]")
			})
		})
	}
}

var errNever = fmt.Errorf("never told")

// Of an object that one page cannot read and a later one can, the later counts.
func TestUnreadableThatALaterPageCanRead(t *testing.T) {
	for _, p := range []powers{{Paged: true, SnapshotPages: true, Compare: compare}, {Paged: true}, {Paged: true, Compare: compare}} {
		bubble(t, func(t *testing.T) {
			src := &source{powers: p, watch: idle}
			src.list = func(_ context.Context, _ int, o reflector.ListOptions) (page, error) {
				if o.Page == "" {
					return page{Items: items("a=1"), Faults: []reflector.Fault{fault("b")}, Cursor: "e/10", Next: "2"}, nil
				}
				return page{Items: items("b=2"), Cursor: "e/10"}, nil
			}
			s := newSink(t)
			r := start(t, src, s, nil)
			after(0)
			want(t, "holds", s.holds(), "a=1 b=2")
			want(t, "unreadable", unreadable(r), "[]")
		})
	}
}
