package informer_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// While an audit waits for the watch, live batches go on; what was staged stays as
// it was staged, also of objects that were let go since the cache had them.
func TestAudit_ApplyBetweenStageAndCommit(t *testing.T) {
	h := byHand(t)
	h.list(object.Initial, "a I 1 x", "b I 1 x", "c I 1 x", "d I 1 x")
	h.told = nil
	r := h.sink.Begin(object.Audit)
	stage(t, r, "a I 1 x", "b I 1 x", "c I 1 x", "e I 2 x")
	if d := counts(r.Diff()); d != (reflector.Diff{Puts: 1, Deletes: 1, Of: 4}) {
		t.Errorf("before: %+v", d)
	}
	// What the list shows comes in; a is touched though the list says nothing of it.
	h.apply(put("e I 2 x"), del("d - - -"), put("a I 0 lost"), del("b - - -"))
	h.told = nil
	if d := counts(r.Diff()); d != (reflector.Diff{Puts: 2, Of: 3}) {
		t.Errorf("after: %+v", d)
	}
	if err := r.Commit("c"); err != nil {
		t.Fatal(err)
	}
	h.see([]string{"updated a: lost>x @1 audit", "added b: x @1 audit"},
		"a I 1 x", "b I 1 x", "c I 1 x", "e I 2 x")
	// Nothing is kept for a relist that has ended.
	h.apply(put("c I 5 y"))
	h.see([]string{"updated c: x>y @5 watched"}, "a I 1 x", "b I 1 x", "c I 5 y", "e I 2 x")
}

// counts is d without what names the deletes.
func counts(d reflector.Diff) reflector.Diff {
	d.Gone = 0
	return d
}

// Equal sets of deletes have one name, others another.
func TestDiff_NamesWhatIsGone(t *testing.T) {
	h := byHand(t)
	h.list(object.Initial, "a I 1 x", "b I 1 x", "c I 1 x", "d I 1 x")
	gone := func(left ...string) uint64 {
		r := h.sink.Begin(object.Relist)
		defer r.Abort()
		stage(t, r, left...)
		return r.Diff().Gone
	}
	one, same := gone("a I 1 x", "b I 1 x"), gone("b I 1 x", "a I 2 y")
	other := gone("c I 1 x", "d I 1 x")
	if one != same || one == other || one == 0 {
		t.Errorf("%d, %d, %d", one, same, other)
	}
}

// What is known to be unreadable, in that very version, is no correction either.
func TestAudit_ByKeysOfUnreadableObjects(t *testing.T) {
	h := byHand(t)
	r := h.sink.Begin(object.Initial)
	stage(t, r, "a I 1 x")
	r.Keep([]reflector.Fault{{Key: "bad", Version: "2", Err: errRotten}})
	if err := r.Commit("c"); err != nil {
		t.Fatal(err)
	}
	for version, puts := range map[object.Version]int{"2": 0, "3": 1} {
		r = h.sink.Begin(object.Audit)
		a := it("a I 1 -")
		a.Object = ""
		if err := r.StageKeys([]object.Item[string]{a, {Key: "bad", ID: "J", Version: version}}); err != nil {
			t.Fatal(err)
		}
		if d := counts(r.Diff()); d != (reflector.Diff{Puts: puts, Of: 1}) {
			t.Errorf("version %s: %+v", version, d)
		}
		r.Abort()
	}
}

// An audit that is given up leaves no trace.
func TestAudit_Aborted(t *testing.T) {
	h := byHand(t)
	h.list(object.Initial, "a I 1 x", "b I 1 x")
	r := h.sink.Begin(object.Audit)
	stage(t, r, "a I 1 x")
	r.Abort()
	h.told = nil
	h.apply(put("a I 2 y"))
	h.see([]string{"updated a: x>y @2 watched"}, "a I 2 y", "b I 1 x")
}

// What the cache refuses, and has refused before, is no correction.
func TestAudit_OfRefusedObjects(t *testing.T) {
	h := byHand(t, indexer.Unique("value", func(s string) (string, bool) { return s, true }))
	h.list(object.Initial, "a I 1 x", "b I 1 x")
	r := h.sink.Begin(object.Audit)
	stage(t, r, "a I 1 x", "b I 1 x")
	if d := counts(r.Diff()); d != (reflector.Diff{Of: 1}) {
		t.Errorf("%+v", d)
	}
	r.Abort()
	r = h.sink.Begin(object.Audit)
	stage(t, r, "a I 1 x", "b I 2 x")
	if d := counts(r.Diff()); d != (reflector.Diff{Puts: 1, Of: 1}) {
		t.Errorf("%+v", d)
	}
	r.Abort()
}

// R12: a delete is lost for good; an audit finds it, and says so.
func TestR12_AuditOverAFake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New(fake.Plan{}, object.Item[string]{Key: "a", Object: "x"}, object.Item[string]{Key: "c", Object: "x"})
		inf := informer.New(b, &informer.Options{Audit: time.Hour})
		var mu sync.Mutex
		var all []informer.Change[string]
		inf.AddHandler(func(c informer.Change[string]) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, c)
		}, &informer.HandlerOptions{Inline: true})
		since := func() (told []informer.Change[string]) {
			mu.Lock()
			defer mu.Unlock()
			told, all = all, nil
			return told
		}
		go inf.Run(t.Context())
		time.Sleep(time.Minute)
		b.SetPlan(fake.Plan{Faults: []fake.Fault{{On: fake.Watch, Do: fake.Drop, Unseen: true}}})
		if _, err := b.Delete(t.Context(), "c", object.Any); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		b.SetPlan(fake.Plan{})
		if _, ok := inf.Cache().Get("c"); !ok {
			t.Fatal("nothing was lost")
		}
		since()
		time.Sleep(time.Hour)
		synctest.Wait()
		told := since()
		if len(told) != 1 || told[0].Key != "c" || told[0].Type != informer.Deleted || told[0].Cause != object.Audit || !told[0].Inferred {
			t.Errorf("told %+v", told)
		}
		if st := inf.Status().Source; st.Audits != 1 || st.Corrections != 1 {
			t.Errorf("%d audits, %d corrections", st.Audits, st.Corrections)
		}
		time.Sleep(5 * time.Hour)
		synctest.Wait()
		told = since()
		if st := inf.Status().Source; len(told) > 0 || st.Audits < 5 || st.Corrections != 1 {
			t.Errorf("without drift: told %v, %d audits, %d corrections", told, st.Audits, st.Corrections)
		}
	})
}

var errRotten = errors.New("rotten")

// What the source cannot read keeps its last good state, is named, and is what a
// wait for it ends with.
func TestUnreadable(t *testing.T) {
	h := byHand(t)
	h.list(object.Initial, "a I 1 x", "b I 1 x")
	h.told = nil
	apply := func(b reflector.Batch[string]) {
		t.Helper()
		if err := h.sink.Apply(b, object.Watched); err != nil {
			t.Fatal(err)
		}
	}
	waited := make(chan error)
	go func() { waited <- h.inf.WaitFor(t.Context(), "a", "2") }()
	for h.inf.Status().Waiting == 0 {
		runtime.Gosched()
	}
	apply(reflector.Batch[string]{Faults: []reflector.Fault{{Key: "a", Version: "2", Err: errRotten}, {}}, Cursor: "d"})
	err := <-waited
	refused, ok := errors.AsType[*informer.RefusedError](err)
	if !ok || refused.Key != "a" || refused.Version != "2" || !errors.Is(err, errRotten) || !errors.Is(err, reflector.ErrUnreadable) {
		t.Errorf("WaitFor: %v", err)
	}
	h.see(nil, "a I 1 x", "b I 1 x")
	if r := h.inf.Status().Refused; len(r) != 1 || r["a"] == nil {
		t.Errorf("refused: %v", r)
	}

	r := h.sink.Begin(object.Relist)
	stage(t, r, "b I 1 x")
	r.Keep([]reflector.Fault{{Key: "a", Version: "2", Err: errRotten}, {Key: "new", Version: "3", Err: errRotten}})
	if d := counts(r.Diff()); d != (reflector.Diff{Of: 2}) {
		t.Errorf("%+v", d)
	}
	if err := r.Commit("e"); err != nil {
		t.Fatal(err)
	}
	h.see(nil, "a I 1 x", "b I 1 x")
	if n := len(h.inf.Status().Refused); n != 2 {
		t.Errorf("%d are refused", n)
	}

	// It can be read again: in the old state, in a new one, or not at all any more.
	h.list(object.Relist, "a I 1 x", "b I 1 x", "new I 4 y")
	h.see([]string{"added new: y @4 relist"}, "a I 1 x", "b I 1 x", "new I 4 y")
	if n := len(h.inf.Status().Refused); n != 0 {
		t.Errorf("%d are refused", n)
	}
	apply(reflector.Batch[string]{Faults: []reflector.Fault{{Key: "a", Version: "5", Err: errRotten}, {Key: "b", Version: "5", Err: errRotten}}, Cursor: "f"})
	h.apply(put("a I 6 z"), del("b - - -"))
	h.see([]string{"updated a: x>z @6 watched", "deleted b: x!x @1 watched"}, "a I 6 z", "new I 4 y")
	if n := len(h.inf.Status().Refused); n != 0 {
		t.Errorf("%d are refused", n)
	}
}

// A fault that is told better within the same full state is none.
func TestUnreadable_ToldBetter(t *testing.T) {
	h := byHand(t)
	h.list(object.Initial, "a I 1 x", "b I 1 x", "c I 1 x")
	h.told = nil
	r := h.sink.Begin(object.Relist)
	r.Keep([]reflector.Fault{{Key: "a", Err: errRotten}, {Key: "b", Err: errRotten}, {Key: "c", Err: errRotten}})
	stage(t, r, "a I 1 x")
	r.Unstage("b")
	if err := r.Commit("d"); err != nil {
		t.Fatal(err)
	}
	h.see([]string{"deleted b: x!x @1 relist inferred"}, "a I 1 x", "c I 1 x")
	if r := h.inf.Status().Refused; len(r) != 1 || r["c"] == nil {
		t.Errorf("refused: %v", r)
	}
}

// R28, by an informer.
func TestR28_ConfirmDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New(fake.Plan{}, object.Item[string]{Key: "a", Object: "x"}, object.Item[string]{Key: "b", Object: "x"})
		inf := informer.New(b, &informer.Options{MaxDelete: 1})
		go inf.Run(t.Context())
		time.Sleep(time.Minute)
		if inf.ConfirmDeletes() {
			t.Error("confirmed, and nothing is held")
		}
		b.SetPlan(fake.Plan{Faults: []fake.Fault{{On: fake.Watch, Do: fake.Fail}}}) // nobody is told
		b.Cut()
		b.Delete(t.Context(), "a", object.Any)
		b.Delete(t.Context(), "b", object.Any)
		b.Compact()
		b.SetPlan(fake.Plan{})
		time.Sleep(5 * time.Minute)
		st := inf.Status()
		if st.Objects != 2 || st.Source.State != reflector.Held || st.Source.WouldDelete != 2 {
			t.Fatalf("%d objects, %v, would delete %d", st.Objects, st.Source.State, st.Source.WouldDelete)
		}
		if !inf.ConfirmDeletes() {
			t.Error("nothing to confirm")
		}
		synctest.Wait()
		if n := inf.Status().Objects; n != 0 {
			t.Errorf("%d objects", n)
		}
	})
}

// Keys and versions are compared, and nothing is published.
func TestAudit_ByKeys(t *testing.T) {
	h := byHand(t)
	h.list(object.Initial, "a I 1 x", "b I 1 x", "c I 1 x", "d I 1 x")
	h.told = nil
	key := func(s string) object.Item[string] {
		item := it(s)
		item.Object = ""
		return item
	}
	r := h.sink.Begin(object.Audit)
	if err := r.StageKeys([]object.Item[string]{key("a I 1 -"), key("b I 2 -"), key("c J 1 -"), key("e I 1 -")}); err != nil {
		t.Fatal(err)
	}
	if d := counts(r.Diff()); d != (reflector.Diff{Puts: 3, Deletes: 1, Of: 4}) {
		t.Errorf("%+v", d)
	}
	// The watch comes to it.
	h.apply(put("b I 2 y"), put("c J 1 y"), put("e I 1 y"), del("d - - -"))
	if d := counts(r.Diff()); d != (reflector.Diff{Of: 4}) {
		t.Errorf("%+v", d)
	}
	h.apply(put("a I 7 z"))
	if d := counts(r.Diff()); d != (reflector.Diff{Puts: 1, Of: 4}) {
		t.Errorf("%+v", d)
	}
	h.told = nil
	if err := r.Unchanged("c"); err != nil {
		t.Fatal(err)
	}
	h.see(nil, "a I 7 z", "b I 2 y", "c J 1 y", "e I 1 y")
}

// After a reset, what has the version of before need not be what it was.
func TestDistrust(t *testing.T) {
	h := byHand(t)
	h.list(object.Initial, "a I 1 x", "b I 1 x")
	h.told = nil
	h.list(object.Relist, "a I 1 y", "b I 1 x")
	h.see(nil, "a I 1 x", "b I 1 x") // trusted
	r := h.sink.Begin(object.Relist)
	r.Distrust()
	stage(t, r, "a I 1 y", "b I 1 x")
	if d := counts(r.Diff()); d != (reflector.Diff{Puts: 1, Of: 2}) {
		t.Errorf("%+v", d)
	}
	if err := r.Commit("z"); err != nil {
		t.Fatal(err)
	}
	h.see([]string{"updated a: x>y @1 relist"}, "a I 1 y", "b I 1 x")
}

// What the cache refuses, and the source has not any more, differs: an audit finds it,
// or the object would come up when its value is free.
func TestAudit_OfRefusedObjectsThatAreGone(t *testing.T) {
	h := byHand(t, indexer.Unique("value", func(s string) (string, bool) { return s, true }))
	h.list(object.Initial, "a I 1 x", "b J 1 x")
	r := h.sink.Begin(object.Audit)
	a := it("a I 1 -")
	a.Object = ""
	if err := r.StageKeys([]object.Item[string]{a}); err != nil {
		t.Fatal(err)
	}
	if d := counts(r.Diff()); d != (reflector.Diff{Deletes: 1, Of: 1}) {
		t.Errorf("%+v", d)
	}
	r.Abort()
	h.list(object.Audit, "a I 1 x")
	h.told = nil
	h.apply(put("a I 2 y"))
	h.see([]string{"updated a: x>y @2 watched"}, "a I 2 y")
}

// A refused object that gets its chance while an audit waits is a change like any.
func TestAudit_RemembersWhatIsTriedAgain(t *testing.T) {
	h := byHand(t, indexer.Unique("value", func(s string) (string, bool) { return s, true }))
	h.list(object.Initial, "a I - x", "b J - good")
	h.apply(put("b J - x")) // refused: the cache keeps "good"
	r := h.sink.Begin(object.Audit)
	stage(t, r, "a I - y", "b J - good") // it went back, and nobody was told
	h.apply(put("a I - y"))              // x is free: b gets it
	if d := counts(r.Diff()); d != (reflector.Diff{Puts: 1, Of: 2}) {
		t.Errorf("%+v", d)
	}
	h.told = nil
	if err := r.Commit("c"); err != nil {
		t.Fatal(err)
	}
	h.see([]string{"updated b: x>good @ audit"}, "a I - y", "b J - good")
}
