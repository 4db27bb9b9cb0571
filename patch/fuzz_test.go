package patch_test

import (
	"bytes"
	"errors"
	"regexp"
	"testing"

	"github.com/homeostat/homeostat/patch"
)

// beyondReference finds what encoding/json and float64 can't tell apart, and the
// package can: halves of surrogate pairs, and numbers out of range.
var beyondReference = regexp.MustCompile(`\\u[dD][89a-fA-F]|[eE][+-]?[0-9]{3}|[0-9]{200}`)

// referable says whether the texts are valid, and the reference can be trusted
// with them.
func referable(texts ...[]byte) bool {
	for _, text := range texts {
		if patch.Check(text) != nil || beyondReference.Match(text) {
			return false
		}
	}
	return true
}

func FuzzMerge(f *testing.F) {
	for _, s := range [][2]string{
		{`{"a":1,"b":{"c":null}}`, `{"a":null,"b":{"c":1,"d":[null]}}`},
		{`[1]`, `{"a":{"b":null}}`},
		{`{"a":1,"\u0061":2}`, ` {"a" : {"x":null}}`},
		{`{}`, `5`}, {`{`, `{}`}, {`{}`, `{"a":1,}`},
	} {
		f.Add([]byte(s[0]), []byte(s[1]))
	}
	f.Fuzz(func(t *testing.T, doc, change []byte) {
		docBefore, changeBefore := bytes.Clone(doc), bytes.Clone(change)
		p, err := patch.Merge(change)
		if err != nil {
			if p != nil {
				t.Fatal("a patch with an error")
			}
			return
		}
		once, err := p.Apply(doc)
		if !bytes.Equal(doc, docBefore) || !bytes.Equal(change, changeBefore) {
			t.Fatal("an argument was changed")
		}
		if err != nil {
			if once != nil {
				t.Fatal("a document with an error")
			}
			return
		}
		twice, err := p.Apply(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("once %q, twice %q, %v", once, twice, err)
		}
		if referable(doc, change) && !refEqual(decode(t, once), refMerge(decode(t, doc), decode(t, change))) {
			t.Fatalf("%q with %q: %q", doc, change, once)
		}
	})
}

func FuzzJSON(f *testing.F) {
	for _, s := range [][2]string{
		{`{"a":[1,2,{"b":3}]}`, `[{"op":"move","from":"/a/0","path":"/a/-"},{"op":"test","path":"/a/1/b","value":3.0},{"op":"copy","from":"/a","path":"/b"}]`},
		{`{"a":1}`, `[{"op":"remove","path":"/a"},{"op":"add","path":"/~0~1","value":null},{"op":"replace","path":"","value":[]}]`},
		{`[1]`, `[{"op":"add","path":"/01","value":1}]`},
		{`{"a":1,"a":2}`, `[{"op":"add","path":"/a/b","value":1}]`},
		{`{}`, `[{"op":"copy","from":"","path":"/a"},{"op":"copy","from":"","path":"/a"}]`},
		{`1`, `{}`}, {`1`, `[1]`}, {`"x"`, `[{"op":"test","path":"/0","value":"x"}]`},
	} {
		f.Add([]byte(s[0]), []byte(s[1]))
	}
	f.Fuzz(func(t *testing.T, doc, ops []byte) {
		docBefore, opsBefore := bytes.Clone(doc), bytes.Clone(ops)
		got, err := applyJSON(doc, ops)
		if !bytes.Equal(doc, docBefore) || !bytes.Equal(ops, opsBefore) {
			t.Fatal("an argument was changed")
		}
		if err != nil && got != nil {
			t.Fatal("a document with an error")
		}
		if err == nil && patch.Check(got) != nil {
			t.Fatalf("%q with %q: %q is invalid", doc, ops, got)
		}
		if !referable(doc, ops) || errors.Is(err, patch.ErrTooLarge) {
			return
		}
		want, refErr := refJSONPatch(decode(t, doc), decode(t, ops))
		if (err == nil) != (refErr == nil) {
			t.Fatalf("%q with %q: %v; the reference says %v", doc, ops, err, refErr)
		}
		if err == nil && !refEqual(decode(t, got), want) {
			t.Fatalf("%q with %q: %q; the reference says %s", doc, ops, got, encode(t, want))
		}
	})
}

func FuzzBetween(f *testing.F) {
	for _, s := range [][2]string{
		{`{"a":[1,2,3],"b":{"c":1}}`, `{"a":[2,3,4],"b":{"c":null}}`},
		{`{"/":1,"~1":2}`, `{"":{"~":1}}`},
		{`{"a":1,"a":2}`, `{"a":1}`},
		{`[1,2,3,4,5]`, `[2,5]`}, {`5`, `{}`}, {`{"a":1}`, `{"a":1.0}`},
	} {
		f.Add([]byte(s[0]), []byte(s[1]))
	}
	f.Fuzz(func(t *testing.T, from, to []byte) {
		fromBefore, toBefore := bytes.Clone(from), bytes.Clone(to)
		list, err := patch.JSONBetween(from, to)
		if err != nil {
			return
		}
		merge, mergeErr := patch.MergeBetween(from, to)
		if !bytes.Equal(from, fromBefore) || !bytes.Equal(to, toBefore) {
			t.Fatal("an argument was changed")
		}
		value := func(text []byte) []byte { return bytes.Trim(text, " \t\r\n") }
		equal := patch.Equal(value(from), value(to))
		got, err := list.Apply(from)
		if err != nil || !patch.Equal(value(got), value(to)) {
			t.Fatalf("JSON patch, %q to %q: %q, %v", from, to, got, err)
		}
		if patch.IsEmpty(list) != equal {
			t.Fatalf("%q to %q: empty JSON patch: %v", from, to, !equal)
		}
		if referable(from, to) {
			if can := refRepresentable(decode(t, from), decode(t, to)); can != (mergeErr == nil) {
				t.Fatalf("%q to %q: %v; the reference says %v", from, to, mergeErr, can)
			}
		}
		if mergeErr != nil {
			if !errors.Is(mergeErr, patch.ErrNotRepresentable) {
				t.Fatal(mergeErr)
			}
			return
		}
		got, err = merge.Apply(from)
		if err != nil || !patch.Equal(value(got), value(to)) {
			t.Fatalf("merge patch, %q to %q: %q, %v", from, to, got, err)
		}
		if patch.IsEmpty(merge) != equal {
			t.Fatalf("%q to %q: empty merge patch: %v", from, to, !equal)
		}
	})
}
