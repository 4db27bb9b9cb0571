package reflector_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/homeostat/homeostat/reflector"
)

// follows is b as one that comes right after prev.
func follows(prev cursor, b batch) batch {
	b.Prev = prev
	return b
}

// R11: events carry (prev, rev), and the source loses one.
func TestR11_PrevShowsAGap(t *testing.T) {
	for _, c := range []struct {
		name   string
		powers powers
	}{
		{"order", powers{ResumeProven: true, Compare: compare}},
		{"no order", powers{ResumeProven: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := &source{powers: c.powers, list: func(_ context.Context, n int, _ reflector.ListOptions) (page, error) {
					if n == 1 {
						return page{Items: items("a=1"), Cursor: "e/10"}, nil
					}
					return page{Items: items("a=1", "b=11", "c=13", "d=12"), Cursor: "e/13"}, nil
				}}
				src.watch = script(
					ends(errBoom,
						follows("e/10", live("e/11", "b=11")),
						follows("e/12", live("e/13", "c=13"))), // d=12 was lost
					stay)
				s := newSink(t)
				r := start(t, src, s, &reflector.Options{Backoff: exact})
				after(time.Minute / 2)
				wantAll(t, "shown", s.shown(), "commit a=1 @e/10", "apply b=11 @e/11", "commit a=1 b=11 c=13 d=12 @e/13")
				want(t, "gaps", r.Status().Gaps, 1)
				want(t, "lists", len(src.lists), 2)
			})
		})
	}
}

// What follows is told as ever: also across a bookmark, a resumed watch, a full
// state in the stream, and a batch that begins before what is known.
func TestPrev_ThatFollowsIsNoGap(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true, Compare: compare}, list: one("e/10", "a=1")}
		src.watch = script(
			ends(errBoom,
				follows("e/10", live("e/11", "b=11")),
				follows("e/11", live("e/13")),
				follows("e/13", live("e/14", "b=14"))),
			func(ctx context.Context, o reflector.WatchOptions, yield yield) {
				play(ctx, o, yield,
					follows("e/12", live("e/15", "c=15")),
					follows("e/14", live("e/15", "c=15")), // told twice
					follows("e/15", live("e/16", "d=16")),
					whole("e/20", "a=20"),
					follows("e/20", live("e/21", "b=21")))
			})
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		after(time.Minute / 2)
		wantAll(t, "shown", s.shown(), "commit a=1 @e/10", "apply b=11 @e/11", "apply @e/13", "apply b=14 @e/14",
			"apply c=15 @e/15", "apply d=16 @e/16", "commit a=20 @e/20", "apply b=21 @e/21")
		want(t, "gaps", r.Status().Gaps, 0)
	})
}

// Decorators pass Prev on, and what they leave out opens no gap.
func TestPrev_BehindDecorators(t *testing.T) {
	src := &source{powers: powers{ResumeProven: true, Compare: compare}}
	src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
		play(ctx, o, yield, follows("e/10", live("e/11", "b=11")), follows("e/11", live("e/12", "c=12")))
	}
	keep := func(v string) bool { return v != "11" }
	up := func(v string) string { return v + "!" }
	var told []string
	for b, err := range reflector.Transform(reflector.Filter[string](src, keep), up).Watch(t.Context(), reflector.WatchOptions{After: "e/10"}) {
		want(t, "error", err, nil)
		told = append(told, fmt.Sprint(b.Prev, "<", b.Cursor))
		if b.Cursor == "e/12" {
			break
		}
	}
	wantAll(t, "told", told, "<e/10", "e/10<e/11", "e/11<e/12")
}

// A page list that waits for its watch (rule 5) is given up when that skips.
func TestPrev_GapWhileAListIsHeld(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true, Compare: compare, Paged: true}}
		src.list = func(_ context.Context, n int, o reflector.ListOptions) (page, error) {
			switch n {
			case 1:
				return page{Items: items("a=1"), Cursor: "e/10", Next: "2"}, nil
			case 2:
				return page{Items: items("b=1"), Cursor: "e/13"}, nil
			}
			return page{Items: items("a=12"), Cursor: "e/20"}, nil
		}
		src.watch = script(
			ends(errBoom, follows("e/12", live("e/13", "b=13"))), // a=12 was lost
			stay)
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact, PageSize: 1})
		after(time.Minute / 2)
		wantAll(t, "shown", s.shown(), "commit a=12 @e/20")
		want(t, "gaps", r.Status().Gaps, 1)
	})
}
