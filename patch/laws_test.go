package patch_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/homeostat/homeostat/patch"
)

const rounds = 2000

// each runs a law for many seeds and tells the seed that breaks it.
func each(t *testing.T, law func(t *testing.T, r source)) {
	t.Helper()
	for seed := range uint64(rounds) {
		law(t, newSource(seed))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// same compares without ending the goroutine, so that each can tell the seed.
func same(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !refEqual(decode(t, got), decode(t, want)) {
		t.Errorf("%s:\ngot  %s\nwant %s", what, got, want)
	}
}

// TestLaw_MergeIsTheReference, and applying a patch twice is applying it once,
// byte for byte.
func TestLaw_MergeIsTheReference(t *testing.T) {
	each(t, func(t *testing.T, r source) {
		doc := r.document()
		text, change := r.text(doc), r.text(r.change(doc))
		p := mustMerge(t, string(change))
		once := apply(t, p, text)
		same(t, fmt.Sprintf("%s with %s", text, change), once, encode(t, refMerge(decode(t, text), decode(t, change))))
		if twice := apply(t, p, once); !bytes.Equal(once, twice) {
			t.Errorf("once  %s\ntwice %s", once, twice)
		}
	})
}

// TestLaw_MergeRoundTrip: the patch between two documents leads from the one to
// the other, or there is none.
func TestLaw_MergeRoundTrip(t *testing.T) {
	lost, empty := 0, 0
	each(t, func(t *testing.T, r source) {
		doc := r.document()
		from, to := r.text(doc), r.text(r.change(doc))
		a, b := decode(t, from), decode(t, to)
		p, err := patch.MergeBetween(from, to)
		if !refRepresentable(a, b) {
			if lost++; p != nil || !errors.Is(err, patch.ErrNotRepresentable) {
				t.Errorf("%s to %s: %v, %v", from, to, p, err)
			}
			near, err := patch.MergeNear(from, to)
			if err != nil {
				t.Fatal(err)
			}
			same(t, fmt.Sprintf("near, %s to %s", from, to), apply(t, near, from), encode(t, refRepresent(a, b)))
			return
		}
		if err != nil {
			t.Errorf("%s to %s: %v", from, to, err)
			return
		}
		same(t, fmt.Sprintf("%s to %s", from, to), apply(t, p, from), to)
		if patch.IsEmpty(p) != refEqual(a, b) {
			t.Errorf("%s to %s: IsEmpty %v", from, to, patch.IsEmpty(p))
		}
		if patch.IsEmpty(p) {
			empty++
		}
	})
	if lost < rounds/20 || empty < rounds/100 {
		t.Errorf("%d not representable, %d empty: too few to mean much", lost, empty)
	}
}

// refRepresent is to without the nulls that a merge patch can't set.
func refRepresent(from, to any) any {
	members, ok := to.(map[string]any)
	if !ok {
		return to
	}
	old, _ := from.(map[string]any)
	out := map[string]any{}
	for name, v := range members {
		was, had := old[name]
		if v != nil || had && was == nil {
			out[name] = refRepresent(was, v)
		}
	}
	return out
}

// TestP20_P21_JSONRoundTrip: generated patches apply in order, whatever the names
// and however many elements go.
func TestP20_P21_JSONRoundTrip(t *testing.T) {
	each(t, func(t *testing.T, r source) {
		doc := r.document()
		from, to := r.text(doc), r.text(r.change(doc))
		p, err := patch.JSONBetween(from, to)
		if err != nil {
			t.Fatal(err)
		}
		text, err := p.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("%s to %s by %s", from, to, text), apply(t, p, from), to)
		same(t, "read again", apply(t, mustJSON(t, string(text)), from), to)
		if patch.IsEmpty(p) != refEqual(decode(t, from), decode(t, to)) {
			t.Errorf("%s to %s: IsEmpty %v", from, to, patch.IsEmpty(p))
		}
	})
}

// TestLaw_NoDifferenceNoPatch: diff(a, a) is empty, however a is spelt.
func TestLaw_NoDifferenceNoPatch(t *testing.T) {
	each(t, func(t *testing.T, r source) {
		doc := r.document()
		a, b := r.text(doc), r.text(doc)
		for _, between := range []func(a, b []byte) (patch.Patch, error){patch.MergeBetween, patch.JSONBetween} {
			p, err := between(a, b)
			if err != nil || !patch.IsEmpty(p) {
				t.Errorf("%s and %s: %v, %v", a, b, p, err)
			}
			if _, ok := doc.(map[string]any); ok && err == nil {
				if got := apply(t, p, a); !bytes.Equal(got, a) {
					t.Errorf("%s became %s", a, got)
				}
			}
		}
	})
}

// TestLaw_JSONIsTheReference, its errors included; what fails changes nothing.
func TestLaw_JSONIsTheReference(t *testing.T) {
	classes := map[error]error{errRefPath: patch.ErrPath, errRefTest: patch.ErrTestFailed, errRefPatch: patch.ErrBadPatch}
	passed := 0
	each(t, func(t *testing.T, r source) {
		doc := r.document()
		text, ops := r.text(doc), r.text(r.operations(doc))
		before := bytes.Clone(text)
		got, err := applyJSON(text, ops)
		if !bytes.Equal(text, before) {
			t.Errorf("the document was changed: %s", text)
		}
		want, refErr := refJSONPatch(decode(t, text), decode(t, ops))
		if refErr != nil {
			for class, sentinel := range classes {
				if errors.Is(refErr, class) && (got != nil || !errors.Is(err, sentinel)) {
					t.Errorf("%s with %s: %s, %v; want %v", text, ops, got, err, refErr)
				}
			}
			return
		}
		if passed++; err != nil {
			t.Errorf("%s with %s: %v", text, ops, err)
			return
		}
		same(t, fmt.Sprintf("%s with %s", text, ops), got, encode(t, want))
	})
	if passed < rounds/3 {
		t.Errorf("only %d patches passed", passed)
	}
}

// TestP02_UnnamedMembersKeepTheirBytes: a patch on one member leaves the text of
// all others, their order, and lists with doubles in them.
func TestP02_UnnamedMembersKeepTheirBytes(t *testing.T) {
	each(t, func(t *testing.T, r source) {
		var members []string
		at := r.IntN(5)
		for i := range 5 {
			name := fmt.Sprintf(`"m%d"`, i)
			if i == at {
				name = `"target"`
			}
			value := string(bytes.TrimSpace(r.text(r.value(3))))
			if i != at && r.IntN(2) == 0 {
				value = `[{"port":443, "v":` + value + `},{"port":443},1.0,1.0]`
			}
			members = append(members, name+": "+value)
		}
		doc := "{ " + strings.Join(members, ",\n") + " }"
		members[at] = `"target": 7`
		want := "{ " + strings.Join(members, ",\n") + " }"
		for _, p := range []patch.Patch{
			mustMerge(t, `{"target":7}`),
			mustJSON(t, `[{"op":"replace","path":"/target","value":7}]`),
			mustJSON(t, `[{"op":"add","path":"/target","value":7}]`),
		} {
			if got := apply(t, p, []byte(doc)); string(got) != want {
				t.Errorf("%s\nbecame\n%s", doc, got)
			}
		}
	})
}
