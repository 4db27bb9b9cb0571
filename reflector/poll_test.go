package reflector_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/homeostat/homeostat/reflector"
)

// polled is a list function whose answer can be set, and its calls counted.
type polled struct {
	items []item
	err   error
	boom  bool
	at    []time.Time
}

func (p *polled) list(context.Context) ([]item, error) {
	meet()
	p.at = append(p.at, time.Now())
	if p.boom {
		panic("kaboom")
	}
	return p.items, p.err
}

func (p *polled) strings(ctx context.Context) ([]string, error) {
	items, err := p.list(ctx)
	var out []string
	for _, it := range items {
		out = append(out, it.Key+"="+it.Object)
	}
	return out, err
}

func keyOf(s string) string { k, _, _ := strings.Cut(s, "="); return k }

func TestPollPowers(t *testing.T) {
	p := &polled{}
	for _, src := range []reflector.ListWatcher[string]{
		reflector.PollItems(p.list, nil),
		reflector.Poll(p.strings, keyOf, nil),
	} {
		got := src.Powers()
		if !got.Initial || got.Progress || got.ResumeProven || got.Paged || got.Compare != nil || got.Get != nil {
			t.Errorf("powers %+v", got)
		}
	}
}

func TestPollKeepsTheSinkEqual(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := &polled{items: items("a=1", "b=1")}
		s := newSink(t)
		r := start(t, reflector.Poll(p.strings, keyOf, nil), s, nil)
		begun := time.Now()
		after(0)
		want(t, "holds", s.holds(), "a=a=1 b=b=1")
		p.items = items("b=2", "c=1")
		after(28 * time.Second)
		want(t, "holds", s.holds(), "a=a=1 b=b=1")
		after(4 * time.Second)
		want(t, "holds", s.holds(), "b=b=2 c=c=1")
		p.items = nil
		after(32 * time.Second)
		want(t, "holds", s.holds(), "")
		st := r.Status()
		want(t, "state", st.State, reflector.Watching)
		want(t, "since", st.Since, begun)
		want(t, "watches", st.Watches, 1)
		want(t, "lists of the reflector", st.Lists, 0)
	})
}

func TestPollYieldsOneBatch(t *testing.T) {
	p := &polled{items: items("a=1", "b=2")}
	for b, err := range reflector.PollItems(p.list, nil).Watch(t.Context(), reflector.WatchOptions{Initial: true, After: "x"}) {
		want(t, "error", err, nil)
		want(t, "form", b.Reset && b.Synced && b.Cursor == "", true)
		want(t, "events", fmt.Sprint(b.Events), fmt.Sprint(events("a=1", "b=2")))
		break
	}
}

func TestPollHasNoPositions(t *testing.T) {
	p := &polled{items: items("a=1")}
	src := reflector.PollItems(p.list, nil)
	n := 0
	for _, err := range src.Watch(t.Context(), reflector.WatchOptions{After: "5"}) {
		wantErr(t, "watch after a cursor", err, reflector.ErrExpired)
		n++
	}
	want(t, "yields", n, 1)
	_, err := src.List(t.Context(), reflector.ListOptions{Page: "2"})
	wantErr(t, "page", err, reflector.ErrExpired)
	want(t, "lists", len(p.at), 0)
}

func TestPollList(t *testing.T) {
	p := &polled{items: items("a=1", "b=2")}
	got, err := reflector.Poll(p.strings, keyOf, nil).List(t.Context(), reflector.ListOptions{Limit: 1})
	want(t, "error", err, nil)
	want(t, "page", fmt.Sprintf("%+v", got), "{Items:[{Key:a Version: ID: Object:a=1} {Key:b Version: ID: Object:b=2}] Faults:[] Cursor: Next:}")
	p.err = errBoom
	_, err = reflector.Poll(p.strings, keyOf, nil).List(t.Context(), reflector.ListOptions{})
	wantErr(t, "error", err, errBoom)
}

func TestPollIsJittered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := &polled{items: items("a=1")}
		start(t, reflector.PollItems(p.list, &reflector.PollOptions{Every: 100 * time.Second}), newSink(t), nil)
		after(10 * time.Hour)
		low, high := time.Hour, time.Duration(0)
		for i := 1; i < len(p.at); i++ {
			gap := p.at[i].Sub(p.at[i-1])
			low, high = min(low, gap), max(high, gap)
		}
		if low < 95*time.Second || high > 105*time.Second || high-low < 3*time.Second {
			t.Errorf("gaps from %v to %v", low, high)
		}
		if n := len(p.at); n < 345 || n > 380 {
			t.Errorf("%d lists", n)
		}
	})
}

// R28: an error of the list changes nothing, and is tried again by the backoff.
func TestR28_PollErrorChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := &polled{items: items("a=1")}
		s := newSink(t)
		r := start(t, reflector.PollItems(p.list, nil), s, &reflector.Options{Backoff: exact})
		after(0)
		p.err, p.items = errBoom, nil
		after(32 * time.Second)
		wantErr(t, "err", r.Status().Err, errBoom)
		want(t, "holds", s.holds(), "a=1")
		n := len(p.at)
		after(40 * time.Second)
		if len(p.at) < n+3 {
			t.Errorf("not tried again: %d lists, then %d", n, len(p.at))
		}
		p.err, p.items = nil, items("b=1")
		after(time.Minute)
		want(t, "holds", s.holds(), "b=1")
		want(t, "err", r.Status().Err, nil)
	})
}

func TestPollRefusesKeys(t *testing.T) {
	for _, c := range []struct {
		name  string
		items []item
		err   error
		say   string
	}{
		{"twice", items("a=1", "b=1", "a=2"), reflector.ErrDuplicateKey, `"a"`},
		{"none", items("a=1", "=2"), reflector.ErrEmptyKey, "item 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p := &polled{items: items("z=1")}
				s := newSink(t)
				src := reflector.PollItems(p.list, nil)
				r := start(t, src, s, &reflector.Options{Backoff: exact})
				after(0)
				p.items = c.items
				after(32 * time.Second)
				wantErr(t, "err", r.Status().Err, c.err)
				if !strings.Contains(r.Status().Err.Error(), c.say) {
					t.Errorf("err %v does not say %s", r.Status().Err, c.say)
				}
				want(t, "holds", s.holds(), "z=1")
				_, err := src.List(t.Context(), reflector.ListOptions{})
				wantErr(t, "List", err, c.err)
				_, err = reflector.Poll(p.strings, keyOf, nil).List(t.Context(), reflector.ListOptions{})
				wantErr(t, "Poll", err, c.err)
			})
		})
	}
}

// R01: a key function that panics is an error like others.
func TestR01_PollKeyPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := &polled{items: items("a=1", "b=1")}
		bad := false
		s := newSink(t)
		r := start(t, reflector.Poll(p.strings, func(v string) string {
			meet()
			if bad && v == "b=1" {
				panic("kaboom")
			}
			return keyOf(v)
		}, nil), s, &reflector.Options{Backoff: exact})
		after(0)
		bad = true
		after(32 * time.Second)
		perr, ok := errors.AsType[*reflector.PanicError](r.Status().Err)
		if !ok || perr.In != "key" || !strings.Contains(r.Status().Err.Error(), "object 1") {
			t.Errorf("err: %v", r.Status().Err)
		}
		bad = false
		p.items = items("c=1")
		after(time.Minute)
		want(t, "holds", s.holds(), "c=c=1")
	})
}

func TestPollNotModified(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := &polled{items: items("a=1")}
		s := newSink(t)
		r := start(t, reflector.PollItems(p.list, nil), s, &reflector.Options{Session: time.Hour, Backoff: exact})
		after(0)
		p.err = fmt.Errorf("304: %w", reflector.ErrNotModified)
		begun := time.Now()
		after(10 * time.Minute)
		st := r.Status()
		want(t, "state", st.State, reflector.Watching)
		want(t, "watches", st.Watches, 1)
		wantAll(t, "shown", s.shown(), "commit a=1 @")
		if s.same < 9 {
			t.Errorf("the sink heard %d times that nothing changed", s.same)
		}
		s.same = 0
		if st.Alive.Sub(begun) < 9*time.Minute || st.LastEvent.After(begun) {
			t.Errorf("alive %v, last event %v", st.Alive, st.LastEvent)
		}
		// A new session, whose first answer is the same, is as well.
		r.Relist("test")
		after(time.Second)
		st = r.Status()
		want(t, "watches", st.Watches, 2)
		want(t, "state", st.State, reflector.Watching)
		want(t, "err", st.Err, nil)
		want(t, "missed", st.Missed, 0)
		want(t, "synced", st.Synced, true)
		want(t, "the sink heard that nothing changed", s.same, 1)
		// An error between is of no account.
		p.err = errBoom
		after(32 * time.Second)
		wantErr(t, "err", r.Status().Err, errBoom)
		p.err = reflector.ErrNotModified
		after(time.Minute)
		want(t, "err", r.Status().Err, nil)
		want(t, "state", r.Status().State, reflector.Watching)
		wantAll(t, "shown", s.shown(), "commit a=1 @")
	})
}

// What never reached the sink cannot be "as it was".
func TestPollNotModifiedAfterAListThatWasLost(t *testing.T) {
	for _, c := range []struct {
		name string
		lose func(p *polled, s *sink) (mend func())
	}{
		{"refused by the sink", func(_ *polled, s *sink) func() {
			s.onCommit = func(cursor) error { return errBoom }
			return func() { s.onCommit = nil }
		}},
		{"duplicate key", func(p *polled, _ *sink) func() {
			p.items = items("a=1", "a=1")
			return func() {}
		}},
		{"panic of the list function", func(p *polled, _ *sink) func() {
			p.boom = true
			return func() { p.boom = false }
		}},
		{"empty key", func(p *polled, _ *sink) func() {
			p.items = items("=1")
			return func() {}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p := &polled{items: items("a=1")}
				s := newSink(t)
				r := start(t, reflector.PollItems(p.list, nil), s, &reflector.Options{Backoff: exact})
				after(0)
				p.items = items("a=2")
				mend := c.lose(p, s)
				after(32 * time.Second)
				for r.Status().State != reflector.BackingOff {
					after(time.Second)
				}
				p.err = reflector.ErrNotModified
				mend()
				after(5 * time.Minute)
				want(t, "well", r.Status().State == reflector.Watching && r.Status().Err == nil, false)
				p.err, p.items = nil, items("a=3")
				after(5 * time.Minute)
				want(t, "holds", s.holds(), "a=3")
				want(t, "err", r.Status().Err, nil)
			})
		})
	}
}

// A list that comes in as its session ends still counts: its function may never
// give it again.
func TestPollAnswerAtTheEndOfTheSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := 0
		src := reflector.PollItems(func(context.Context) ([]item, error) {
			if n++; n == 1 || n == 3 {
				if n == 3 {
					time.Sleep(5 * time.Second) // ctx is not looked at
				}
				return items(fmt.Sprintf("a=%d", n)), nil
			}
			return nil, reflector.ErrNotModified
		}, &reflector.PollOptions{Every: 10 * time.Second})
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		after(22 * time.Second)
		want(t, "lists", n, 3)
		r.Relist("test")
		after(time.Minute)
		want(t, "holds", s.holds(), "a=3")
		want(t, "state", r.Status().State, reflector.Watching)
		want(t, "err", r.Status().Err, nil)
	})
}

// With Max the pause doubles while nothing changes, and a change brings Every
// back.
func TestPollStretches(t *testing.T) {
	unversioned := func(kv ...string) []item {
		out := items(kv...)
		for i := range out {
			out[i].Version = ""
		}
		return out
	}
	reborn := items("a=1", "b=1")
	reborn[0].ID = "new"
	touched := items("a=1", "b=1")
	touched[0].Object = "9"
	for _, c := range []struct {
		name     string
		from, to []item
		changed  bool
	}{
		{"nothing", items("a=1", "b=1"), items("a=1", "b=1"), false},
		{"order", items("a=1", "b=1"), items("b=1", "a=1"), false},
		{"version", items("a=1", "b=1"), items("a=2", "b=1"), true},
		{"one more", items("a=1", "b=1"), items("a=1", "b=1", "c=1"), true},
		{"one less", items("a=1", "b=1"), items("a=1"), true},
		{"all gone", items("a=1", "b=1"), nil, true},
		{"the first", nil, items("a=1", "b=1"), true},
		{"another key", items("a=1", "b=1"), items("a=1", "c=1"), true},
		{"another identity", items("a=1", "b=1"), reborn, true},
		{"equal versions are not compared further", items("a=1", "b=1"), touched, false},
		{"object, without versions", unversioned("a=1", "b=1"), unversioned("a=2", "b=1"), true},
		{"nothing, without versions", unversioned("a=1", "b=1"), unversioned("a=1", "b=1"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p := &polled{items: c.from}
				src := reflector.PollItems(p.list, &reflector.PollOptions{Every: 100 * time.Second, Max: 500 * time.Second})
				start(t, src, newSink(t), &reflector.Options{Session: -1})
				after(1460 * time.Second) // lists at about 0, 100, 300, 700 and 1200 s
				p.items = c.to
				after(3000 * time.Second) // 1700 and on
				steps := []time.Duration{100, 200, 400, 500, 500, 500, 500}
				if c.changed {
					steps = []time.Duration{100, 200, 400, 500, 500, 100, 200, 400}
				}
				for i, d := range steps {
					d *= time.Second
					if g := p.at[i+1].Sub(p.at[i]); g < d-d/20 || g > d+d/20 {
						t.Errorf("gap %d: %v is not about %v", i, g, d)
					}
				}
			})
		})
	}
	t.Run("off", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			p := &polled{items: items("a=1")}
			start(t, reflector.PollItems(p.list, &reflector.PollOptions{Every: 100 * time.Second}), newSink(t), &reflector.Options{Session: -1})
			after(3000 * time.Second)
			if n := len(p.at); n < 28 {
				t.Errorf("%d lists", n)
			}
		})
	})
}

func TestPollStretchesWhenNotModified(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := &polled{items: items("a=1")}
		start(t, reflector.PollItems(p.list, &reflector.PollOptions{Every: 10 * time.Second, Max: time.Hour}), newSink(t), &reflector.Options{Session: -1})
		after(0)
		p.err = reflector.ErrNotModified
		after(10 * time.Minute) // 10, 20, 40, 80, 160, 320 s
		if n := len(p.at); n < 6 || n > 8 {
			t.Errorf("%d lists", n)
		}
	})
}

// Each watch has its own pace and memory.
func TestPollIsStateless(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := &polled{items: items("a=1")}
		src := reflector.PollItems(p.list, nil)
		a, b := newSink(t), newSink(t)
		start(t, src, a, nil)
		after(time.Second)
		start(t, src, b, nil)
		after(time.Second)
		want(t, "first", a.holds(), "a=1")
		want(t, "second", b.holds(), "a=1")
	})
}

func TestFaultyAdapters(t *testing.T) {
	p := &polled{}
	good := reflector.PollItems(p.list, nil)
	for name, src := range map[string]reflector.ListWatcher[string]{
		"Poll without list":        reflector.Poll(nil, keyOf, nil),
		"Poll without key":         reflector.Poll(p.strings, nil, nil),
		"PollItems without list":   reflector.PollItems[string](nil, nil),
		"negative Every":           reflector.PollItems(p.list, &reflector.PollOptions{Every: -1}),
		"negative Max":             reflector.PollItems(p.list, &reflector.PollOptions{Max: -1}),
		"Max below Every":          reflector.PollItems(p.list, &reflector.PollOptions{Every: 2, Max: 1}),
		"Max below default":        reflector.PollItems(p.list, &reflector.PollOptions{Max: 1}),
		"Hint without source":      reflector.Hint[string](nil, none),
		"Hint without hints":       reflector.Hint(good, nil),
		"Filter without source":    reflector.Filter(nil, func(string) bool { return true }),
		"Filter without keep":      reflector.Filter(good, nil),
		"Transform without source": reflector.Transform(nil, func(s string) string { return s }),
		"Transform without f":      reflector.Transform(good, nil),
		"inside others":            reflector.Filter(reflector.Transform(reflector.Hint(reflector.Poll(nil, keyOf, nil), once), func(s string) string { return s }), func(string) bool { return true }),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := src.List(t.Context(), reflector.ListOptions{})
			wantErr(t, "List", err, reflector.ErrInvalidOptions)
			wantErr(t, "Run", reflector.New(src, newSink(t), nil).Run(t.Context()), reflector.ErrInvalidOptions)
		})
	}
}

// A pause may be as long as there is.
func TestPollHardlyEver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := &polled{items: items("a=1")}
		r := start(t, reflector.PollItems(p.list, &reflector.PollOptions{Every: math.MaxInt64}), newSink(t), &reflector.Options{Session: -1})
		after(0)
		for range 50 { // each has another jitter
			r.Relist("test")
			after(time.Hour)
		}
		want(t, "lists", len(p.at), 51)
	})
}
