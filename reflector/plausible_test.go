package reflector_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/homeostat/homeostat/reflector"
)

// many makes n objects.
func many(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("k%03d=1", i)
	}
	return all
}

// R28: a source times out, and then says with success that there is nothing.
func TestR28_AnEmptyListIsHeld(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		t.Run(fmt.Sprintf("streamed %v", streamed), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := newAuditable(powers{Compare: compare, Initial: streamed})
				src.state = many(200)
				src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
					b := live(o.After)
					if o.Initial {
						b = whole(cursor(src.place), src.state...)
					}
					if yield(b, nil) {
						<-ctx.Done()
					}
				}
				s := newSink(t)
				r := start(t, src, s, &reflector.Options{Backoff: exact, MaxDelete: 20, MaxDeleteShare: 0.25})
				after(0)
				list := src.list
				src.list = func(context.Context, int, reflector.ListOptions) (page, error) {
					return page{}, context.DeadlineExceeded
				}
				r.Relist("test")
				after(0)
				src.state, src.place = nil, "e/20"
				src.list = list
				want(t, "held of what failed", r.Status().WouldDelete, 0)
				if streamed {
					r.Relist("test")
				}
				after(time.Minute)
				want(t, "holds", len(s.held()), 200)
				st := r.Status()
				want(t, "state", st.State, reflector.Held)
				want(t, "would delete", st.WouldDelete, 200)
				wantErr(t, "err", st.Err, reflector.ErrImplausible)
				want(t, "text", st.Err.Error(), "a full state would delete 200 of 200 objects; it is held")
				if st.Next.IsZero() {
					t.Error("nothing says when it is tried again")
				}
				want(t, "confirmed", r.ConfirmDeletes(), true)
				after(0)
				want(t, "holds", s.holds(), "")
				st = r.Status()
				want(t, "state", st.State, reflector.Watching)
				want(t, "would delete", st.WouldDelete, 0)
				want(t, "confirmed again", r.ConfirmDeletes(), false)
			})
		})
	}
}

func TestR28_WhatIsHeld(t *testing.T) {
	for _, c := range []struct {
		name  string
		opts  reflector.Options
		left  int
		total int
		held  bool
	}{
		{"nothing, by default", reflector.Options{}, 0, 100, false},
		{"number and share", reflector.Options{MaxDelete: 10, MaxDeleteShare: 0.5}, 49, 100, true},
		{"not the number", reflector.Options{MaxDelete: 51, MaxDeleteShare: 0.5}, 49, 100, false},
		{"just the number", reflector.Options{MaxDelete: 50, MaxDeleteShare: 0.1}, 50, 100, false},
		{"not the share", reflector.Options{MaxDelete: 10, MaxDeleteShare: 0.51}, 49, 100, false},
		{"just the share", reflector.Options{MaxDelete: 10, MaxDeleteShare: 0.5}, 50, 100, false},
		{"number alone", reflector.Options{MaxDelete: 10}, 89, 100, true},
		{"number alone, not", reflector.Options{MaxDelete: 10}, 90, 100, false},
		{"share alone", reflector.Options{MaxDeleteShare: 0.5}, 0, 1, true},
		{"share alone, not", reflector.Options{MaxDeleteShare: 0.5}, 1, 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := newAuditable(powers{Compare: compare})
				src.state = many(c.total)
				r := start(t, src, newSink(t), &c.opts)
				after(0)
				src.state, src.place = many(c.left), "e/11"
				r.Relist("test")
				after(0)
				want(t, "held", r.Status().State == reflector.Held, c.held)
			})
		})
	}
}

// A first full state deletes nothing, and an object that was replaced is not one
// that was deleted.
func TestR28_WhatIsNoDelete(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newAuditable(powers{Compare: compare})
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{MaxDelete: 1})
		after(0)
		src.state, src.place = []string{"a=2", "b=2", "c=2", "d=2"}, "e/11"
		r.Relist("test")
		after(0)
		want(t, "holds", s.holds(), "a=2 b=2 c=2 d=2")
	})
}

// What is repeated often enough is believed; what was plausible in between begins
// the row anew.
func TestR28_BelievedByRepetition(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newAuditable(powers{Compare: compare})
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact, MaxDelete: 2, Believe: 3})
		after(0)
		src.state, src.place = nil, "e/11"
		r.Relist("test")
		after(time.Second + time.Second/2) // two of them
		want(t, "state", r.Status().State, reflector.Held)
		src.state = []string{"a=1", "b=1", "c=1"}
		after(2 * time.Second)
		want(t, "state", r.Status().State, reflector.Watching)
		src.state = nil
		r.Relist("test")
		after(time.Second / 2)
		lists := len(src.lists)
		want(t, "state", r.Status().State, reflector.Held)
		after(time.Minute)
		want(t, "lists", len(src.lists), lists+2)
		want(t, "holds", s.holds(), "")
	})
}

// What says something else each time does not agree with anything.
func TestR28_OnlyWhatAgreesIsBelieved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newAuditable(powers{Compare: compare})
		src.state = []string{"a=1", "b=1", "c=1", "d=1"}
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact, MaxDelete: 1, Believe: 3})
		after(0)
		n := 0
		src.list = func(context.Context, int, reflector.ListOptions) (page, error) {
			n++
			return page{Items: items([][]string{{"a=1", "b=1"}, {"c=1", "d=1"}}[n%2]...), Cursor: "e/11"}, nil
		}
		r.Relist("test")
		after(10 * time.Minute)
		want(t, "state", r.Status().State, reflector.Held)
		want(t, "holds", s.holds(), "a=1 b=1 c=1 d=1")
	})
}

// Full states that somebody asks for one after the other are one word, not many.
func TestR28_CallsAreNoRepetition(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newAuditable(powers{Compare: compare})
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact, MaxDelete: 1, Believe: 4})
		after(0)
		src.state, src.place = nil, "e/11"
		for range 50 {
			r.Relist("test")
			after(10 * time.Millisecond)
		}
		want(t, "state", r.Status().State, reflector.Held)
		want(t, "holds", s.holds(), "a=1 b=1 c=1")
		after(10 * time.Minute)
		want(t, "holds", s.holds(), "")
	})
}

// Who confirmed the loss of three objects did not confirm that of more.
func TestR28_ConfirmedIsANumber(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newAuditable(powers{Compare: compare})
		src.state = many(10)
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact, MaxDelete: 2})
		after(0)
		want(t, "confirmed", r.ConfirmDeletes(), false)
		src.state, src.place = many(7), "e/11"
		r.Relist("test")
		after(0)
		want(t, "would delete", r.Status().WouldDelete, 3)
		src.state = many(6)
		want(t, "confirmed", r.ConfirmDeletes(), true)
		after(0)
		want(t, "would delete", r.Status().WouldDelete, 4)
		want(t, "state", r.Status().State, reflector.Held)
		src.state = many(8) // fewer need no word at all
		after(time.Minute)
		want(t, "state", r.Status().State, reflector.Watching)
		// An old word does not count for later.
		src.state, src.place = many(5), "e/12"
		r.Relist("test")
		after(0)
		want(t, "state", r.Status().State, reflector.Held)
	})
}

// An audit is held like any other full state.
func TestR28_AuditsAreHeld(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newAuditable(resumable)
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact, Audit: hourly, Session: -1, MaxDelete: 2})
		after(0)
		src.state = nil
		src.toAudit(t)
		want(t, "holds", s.holds(), "a=1 b=1 c=1")
		want(t, "would delete", r.Status().WouldDelete, 3)
		wantErr(t, "why", r.Status().Err, reflector.ErrImplausible)
		want(t, "state", r.Status().State, reflector.Held)
		want(t, "confirmed", r.ConfirmDeletes(), true)
		after(0)
		want(t, "holds", s.holds(), "")
	})
}

func TestGuardOptions(t *testing.T) {
	for name, o := range map[string]reflector.Options{
		"MaxDelete":              {MaxDelete: -1},
		"MaxDeleteShare":         {MaxDeleteShare: 1},
		"negative share":         {MaxDeleteShare: -0.1},
		"a share of no number":   {MaxDeleteShare: math.NaN()},
		"Believe":                {Believe: -1},
		"a freshness of no kind": {Freshness: 7},
	} {
		err := reflector.New[string](newAuditable(powers{}), newSink(t), &o).Run(t.Context())
		if !errors.Is(err, reflector.ErrInvalidOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
