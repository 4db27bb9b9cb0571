package reflector_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/homeostat/homeostat/reflector"
)

// pages answers lists from pages, whose tokens are their numbers.
func pages(ps ...page) func(context.Context, int, reflector.ListOptions) (page, error) {
	return func(_ context.Context, _ int, o reflector.ListOptions) (page, error) {
		n := 0
		if o.Page != "" {
			fmt.Sscan(string(o.Page), &n)
		}
		p := ps[n]
		if n < len(ps)-1 {
			p.Next = reflector.PageToken(fmt.Sprint(n + 1))
		}
		return p, nil
	}
}

// R17: the watch begins at the list's cursor, whatever the objects' versions.
func TestR17_WatchBeginsAtTheListsCursor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{list: one("50", "a=3", "b=10"), watch: idle}
		s := newSink(t)
		r := start(t, src, s, nil)
		after(time.Second)
		wantAll(t, "watches", src.afters(), "50")
		wantAll(t, "log", s.lines(), "begin", "commit a=3 b=10 @50", "begin")
		st := r.Status()
		want(t, "state", st.State, reflector.Watching)
		want(t, "cursor", st.Cursor, "50")
		want(t, "synced", st.Synced, true)
		want(t, "lists", st.Lists, 1)
		want(t, "watches", st.Watches, 1)
		want(t, "err", st.Err, nil)
	})
}

func TestListAsksForPages(t *testing.T) {
	for _, c := range []struct {
		name     string
		paged    bool
		pageSize int
		want     int
	}{
		{"default", true, 0, 500},
		{"given", true, 7, 7},
		{"one page", true, -1, 0},
		{"the source has none", false, 7, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := &source{list: pages(page{Items: items("a=1"), Cursor: "5"}, page{Cursor: "5"}, page{Items: items("b=2"), Cursor: "5"}), watch: idle}
				src.powers = powers{Paged: c.paged, SnapshotPages: true}
				s := newSink(t)
				start(t, src, s, &reflector.Options{PageSize: c.pageSize})
				after(time.Second)
				want(t, "lists", len(src.lists), 3)
				for i, o := range src.lists {
					want(t, "limit", o.Limit, c.want)
					want(t, "freshness", o.Freshness, reflector.Latest)
					if tokens := []reflector.PageToken{"", "1", "2"}; o.Page != tokens[i] {
						t.Errorf("call %d asked for page %q", i, o.Page)
					}
				}
				want(t, "holds", s.holds(), "a=1 b=2")
			})
		})
	}
}

// R23, G9: a list that fails on a later page shows nothing and deletes nothing;
// an expired token begins it anew.
func TestR23_G9_PartialListNeverShows(t *testing.T) {
	for _, fail := range []error{reflector.ErrExpired, errBoom} {
		t.Run(fail.Error(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				good := pages(page{Items: items("a=1"), Cursor: "9"}, page{Items: items("b=1"), Cursor: "9"}, page{Items: items("c=1"), Cursor: "9"})
				src := &source{watch: idle, powers: powers{Paged: true, SnapshotPages: true}}
				broken := false
				src.list = func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
					if broken && o.Page == "1" {
						broken = false
						return page{Items: items("x=1")}, fail
					}
					return good(ctx, n, o)
				}
				s := newSink(t)
				r := start(t, src, s, &reflector.Options{Backoff: exact})
				after(time.Second)
				s.onShow = func(state map[string]item, _ string) {
					if len(state) != 3 {
						t.Errorf("shown: %v", state)
					}
				}
				broken = true
				r.Relist("test")
				after(500 * time.Millisecond)
				st := r.Status()
				want(t, "state", st.State, reflector.BackingOff)
				wantErr(t, "err", st.Err, fail)
				want(t, "lists", st.Lists, 5)
				after(time.Second)
				want(t, "lists", r.Status().Lists, 8)
				want(t, "err", r.Status().Err, nil)
				want(t, "commits", s.commits, 2)
				want(t, "holds", s.holds(), "a=1 b=1 c=1")
			})
		})
	}
}

// A source whose page tokens die before a list of many pages is through gets
// asked for one page.
func TestExpiringTokensEndInOnePage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{watch: idle, powers: powers{Paged: true, SnapshotPages: true}}
		src.list = func(_ context.Context, _ int, o reflector.ListOptions) (page, error) {
			switch {
			case o.Page != "":
				return page{}, reflector.ErrExpired
			case o.Limit > 0:
				return page{Items: items("a=1"), Cursor: "5", Next: "1"}, nil
			}
			return page{Items: items("a=1", "b=1"), Cursor: "5"}, nil
		}
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		after(10 * time.Second)
		want(t, "holds", s.holds(), "a=1 b=1")
		want(t, "lists", len(src.lists), 5)
		// It worked, so pages are asked for again.
		r.Relist("test")
		after(20 * time.Second)
		want(t, "limit", src.lists[5].Limit, 500)
		want(t, "lists", len(src.lists), 10)
	})
}

// That a first page is refused says nothing about tokens.
func TestExpiredFirstPageKeepsPages(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{watch: idle, powers: powers{Paged: true, SnapshotPages: true}}
		src.list = func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
			if n < 4 {
				return page{}, reflector.ErrExpired
			}
			return one("5")(ctx, n, o)
		}
		start(t, src, newSink(t), &reflector.Options{Backoff: exact})
		after(10 * time.Second)
		want(t, "limit", src.lists[3].Limit, 500)
	})
}

func TestPageThatFollowsItself(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{watch: idle, powers: powers{SnapshotPages: true}}
		src.list = func(context.Context, int, reflector.ListOptions) (page, error) {
			return page{Items: items("a=1"), Cursor: "5", Next: "again"}, nil
		}
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		after(time.Second / 2)
		want(t, "lists", len(src.lists), 2)
		wantErr(t, "err", r.Status().Err, reflector.ErrContract)
		wantAll(t, "shown", s.shown())
	})
}

// Rule 5: pages of different states become one before anybody sees them.
func TestRule5_PagesOfDifferentStates(t *testing.T) {
	different := pages(
		page{Items: items("a=1", "b=1"), Cursor: "e/10"},
		page{Items: items("c=12"), Cursor: "e/12"},
		page{Items: items("d=11"), Cursor: "e/11"},
	)
	for _, c := range []struct {
		name  string
		snap  bool
		lists int
	}{
		{"told by the powers", false, 3},
		{"a surprise: listed again, held back", true, 2 + 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := &source{list: different, powers: powers{Paged: true, SnapshotPages: c.snap, Compare: compare}}
				src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
					if !yield(batch{Cursor: o.After}, nil) {
						return
					}
					time.Sleep(time.Second)
					if !yield(live("e/11", "d=11", "-b"), nil) {
						return
					}
					time.Sleep(time.Second)
					if !yield(live("e/13", "c=13"), nil) {
						return
					}
					yield(live("e/14", "a=14"), nil)
					<-ctx.Done()
				}
				s := newSink(t)
				r := start(t, src, s, nil)
				after(1500 * time.Millisecond)
				wantAll(t, "watch begins at the first page's", src.afters(), "e/10")
				want(t, "state", r.Status().State, reflector.Streaming)
				want(t, "cursor", r.Status().Cursor, "")
				wantAll(t, "shown before the last page is passed", s.shown())
				after(time.Second)
				wantAll(t, "shown", s.shown(), "commit a=1 c=13 d=11 @e/13", "apply a=14 @e/14")
				wantAll(t, "begun once before the list", s.lines()[len(s.lines())-4:], "begin", "commit a=1 c=13 d=11 @e/13", "begin", "apply a=14 @e/14")
				want(t, "lists", len(src.lists), c.lists)
				want(t, "torn", r.Status().Torn, false)
				want(t, "failures", r.Status().Failures, 0)
				want(t, "state", r.Status().State, reflector.Watching)
				if !c.snap {
					return
				}
				// It was a surprise, not the rule: the next list goes page by page.
				var sizes []int
				s.onStage = func(items []item) error { sizes = append(sizes, len(items)); return nil }
				src.list = pages(page{Items: items("a=1", "b=1"), Cursor: "e/20"}, page{Items: items("c=1"), Cursor: "e/20"})
				r.Relist("test")
				after(0)
				wantAll(t, "staged", sizes, 2, 1)
			})
		})
	}
}

func TestRule5_PagesOfOneStateAreShownAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Paged: true, Compare: compare}, watch: idle}
		src.list = pages(page{Items: items("a=1"), Cursor: "e/10"}, page{Items: items("b=1"), Cursor: "e/10"})
		s := newSink(t)
		r := start(t, src, s, nil)
		after(0)
		wantAll(t, "shown", s.shown(), "commit a=1 b=1 @e/10")
		want(t, "torn", r.Status().Torn, false)
	})
}

// A list in one page is held back by nothing.
func TestRule5_OnePageIsNotHeld(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var kv []string
		for i := range 600 {
			kv = append(kv, fmt.Sprintf("k%d=1", i))
		}
		src := &source{powers: powers{Paged: true, Compare: compare}, list: one("e/5", kv...), watch: idle}
		s := newSink(t)
		var sizes []int
		s.onStage = func(items []item) error { sizes = append(sizes, len(items)); return nil }
		start(t, src, s, nil)
		after(0)
		wantAll(t, "staged", sizes, 600)
	})
}

// Without an order to wait by, the list is shown at once and Status says so.
func TestRule5_WeakerPromiseIsTold(t *testing.T) {
	for _, c := range []struct {
		name   string
		powers powers
		second cursor
		first  cursor
		torn   bool
	}{
		{"no order, no snapshot", powers{Paged: true}, "5", "5", true},
		{"no order, snapshot", powers{Paged: true, SnapshotPages: true}, "5", "5", false},
		{"no order, snapshot, other cursor", powers{Paged: true, SnapshotPages: true}, "6", "5", true},
		{"no cursors, no snapshot", powers{Paged: true, Compare: compare}, "", "", true},
		{"no cursors, snapshot", powers{Paged: true, Compare: compare, SnapshotPages: true}, "", "", false},
		{"order, snapshot", powers{Paged: true, SnapshotPages: true, Compare: compare}, "5", "5", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := &source{powers: c.powers, watch: idle}
				src.list = pages(page{Items: items("a=1"), Cursor: c.first}, page{Items: items("b=1"), Cursor: c.second})
				s := newSink(t)
				r := start(t, src, s, nil)
				after(0)
				wantAll(t, "shown", s.shown(), "commit a=1 b=1 @"+string(c.first))
				want(t, "torn", r.Status().Torn, c.torn)
				// A list in one page is none of that.
				src.list = one("7", "a=1")
				r.Relist("test")
				after(2 * time.Minute)
				want(t, "torn", r.Status().Torn, false)
				want(t, "fallback", r.Status().Fallback, nil)
			})
		})
	}
}

// A full state that is streamed is not torn.
func TestRule5_TornEndsWithAStreamedState(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Paged: true}, list: pages(page{Cursor: "5"}, page{Cursor: "6"})}
		src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
			yield(batch{Cursor: o.After}, nil)
			nap(ctx, time.Minute)
			if yield(whole("7", "a=1"), nil) {
				<-ctx.Done()
			}
		}
		r := start(t, src, newSink(t), nil)
		after(time.Second)
		want(t, "torn", r.Status().Torn, true)
		after(time.Minute)
		want(t, "torn", r.Status().Torn, false)
	})
}

func TestRule5_PagesThatCannotBeJoined(t *testing.T) {
	for _, c := range []struct {
		name   string
		second cursor
		err    error
	}{
		{"older than the first", "e/9", reflector.ErrFutureCursor},
		{"of another epoch", "f/10", reflector.ErrExpired},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := &source{powers: powers{Paged: true, Compare: compare}, watch: idle}
				src.list = pages(page{Items: items("a=1"), Cursor: "e/10"}, page{Items: items("b=1"), Cursor: c.second})
				s := newSink(t)
				r := start(t, src, s, &reflector.Options{Backoff: exact})
				after(time.Second / 2)
				wantErr(t, "err", r.Status().Err, c.err)
				wantAll(t, "shown", s.shown())
				want(t, "failures", r.Status().Failures, 1)
				src.list = one("e/10", "a=1")
				after(time.Second)
				want(t, "holds", s.holds(), "a=1")
			})
		})
	}
}

// What waits for the watch is given up when that breaks, and listed again.
func TestRule5_BreakWhileWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Paged: true, Compare: compare, ResumeProven: true}}
		src.list = pages(page{Items: items("a=1"), Cursor: "e/10"}, page{Items: items("b=1"), Cursor: "e/12"})
		src.watch = func(ctx context.Context, n int, o reflector.WatchOptions, yield yield) {
			switch {
			case !yield(batch{Cursor: o.After}, nil):
			case n == 1:
				if yield(live("e/11", "c=11"), nil) {
					yield(batch{}, errBoom)
				}
			case n == 2: // another epoch
				yield(batch{Cursor: "f/1"}, nil)
			case n == 3: // a full state instead
				if yield(whole("e/20", "z=1"), nil) && yield(live("e/21", "y=1"), nil) {
					<-ctx.Done()
				}
			}
		}
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		after(time.Second / 2)
		wantErr(t, "err", r.Status().Err, errBoom)
		after(time.Second)
		wantErr(t, "err", r.Status().Err, reflector.ErrExpired)
		want(t, "lists", len(src.lists), 4)
		wantAll(t, "shown", s.shown())
		after(10 * time.Second)
		wantAll(t, "shown", s.shown(), "commit z=1 @e/20", "apply y=1 @e/21")
		wantAll(t, "watches", src.afters(), "e/10", "e/10", "e/10")
	})
}

// The wait of rule 5 is bounded.
func TestRule5_SilenceWhileWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Paged: true, Compare: compare}, watch: idle}
		src.list = pages(page{Items: items("a=1"), Cursor: "e/10"}, page{Items: items("b=1"), Cursor: "e/12"})
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact, Open: 8 * time.Second})
		after(7 * time.Second)
		want(t, "missed", r.Status().Missed, 0)
		after(2500 * time.Millisecond)
		want(t, "missed", r.Status().Missed, 1)
		want(t, "state", r.Status().State, reflector.BackingOff)
		wantAll(t, "shown", s.shown())
	})
}

// But as long as the watch comes nearer it may take its time.
func TestRule5_ProgressWhileWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Paged: true, Compare: compare}}
		src.list = pages(page{Items: items("a=1"), Cursor: "e/10"}, page{Items: items("b=1"), Cursor: "e/15"})
		src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
			yield(batch{Cursor: o.After}, nil)
			for _, at := range []cursor{"e/11", "e/12", "e/13", "e/14", "e/15"} {
				nap(ctx, 6*time.Second)
				if !yield(batch{Cursor: at}, nil) {
					return
				}
			}
			<-ctx.Done()
		}
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Open: 8 * time.Second})
		after(31 * time.Second)
		wantAll(t, "shown", s.shown(), "commit a=1 b=1 @e/15")
		want(t, "missed", r.Status().Missed, 0)
	})
}

// An old replay does not undo what a page already shows.
func TestRule5_ReplayWhileWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Paged: true, Compare: compare}}
		src.list = pages(page{Items: items("a=10"), Cursor: "e/10"}, page{Items: items("b=12"), Cursor: "e/12"})
		src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
			play(ctx, o, yield, live("e/9", "a=9"), live("e/10", "-a"), live("e/12", "b=12"))
		}
		s := newSink(t)
		r := start(t, src, s, nil)
		after(0)
		wantAll(t, "shown", s.shown(), "commit a=10 b=12 @e/12")
		want(t, "replays", r.Status().Replays, 2)
	})
}

// R28, R29, G9: while a list fails or hangs, readers keep what they had.
func TestR28_R29_G9_FailureIsNotEmptiness(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{watch: idle}
		gate := make(chan struct{})
		src.list = func(ctx context.Context, n int, _ reflector.ListOptions) (page, error) {
			switch n {
			case 2:
				return page{}, context.DeadlineExceeded
			case 3:
				<-gate
			}
			return page{Items: items("a=1", "b=1"), Cursor: "5"}, nil
		}
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		after(0)
		alive := r.Status().Alive
		r.Relist("test")
		after(time.Second / 2)
		wantErr(t, "err", r.Status().Err, context.DeadlineExceeded)
		want(t, "holds", s.holds(), "a=1 b=1")
		after(time.Hour)
		want(t, "state", r.Status().State, reflector.Listing)
		want(t, "alive", r.Status().Alive, alive)
		want(t, "holds", s.holds(), "a=1 b=1")
		close(gate)
		after(0)
		want(t, "state", r.Status().State, reflector.Watching)
		wantAll(t, "shown", s.shown(), "commit a=1 b=1 @5", "commit a=1 b=1 @5")
	})
}

// A list may find everything as it was, but only if that reached the sink.
func TestListNotModified(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true}}
		src.list = func(_ context.Context, n int, _ reflector.ListOptions) (page, error) {
			if n == 1 {
				return page{Items: items("a=1"), Cursor: "5"}, nil
			}
			return page{}, fmt.Errorf("304: %w", reflector.ErrNotModified)
		}
		next := make(chan batch)
		src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
			if !yield(batch{Cursor: o.After}, nil) {
				return
			}
			for {
				select {
				case b := <-next:
					if !yield(b, nil) {
						return
					}
				case <-ctx.Done():
					return
				}
			}
		}
		s := newSink(t)
		fail := errBoom
		s.onCommit = func(cursor) error { return fail }
		r := start(t, src, s, &reflector.Options{Backoff: retrySecond})
		after(time.Second / 2)
		wantErr(t, "the first list did not reach the sink", r.Status().Err, errBoom)
		after(time.Second)
		wantErr(t, "so that nothing is known of it", r.Status().Err, reflector.ErrNotModified)
		if !strings.Contains(r.Status().Err.Error(), "did not reach the sink") {
			t.Errorf("err: %v", r.Status().Err)
		}
		fail = nil
		src.lists = nil
		after(time.Second)
		wantAll(t, "shown", s.shown(), "commit a=1 @5")
		r.Relist("test")
		after(0)
		want(t, "err", r.Status().Err, nil)
		want(t, "state", r.Status().State, reflector.Watching)
		wantAll(t, "nothing is shown anew", s.shown(), "commit a=1 @5")
		want(t, "the sink heard that nothing changed", s.same, 1)
		wantAll(t, "watches", src.afters(), "5", "5")
		// A list that the sink refused is not "as it was" for the sink.
		src.mu.Lock()
		src.lists = nil
		src.mu.Unlock()
		fail = errBoom
		r.Relist("test")
		after(time.Second / 2)
		fail = nil
		after(time.Second)
		wantErr(t, "err", r.Status().Err, reflector.ErrNotModified)
		src.mu.Lock()
		src.lists = nil
		src.mu.Unlock()
		after(time.Second)
		wantAll(t, "shown", s.shown(), "commit a=1 @5", "commit a=1 @5")
		// Once the watch changed the sink, "as it was" is not enough.
		next <- live("6", "b=6")
		r.Relist("test")
		after(time.Second / 2)
		wantErr(t, "err", r.Status().Err, reflector.ErrNotModified)
		want(t, "holds", s.holds(), "a=1 b=6")
		if errors.Is(r.Status().Err, reflector.ErrContract) {
			t.Error("that is no fault of the source")
		}
	})
}

// Pages that lead back to one another are no list.
func TestPagesInACircle(t *testing.T) {
	circle := func(_ context.Context, _ int, o reflector.ListOptions) (page, error) {
		next := map[reflector.PageToken]reflector.PageToken{"": "1", "1": "2", "2": "3", "3": "1"}
		return page{Items: items("a=1"), Cursor: "5", Next: next[o.Page]}, nil
	}
	for name, wrap := range map[string]func(*source) reflector.ListWatcher[string]{
		"list": func(src *source) reflector.ListWatcher[string] { return src },
		"hint": func(src *source) reflector.ListWatcher[string] {
			return reflector.Hint(src, newStore().subscribe)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := &source{powers: powers{Paged: true, SnapshotPages: true}}
				src.list = func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
					if n > 100 {
						return page{}, errBoom
					}
					return circle(ctx, n, o)
				}
				r := start(t, wrap(src), newSink(t), &reflector.Options{Backoff: exact})
				after(0)
				wantErr(t, "err", r.Status().Err, reflector.ErrContract)
				lists, _ := src.calls()
				want(t, "lists", lists, 4)
			})
		})
	}
}
