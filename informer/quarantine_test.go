package informer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// Objects that begin with "!" make length panic; first is unique but for those
// without a first letter in upper case.
var (
	length = indexer.By("length", func(s string) int {
		if s[0] == '!' {
			panic("no length of " + s)
		}
		return len(s)
	})
	first = indexer.Unique("first", func(s string) (byte, bool) { return s[0], s[0] >= 'A' && s[0] <= 'Z' })
)

func (h *hand) refused(want ...string) {
	h.t.Helper()
	if got := slices.Sorted(maps.Keys(h.inf.Status().Refused)); !slices.Equal(got, want) {
		h.t.Errorf("refused %q, want %q", got, want)
	}
}

func TestQuarantine_PanickingIndex(t *testing.T) {
	h := byHand(t, length)
	h.list(object.Initial, "a - 1 a", "b - 1 !b", "c - 1 c")
	slices.Sort(h.told)
	h.see([]string{"added a: a @1 initial", "added c: c @1 initial"}, "a - 1 a", "c - 1 c")
	h.refused("b")

	// The rest of the batch goes on; the last good state stays.
	h.apply(put("a - 2 !a"), put("c - 2 cc"), put("d - 2 d"))
	h.see([]string{"updated c: c>cc @2 watched", "added d: d @2 watched"}, "a - 1 a", "c - 2 cc", "d - 2 d")
	h.refused("a", "b")
	err := h.inf.Status().Refused["a"]
	var re *informer.RefusedError
	var ie *indexer.IndexError
	if !errors.As(err, &re) || !errors.As(err, &ie) || re.Key != "a" || re.Version != "2" || ie.Index != "length" {
		t.Errorf("got %v", err)
	}
	for _, part := range []string{`"hand"`, `"a"`, `"2"`, "no length of !a"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}

	// A later good state heals, also when it is the one that the cache has.
	h.apply(put("b - 3 b"))
	h.see([]string{"added b: b @3 watched"}, "a - 1 a", "b - 3 b", "c - 2 cc", "d - 2 d")
	h.refused("a")
	h.apply(put("a - 1 a"))
	h.see(nil, "a - 1 a", "b - 3 b", "c - 2 cc", "d - 2 d")
	h.refused()
	if n := byLength(h, 1); n != 3 {
		t.Errorf("the index has %d of length 1", n)
	}
}

func byLength(h *hand, n int) int { return length.Count(h.inf.Cache(), n) }

func TestQuarantine_OneBatch(t *testing.T) {
	for _, c := range []struct {
		name    string
		events  []reflector.Event[string]
		told    []string
		cache   []string
		refused []string
	}{
		{"bad and good", []reflector.Event[string]{put("a I 2 !y"), put("a I 3 z")},
			[]string{"updated a: x>!y @2 watched", "updated a: !y>z @3 watched"}, []string{"a I 3 z"}, nil},
		{"good and bad", []reflector.Event[string]{put("a I 2 y"), put("a I 3 !z")},
			nil, []string{"a I 1 x"}, []string{"a"}},
		{"bad and gone", []reflector.Event[string]{put("a I 2 !y"), del("a - - -")},
			[]string{"updated a: x>!y @2 watched", "deleted a: !y!!y @2 watched"}, nil, nil},
		{"gone and bad", []reflector.Event[string]{del("a - - -"), put("a - 2 !y")},
			[]string{"deleted a: x!x @1 watched"}, nil, []string{"a"}},
		{"gone, bad, and gone, beside another bad one",
			[]reflector.Event[string]{del("a - - -"), put("a - 2 !y"), put("b - 2 !b"), del("a - - -")},
			[]string{"deleted a: x!x @1 watched", "added a: !y @2 watched", "deleted a: !y!!y @2 watched"}, nil, []string{"b"}},
		{"another identity", []reflector.Event[string]{put("a J 2 !y")},
			[]string{"deleted a: x!x @1 watched inferred"}, nil, []string{"a"}},
		{"two other identities", []reflector.Event[string]{put("a J 2 y"), put("a K 2 !y")},
			[]string{"deleted a: x!x @1 watched inferred"}, nil, []string{"a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := byHand(t, length)
			h.list(object.Initial, "a I 1 x")
			h.told = nil
			h.apply(c.events...)
			h.see(c.told, c.cache...)
			h.refused(c.refused...)
		})
	}
}

func TestQuarantine_DeletedKeysLeave(t *testing.T) {
	h := byHand(t, length)
	h.list(object.Initial, "a - 1 !a", "b - 1 !b", "c - 1 c")
	h.apply(put("c - 2 !c"))
	h.refused("a", "b", "c")
	h.told = nil
	h.apply(del("a - - -"))
	h.refused("b", "c")
	h.list(object.Relist)
	h.see([]string{"deleted c: c!c @1 relist inferred"})
	h.refused()
}

func TestQuarantine_Relist(t *testing.T) {
	h := byHand(t, length)
	h.list(object.Initial, "a - 1 a", "b - 1 b")
	h.apply(put("a - 2 !a"), put("b - 2 !b"))
	h.told = nil
	// a still bad; b is back at what the cache has.
	h.list(object.Relist, "a - 2 !a", "b - 1 b")
	h.see(nil, "a - 1 a", "b - 1 b")
	h.refused("a")
	h.list(object.Relist, "a - 3 aa", "b - 1 b")
	h.see([]string{"updated a: a>aa @3 relist"}, "a - 3 aa", "b - 1 b")
	h.refused()
}

func TestQuarantine_UniqueIndex(t *testing.T) {
	h := byHand(t, first)
	h.list(object.Initial, "a - 1 Xa", "b - 1 b")
	h.apply(put("b - 2 Xb"), put("c - 2 Yc"))
	h.refused("b")
	err := h.inf.Status().Refused["b"]
	var te *indexer.TakenError
	if !errors.As(err, &te) || te.Holder != "a" {
		t.Errorf("got %v", err)
	}
	slices.Sort(h.told)
	h.see([]string{"added a: Xa @1 initial", "added b: b @1 initial", "added c: Yc @2 watched"},
		"a - 1 Xa", "b - 1 b", "c - 2 Yc")

	// The holder gives the value up: who was refused for it gets it.
	h.apply(put("a - 3 a"))
	h.see([]string{"updated a: Xa>a @3 watched", "updated b: b>Xb @2 watched"}, "a - 3 a", "b - 2 Xb", "c - 2 Yc")
	h.refused()

	// One after the other: what b gives up by it, d gets.
	h.apply(put("b - 4 Yb"), put("d - 4 Xd"))
	h.refused("b", "d")
	h.told = nil
	h.apply(del("c - - -"), put("e - 5 e"))
	h.see([]string{"deleted c: Yc!Yc @2 watched", "added e: e @5 watched",
		"updated b: Xb>Yb @4 watched", "added d: Xd @4 watched"}, "a - 3 a", "b - 4 Yb", "d - 4 Xd", "e - 5 e")
	h.refused()

	// A swap within one batch is no conflict.
	h.apply(put("b - 6 Xb"), put("d - 6 Yd"))
	h.refused()
}

// Of several that want what comes free the first by key gets it; the others stay
// refused, by its new holder, and get it after that.
func TestQuarantine_Queue(t *testing.T) {
	h := byHand(t, first)
	h.list(object.Initial, "a - 1 Xa")
	h.apply(put("d - 2 Xd"), put("b - 2 Xb"))
	h.apply(put("e - 3 Xe"), put("c - 3 Xc"))
	for n, holder := range []string{"a", "b", "c", "d", "e"} {
		h.refused([]string{"b", "c", "d", "e"}[n:]...)
		if key, _, _ := first.One(h.inf.Cache(), 'X'); key != holder || h.inf.Cache().Len() != 1 {
			t.Errorf("the value is with %q, want %q", key, holder)
		}
		h.apply(del(holder + " - - -"))
	}
	h.told = nil
	h.see(nil)
}

// Refusals that come out only when other keys are left out.
func TestQuarantine_Rounds(t *testing.T) {
	h := byHand(t, length, first)
	h.list(object.Initial, "a - 1 Xa", "b - 1 Yb", "c - 1 Zc")
	h.told = nil
	h.apply(put("a - 2 !a"), put("b - 2 Xb"), put("c - 2 Yc"), put("d - 2 Zd"), put("e - 2 e"))
	h.see([]string{"added e: e @2 watched"}, "a - 1 Xa", "b - 1 Yb", "c - 1 Zc", "e - 2 e")
	h.refused("a", "b", "c", "d")
	// And all of them come in once a is good again.
	h.apply(put("a - 3 a"))
	h.see([]string{"updated a: Xa>a @3 watched", "updated b: Yb>Xb @2 watched", "updated c: Zc>Yc @2 watched", "added d: Zd @2 watched"},
		"a - 3 a", "b - 2 Xb", "c - 2 Yc", "d - 2 Zd", "e - 2 e")
	h.refused()
}

// An index that is unique by mistake refuses nearly all, and must not take for
// ever to do so.
func TestQuarantine_Many(t *testing.T) {
	h := byHand(t, first)
	var items []string
	for n := range 20_000 {
		items = append(items, fmt.Sprintf("k%d - 1 X", n))
	}
	h.list(object.Initial, items...)
	if n, r := h.inf.Cache().Len(), len(h.inf.Status().Refused); n != 1 || r != 19_999 {
		t.Errorf("%d objects, %d refused", n, r)
	}
	h.list(object.Relist)
	if n, r := h.inf.Cache().Len(), len(h.inf.Status().Refused); n != 0 || r != 0 {
		t.Errorf("%d objects, %d refused", n, r)
	}
}

func TestQuarantine_LoggedOnce(t *testing.T) {
	var log strings.Builder
	src := reflector.Poll(nil, func(string) string { return "" }, nil)
	inf := informer.New(src, &informer.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, length)
	h := &hand{t: t, inf: inf, sink: informer.SinkOf(inf)}
	h.list(object.Initial, "a - 1 !a")
	h.list(object.Relist, "a - 1 !a")
	h.apply(put("a - 1 !a"))
	lines := func() int { return strings.Count(log.String(), "level=WARN") }
	if lines() != 1 || !strings.Contains(log.String(), "key=a") {
		t.Errorf("logged: %s", &log)
	}
	h.apply(put("a - 2 !a"))
	if lines() != 2 {
		t.Errorf("another state, logged: %s", &log)
	}
	h.apply(put("a - 3 a"))
	h.apply(put("a - 2 !a"))
	if lines() != 3 {
		t.Errorf("after a good one, logged: %s", &log)
	}
	if n := strings.Count(log.String(), "level=INFO"); n != 1 || !strings.Contains(log.String(), "objects=0") {
		t.Errorf("synced, logged: %s", &log)
	}
}

// A barrier for what the cache refuses can't be met, and says so.
func TestWaitFor_Refused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		bad := indexer.By("bad", func(o *obj) string {
			if o.Group == "bad" {
				panic(o.Key)
			}
			return ""
		})
		src := newSource()
		inf := informer.New(src, nil, bad)
		run(t, inf)
		settle()
		release := src.Hold()
		v := src.Put("a", "bad")
		errs := make(chan error, 2)
		go func() { errs <- inf.WaitFor(t.Context(), "a", v) }()
		settle()
		release()
		settle()
		// Later ones hear it at once.
		go func() { errs <- inf.WaitFor(t.Context(), "a", v) }()
		settle()
		var re *informer.RefusedError
		for range 2 {
			select {
			case err := <-errs:
				if !errors.As(err, &re) || re.Version != v {
					t.Errorf("got %v", err)
				}
			default:
				t.Fatal("still waits")
			}
		}
		// A list that shows it refused still proves nothing good.
		if err := inf.WaitFor(t.Context(), "a", ""); !errors.As(err, &re) {
			t.Errorf("got %v", err)
		}
		if err := inf.WaitFor(t.Context(), "a", src.Put("a", "good")); err != nil {
			t.Error(err)
		}
	})
}

// Without versions, that a state was refused says nothing of what came after it.
func TestWaitFor_RefusedWithoutVersion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		bad := indexer.By("bad", func(o *obj) string {
			if o.Group == "bad" {
				panic(o.Key)
			}
			return ""
		})
		src := newSource()
		src.bare, src.powers.Initial = true, true
		inf := informer.New(src, nil, bad)
		run(t, inf)
		settle()
		src.Put("a", "bad")
		settle()
		release := src.Hold()
		defer release()
		src.Put("a", "good")
		if err := inf.WaitFor(t.Context(), "a", ""); err != nil {
			t.Error(err)
		}
		if o, ok := inf.Cache().Get("a"); !ok || o.Group != "good" {
			t.Errorf("the cache has %+v", o)
		}
	})
}

type nilError struct{ err error }

func (e *nilError) Error() string { return e.err.Error() }
func (e *nilError) Unwrap() error { return e.err }

// An index function may panic with an error that can't be asked anything.
func TestQuarantineOfAPanicWithATypedNil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newSource()
		src.Put("a", "bad")
		src.Put("b", "g")
		i := informer.New(src, nil, indexer.By("group", func(o *obj) string {
			if o.Group == "bad" {
				panic((*nilError)(nil))
			}
			return o.Group
		}))
		run(t, i)
		synctest.Wait()
		if _, ok := i.Cache().Get("b"); !ok || i.Status().Refused["a"] == nil {
			t.Errorf("cache %v, refused %v", cached(i), i.Status().Refused)
		}
		if _, err := json.Marshal(i.Status()); err != nil {
			t.Error(err)
		}
	})
}

// An object without a key is refused alone, and shown as what its source did wrong.
func TestQuarantineOfAnEmptyKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newSource()
		src.tx(func() {
			src.put("", "g")
			src.put("a", "g")
		})
		i := informer.New(src, &informer.Options{Name: "pods"})
		run(t, i)
		synctest.Wait()
		check := func(key string) {
			t.Helper()
			if _, ok := i.Cache().Get(key); !ok {
				t.Errorf("%q is not in the cache", key)
			}
			err := i.Status().Refused[""]
			if !errors.Is(err, reflector.ErrContract) || !strings.Contains(err.Error(), `"pods"`) {
				t.Errorf("refused: %v", err)
			}
			if s := i.Status().Source; s.Err != nil || s.State != reflector.Watching {
				t.Errorf("source: %v, %v", s.State, s.Err)
			}
		}
		check("a") // of a list
		src.tx(func() {
			src.put("", "h")
			src.put("b", "g")
		})
		synctest.Wait()
		check("b") // of a watch
		if i.Cache().Len() != 2 {
			t.Errorf("cache: %v", cached(i))
		}
		src.Unseen(func() { src.del("") })
		i.Relist("test")
		time.Sleep(time.Minute)
		synctest.Wait()
		if r := i.Status().Refused; r != nil {
			t.Errorf("it is gone, refused: %v", r)
		}
	})
}
