package reflector_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
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

// Rule 2 and the form of full states: what breaks the contract is shown, applied
// nowhere, and a full state follows.
func TestContract(t *testing.T) {
	open := batch{Cursor: "10"}
	for _, c := range []struct {
		name    string
		batches []batch
		shown   []string
		text    string
	}{
		{"data first", []batch{live("11", "b=1")}, nil, "first batch"},
		{"Synced without Reset", []batch{open, {Synced: true, Cursor: "11"}}, nil, "did not begin"},
		{"Reset within Reset", []batch{{Reset: true}, {Events: events("b=1")}, {Reset: true}}, nil, "within another"},
		{"no op, live", []batch{open, {Events: []event{{}}, Cursor: "11"}}, nil, "neither"},
		{"no op after a good event", []batch{open, {Events: append(events("b=1"), event{Op: 7}), Cursor: "11"}}, nil, "neither"},
		{"no op, staged", []batch{{Reset: true, Synced: true, Events: []event{{}}, Cursor: "11"}}, nil, "neither"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := &source{powers: powers{ResumeProven: true}, list: one("10", "a=1")}
				src.watch = script(func(ctx context.Context, o reflector.WatchOptions, yield yield) {
					for _, b := range c.batches {
						if !yield(b, nil) {
							return
						}
					}
					t.Error("was not ended")
				}, stay)
				s := newSink(t)
				r := start(t, src, s, &reflector.Options{Backoff: exact})
				after(time.Second / 2)
				wantErr(t, "err", r.Status().Err, reflector.ErrContract)
				if !strings.Contains(r.Status().Err.Error(), c.text) {
					t.Errorf("err %v does not say %q", r.Status().Err, c.text)
				}
				want(t, "state", r.Status().State, reflector.BackingOff)
				wantAll(t, "shown", s.shown(), "commit a=1 @10")
				after(time.Second)
				want(t, "lists", len(src.lists), 2)
				want(t, "err", r.Status().Err, nil)
			})
		})
	}
}

// Where there are no positions each watch owes a full state: changes without it
// would hide what came between list and watch.
func TestWatchWithoutPositionOwesAFullState(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{list: one("", "a=1")}
		src.watch = script(
			ends(nil, live("", "b=1")),
			func(ctx context.Context, o reflector.WatchOptions, yield yield) {
				play(ctx, o, yield, batch{}, whole("", "a=2"), live("", "b=2"))
			})
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		after(time.Second / 2)
		wantErr(t, "err", r.Status().Err, reflector.ErrContract)
		after(time.Second)
		wantAll(t, "watches", src.afters(), "", "")
		wantAll(t, "shown", s.shown(), "commit a=1 @", "commit a=1 @", "commit a=2 @", "apply b=2")
		want(t, "initial", src.watches[1].Initial, false)
	})
}

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
