package patch_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/homeostat/homeostat/patch"
)

// TestP14_Appendix has the examples of RFC 7386, appendix A, and what goes wrong
// with nulls elsewhere. Answers are compared as bytes.
func TestP14_Appendix(t *testing.T) {
	for _, c := range []struct{ doc, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		// nulls in lists come in as they are, at any depth of them
		{`{}`, `{"a":[1,null,2]}`, `{"a":[1,null,2]}`},
		{`{"a":1}`, `{"a":[{"b":null},[{"c":null}]]}`, `{"a":[{"b":null},[{"c":null}]]}`},
		{`1`, `[{"a":null}]`, `[{"a":null}]`},
		// nulls in new objects don't
		{`{"title":"t"}`, `{"author":{"x":null}}`, `{"title":"t","author":{}}`},
		{`{"author":5}`, `{"author":{"x":null,"y":[null],"z":{"n":null,"k":1}}}`, `{"author":{"y":[null],"z":{"k":1}}}`},
		{`{"author":null}`, `{"author":{"x":null}}`, `{"author":{}}`},
		{`{"author":[]}`, `{"author":{}}`, `{"author":{}}`},
		// documents that are no objects
		{`null`, `{}`, `{}`},
		{`"x"`, `{"a":null}`, `{}`},
		{`5`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{`5`, `6`, `6`},
		{`{}`, `{}`, `{}`},
	} {
		got := apply(t, mustMerge(t, c.patch), []byte(c.doc))
		if string(got) != c.want {
			t.Errorf("%s with %s: %s; want %s", c.doc, c.patch, got, c.want)
		}
	}
}

// TestP06_UnnamedStays: null, {} and [] that a patch does not name are kept.
func TestP06_UnnamedStays(t *testing.T) {
	doc := `{"a":null,"b":{},"c":[],"d":1,"e":{"x":null,"y":{},"z":[null]}}`
	for patch, want := range map[string]string{
		`{"d":2}`:               `{"a":null,"b":{},"c":[],"d":2,"e":{"x":null,"y":{},"z":[null]}}`,
		`{"e":{"new":1}}`:       `{"a":null,"b":{},"c":[],"d":1,"e":{"x":null,"y":{},"z":[null],"new":1}}`,
		`{}`:                    doc,
		`{"no":null}`:           doc,
		`{"e":{}}`:              doc,
		`{"e":{"no":null}}`:     doc,
		`{"b":{},"e":{"y":{}}}`: doc,
		`{"a":null}`:            `{"b":{},"c":[],"d":1,"e":{"x":null,"y":{},"z":[null]}}`,
		`{"e":{"y":null}}`:      `{"a":null,"b":{},"c":[],"d":1,"e":{"x":null,"z":[null]}}`,
	} {
		if got := apply(t, mustMerge(t, patch), []byte(doc)); string(got) != want {
			t.Errorf("%s: %s; want %s", patch, got, want)
		}
	}
}

// TestP07_OneWayToDelete: a null deletes, whether or not there is something.
func TestP07_OneWayToDelete(t *testing.T) {
	p := mustMerge(t, `{"m":null}`)
	for doc, want := range map[string]string{
		`{"m":{"x":1},"n":1}`: `{"n":1}`,
		`{"m":null,"n":1}`:    `{"n":1}`,
		`{"n":1}`:             `{"n":1}`,
		`{"n":1,"\u006d":[]}`: `{"n":1}`,
		`{"m":1}`:             `{}`,
	} {
		if got := apply(t, p, []byte(doc)); string(got) != want {
			t.Errorf("%s: %s; want %s", doc, got, want)
		}
	}
}

// TestP12_NumbersKeepTheirText, in the document and in the patch.
func TestP12_NumbersKeepTheirText(t *testing.T) {
	numbers := `[9223372036854775807,18446744073709551616,1000000,1.0,1e400,-0,0.10,123456789012345678901234567890.5]`
	doc := `{"n":` + numbers + `,"x":1}`
	if got := apply(t, mustMerge(t, `{"x":9007199254740993}`), []byte(doc)); string(got) != `{"n":`+numbers+`,"x":9007199254740993}` {
		t.Errorf("%s", got)
	}
	if got := apply(t, mustMerge(t, `{"y":{"n":`+numbers+`,"gone":null}}`), []byte(`{}`)); string(got) != `{"y":{"n":`+numbers+`}}` {
		t.Errorf("%s", got)
	}
	ops := `[{"op":"copy","from":"/n","path":"/m"},{"op":"move","from":"/n/0","path":"/n/-"},{"op":"add","path":"/big","value":1E+400}]`
	rest := `18446744073709551616,1000000,1.0,1e400,-0,0.10,123456789012345678901234567890.5`
	want := `{"n":[` + rest + `,9223372036854775807],"x":1,"m":` + numbers + `,"big":1E+400}`
	if got := apply(t, mustJSON(t, ops), []byte(doc)); string(got) != want {
		t.Errorf("%s; want %s", got, want)
	}
	// Comparing shows a difference in the last digit.
	p, err := patch.MergeBetween([]byte(`{"a":9223372036854775806,"b":1000000}`), []byte(`{"a":9223372036854775807,"b":1000000}`))
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := p.MarshalJSON(); string(text) != `{"a":9223372036854775807}` {
		t.Errorf("%s", text)
	}
}

// TestMerge_Duplicates: the last of several members of one name counts; those
// that the patch does not name stay.
func TestMerge_Duplicates(t *testing.T) {
	for _, c := range []struct{ doc, patch, want string }{
		{`{"a":1,"a":2,"b":3}`, `{"b":4}`, `{"a":1,"a":2,"b":4}`},
		{`{"a":1,"b":3,"a":2}`, `{"a":5}`, `{"b":3,"a":5}`},
		{`{"a":1,"b":3,"\u0061":2,"a":0}`, `{"a":null}`, `{"b":3}`},
		{`{"a":{"x":1},"a":{"y":1}}`, `{"a":{"z":1}}`, `{"a":{"x":1},"a":{"y":1,"z":1}}`},
		{`{"a":{"x":1},"a":7}`, `{"a":{"z":1}}`, `{"a":{"z":1}}`},
		{`{"a":7,"a":{"x":1}}`, `{"a":{"z":1}}`, `{"a":7,"a":{"x":1,"z":1}}`},
		// in the patch
		{`{"a":1}`, `{"a":5,"a":null}`, `{}`},
		{`{"a":1}`, `{"a":null,"a":5}`, `{"a":5}`},
		{`{}`, `{"o":{"x":null,"x":1}}`, `{"o":{"x":1}}`},
		{`{}`, `{"o":{"x":1,"x":null}}`, `{"o":{}}`},
		{`{}`, `{"o":{"x":{"y":null},"x":1,"k":2}}`, `{"o":{"x":1,"k":2}}`},
	} {
		got := apply(t, mustMerge(t, c.patch), []byte(c.doc))
		if string(got) != c.want {
			t.Errorf("%s with %s: %s; want %s", c.doc, c.patch, got, c.want)
		}
	}
}

// TestMerge_Text: white space and the spelling of names are the document's.
func TestMerge_Text(t *testing.T) {
	indented := "{\n  \"a\": 1,\n  \"b\": {\n    \"c\": 2\n  },\n  \"d\": 3\n}\n"
	for _, c := range []struct{ name, doc, patch, want string }{
		{"nothing", indented, `{}`, indented},
		{"replace", indented, `{"a":5}`, strings.Replace(indented, "1", "5", 1)},
		{"remove the first", indented, `{"a":null}`, "{\n  \"b\": {\n    \"c\": 2\n  },\n  \"d\": 3\n}\n"},
		{"remove one between", indented, `{"b":null}`, "{\n  \"a\": 1,\n  \"d\": 3\n}\n"},
		{"remove the last", indented, `{"d":null}`, "{\n  \"a\": 1,\n  \"b\": {\n    \"c\": 2\n  }\n}\n"},
		{"remove all", indented, `{"d":null,"a":null,"b":null}`, "{}\n"},
		{"add", indented, `{"e":4}`, "{\n  \"a\": 1,\n  \"b\": {\n    \"c\": 2\n  },\n  \"d\": 3,\n  \"e\":4\n}\n"},
		{"add inside", indented, `{"b":{"e":4}}`, "{\n  \"a\": 1,\n  \"b\": {\n    \"c\": 2,\n    \"e\":4\n  },\n  \"d\": 3\n}\n"},
		{"remove the last and add", indented, `{"d":null,"e":4}`, "{\n  \"a\": 1,\n  \"b\": {\n    \"c\": 2\n  },\n  \"e\":4\n}\n"},
		{"space before commas", `{ "a" : 1 , "b":2 ,"c":3 }`, `{"b":5}`, `{ "a" : 1 , "b":5 ,"c":3 }`},
		{"space before commas, remove", `{ "a" : 1 , "b":2 ,"c":3 }`, `{"c":null}`, `{ "a" : 1 , "b":2 }`},
		{"space in nothing", `{"o":{ },"l":[ ]}`, `{"o":{},"x":1}`, `{"o":{ },"l":[ ],"x":1}`},
		{"into nothing", `{ }`, `{"a":1,"b":2}`, `{ "a":1,"b":2}`},
		{"name spelt otherwise", `{"\u0061": 1}`, `{"a":2}`, `{"\u0061": 2}`},
		{"name spelt otherwise in the patch", `{"a": 1}`, `{"\u0061":2,"\u0062" : 3}`, `{"a": 2,"\u0062" : 3}`},
		{"around the document", " \n{\"a\":1}\t", `{"a":2}`, " \n{\"a\":2}\t"},
		{"around another document", " 1\n", `{"a":2}`, " {\"a\":2}\n"},
		{"around the patch", `1`, " 2\n", `2`},
		{"around an object patch", `{}`, " {\"a\":1}\n", `{"a":1}`},
		{"keys of every kind", `{"":1,"/":2,"~":3,"~1":4,"a/b":5,"é":6}`, `{"":null,"~1":0,"~":{"":null}}`, `{"/":2,"~":{},"~1":0,"a/b":5,"é":6}`},
		{"halves of a pair", `{"\ud800":1,"\ud801":2}`, `{"\ud801":3}`, `{"\ud800":1,"\ud801":3}`},
		{"a new value as it is", `{}`, `{"o":{ "x" : 1, "y":{ } }}`, `{"o":{ "x" : 1, "y":{ } }}`},
		{"a new value with nulls", `{}`, `{"o":{ "n":null, "x" : 1, "y":{ } }}`, `{"o":{"x" : 1,"y":{ }}}`},
		{"case counts", `{"a":1}`, `{"A":2}`, `{"a":1,"A":2}`},
	} {
		got := apply(t, mustMerge(t, c.patch), []byte(c.doc))
		if string(got) != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// TestMerge_ManyMembers takes the way of large objects, with an index.
func TestMerge_ManyMembers(t *testing.T) {
	const n = 40
	var doc, change, want []string
	for i := range n {
		doc = append(doc, fmt.Sprintf(`"k%d":"old"`, i), fmt.Sprintf(`"d%d":1`, i), fmt.Sprintf(`"d%d":2`, i))
		switch i % 4 {
		case 0: // not named: both duplicates stay
			want = append(want, fmt.Sprintf(`"k%d":"old"`, i), fmt.Sprintf(`"d%d":1`, i), fmt.Sprintf(`"d%d":2`, i))
		case 1:
			change = append(change, fmt.Sprintf(`"k%d":"new"`, i), fmt.Sprintf(`"d%d":3`, i))
			want = append(want, fmt.Sprintf(`"k%d":"new"`, i), fmt.Sprintf(`"d%d":3`, i))
		case 2:
			change = append(change, fmt.Sprintf(`"k%d":null`, i), fmt.Sprintf(`"d%d":null`, i), fmt.Sprintf(`"no%d":null`, i))
		case 3:
			change = append(change, fmt.Sprintf(`"n%d":0`, i))
			want = append(want, fmt.Sprintf(`"k%d":"old"`, i), fmt.Sprintf(`"d%d":1`, i), fmt.Sprintf(`"d%d":2`, i))
		}
	}
	for i := range n {
		if i%4 == 3 {
			want = append(want, fmt.Sprintf(`"n%d":0`, i))
		}
	}
	// The very first member has a duplicate too.
	doc = append([]string{`"d1":0`}, doc...)
	object := func(members []string) string { return "{" + strings.Join(members, ",") + "}" }
	p := mustMerge(t, object(change))
	got := apply(t, p, []byte(object(doc)))
	if string(got) != object(want) {
		t.Fatalf("%s\nwant\n%s", got, object(want))
	}
	if again := apply(t, p, got); !bytes.Equal(again, got) {
		t.Fatalf("applied again: %s", again)
	}
	// What was removed can come back, in its place, and what is new be found.
	ops := `[{"op":"remove","path":"/d8"},{"op":"add","path":"/d8","value":7},{"op":"add","path":"/new","value":1},
		{"op":"test","path":"/new","value":1},{"op":"remove","path":"/new"},{"op":"add","path":"/new","value":2}]`
	got = apply(t, mustJSON(t, ops), []byte(object(doc)))
	whole := strings.Replace(object(doc), `"d8":1,"d8":2`, `"d8":7`, 1)
	if want := whole[:len(whole)-1] + `,"new":2}`; string(got) != want {
		t.Fatalf("%s\nwant\n%s", got, want)
	}
}

// TestMerge_KeepsNothing: neither the patch nor an answer shares memory with what
// came in.
func TestMerge_KeepsNothing(t *testing.T) {
	text := []byte(`{"a":"1"}`)
	ops := []byte(`[{"op":"add","path":"/a","value":"1"}]`)
	merge, err := patch.Merge(text)
	if err != nil {
		t.Fatal(err)
	}
	list, err := patch.JSON(ops)
	if err != nil {
		t.Fatal(err)
	}
	spoil(text)
	spoil(ops)
	for _, p := range []patch.Patch{merge, list} {
		doc := []byte(`{"b":"2"}`)
		out := apply(t, p, doc)
		spoil(doc)
		if string(out) != `{"b":"2","a":"1"}` {
			t.Errorf("%s: %s", p.MediaType(), out)
		}
		spoil(out)
		body, err := p.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		spoil(body)
		if out := apply(t, p, []byte(`{}`)); string(out) != `{"a":"1"}` {
			t.Errorf("%s, again: %s", p.MediaType(), out)
		}
	}
	from, to := []byte(`{"a":1}`), []byte(`{"a":"2"}`)
	for _, between := range []func(a, b []byte) (patch.Patch, error){patch.MergeBetween, patch.JSONBetween} {
		a, b := bytes.Clone(from), bytes.Clone(to)
		p, err := between(a, b)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, from) || !bytes.Equal(b, to) {
			t.Error("comparing changed the documents")
		}
		spoil(a)
		spoil(b)
		if out := apply(t, p, from); string(out) != string(to) {
			t.Errorf("%s", out)
		}
	}
	a, b := []byte(`1`), []byte(`"x"`)
	p, _ := patch.MergeBetween(a, b)
	spoil(b)
	if out := apply(t, p, a); string(out) != `"x"` {
		t.Errorf("%s", out)
	}
}

func spoil(b []byte) {
	for i := range b {
		b[i] = '#'
	}
}

func TestMergeBetween(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"nothing", `{"a":1}`, `{"a":1}`, `{}`},
		{"order and spelling", `{"a":1.0,"b":"\u0061"}`, `{ "b":"a", "a":1 }`, `{}`},
		{"deep nothing", `{"a":{"b":{"c":1}}}`, `{"a":{"b":{"c":1e0}}}`, `{}`},
		{"changed", `{"a":1,"b":2}`, `{"a":1,"b":3}`, `{"b":3}`},
		{"gone", `{"a":1,"b":2}`, `{"b":2}`, `{"a":null}`},
		{"new", `{"a":1}`, `{"a":1,"b":{}}`, `{"b":{}}`},
		{"inside", `{"a":{"b":1,"c":2},"x":{"y":1}}`, `{"a":{"b":1,"c":3},"x":{"y":1.0}}`, `{"a":{"c":3}}`},
		{"emptied", `{"a":{"b":1}}`, `{"a":{}}`, `{"a":{"b":null}}`},
		{"all at once", `{"g":0,"o":{"k":1,"g":1},"s":1}`, `{"n":[1],"o":{"k":1,"n":"x"},"s":2}`, `{"g":null,"n":[1],"o":{"g":null,"n":"x"},"s":2}`},
		{"list", `{"a":[1,2]}`, `{"a":[2,1]}`, `{"a":[2,1]}`},
		{"other types", `{"a":{"b":1},"c":[],"d":null}`, `{"a":[],"c":{"x":1},"d":false}`, `{"a":[],"c":{"x":1},"d":false}`},
		{"null stays", `{"a":null,"o":{"n":null},"b":1}`, `{"a":null,"o":{"n":null},"b":2}`, `{"b":2}`},
		{"null stays, spelt otherwise", `{"o":{"n":null,"x":1}}`, `{"o":{"x":1, "n":null}}`, `{}`},
		{"null in lists", `{}`, `{"a":[null,{"b":null}]}`, `{"a":[null,{"b":null}]}`},
		{"the word null", `{}`, `{"a":{"b":"null"}}`, `{"a":{"b":"null"}}`},
		{"null goes", `{"a":null}`, `{}`, `{"a":null}`},
		{"duplicates", `{"a":1,"a":2}`, `{"a":9,"a":2}`, `{}`},
		{"duplicates differ", `{"a":1,"a":2}`, `{"a":2,"a":1}`, `{"a":1}`},
		{"scalars", `1`, `2`, `2`},
		{"to null", `{"a":1}`, `null`, `null`},
		{"to a list", `{}`, `[{"a":null}]`, `[{"a":null}]`},
		{"from a list", `[1]`, `{"a":[null]}`, `{"a":[null]}`},
		{"odd names", `{"~1":1,"":{"/":2}}`, `{"~1":2,"":{}}`, `{"~1":2,"":{"/":null}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := patch.MergeBetween([]byte(c.from), []byte(c.to))
			if err != nil {
				t.Fatal(err)
			}
			if text, err := p.MarshalJSON(); string(text) != c.want || err != nil {
				t.Errorf("%s, %v; want %s", text, err, c.want)
			}
			if p.MediaType() != "application/merge-patch+json" {
				t.Error(p.MediaType())
			}
			wantSame(t, apply(t, p, []byte(c.from)), []byte(c.to))
			if patch.IsEmpty(p) != (c.want == `{}`) {
				t.Errorf("IsEmpty: %v", patch.IsEmpty(p))
			}
		})
	}
}

func TestMergeBetween_NotRepresentable(t *testing.T) {
	for _, c := range []struct{ name, from, to, path string }{
		{"new", `{}`, `{"a":null}`, "/a"},
		{"changed", `{"a":1}`, `{"a":null}`, "/a"},
		{"object to null", `{"a":{}}`, `{"a":null}`, "/a"},
		{"inside", `{"a":{"b":{}}}`, `{"a":{"b":{"x/y":null}}}`, "/a/b/x~1y"},
		{"in a new object", `{"a":1}`, `{"a":{"b":{"c":null}}}`, "/a/b/c"},
		{"the first of two", `{}`, `{"z":1,"b":null,"a":null}`, "/b"},
		{"after others", `{}`, `{"a":{"x":1,"y":{}},"b":{"c":null}}`, "/b/c"},
		{"from a scalar", `1`, `{"a":{"b":null}}`, "/a/b"},
		{"from null", `null`, `{"a":null}`, "/a"},
		{"after one with nulls in a list", `{}`, `{"a":{"l":[null],"x":{"y":1}},"b":null}`, "/b"},
		{"in an object after a list", `{}`, `{"a":[null],"b":null}`, "/b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := patch.MergeBetween([]byte(c.from), []byte(c.to))
			wantOnlyError(t, p, err, patch.ErrNotRepresentable)
			e, ok := errors.AsType[*patch.Error](err)
			if !ok || e.Op != -1 || e.Path.String() != c.path {
				t.Errorf("%v; want it at %s", err, c.path)
			}
		})
	}
}
