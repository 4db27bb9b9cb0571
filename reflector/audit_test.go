package reflector_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

// auditable is a source that lists what state says, as of at.
type auditable struct {
	*source
	place string
	state []string
}

func newAuditable(p powers) *auditable {
	a := &auditable{source: &source{powers: p}, place: "e/10", state: []string{"a=1", "b=1", "c=1"}}
	a.list = func(context.Context, int, reflector.ListOptions) (page, error) {
		return page{Items: items(a.state...), Cursor: cursor(a.place)}, nil
	}
	a.watch = idle
	return a
}

var resumable = powers{ResumeProven: true, Compare: compare}

const hourly = time.Hour

// toAudit lets time pass until the next list, and a moment more.
func (a *auditable) toAudit(t *testing.T) {
	t.Helper()
	lists, _ := a.calls()
	for range 2 * 3600 {
		if n, _ := a.calls(); n > lists {
			return
		}
		after(time.Second)
	}
	t.Fatal("there is no audit")
}

// R12: a delete is lost upstream for good. Where the watch and the list are at one
// place, what differs was lost.
func TestR12_AuditFindsALostDelete(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newAuditable(resumable)
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Audit: hourly, Session: -1})
		after(30 * time.Minute)
		src.state = []string{"a=1", "b=1"} // and nobody is told
		if next := time.Until(r.Status().NextAudit); next < 10*time.Minute || next > 30*time.Minute {
			t.Errorf("the next audit is in %v", next)
		}
		want(t, "lists", len(src.lists), 1)
		after(31 * time.Minute)
		wantAll(t, "shown", s.shown(), "commit a=1 b=1 c=1 @e/10", "audit a=1 b=1 @e/10")
		st := r.Status()
		want(t, "audits", st.Audits, 1)
		want(t, "corrections", st.Corrections, 1)
		want(t, "failures", st.Failures, 0)
		want(t, "state", st.State, reflector.Watching)
		wantAll(t, "watches", src.afters(), "e/10", "e/10")
	})
}

// No drift, no correction; and it goes on, jittered.
func TestR12_AuditWithoutDrift(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newAuditable(resumable)
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Audit: hourly, Session: -1})
		after(10 * hourly)
		st := r.Status()
		if st.Audits < 10 || st.Audits > 13 {
			t.Errorf("%d audits in ten hours", st.Audits)
		}
		want(t, "corrections", st.Corrections, 0)
		gaps := map[time.Duration]bool{}
		for i := 3; i < len(src.at); i += 2 {
			gap := src.at[i-1].Sub(src.at[i-3])
			if gap > hourly+2*time.Second || gap < hourly*3/4 {
				t.Errorf("a gap of %v", gap)
			}
			gaps[gap] = true
		}
		if len(gaps) < 3 {
			t.Errorf("gaps are not jittered: %v", gaps)
		}
	})
}

// What is on its way when the list is taken is no correction: the audit waits for
// the watch to come to the list.
func TestAuditWaitsForTheWatch(t *testing.T) {
	for _, c := range []struct {
		name  string
		tell  []batch
		shown []string
		fixed uint64
	}{
		{"to the very place", []batch{live("e/11", "b=11"), live("e/12", "-c"), live("e/13", "d=13")},
			[]string{"apply b=11 @e/11", "apply -c @e/12", "audit a=1 b=11 @e/12", "apply d=13 @e/13"}, 0},
		{"to a place after it", []batch{live("e/11", "b=11"), live("e/14", "a=14")},
			[]string{"apply b=11 @e/11", "audit a=1 b=11 @e/12", "apply a=14 @e/14"}, 1},
		{"by a bookmark", []batch{live("e/11", "b=11"), live("e/12", "-c"), live("e/20")},
			[]string{"apply b=11 @e/11", "apply -c @e/12", "audit a=1 b=11 @e/12", "apply @e/20"}, 0},
		{"a change that was lost", []batch{live("e/12", "-c"), live("e/13", "b=13")},
			[]string{"apply -c @e/12", "audit a=1 b=11 @e/12", "apply b=13 @e/13"}, 1},
		{"what comes again is dropped", []batch{live("e/12", "-c"), live("e/11", "b=7"), live("e/13")},
			[]string{"apply -c @e/12", "audit a=1 b=11 @e/12", "apply @e/13"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := newAuditable(resumable)
				src.watch = script(stay, func(ctx context.Context, o reflector.WatchOptions, yield yield) {
					play(ctx, o, yield, c.tell...)
				})
				s := newSink(t)
				r := start(t, src, s, &reflector.Options{Audit: hourly, Session: -1})
				after(0)
				src.state, src.place = []string{"a=1", "b=11"}, "e/12"
				src.toAudit(t)
				wantAll(t, "shown", s.shown()[1:], c.shown...)
				want(t, "corrections", r.Status().Corrections, c.fixed)
				want(t, "audits", r.Status().Audits, 1)
				want(t, "replays", r.Status().Replays, uint64(b2i(c.name == "what comes again is dropped")))
			})
		})
	}
}

// A watch that is open and has told nothing of it for a while has lost it.
func TestAuditOfAWatchThatDoesNotCome(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newAuditable(resumable)
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Audit: hourly, Session: -1})
		after(0)
		src.state, src.place = []string{"a=1", "b=11"}, "e/12"
		src.toAudit(t)
		after(27 * time.Second)
		want(t, "audits", r.Status().Audits, 0)
		after(5 * time.Second)
		wantAll(t, "shown", s.shown()[1:], "audit a=1 b=11 @e/12")
		want(t, "corrections", r.Status().Corrections, 2)
		want(t, "failures", r.Status().Failures, 0)
		wantAll(t, "watches", src.afters(), "e/10", "e/10", "e/12")
	})
}

// What a source tells without a position may be of after the list: nothing that differs
// is proven to be lost, and no object deleted that is there. Where nothing more comes, a
// full state is taken. The next audit is due as ever.
func TestAuditOfChangesWithoutAPosition(t *testing.T) {
	for name, tell := range map[string][]batch{
		"then a place after the list": {live("", "d=13"), live("e/14", "e=14")},
		"then nothing":                {live("", "d=13")},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := newAuditable(resumable)
				src.watch = script(stay, func(ctx context.Context, o reflector.WatchOptions, yield yield) {
					play(ctx, o, yield, tell...)
				}, stay)
				s := newSink(t)
				r := start(t, src, s, &reflector.Options{Audit: hourly, Session: -1})
				after(0)
				src.place = "e/12"
				src.toAudit(t)
				src.state, src.place = []string{"a=1", "b=1", "c=1", "d=13", "e=14"}, "e/14"
				after(time.Minute)
				for _, shown := range s.shown() {
					if strings.HasSuffix(shown, "@e/12") {
						t.Errorf("%s, though nobody knows where the sink was", shown)
					}
				}
				want(t, "holds", s.holds(), "a=1 b=1 c=1 d=13 e=14")
				want(t, "failures", r.Status().Failures, 0)
				src.toAudit(t)
			})
		})
	}
}

// An audit that comes to nothing is shown; the watch goes on where it was.
func TestAuditThatComesToNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		list func(context.Context, int, reflector.ListOptions) (page, error)
		say  string
	}{
		{"a failing list", func(context.Context, int, reflector.ListOptions) (page, error) { return page{}, errBoom }, "boom"},
		{"a panic", func(context.Context, int, reflector.ListOptions) (page, error) { panic("boom") }, ""},
		{"a replica that lags", one("e/9", "a=1"), `the source is at "e/9", which lies before "e/10"`},
		{"pages of two states", func(_ context.Context, _ int, o reflector.ListOptions) (page, error) {
			if o.Page == "" {
				return page{Items: items("a=1"), Cursor: "e/10", Next: "2"}, nil
			}
			return page{Cursor: "e/12"}, nil
		}, "the pages of the list show different states"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := newAuditable(resumable)
				whole := src.list
				n := 0
				src.list = func(ctx context.Context, _ int, o reflector.ListOptions) (page, error) {
					if n++; n == 1 || n > 3 {
						return whole(ctx, n, o)
					}
					return c.list(ctx, n, o)
				}
				s := newSink(t)
				r := start(t, src, s, &reflector.Options{Audit: hourly, Session: -1})
				after(0)
				src.toAudit(t)
				if c.say != "" {
					want(t, "why", fmt.Sprint(r.Status().AuditErr), c.say)
					want(t, "failures", r.Status().Failures, 0)
					want(t, "state", r.Status().State, reflector.Watching)
					want(t, "watches", len(src.afters()), 2)
				}
				after(3 * hourly)
				want(t, "why", r.Status().AuditErr, nil)
				want(t, "holds", s.holds(), "a=1 b=1 c=1")
			})
		})
	}
}

// A watch that ends before it came to the list proves nothing.
func TestAuditOfAWatchThatEnds(t *testing.T) {
	for name, end := range map[string]func(context.Context, reflector.WatchOptions, yield){
		"error": ends(errBoom, live("e/11", "b=11")),
		"reset": func(ctx context.Context, o reflector.WatchOptions, yield yield) {
			play(ctx, o, yield, live("e/11", "b=11"), whole("e/20", "z=20"))
		},
		"never opened": func(ctx context.Context, _ reflector.WatchOptions, _ yield) { <-ctx.Done() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := newAuditable(resumable)
				src.watch = script(stay, end, stay)
				s := newSink(t)
				r := start(t, src, s, &reflector.Options{Audit: hourly, Session: -1})
				after(0)
				src.state, src.place = []string{"lost=12"}, "e/12"
				src.toAudit(t)
				after(40 * time.Second)
				want(t, "audits", r.Status().Audits, 0)
				want(t, "corrections", r.Status().Corrections, 0)
				if r.Status().AuditErr == nil {
					t.Error("nothing is shown")
				}
				for _, line := range s.shown() {
					if line == "audit lost=12 @e/12" {
						t.Error("compared with what the watch had not come to")
					}
				}
			})
		})
	}
}

// By default those are audited that can't prove that they resume, and have
// positions.
func TestAuditByDefault(t *testing.T) {
	for _, c := range []struct {
		name   string
		powers powers
		at     string
		opts   reflector.Options
		audits bool
	}{
		{"resume proven", resumable, "e/10", reflector.Options{Session: -1}, false},
		{"not proven", powers{Compare: compare}, "e/10", reflector.Options{Session: -1}, true},
		{"not proven, no order", powers{}, "e/10", reflector.Options{Session: -1}, true},
		{"not proven, by the longest session", powers{}, "e/10", reflector.Options{Audit: -1}, true},
		{"not proven, but alive", powers{Progress: true}, "e/10", reflector.Options{}, true},
		{"switched off", powers{Progress: true}, "e/10", reflector.Options{Audit: -1}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := newAuditable(c.powers)
				src.place = c.at
				if c.powers.Progress {
					src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
						for yield(live(o.After), nil) && ctx.Err() == nil {
							nap(ctx, 10*time.Second)
						}
					}
				}
				s := newSink(t)
				r := start(t, src, s, &c.opts)
				after(time.Minute)
				src.state = []string{"a=1"}
				after(10 * time.Minute)
				want(t, "found", s.holds() == "a=1", c.audits)
				if c.opts.Session < 0 || c.powers.Progress {
					want(t, "named", !r.Status().NextAudit.IsZero(), c.audits)
				}
				want(t, "corrections", r.Status().Corrections, uint64(2*b2i(c.audits)))
			})
		})
	}
}

// A source whose every batch is a full state is not said to be corrected.
func TestAuditOfFullStates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := 0
		src := reflector.Poll(func(context.Context) ([]string, error) {
			n++
			return []string{fmt.Sprint("a=", n)}, nil
		}, keyOf, nil)
		s := newSink(t)
		r := start(t, src, s, nil)
		after(time.Hour)
		want(t, "audits", s.audits, 0)
		want(t, "corrections", r.Status().Corrections, 0)
	})
}

// Relist goes before an audit, and is not one.
func TestAuditGivesWayToRelist(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newAuditable(resumable)
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Audit: hourly, Session: -1})
		after(0)
		list := src.list
		src.list = func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
			if n == 2 {
				r.Relist("test")
			}
			return list(ctx, n, o)
		}
		after(hourly + 3*time.Second)
		wantAll(t, "shown", s.shown()[2:], "commit a=1 b=1 c=1 @e/10")
		want(t, "audits", s.audits, 1)
	})
}

// The pages of an audit are as those of any list; without a promise that they show
// one state, there is one page.
func TestAuditPages(t *testing.T) {
	for _, snapshot := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			p := resumable
			p.Paged, p.SnapshotPages = true, snapshot
			src := newAuditable(p)
			start(t, src, newSink(t), &reflector.Options{Audit: hourly, Session: -1, PageSize: 7, Freshness: reflector.Any})
			after(hourly + 3*time.Second)
			want(t, "lists", len(src.lists), 2)
			want(t, "limit", src.lists[1].Limit, 7*b2i(snapshot))
			want(t, "freshness", src.lists[1].Freshness, reflector.Latest)
		})
	}
}

// Where the source can, keys and versions are compared first, and objects are read
// only when these differ.
func TestAuditByKeys(t *testing.T) {
	keysOnly := resumable
	keysOnly.KeysOnly = true
	for _, c := range []struct {
		name  string
		state []string
		place string
		tell  []batch
		wait  time.Duration
		lists string // false, true: asked for KeysOnly
		shown []string
		fixed uint64
	}{
		{"no drift", []string{"a=1", "b=1", "c=1"}, "e/10", nil, 0, "[true]", nil, 0},
		{"no drift, after the watch has come", []string{"a=1", "b=12"}, "e/12",
			[]batch{live("e/11", "-c"), live("e/12", "b=12")}, 0, "[true]", []string{"apply -c @e/11", "apply b=12 @e/12"}, 0},
		{"drift", []string{"a=1", "b=1"}, "e/10", nil, 0, "[true false]", []string{"audit a=1 b=1 @e/10"}, 1},
		{"a version", []string{"a=1", "b=1", "c=9"}, "e/10", nil, 0, "[true false]", []string{"audit a=1 b=1 c=9 @e/10"}, 1},
		{"drift, after the watch has come", []string{"a=1", "b=12"}, "e/12",
			[]batch{live("e/12", "b=12")}, 0, "[true false]", []string{"apply b=12 @e/12", "audit a=1 b=12 @e/12"}, 1},
		{"drift, and the watch does not come", []string{"a=1", "b=12"}, "e/12",
			nil, time.Minute + 10*time.Second, "[true false]", []string{"audit a=1 b=12 @e/12"}, 2},
		{"no versions", []string{"a", "b=1", "c=1"}, "e/10", nil, 0, "[true false]", []string{"audit a= b=1 c=1 @e/10"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := newAuditable(keysOnly)
				src.list = func(_ context.Context, _ int, o reflector.ListOptions) (page, error) {
					p := page{Items: items(src.state...), Cursor: cursor(src.place)}
					for i := range p.Items {
						if o.KeysOnly {
							p.Items[i].Object = ""
						}
					}
					return p, nil
				}
				src.watch = script(stay, func(ctx context.Context, o reflector.WatchOptions, yield yield) {
					play(ctx, o, yield, c.tell...)
				}, stay)
				s := newSink(t)
				r := start(t, src, s, &reflector.Options{Audit: hourly, Session: -1})
				after(0)
				want(t, "the first", src.lists[0].KeysOnly, false)
				src.state, src.place = c.state, c.place
				src.toAudit(t)
				after(c.wait)
				var keys []bool
				for _, o := range src.lists[1:] {
					keys = append(keys, o.KeysOnly)
				}
				want(t, "lists by keys", fmt.Sprint(keys), c.lists)
				wantAll(t, "shown", s.shown()[1:], c.shown...)
				want(t, "audits", r.Status().Audits, 1)
				want(t, "corrections", r.Status().Corrections, c.fixed)
				want(t, "failures", r.Status().Failures, 0)
				want(t, "same", s.same, b2i(c.lists == "[true]"))
			})
		})
	}
}

// R33: a watch that has become deaf to updates is found out within one period, and
// known to be so until an audit finds nothing.
func TestR33_PartialDeafness(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newAuditable(resumable)
		rev := 10
		src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
			for at := o.After; yield(live(at), nil); { // bytes still arrive
				nap(ctx, 10*time.Second)
				if ctx.Err() != nil {
					return
				}
				meet()
				at = cursor(src.place)
			}
		}
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Audit: hourly, Session: -1})
		after(0)
		update := func() {
			rev++
			meet()
			src.state, src.place = []string{fmt.Sprint("a=", rev), "b=1", "c=1"}, fmt.Sprint("e/", rev)
		}
		update()
		src.toAudit(t)
		after(time.Minute)
		want(t, "drift", r.Status().Drift, 1)
		want(t, "holds", s.holds(), "a=11 b=1 c=1")
		update()
		update()
		src.toAudit(t)
		after(time.Minute)
		want(t, "drift", r.Status().Drift, 1)
		want(t, "corrections", r.Status().Corrections, 2)
		src.toAudit(t)
		want(t, "drift", r.Status().Drift, 0)
	})
}

// Without an order there is no telling when a watch has come to a list: a full state,
// then, like any.
func TestAuditWithoutAnOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newAuditable(powers{ResumeProven: true})
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Audit: hourly, Session: -1})
		after(0)
		src.place, src.state = "e/11", []string{"a=1", "b=1"} // and nobody is told
		src.toAudit(t)
		wantAll(t, "shown", s.shown()[1:], "audit a=1 b=1 @e/11")
		want(t, "corrections", r.Status().Corrections, 1)
	})
}

// A watch that is on its way to the list is waited for, however slow.
func TestAuditWaitsForASlowWatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newAuditable(resumable)
		src.watch = script(stay, func(ctx context.Context, o reflector.WatchOptions, yield yield) {
			yield(live(o.After), nil)
			for n := 11; n <= 20; n++ {
				nap(ctx, 20*time.Second)
				yield(live(cursor(fmt.Sprint("e/", n)), fmt.Sprintf("k%d=%d", n, n)), nil)
			}
			<-ctx.Done()
		})
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Audit: hourly, Session: -1})
		after(0)
		for n := 11; n <= 20; n++ {
			src.state = append(src.state, fmt.Sprintf("k%d=%d", n, n))
		}
		src.place = "e/20"
		src.toAudit(t)
		after(5 * time.Minute)
		want(t, "audits", r.Status().Audits, 1)
		want(t, "corrections", r.Status().Corrections, 0)
	})
}

// The longest session does not end what an audit waits for.
func TestAuditInAShortSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newAuditable(resumable)
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Audit: hourly, Session: 20 * time.Second})
		after(0)
		src.place, src.state = "e/12", []string{"a=1"}
		after(2 * hourly)
		want(t, "holds", s.holds(), "a=1")
		want(t, "corrections", r.Status().Corrections, 2)
	})
}

// What an audit saw of a replica that lags is no insisting on it (rule 6).
func TestAuditThatLagsIsNoInsisting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newAuditable(resumable)
		late := false
		src.watch = script(stay, func(ctx context.Context, o reflector.WatchOptions, yield yield) {
			yield(live(o.After), nil)
			nap(ctx, 10*time.Minute)
			meet()
			late = true
			yield(whole("e/5", "z=5"), nil)
		}, stay)
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Audit: hourly, Session: -1, Backoff: exact})
		after(0)
		was := src.place
		src.place = "e/8"
		src.toAudit(t)
		src.place = was
		after(11 * time.Minute)
		want(t, "it came", late, true)
		want(t, "resets", r.Status().Resets, 0)
		want(t, "holds", s.holds(), "a=1 b=1 c=1")
	})
}

// A source that pages by itself, and shows one state, can be audited.
func TestAuditOfPagesOfOneState(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newAuditable(resumable)
		src.list = func(_ context.Context, _ int, o reflector.ListOptions) (page, error) {
			if o.Page == "" {
				return page{Items: items(src.state[:1]...), Cursor: "e/10", Next: "2"}, nil
			}
			return page{Items: items(src.state[1:]...), Cursor: "e/10"}, nil
		}
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Audit: hourly, Session: -1})
		after(0)
		src.state = []string{"a=1", "b=9"}
		src.toAudit(t)
		want(t, "why not", r.Status().AuditErr, nil)
		want(t, "holds", s.holds(), "a=1 b=9")
	})
}

// G10: a panic in an audit leaves no relist without an end.
func TestG10_AuditThatPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newAuditable(resumable)
		list := src.list
		src.list = func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
			if n == 2 {
				panic("boom")
			}
			return list(ctx, n, o)
		}
		s := newSink(t)
		start(t, src, s, &reflector.Options{Audit: hourly, Session: -1})
		after(0)
		src.toAudit(t)
		after(time.Minute)
		begun, ended := 0, 0
		for _, line := range s.lines() {
			switch {
			case line == "begin":
				begun++
			case line == "abort", strings.HasPrefix(line, "commit"), strings.HasPrefix(line, "audit"):
				ended++
			}
		}
		want(t, "relists without an end", begun-ended, 1) // that of the open session
	})
}

// Rule 10: a source that wants to be left alone is, also by the watch after an audit.
func TestAuditThatIsToComeLater(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newAuditable(resumable)
		list := src.list
		src.list = func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
			if n == 2 {
				return page{}, retry.After(errBoom, 10*time.Minute)
			}
			return list(ctx, n, o)
		}
		s := newSink(t)
		start(t, src, s, &reflector.Options{Audit: hourly, Session: -1})
		after(0)
		src.toAudit(t)
		after(9 * time.Minute)
		_, watches := src.calls()
		want(t, "watches", watches, 1)
		after(2 * time.Minute)
		_, watches = src.calls()
		want(t, "watches", watches, 2)
		want(t, "audits begun", s.audits, 1) // the session after it is none
	})
}

// Versions that are missing are no drift: the next audit is due as ever.
func TestAuditOfKeysWithoutVersions_ThatFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := resumable
		p.KeysOnly = true
		src := newAuditable(p)
		src.list = func(_ context.Context, n int, o reflector.ListOptions) (page, error) {
			if n > 1 && !o.KeysOnly {
				return page{}, errBoom
			}
			return page{Items: []item{{Key: "a"}}, Cursor: "e/10"}, nil
		}
		start(t, src, newSink(t), &reflector.Options{Audit: hourly, Session: -1})
		after(5 * hourly)
		if lists, _ := src.calls(); lists > 15 {
			t.Errorf("%d lists in five hours", lists)
		}
	})
}
