package informer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// hand drives an informer's sink without a reflector. T is a string.
type hand struct {
	t    *testing.T
	inf  *informer.Informer[string]
	sink reflector.Sink[string]
	told []string // since the last look
}

func byHand(t *testing.T, indexes ...indexer.Indexed[string]) *hand {
	src := reflector.Poll(nil, func(string) string { return "" }, nil) // never asked
	inf := informer.New(src, &informer.Options{Name: "hand"}, indexes...)
	h := &hand{t: t, inf: inf, sink: informer.SinkOf(inf)}
	inf.AddHandler(func(c informer.Change[string]) {
		s := fmt.Sprintf("%v %s", c.Type, c.Key)
		switch c.Type {
		case informer.Added:
			s += ": " + c.New
		case informer.Updated:
			s += ": " + c.Old + ">" + c.New
		case informer.Deleted:
			s += ": " + c.Old + "!" + c.Last
		}
		s += " @" + string(c.Version) + " " + c.Cause.String()
		if c.Inferred {
			s += " inferred"
		}
		h.told = append(h.told, s)
	}, &informer.HandlerOptions{Inline: true})
	return h
}

// it is "key id version object".
func it(s string) object.Item[string] {
	f := strings.Split(s, " ")
	for n := range f {
		f[n] = strings.TrimPrefix(f[n], "-")
	}
	return object.Item[string]{Key: f[0], ID: f[1], Version: object.Version(f[2]), Object: f[3]}
}

func put(s string) reflector.Event[string] {
	return reflector.Event[string]{Op: reflector.OpPut, Known: true, Item: it(s)}
}

func del(s string) reflector.Event[string] {
	item := it(s)
	return reflector.Event[string]{Op: reflector.OpDelete, Known: item.Object != "", Item: item}
}

func (h *hand) apply(events ...reflector.Event[string]) {
	h.t.Helper()
	if err := h.sink.Apply(reflector.Batch[string]{Events: events, Cursor: "c"}, object.Watched); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hand) list(why object.Cause, items ...string) {
	h.t.Helper()
	r := h.sink.Begin(why)
	stage(h.t, r, items...)
	if err := r.Commit("c"); err != nil {
		h.t.Fatal(err)
	}
}

func stage(t *testing.T, r reflector.Relist[string], items ...string) {
	t.Helper()
	var page []object.Item[string]
	for _, s := range items {
		page = append(page, it(s))
	}
	if err := r.Stage(page); err != nil {
		t.Fatal(err)
	}
}

// see compares what was told since the last look, and what the cache holds.
func (h *hand) see(told []string, cache ...string) {
	h.t.Helper()
	if d := cmp.Diff(told, h.told); d != "" {
		h.t.Errorf("told (-want +got):\n%s", d)
	}
	h.told = nil
	var have []string
	for key := range h.inf.Cache().Sorted() {
		item, _ := h.inf.Cache().Item(key)
		have = append(have, fmt.Sprintf("%s -%s -%s -%s", item.Key, item.ID, item.Version, item.Object))
	}
	for n := range cache {
		item := it(cache[n])
		cache[n] = fmt.Sprintf("%s -%s -%s -%s", item.Key, item.ID, item.Version, item.Object)
	}
	if d := cmp.Diff(cache, have); d != "" {
		h.t.Errorf("cache (-want +got):\n%s", d)
	}
}

// TestG3_OneBatch: what one batch says of one key, from the state "a I 1 x".
func TestG3_OneBatch(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []reflector.Event[string]
		told   []string
		cache  []string
	}{
		{"update", []reflector.Event[string]{put("a I 2 y")},
			[]string{"updated a: x>y @2 watched"}, []string{"a I 2 y"}},
		{"the same again", []reflector.Event[string]{put("a I 1 z")}, nil, []string{"a I 1 x"}},
		{"delete, unknown state", []reflector.Event[string]{del("a - - -")},
			[]string{"deleted a: x!x @1 watched"}, nil},
		{"delete, known state", []reflector.Event[string]{del("a I 2 y")},
			[]string{"deleted a: x!y @2 watched"}, nil},
		{"delete of nothing", []reflector.Event[string]{del("b - - -")}, nil, []string{"a I 1 x"}},
		{"another identity", []reflector.Event[string]{put("a J 2 y")},
			[]string{"deleted a: x!x @1 watched inferred", "added a: y @2 watched"}, []string{"a J 2 y"}},
		{"another identity, same version", []reflector.Event[string]{put("a J 1 y")},
			[]string{"deleted a: x!x @1 watched inferred", "added a: y @1 watched"}, []string{"a J 1 y"}},
		{"identity no longer told", []reflector.Event[string]{put("a - 2 y")},
			[]string{"updated a: x>y @2 watched"}, []string{"a - 2 y"}},
		{"delete and put", []reflector.Event[string]{del("a - - -"), put("a - 1 x")},
			[]string{"deleted a: x!x @1 watched", "added a: x @1 watched"}, []string{"a - 1 x"}},
		{"put and delete", []reflector.Event[string]{put("a I 2 y"), del("a - - -")},
			[]string{"updated a: x>y @2 watched", "deleted a: y!y @2 watched"}, nil},
		{"two puts", []reflector.Event[string]{put("a I 2 y"), put("a I 3 z")},
			[]string{"updated a: x>y @2 watched", "updated a: y>z @3 watched"}, []string{"a I 3 z"}},
		{"two identities", []reflector.Event[string]{put("a J 2 y"), put("a K 3 z")},
			[]string{"deleted a: x!x @1 watched inferred", "added a: y @2 watched",
				"deleted a: y!y @2 watched inferred", "added a: z @3 watched"}, []string{"a K 3 z"}},
		{"new and gone", []reflector.Event[string]{put("b - 2 y"), del("b - - -")},
			[]string{"added b: y @2 watched", "deleted b: y!y @2 watched"}, []string{"a I 1 x"}},
		{"other keys between", []reflector.Event[string]{put("b - 2 b"), put("a I 3 y"), put("b - 4 c")},
			[]string{"added b: b @2 watched", "updated a: x>y @3 watched", "updated b: b>c @4 watched"},
			[]string{"a I 3 y", "b - 4 c"}},
		{"no such operation", []reflector.Event[string]{{Item: it("a I 2 y")}}, nil, []string{"a I 1 x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := byHand(t)
			h.list(object.Initial, "a I 1 x")
			h.see([]string{"added a: x @1 initial"}, "a I 1 x")
			h.apply(c.events...)
			h.see(c.told, c.cache...)
		})
	}
}

// TestG8_Relist: a later list is compared with what the cache has then.
func TestG8_Relist(t *testing.T) {
	for _, c := range []struct {
		name  string
		items []string
		told  []string
		cache []string
	}{
		{"nothing new", []string{"a I 1 other", "b - - b"}, nil, []string{"a I 1 x", "b - - b"}},
		{"empty", nil, []string{"deleted a: x!x @1 relist inferred", "deleted b: b!b @ relist inferred"}, nil},
		{"one left out", []string{"b - - b"}, []string{"deleted a: x!x @1 relist inferred"}, []string{"b - - b"}},
		{"no version, changed", []string{"a I 1 x", "b - - c"},
			[]string{"updated b: b>c @ relist"}, []string{"a I 1 x", "b - - c"}},
		{"a version from now on", []string{"a I 1 x", "b - 2 b"},
			[]string{"updated b: b>b @2 relist"}, []string{"a I 1 x", "b - 2 b"}},
		{"created again", []string{"a J 2 y", "b - - b"},
			[]string{"deleted a: x!x @1 relist inferred", "added a: y @2 relist"}, []string{"a J 2 y", "b - - b"}},
		{"twice: the later counts", []string{"a I 2 y", "b - - b", "a I 3 z"},
			[]string{"updated a: x>z @3 relist"}, []string{"a I 3 z", "b - - b"}},
		{"twice: the later is what is there", []string{"a I 2 y", "b - - b", "a I 1 x"},
			nil, []string{"a I 1 x", "b - - b"}},
		{"twice: the later is new", []string{"a I 1 x", "b - - b", "a I 2 y"},
			[]string{"updated a: x>y @2 relist"}, []string{"a I 2 y", "b - - b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := byHand(t)
			h.list(object.Initial, "a I 1 x", "b - - b")
			h.see([]string{"added a: x @1 initial", "added b: b @ initial"}, "a I 1 x", "b - - b")
			h.list(object.Relist, c.items...)
			if len(h.told) == 2 && h.told[0] > h.told[1] && c.name == "empty" {
				h.told[0], h.told[1] = h.told[1], h.told[0] // keys in no order
			}
			h.see(c.told, c.cache...)
		})
	}
}

func TestRelist_PagesUnstageAbort(t *testing.T) {
	h := byHand(t)
	h.list(object.Initial, "a - 1 a", "b - 1 b", "c - 1 c")
	h.told = nil

	r := h.sink.Begin(object.Relist)
	h.apply(put("d - 2 d")) // between Begin and the first Stage
	h.see([]string{"added d: d @2 watched"}, "a - 1 a", "b - 1 b", "c - 1 c", "d - 2 d")
	stage(t, r, "a - 1 a", "b - 3 bb")
	stage(t, r)
	r.Unstage("a")
	r.Unstage("b")
	r.Unstage("nobody")
	stage(t, r, "c - 3 cc", "d - 2 d", "e - 3 e")
	r.Unstage("e")
	stage(t, r, "b - 3 bb")
	h.see(nil, "a - 1 a", "b - 1 b", "c - 1 c", "d - 2 d") // nobody sees any of it yet
	if err := r.Commit("c"); err != nil {
		t.Fatal(err)
	}
	h.see([]string{"deleted a: a!a @1 relist inferred", "updated c: c>cc @3 relist", "updated b: b>bb @3 relist"},
		"b - 3 bb", "c - 3 cc", "d - 2 d")

	r = h.sink.Begin(object.Relist)
	stage(t, r, "z - 9 z")
	r.Abort()
	h.see(nil, "b - 3 bb", "c - 3 cc", "d - 2 d")
}

// TestG9_NothingToldBeforeTheFirstList: what comes in before reaches the cache,
// and handlers with the first list, once.
func TestG9_NothingToldBeforeTheFirstList(t *testing.T) {
	h := byHand(t)
	r := h.sink.Begin(object.Initial)
	h.apply(put("a - 1 a"), put("b - 1 b"))
	h.see(nil, "a - 1 a", "b - 1 b")
	if h.inf.Synced() {
		t.Error("synced before the first list")
	}
	stage(t, r, "a - 1 a")
	if err := r.Commit("c"); err != nil {
		t.Fatal(err)
	}
	if !h.inf.Synced() {
		t.Error("not synced after the first list")
	}
	h.see([]string{"added a: a @1 initial"}, "a - 1 a")
}

func TestG5_BatchBecomesVisibleAtOnce(t *testing.T) {
	h := byHand(t)
	h.list(object.Initial, "a - 1 a")
	before := h.inf.Cache().Snapshot()
	var told, objects []int
	h.inf.AddBatchHandler(func(cs []informer.Change[string]) {
		told, objects = append(told, len(cs)), append(objects, h.inf.Cache().Len())
	}, &informer.HandlerOptions{Inline: true})
	h.apply(put("b - 2 b"), put("c - 2 c"))
	h.apply() // no call for no changes
	if fmt.Sprint(told, objects) != "[1 2] [1 3]" || before.Len() != 1 {
		t.Errorf("told %v with %v objects in the cache, %d in an old snapshot", told, objects, before.Len())
	}
}

// A source that breaks its contract must not break the informer.
func TestSink_EmptyKey(t *testing.T) {
	h := byHand(t)
	h.list(object.Initial, "a - 1 a")
	h.see([]string{"added a: a @1 initial"}, "a - 1 a")
	h.apply(put("b - 2 b"), put(" - 2 b"))
	h.see([]string{"added b: b @2 watched"}, "a - 1 a", "b - 2 b")
	if err := h.inf.Status().Refused[""]; !errors.Is(err, indexer.ErrNoKey) {
		t.Errorf("refused: %v, want indexer.ErrNoKey", err)
	}
}
