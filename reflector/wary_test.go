package reflector_test

import (
	"context"
	"testing"
	"time"

	"github.com/homeostat/homeostat/reflector"
)

// Rule 9: once the source was set back, equal versions prove nothing. The sink is
// told so before anything is staged, and once.
func TestDistrustAfterAReset(t *testing.T) {
	list := func(at ...cursor) *source {
		return &source{powers: powers{Compare: compare, ResumeProven: true}, list: seq(at...), watch: idle}
	}
	stream := func(whole bool, at ...cursor) *source {
		src := &source{powers: powers{Compare: compare, Initial: true}}
		src.watch = func(ctx context.Context, n int, o reflector.WatchOptions, yield yield) {
			c := at[min(n, len(at))-1]
			b := batch{Reset: true, Synced: true, Events: events("a=1", "b=1"), Cursor: c}
			if !whole {
				b = batch{Reset: true, Events: events("a=1")}
				if !yield(b, nil) {
					return
				}
				b = batch{Synced: true, Events: events("b=1"), Cursor: c}
			}
			if yield(b, nil) {
				<-ctx.Done()
			}
		}
		return src
	}
	for _, c := range []struct {
		name    string
		src     *source
		commits int // after the first
		wary    int
		calls   int // of List or Watch that it took, with the first
	}{
		{"list, later", list("e/10", "e/20"), 1, 0, 2},
		{"list, another epoch", list("e/10", "f/2"), 1, 1, 2},
		{"list, insisting on an older state", list("e/10", "e/5"), 1, 1, 0},
		{"stream in one batch", stream(true, "e/10", "f/2"), 1, 1, 2},
		{"stream", stream(false, "e/10", "f/2"), 1, 1, 3},
		{"stream, later", stream(false, "e/10", "e/11"), 1, 0, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSink(t)
				r := start(t, c.src, s, &reflector.Options{Session: -1, Audit: -1})
				after(0)
				want(t, "the first is trusted", s.wary, 0)
				r.Relist("test")
				after(5 * time.Minute)
				want(t, "commits", s.commits, 1+c.commits)
				want(t, "resets", r.Status().Resets, uint64(c.wary))
				if c.calls > 0 {
					lists, watches := c.src.calls()
					want(t, "calls", max(lists, watches), c.calls)
					want(t, "wary", s.wary, c.wary)
					want(t, "failures", r.Status().Failures, 0)
				}
				if c.wary > 0 && s.wary == 0 {
					t.Error("the sink was not told")
				}
				was := s.wary
				r.Relist("test")
				after(time.Minute)
				want(t, "wary of what came after", s.wary, was)
			})
		})
	}
}

// A reset that nobody can order is learned of from ErrFutureCursor alone, and streamed
// states are distrusted after it like listed ones.
func TestDistrustAfterAFutureCursor(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			src := &source{powers: powers{ResumeProven: true, Initial: streamed}}
			src.list = func(_ context.Context, n int, _ reflector.ListOptions) (page, error) {
				return page{Items: items("a=1"), Cursor: cursor([]string{"9", "3"}[min(n, 2)-1])}, nil
			}
			n := 0
			src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
				switch {
				case o.Initial:
					n++
					if yield(whole(cursor([]string{"9", "3"}[n-1]), "a=1"), nil) && n > 1 {
						<-ctx.Done()
					}
				case o.After == "9":
					yield(batch{}, reflector.ErrFutureCursor)
				default:
					idle(ctx, 0, o, yield)
				}
			}
			s := newSink(t)
			r := start(t, src, s, &reflector.Options{Backoff: exact})
			after(time.Minute)
			want(t, "resets", r.Status().Resets, 1)
			want(t, "cursor", r.Status().Cursor, "3")
			want(t, "wary", s.wary > 0, true)
		})
	}
}

// What is streamed in several batches is believed as soon as what comes in one.
func TestResetOfAStreamInParts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Compare: compare, Initial: true}}
		src.watch = func(ctx context.Context, n int, o reflector.WatchOptions, yield yield) {
			at := cursor("e/10")
			if n > 1 {
				at = "e/5"
			}
			if yield(batch{Reset: true, Events: events("a=1")}, nil) && yield(batch{Synced: true, Cursor: at}, nil) && n == 1 {
				<-ctx.Done()
			}
		}
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		after(0)
		r.Relist("test")
		after(100 * time.Second)
		want(t, "resets", r.Status().Resets, 1)
	})
}
