package reflector_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/homeostat/homeostat/reflector"
)

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
