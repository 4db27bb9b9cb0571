package patch_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/homeostat/homeostat/patch"
)

// nested is a text of lists within each other.
func nested(depth int) string {
	return strings.Repeat("[", depth) + strings.Repeat("]", depth)
}

// nestedObjects is a text of objects within each other, with value innermost.
func nestedObjects(depth int, value string) string {
	return strings.Repeat(`{"a":`, depth) + value + strings.Repeat("}", depth)
}

func TestP16_DepthIsLimited(t *testing.T) {
	if patch.MaxDepth != 1000 {
		t.Fatal("the tests below are written for 1000")
	}
	fits, tooDeep := nested(1000), nested(1001)
	if _, err := patch.Merge([]byte(fits)); err != nil {
		t.Error(err)
	}
	p, err := patch.Merge([]byte(tooDeep))
	wantOnlyError(t, p, err, patch.ErrTooLarge)
	p, err = patch.Merge([]byte(nestedObjects(1001, "1")))
	wantOnlyError(t, p, err, patch.ErrTooLarge)
	p, err = patch.JSON([]byte(tooDeep))
	wantOnlyError(t, p, err, patch.ErrTooLarge)
	for _, between := range []func(a, b []byte) (patch.Patch, error){patch.MergeBetween, patch.JSONBetween} {
		p, err = between([]byte(tooDeep), []byte(`1`))
		wantOnlyError(t, p, err, patch.ErrTooLarge)
		p, err = between([]byte(`1`), []byte(tooDeep))
		wantOnlyError(t, p, err, patch.ErrTooLarge)
	}
	// A hundred thousand of them must not exhaust the stack either.
	if _, err := mustMerge(t, `{}`).Apply([]byte(strings.Repeat("[", 100_000))); !errors.Is(err, patch.ErrTooLarge) {
		t.Error(err)
	}
	deep := nestedObjects(1000, "1")
	change := nestedObjects(1000, "2")
	if got := apply(t, mustMerge(t, change), []byte(deep)); string(got) != change {
		t.Error("a patch as deep as the document")
	}
	if got := apply(t, mustMerge(t, nestedObjects(1000, "null")), []byte(`{}`)); string(got) != nestedObjects(999, "{}") {
		t.Error("a deep patch on nothing")
	}
}

// TestP16_OperationsDeepen: each operation that brings in a value is held to
// the limit, and no sound patch is.
func TestP16_OperationsDeepen(t *testing.T) {
	path := func(n int) string { return strings.Repeat("/a", n) }
	for _, c := range []struct {
		name, doc, ops string
		fits           bool
	}{
		{"add to the limit", `{"a":{}}`, `[{"op":"add","path":"/a/b","value":` + nested(998) + `}]`, true},
		{"replace to the limit", nestedObjects(10, "1"), `[{"op":"replace","path":"` + path(10) + `","value":` + nested(990) + `}]`, true},
		{"replace beyond", nestedObjects(10, "1"), `[{"op":"replace","path":"` + path(10) + `","value":` + nested(991) + `}]`, false},
		{"add beyond", nestedObjects(10, "{}"), `[{"op":"add","path":"` + path(11) + `","value":` + nested(990) + `}]`, false},
		{"add beyond, in a list", nested(10), `[{"op":"add","path":"` + strings.Repeat("/0", 9) + `/-","value":` + nested(991) + `}]`, false},
		{"add at the root", nested(1000), `[{"op":"add","path":"","value":` + nested(998) + `},{"op":"copy","from":"","path":"/0"}]`, true},
		{"copy beyond", nestedObjects(600, "1"), `[{"op":"copy","from":"/a","path":"` + path(500) + `"}]`, false},
		{"copy to the limit", nestedObjects(600, "1"), `[{"op":"copy","from":"` + path(100) + `","path":"` + path(500) + `"}]`, true},
		{"copy one beyond", nestedObjects(600, "1"), `[{"op":"copy","from":"` + path(99) + `","path":"` + path(500) + `"}]`, false},
		{"copy what is flat in a deep document", `{"b":[1],"a":` + nestedObjects(900, "1") + `}`, `[{"op":"copy","from":"/b","path":"` + path(500) + `"}]`, true},
		{"move what is flat in a deep document", `{"b":[1],"a":` + nestedObjects(900, "1") + `}`, `[{"op":"move","from":"/b","path":"` + path(500) + `"}]`, true},
		{"move what is flat and was opened", `{"b":[[1]],"a":` + nestedObjects(900, "1") + `}`, `[{"op":"test","path":"/b/0/0","value":1},{"op":"move","from":"/b","path":"` + path(500) + `"}]`, true},
		{"move beyond", `{"b":` + nested(501) + `,"a":` + nestedObjects(500, "1") + `}`, `[{"op":"move","from":"/b","path":"` + path(500) + `"}]`, false},
		{"move to the limit", `{"b":` + nested(500) + `,"a":` + nestedObjects(500, "1") + `}`, `[{"op":"move","from":"/b","path":"` + path(500) + `"}]`, true},
		{"move of what was deepened", `{"b":[],"a":` + nestedObjects(500, "1") + `}`, `[{"op":"add","path":"/b/0","value":` + nested(500) + `},{"op":"move","from":"/b","path":"` + path(500) + `"}]`, false},
		{"copy of what was replaced", `{"b":1,"a":` + nestedObjects(500, "1") + `}`, `[{"op":"replace","path":"/b","value":` + nested(501) + `},{"op":"copy","from":"/b","path":"` + path(500) + `"}]`, false},
		{"deeper at every turn", `{"a":1}`, `[` + strings.Repeat(`{"op":"copy","from":"","path":"/a"},`, 1000) + `{"op":"test","path":"/a","value":1}]`, false},
		{"deeper by moves", `{"a":1,"b":{}}`, `[` + strings.Repeat(`{"op":"move","from":"/a","path":"/b/a"},{"op":"move","from":"/b","path":"/a"},{"op":"add","path":"/b","value":{}},`, 1001) + `{"op":"test","path":"","value":1}]`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := mustJSON(t, c.ops).Apply([]byte(c.doc))
			switch {
			case !c.fits:
				if got != nil || !errors.Is(err, patch.ErrTooLarge) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
			case err != nil:
				t.Error(err)
			default:
				if err := patch.Check(got); err != nil {
					t.Errorf("the answer could not be patched again: %v", err)
				}
			}
		})
	}
}

// TestP17_NoAllocationByIndex: the index in a path costs nothing.
func TestP17_NoAllocationByIndex(t *testing.T) {
	for _, ops := range []string{
		`[{"op":"add","path":"/a/2000000000","value":1}]`,
		`[{"op":"add","path":"/a/9223372036854775807","value":1}]`,
		`[{"op":"copy","from":"/b","path":"/a/99999999999999999999999"}]`,
		`[{"op":"move","from":"/b","path":"/a/2000000000"}]`,
	} {
		p := mustJSON(t, ops)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := p.Apply([]byte(`{"a":[],"b":1}`))
		runtime.ReadMemStats(&after)
		if !errors.Is(err, patch.ErrPath) {
			t.Errorf("%s: %v", ops, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
			t.Errorf("%s: %d bytes allocated", ops, used)
		}
	}
}

// TestP17_CopiesAreLimited: each copy may double the document.
func TestP17_CopiesAreLimited(t *testing.T) {
	double := `{"op":"copy","from":"/a","path":"/a/-"},`
	ops := `[` + strings.Repeat(double, 40) + `{"op":"test","path":"/a/0","value":1}]`
	got, err := mustJSON(t, ops).Apply([]byte(`{"a":[1]}`))
	if got != nil || !errors.Is(err, patch.ErrTooLarge) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	// The limit is on the sum of what is copied, to the byte.
	big := `"` + strings.Repeat("x", patch.MaxCopied/4-2) + `"`
	doc := []byte(`{"a":` + big + `}`)
	for n, fits := range map[int]bool{4: true, 5: false} {
		var ops []string
		for i := range n {
			ops = append(ops, fmt.Sprintf(`{"op":"copy","from":"/a","path":"/%d"}`, i))
		}
		_, err := mustJSON(t, `[`+strings.Join(ops, ",")+`]`).Apply(doc)
		if (err == nil) != fits || !fits && !errors.Is(err, patch.ErrTooLarge) {
			t.Errorf("%d copies of a quarter: %v", n, err)
		}
	}
}

// TestP17_MovesNearMaxDepth: to see how deep a value is costs what a copy does.
func TestP17_MovesNearMaxDepth(t *testing.T) {
	big := `"` + strings.Repeat("x", patch.MaxCopied/2) + `"`
	doc := []byte(`{"b":` + big + `,"a":` + nestedObjects(900, "1") + `}`)
	deep := strings.Repeat("/a", 500)
	once := `{"op":"move","from":"/b","path":"` + deep + `"}`
	back := `{"op":"move","from":"` + deep + `","path":"/b"}`
	if _, err := mustJSON(t, `[`+once+`]`).Apply(doc); err != nil {
		t.Error(err)
	}
	got, err := mustJSON(t, `[`+once+`,`+back+`,`+once+`]`).Apply(doc)
	if got != nil || !errors.Is(err, patch.ErrTooLarge) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestP16_OperationsAreLimited(t *testing.T) {
	ops := func(n int) []byte {
		return []byte(`[` + strings.Repeat(`{"op":"test","path":"","value":1},`, n-1) + `{"op":"test","path":"","value":1}]`)
	}
	if _, err := patch.JSON(ops(patch.MaxOps)); err != nil {
		t.Error(err)
	}
	p, err := patch.JSON(ops(patch.MaxOps + 1))
	wantOnlyError(t, p, err, patch.ErrTooLarge)
}

// TestJSONBetween_Deep: nor is one that is too deep to be read: an operation in
// its list takes two levels.
func TestJSONBetween_Deep(t *testing.T) {
	p, err := patch.JSONBetween([]byte(`1`), []byte(nested(998)))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := p.MarshalJSON()
	if _, err := patch.JSON(text); err != nil {
		t.Error(err)
	}
	p, err = patch.JSONBetween([]byte(`1`), []byte(nested(999)))
	wantOnlyError(t, p, err, patch.ErrTooLarge)
}

// TestJSONBetween_ManyDifferences: a patch that JSON would not read is not made.
func TestJSONBetween_ManyDifferences(t *testing.T) {
	list := func(n, from int) []byte {
		out := []byte("[")
		for i := range n {
			out = fmt.Appendf(out, "%d,", from+i)
		}
		return append(out, "0]"...)
	}
	for n, whole := range map[int]bool{patch.MaxOps: false, patch.MaxOps + 1: true} {
		from, to := list(n, 1), list(n, 100_000)
		p, err := patch.JSONBetween(from, to)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := p.MarshalJSON()
		if got := strings.HasPrefix(string(text), `[{"op":"replace","path":"","value":[100000,`); got != whole {
			t.Errorf("%d differences: %.60s", n, text)
		}
		if _, err := patch.JSON(text); err != nil {
			t.Error(err)
		}
		if got := apply(t, p, from); string(got) != string(to) {
			t.Errorf("%d differences: another document", n)
		}
	}
}
