package reflector_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/homeostat/homeostat/reflector"
)

// script makes a watch of functions, one per session; the last one repeats.
func script(steps ...func(ctx context.Context, o reflector.WatchOptions, yield yield)) func(context.Context, int, reflector.WatchOptions, yield) {
	return func(ctx context.Context, n int, o reflector.WatchOptions, yield yield) {
		steps[min(n, len(steps))-1](ctx, o, yield)
	}
}

func stay(ctx context.Context, o reflector.WatchOptions, yield yield) { idle(ctx, 0, o, yield) }

// ends opens, yields the batches and ends with err, or plainly.
func ends(err error, bs ...batch) func(context.Context, reflector.WatchOptions, yield) {
	return func(_ context.Context, o reflector.WatchOptions, yield yield) {
		if !yield(batch{Cursor: o.After}, nil) {
			return
		}
		for _, b := range bs {
			if !yield(b, nil) {
				return
			}
		}
		if err != nil {
			yield(batch{}, err)
		}
	}
}

func fails(err error) func(context.Context, reflector.WatchOptions, yield) {
	return func(_ context.Context, _ reflector.WatchOptions, yield yield) { yield(batch{}, err) }
}

// R05, R10: wherever a source says that history is gone, one full state follows
// and the watch goes on from there. What was deleted meanwhile goes.
func TestR05_R10_ExpiredOnEveryPath(t *testing.T) {
	for _, gone := range []error{reflector.ErrExpired, fmt.Errorf("410: %w", reflector.ErrExpired), reflector.ErrFutureCursor} {
		old := func(context.Context, int, reflector.ListOptions) (page, error) {
			return page{Items: items("a=1", "b=1"), Cursor: "10"}, nil
		}
		paths := []struct {
			name    string
			list    func(context.Context, int, reflector.ListOptions) (page, error)
			watch   func(context.Context, int, reflector.WatchOptions, yield)
			lists   int // calls that answered the old way or failed
			watches []cursor
		}{
			{"list", func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
				if n == 1 {
					return page{}, gone
				}
				return one("60", "a=2")(ctx, n, o)
			}, idle, 1, []cursor{"60"}},
			{"later page", func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
				switch n {
				case 1:
					return page{Items: items("b=1"), Cursor: "10", Next: "1"}, nil
				case 2:
					return page{}, gone
				}
				return one("60", "a=2")(ctx, n, o)
			}, idle, 2, []cursor{"60"}},
			{"opening a watch", func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
				if n == 1 {
					return old(ctx, n, o)
				}
				return one("60", "a=2")(ctx, n, o)
			}, script(fails(gone), stay), 1, []cursor{"10", "60"}},
			{"resuming a watch", func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
				if n == 1 {
					return old(ctx, n, o)
				}
				return one("60", "a=2")(ctx, n, o)
			}, script(ends(errBoom), fails(gone), stay), 1, []cursor{"10", "10", "60"}},
			{"in the stream", func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
				if n == 1 {
					return old(ctx, n, o)
				}
				return one("60", "a=2")(ctx, n, o)
			}, script(ends(gone, live("20", "a=2")), stay), 1, []cursor{"10", "60"}},
		}
		for _, c := range paths {
			t.Run(fmt.Sprintf("%v/%s", gone, c.name), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					src := &source{powers: powers{ResumeProven: true, Paged: true, SnapshotPages: true}, list: c.list, watch: c.watch}
					s := newSink(t)
					r := start(t, src, s, &reflector.Options{Backoff: exact})
					after(5 * time.Minute)
					want(t, "lists", len(src.lists), c.lists+1)
					wantAll(t, "watches", src.afters()[:len(c.watches)], c.watches...)
					want(t, "holds", s.holds(), "a=2")
					want(t, "cursor", r.Status().Cursor, "60")
					want(t, "err", r.Status().Err, nil)
				})
			})
		}
	}
}

// R06: a full state asks for the latest, never for "not older than", so that no
// expired or future cursor can stand in its way.
func TestR06_ListsAskForTheLatestOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true}}
		src.list = func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
			if o.NotBefore != "" {
				return page{}, reflector.ErrExpired
			}
			return one(cursor(fmt.Sprint(100*n)), "a=1")(ctx, n, o)
		}
		src.watch = script(ends(reflector.ErrExpired), stay)
		start(t, src, newSink(t), nil)
		after(time.Minute)
		wantAll(t, "watches", src.afters(), "100", "200")
		for _, o := range src.lists {
			want(t, "freshness", o.Freshness, reflector.Latest)
		}
	})
}

// R16, R18, R19, R30: only data and bookmarks move the cursor; a session that is
// lost is resumed there, and nothing is listed.
func TestR16_R18_R19_R30_ResumesWhereItStood(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true, Compare: compare}, list: one("e/10", "a=1")}
		src.watch = script(
			ends(errBoom), // R30: before anything came
			ends(errBoom, live("e/12", "b=1"), batch{}),              // data
			ends(nil, batch{Cursor: "e/20"}),                         // R18: a bookmark
			ends(errBoom, batch{Cursor: "e/20"}),                     // no move
			fails(errBoom),                                           // not open at all
			ends(errBoom, batch{Cursor: "e/21"}, live("e/22", "-a")), // both
			stay)
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		after(30 * time.Minute)
		want(t, "cursor", r.Status().Cursor, "e/22")
		wantAll(t, "watches", src.afters()[:7], "e/10", "e/10", "e/12", "e/20", "e/20", "e/20", "e/22")
		want(t, "lists", len(src.lists), 1)
		wantAll(t, "shown", s.shown(), "commit a=1 @e/10", "apply b=1 @e/12", "apply @e/20", "apply @e/21", "apply -a @e/22")
	})
}

// R30: the first batch may stand further on than was asked for.
func TestR30_EstablishmentMovesTheCursor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true}, list: one("10")}
		src.watch = script(func(_ context.Context, _ reflector.WatchOptions, yield yield) {
			yield(batch{Cursor: "15"}, nil)
		}, stay)
		s := newSink(t)
		start(t, src, s, &reflector.Options{Backoff: exact})
		after(10 * time.Second)
		wantAll(t, "watches", src.afters(), "10", "15")
		wantAll(t, "shown", s.shown(), "commit @10", "apply @15")
	})
}

func TestNotProvenIsNotResumed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{list: func(_ context.Context, n int, _ reflector.ListOptions) (page, error) {
			return page{Items: items("a=1"), Cursor: cursor(fmt.Sprint(n))}, nil
		}}
		src.watch = script(ends(errBoom, live("9", "b=1")), ends(nil), fails(errBoom), stay)
		s := newSink(t)
		start(t, src, s, &reflector.Options{Backoff: exact})
		after(time.Minute)
		wantAll(t, "watches", src.afters(), "1", "2", "3", "4")
		want(t, "holds", s.holds(), "a=1")
	})
}

// G2: after changes without a position, resuming would tell them again, older
// ones after newer ones.
func TestG2_ChangesWithoutAPositionAreNotResumed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true}, list: one("10", "a=1")}
		src.watch = script(
			ends(errBoom, live("", "a=11")),
			ends(errBoom, live("", "a=11"), batch{Cursor: "12"}), // a bookmark after them
			ends(errBoom, live("", "a=13"), live("14", "a=14")),
			ends(errBoom, live("", "a=15"), whole("20", "a=20")),
			stay)
		s := newSink(t)
		start(t, src, s, &reflector.Options{Backoff: exact})
		after(time.Minute)
		wantAll(t, "watches", src.afters(), "10", "10", "12", "14", "20")
		want(t, "lists", len(src.lists), 2)
	})
}

// R15: what the sink has is not told again.
func TestR15_ReplaysAreDropped(t *testing.T) {
	for _, c := range []struct {
		name   string
		powers powers
		shown  []string
		n      uint64
	}{
		{"order", powers{ResumeProven: true, Compare: compare},
			[]string{"commit a=1 @e/10", "apply b=12 @e/12", "apply c=13 @e/13"}, 3},
		// Without one, only the very position is known again.
		{"no order", powers{ResumeProven: true},
			[]string{"commit a=1 @e/10", "apply b=12 @e/12", "apply b=11 @e/11", "apply b=12 @e/12", "apply c=13 @e/13"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := &source{powers: c.powers, list: one("e/10", "a=1")}
				src.watch = script(
					ends(errBoom, live("e/12", "b=12")),
					func(ctx context.Context, o reflector.WatchOptions, yield yield) {
						play(ctx, o, yield, live("e/12", "b=12"), live("e/11", "b=11"), live("e/12", "b=12"), live("e/13", "c=13"))
					})
				s := newSink(t)
				r := start(t, src, s, &reflector.Options{Backoff: exact})
				after(time.Minute / 2)
				wantAll(t, "shown", s.shown(), c.shown...)
				want(t, "replays", r.Status().Replays, c.n)
			})
		})
	}
}

// R11: a source that sees a gap in its own stream says that history is gone.
func TestR11_GapEndsInAFullState(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true}, list: func(_ context.Context, n int, _ reflector.ListOptions) (page, error) {
			return page{Items: items(fmt.Sprintf("a=%d", n)), Cursor: cursor(fmt.Sprint(10 * n))}, nil
		}}
		src.watch = script(ends(fmt.Errorf("revision 12 follows 10: %w", reflector.ErrExpired), live("11", "b=1")), stay)
		s := newSink(t)
		start(t, src, s, nil)
		after(time.Second)
		want(t, "holds", s.holds(), "a=2")
	})
}

// A source that ends each time before anything moved, say at one change that it
// cannot decode, is not asked the same for ever.
func TestR02_BrokenAtOneChange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true}, list: func(_ context.Context, n int, _ reflector.ListOptions) (page, error) {
			return page{Items: items(fmt.Sprintf("a=%d", n)), Cursor: cursor(fmt.Sprint(10 * n))}, nil
		}}
		src.watch = func(ctx context.Context, n int, o reflector.WatchOptions, yield yield) {
			if o.After == "10" {
				ends(errors.New("what is this"))(ctx, o, yield)
				return
			}
			stay(ctx, o, yield)
		}
		s := newSink(t)
		start(t, src, s, &reflector.Options{Backoff: exact})
		after(time.Minute / 2)
		wantAll(t, "watches", src.afters(), "10", "10", "10", "20")
		want(t, "holds", s.holds(), "a=2")
	})
}

// That it cannot be reached now and then is no excuse.
func TestR02_BrokenAtOneChangeAndUnreachable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true}, list: one("10")}
		src.watch = script(ends(errBoom), fails(errBoom), ends(errBoom), fails(errBoom), ends(errBoom), stay)
		start(t, src, newSink(t), &reflector.Options{Backoff: exact})
		after(5 * time.Minute)
		want(t, "lists", len(src.lists), 2)
	})
}

// But one that cannot be reached is resumed when it can, however long it took.
func TestR19_LongOutageIsResumed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true}, list: one("10", "a=1")}
		down := fails(errBoom)
		src.watch = script(stay, down, down, down, down, down, ends(errBoom), ends(errBoom, batch{Cursor: "11"}), ends(errBoom), ends(errBoom), stay)
		first := src.watch
		src.watch = func(ctx context.Context, n int, o reflector.WatchOptions, yield yield) {
			if n == 1 {
				ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
				defer cancel()
				first(ctx, n, o, yield)
				return
			}
			first(ctx, n, o, yield)
		}
		start(t, src, newSink(t), &reflector.Options{Backoff: exact})
		after(time.Hour)
		want(t, "lists", len(src.lists), 1)
	})
}

// R31: a cursor of another epoch means nothing here.
func TestR31_OtherEpochIsListed(t *testing.T) {
	for _, c := range []struct {
		name  string
		watch func(context.Context, reflector.WatchOptions, yield)
	}{
		{"at opening", func(_ context.Context, _ reflector.WatchOptions, yield yield) {
			yield(batch{Cursor: "f/99"}, nil)
		}},
		{"in the stream", ends(nil, live("f/99", "x=1"))},
		{"a bookmark", ends(nil, batch{Cursor: "f/99"})},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := &source{powers: powers{ResumeProven: true, Compare: compare}}
				src.list = func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
					if n == 1 {
						return one("e/10", "a=1")(ctx, n, o)
					}
					return one("f/3", "z=1")(ctx, n, o)
				}
				src.watch = script(c.watch, stay)
				s := newSink(t)
				r := start(t, src, s, &reflector.Options{Backoff: exact})
				after(time.Second / 2)
				wantErr(t, "err", r.Status().Err, reflector.ErrExpired)
				after(time.Second)
				wantAll(t, "shown", s.shown(), "commit a=1 @e/10", "commit z=1 @f/3")
				want(t, "resets", r.Status().Resets, 1)
				want(t, "cursor", r.Status().Cursor, "f/3")
			})
		})
	}
}
