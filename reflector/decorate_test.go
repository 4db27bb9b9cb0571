package reflector_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

func keep(s string) bool    { return !strings.HasPrefix(s, "x") }
func upper(s string) string { return strings.ToUpper(s) + "!" }
func panics(s string) bool  { return keepOrPanic(s) != "" }
func keepOrPanic(s string) string {
	if s == "bad" {
		panic("kaboom")
	}
	return s
}

// all powers there are, so that what a decorator loses is seen.
func allPowers() powers {
	return powers{
		Paged: true, SnapshotPages: true, Initial: true, Progress: true, ResumeProven: true, KeysOnly: true, StaleLists: true,
		Compare: compare, Reached: func(cursor, object.Version) bool { return true },
		Head: func(context.Context) (cursor, error) { return "7", nil },
		Get: func(_ context.Context, key string) (item, error) {
			switch key {
			case "gone":
				return item{}, reflector.ErrNotFound
			case "down":
				return item{}, errBoom
			}
			return item{Key: key, Version: "1", ID: "i", Object: key}, nil
		},
	}
}

func TestDecoratorsKeepPowers(t *testing.T) {
	src := &source{powers: allPowers()}
	for name, c := range map[string]struct {
		src  reflector.ListWatcher[string]
		lose []string
	}{
		"Filter":    {reflector.Filter(src, keep), []string{"KeysOnly"}},
		"Transform": {reflector.Transform(src, upper), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := reflect.ValueOf(c.src.Powers())
			for i := range got.NumField() {
				field := got.Type().Field(i).Name
				lost := got.Field(i).IsZero()
				if want := len(c.lose) > 0 && c.lose[0] == field; lost != want {
					t.Errorf("%s: lost %v", field, lost)
				}
			}
		})
	}
	for _, src := range []reflector.ListWatcher[string]{reflector.Filter(&source{}, keep), reflector.Transform(&source{}, upper)} {
		if src.Powers().Get != nil {
			t.Error("a Get from nowhere")
		}
	}
}

func TestFilterGet(t *testing.T) {
	get := reflector.Filter(&source{powers: allPowers()}, func(s string) bool { return panics(s) && keep(s) }).Powers().Get
	it, err := get(t.Context(), "a")
	want(t, "error", err, nil)
	want(t, "item", it, item{Key: "a", Version: "1", ID: "i", Object: "a"})
	for key, target := range map[string]error{"x": reflector.ErrNotFound, "gone": reflector.ErrNotFound, "down": errBoom} {
		it, err = get(t.Context(), key)
		wantErr(t, key, err, target)
		want(t, "item", it, item{})
	}
	_, err = get(t.Context(), "bad")
	wantPanic(t, err, "keep", "bad")
}

func TestTransformGet(t *testing.T) {
	get := reflector.Transform(&source{powers: allPowers()}, func(s string) string { return upper(keepOrPanic(s)) }).Powers().Get
	it, err := get(t.Context(), "a")
	want(t, "error", err, nil)
	want(t, "item", it, item{Key: "a", Version: "1", ID: "i", Object: "A!"})
	for key, target := range map[string]error{"gone": reflector.ErrNotFound, "down": errBoom} {
		_, err = get(t.Context(), key)
		wantErr(t, key, err, target)
	}
	_, err = get(t.Context(), "bad")
	wantPanic(t, err, "transform", "bad")
}

func wantPanic(t *testing.T, err error, in, key string) {
	t.Helper()
	p, ok := errors.AsType[*reflector.PanicError](err)
	if !ok {
		t.Fatalf("no panic: %v", err)
	}
	want(t, "in", p.In, in)
	want(t, "key", p.Key, key)
	want(t, "text", err.Error(), fmt.Sprintf("reflector: panic in %s at key %q: kaboom", in, key))
	if len(p.Stack) == 0 {
		t.Error("no stack")
	}
}

// odd are the lists that a filter has to cut in each way.
var odd = []struct {
	in, kept string
}{
	{"", ""}, {"a", "a"}, {"x", ""}, {"a b", "a b"}, {"a x", "a"}, {"x a", "a"}, {"x y1 x2", "y1"}, {"a x b x2 c", "a b c"}, {"x x2", ""},
}

func TestFilterList(t *testing.T) {
	for _, c := range odd {
		t.Run(c.in, func(t *testing.T) {
			var in []item
			for _, k := range strings.Fields(c.in) {
				in = append(in, item{Key: k, Version: "1", Object: k})
			}
			src := &source{list: func(context.Context, int, reflector.ListOptions) (page, error) {
				return page{Items: in, Cursor: "5", Next: "2"}, nil
			}}
			before := fmt.Sprint(in)
			got, err := reflector.Filter(src, keep).List(t.Context(), reflector.ListOptions{KeysOnly: true, Limit: 3, Page: "1"})
			want(t, "error", err, nil)
			var kept []string
			for _, it := range got.Items {
				kept = append(kept, it.Key)
			}
			want(t, "kept", strings.Join(kept, " "), c.kept)
			want(t, "cursor", got.Cursor, "5")
			want(t, "next", got.Next, "2")
			want(t, "the source's slice", fmt.Sprint(in), before)
			want(t, "asked", src.lists[0], reflector.ListOptions{Limit: 3, Page: "1"})
		})
	}
	src := &source{list: func(context.Context, int, reflector.ListOptions) (page, error) { return page{}, errBoom }}
	_, err := reflector.Filter(src, keep).List(t.Context(), reflector.ListOptions{})
	wantErr(t, "error", err, errBoom)
	src.list = one("5", "a=good", "b=bad")
	_, err = reflector.Filter(src, panics).List(t.Context(), reflector.ListOptions{})
	wantPanic(t, err, "keep", "b")
	src.list = one("5", "a=x", "b=bad")
	_, err = reflector.Filter(src, func(s string) bool { return keep(keepOrPanic(s)) }).List(t.Context(), reflector.ListOptions{})
	wantPanic(t, err, "keep", "b")
}

func yields(src reflector.ListWatcher[string]) (out []string, last error) {
	for b, err := range src.Watch(context.Background(), reflector.WatchOptions{After: "1"}) {
		if err != nil {
			return out, err
		}
		line := string(b.Cursor)
		if b.Reset {
			line += " reset"
		}
		if b.Synced {
			line += " synced"
		}
		for _, e := range b.Events {
			if e.Op == reflector.OpDelete {
				line += " -"
			} else {
				line += " +"
			}
			line += fmt.Sprintf("%s:%s:%s:%s:%v", e.Key, e.Version, e.ID, e.Object, e.Known)
		}
		out = append(out, line)
	}
	return out, nil
}

// An object that is not kept any more leaves as a delete; cursors pass.
func TestFilterWatch(t *testing.T) {
	final := event{Op: reflector.OpDelete, Known: true, Item: item{Key: "d", Object: "x-final"}}
	batches := []batch{
		{Cursor: "1"},
		{Events: events("a=1", "b=x2", "c=3"), Cursor: "2", Reset: true},
		{Events: events("a=x1"), Cursor: "3", Synced: true},
		{Events: append(events("a=1", "-b"), final), Cursor: "4"},
		{Events: events("b=x9", "a=2"), Cursor: "5"},
		{Events: events("e=1", "-f", "g=x1"), Cursor: "6"},
	}
	batches[4].Events[0].ID = "id"
	before := fmt.Sprint(batches)
	src := &source{watch: func(_ context.Context, _ int, o reflector.WatchOptions, yield yield) {
		want(t, "after", o.After, "1")
		for _, b := range batches {
			if !yield(b, nil) {
				return
			}
		}
		yield(batch{}, errBoom)
	}}
	got, err := yields(reflector.Filter(src, keep))
	wantErr(t, "error", err, errBoom)
	wantAll(t, "batches", got,
		"1",
		"2 reset +a:1::1:true -b:x2:::false +c:3::3:true",
		"3 synced -a:x1:::false",
		"4 +a:1::1:true -b::::false -d:::x-final:true",
		"5 -b:x9:id::false +a:2::2:true",
		"6 +e:1::1:true -f::::false -g:x1:::false")
	want(t, "the source's slices", fmt.Sprint(batches), before)
}

// f is called once for each object and never for a delete, whose final state is
// not told.
func TestTransformWatch(t *testing.T) {
	final := event{Op: reflector.OpDelete, Known: true, Item: item{Key: "d", Version: "9", ID: "i", Object: "final"}}
	batches := []batch{
		{Cursor: "1"},
		{Events: events("a=v"), Cursor: "2", Reset: true},
		{Cursor: "3", Synced: true},
		{Events: append(events("a=w", "-b"), final), Cursor: "4"},
	}
	before := fmt.Sprint(batches)
	src := &source{watch: func(_ context.Context, _ int, o reflector.WatchOptions, yield yield) {
		for _, b := range batches {
			if !yield(b, nil) {
				return
			}
		}
		yield(batch{}, errBoom)
	}}
	calls := 0
	got, err := yields(reflector.Transform(src, func(s string) string { calls++; return upper(s) }))
	wantErr(t, "error", err, errBoom)
	wantAll(t, "batches", got, "1", "2 reset +a:v::V!:true", "3 synced", "4 +a:w::W!:true -b::::false -d:9:i::false")
	want(t, "calls", calls, 2)
	want(t, "the source's slices", fmt.Sprint(batches), before)
}

func TestTransformList(t *testing.T) {
	in := items("a=v", "b=w")
	src := &source{list: func(context.Context, int, reflector.ListOptions) (page, error) {
		return page{Items: in, Cursor: "5", Next: "2"}, nil
	}}
	src.powers.KeysOnly = true
	got, err := reflector.Transform(src, upper).List(t.Context(), reflector.ListOptions{Page: "1"})
	want(t, "error", err, nil)
	want(t, "page", fmt.Sprint(got), "{[{a v  V!} {b w  W!}] [] 5 2}")
	want(t, "the source's slice", fmt.Sprint(in), fmt.Sprint(items("a=v", "b=w")))
	want(t, "asked", src.lists[0].Page, "1")
	// A list of keys has nothing to transform, where the source has such lists.
	got, _ = reflector.Transform(src, upper).List(t.Context(), reflector.ListOptions{KeysOnly: true})
	want(t, "keys only", got.Items[0].Object, "v")
	src.powers.KeysOnly = false
	got, _ = reflector.Transform(src, upper).List(t.Context(), reflector.ListOptions{KeysOnly: true})
	want(t, "objects nevertheless", got.Items[0].Object, "V!")
	src.list = func(context.Context, int, reflector.ListOptions) (page, error) { return page{}, errBoom }
	_, err = reflector.Transform(src, upper).List(t.Context(), reflector.ListOptions{})
	wantErr(t, "error", err, errBoom)
}

// R01: a function that panics at one object ends the watch with an error that
// names it, and the sink keeps what it had.
func TestR01_DecoratorPanics(t *testing.T) {
	for name, wrap := range map[string]func(reflector.ListWatcher[string]) reflector.ListWatcher[string]{
		"keep": func(lw reflector.ListWatcher[string]) reflector.ListWatcher[string] {
			return reflector.Filter(lw, panics)
		},
		"transform": func(lw reflector.ListWatcher[string]) reflector.ListWatcher[string] {
			return reflector.Transform(lw, keepOrPanic)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := &source{powers: powers{ResumeProven: true}, list: one("5", "a=1")}
				src.watch = script(func(ctx context.Context, o reflector.WatchOptions, yield yield) {
					play(ctx, o, yield, live("6", "b=1", "c=bad", "d=1"))
				}, stay)
				s := newSink(t)
				r := start(t, wrap(src), s, &reflector.Options{Backoff: exact})
				after(time.Second / 2)
				wantPanic(t, r.Status().Err, name, "c")
				wantAll(t, "shown", s.shown(), "commit a=1 @5")
			})
		})
	}
}

// A decorator ends the inner watch when its own is ended.
func TestDecoratorsStop(t *testing.T) {
	for name, wrap := range map[string]func(reflector.ListWatcher[string]) reflector.ListWatcher[string]{
		"filter": func(lw reflector.ListWatcher[string]) reflector.ListWatcher[string] {
			return reflector.Filter(lw, keep)
		},
		"transform": func(lw reflector.ListWatcher[string]) reflector.ListWatcher[string] {
			return reflector.Transform(lw, upper)
		},
	} {
		stopped := false
		src := &source{watch: func(_ context.Context, _ int, _ reflector.WatchOptions, yield yield) {
			stopped = !yield(batch{}, nil)
		}}
		for range wrap(src).Watch(t.Context(), reflector.WatchOptions{}) {
			break
		}
		want(t, name, stopped, true)
	}
}

// Large slices are not held between batches.
func TestDecoratorsReuseTheirSlice(t *testing.T) {
	small, large := events("a=1", "b=x"), events("b=x")
	for i := range 5000 {
		large = append(large, events(fmt.Sprintf("k%d=1", i))...)
	}
	src := &source{watch: func(_ context.Context, _ int, _ reflector.WatchOptions, yield yield) {
		for _, b := range [][]event{small, small, large, small, nil, small} {
			if !yield(batch{Events: b}, nil) {
				return
			}
		}
	}}
	for name, lw := range map[string]reflector.ListWatcher[string]{"filter": reflector.Filter(src, keep), "transform": reflector.Transform(src, upper)} {
		var caps []int
		var firsts []*event
		for b := range lw.Watch(t.Context(), reflector.WatchOptions{}) {
			if len(b.Events) == 0 {
				continue
			}
			caps = append(caps, cap(b.Events))
			firsts = append(firsts, &b.Events[0])
		}
		want(t, name+": used again", firsts[0] == firsts[1], true)
		if caps[3] > 100 {
			t.Errorf("%s: capacity %d after a large batch", name, caps[3])
		}
		want(t, name+": cleared", firsts[4].Key, "")
	}
}
