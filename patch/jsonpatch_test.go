package patch_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/homeostat/homeostat/patch"
)

func TestJSON_Apply(t *testing.T) {
	for _, c := range []struct{ name, doc, ops, want string }{
		{"nothing", ` {"a":1} `, `[]`, ` {"a":1} `},
		{"add a member", `{"a":1}`, `[{"op":"add","path":"/b","value":[null]}]`, `{"a":1,"b":[null]}`},
		{"add over a member", `{"a":1,"b":2}`, `[{"op":"add","path":"/a","value":3}]`, `{"a":3,"b":2}`},
		{"add over duplicates", `{"a":1,"b":2,"a":3}`, `[{"op":"add","path":"/a","value":4}]`, `{"b":2,"a":4}`},
		{"add first", `[1,2]`, `[{"op":"add","path":"/0","value":0}]`, `[0,1,2]`},
		{"add between", `[1,2]`, `[{"op":"add","path":"/1","value":0}]`, `[1,0,2]`},
		{"add at the length", `[1,2]`, `[{"op":"add","path":"/2","value":0}]`, `[1,2,0]`},
		{"add at the end", `[1,2]`, `[{"op":"add","path":"/-","value":0}]`, `[1,2,0]`},
		{"add to an empty list", `{"l":[ ]}`, `[{"op":"add","path":"/l/-","value":0}]`, `{"l":[ 0]}`},
		{"add all", ` {"a":1} `, `[{"op":"add","path":"","value":[1]},{"op":"add","path":"/0","value":0}]`, ` [0,1] `},
		{"remove a member", `{"a":1,"b":2}`, `[{"op":"remove","path":"/a"}]`, `{"b":2}`},
		{"remove duplicates", `{"a":1,"b":2,"a":3}`, `[{"op":"remove","path":"/a"}]`, `{"b":2}`},
		{"remove an element", `[1, 2, 3]`, `[{"op":"remove","path":"/1"}]`, `[1, 3]`},
		{"remove the last element", `[1,2,3 ]`, `[{"op":"remove","path":"/2"}]`, `[1,2 ]`},
		{"remove the last element, space before commas", `[1 , 2]`, `[{"op":"remove","path":"/1"}]`, `[1]`},
		{"remove all elements", `[ 1,2 ]`, `[{"op":"remove","path":"/0"},{"op":"remove","path":"/0"}]`, `[ ]`},
		{"replace inside", `{"a":[{"b":1},{"b":2}]}`, `[{"op":"replace","path":"/a/1/b","value":{"c":3}}]`, `{"a":[{"b":1},{"b":{"c":3}}]}`},
		{"replace all", `{"a":1}`, `[{"op":"replace","path":"","value":null}]`, `null`},
		{"replace one of duplicates", `{"a":1,"a":2}`, `[{"op":"replace","path":"/a","value":3}]`, `{"a":3}`},
		{"move a member", `{"a":1,"b":{}}`, `[{"op":"move","from":"/a","path":"/b/c"}]`, `{"b":{"c":1}}`},
		{"move over a member", `{"a":1,"b":2,"c":3}`, `[{"op":"move","from":"/a","path":"/c"}]`, `{"b":2,"c":1}`},
		{"move to the root", `{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":""}]`, `{"b":1}`},
		{"move out", `{"a":{"b":{"c":1}}}`, `[{"op":"move","from":"/a/b","path":"/a"}]`, `{"a":{"c":1}}`},
		{"move changes indexes", `[[],1]`, `[{"op":"move","from":"/1","path":"/0/-"}]`, `[[1]]`},
		{"the path is taken after the removal", `[0,[],[1]]`, `[{"op":"move","from":"/0","path":"/1/-"}]`, `[[],[1,0]]`},
		{"move onto itself", `{"a":[{ "b": 1 }]}`, `[{"op":"move","from":"/a/0","path":"/a/0"}]`, `{"a":[{ "b": 1 }]}`},
		{"move what was changed", `{"a":{"x":1},"b":{}}`, `[{"op":"add","path":"/a/y","value":2},{"op":"move","from":"/a","path":"/b/a"}]`, `{"b":{"a":{"x":1,"y":2}}}`},
		{"a name that begins alike", `{"a":1,"ab":{}}`, `[{"op":"move","from":"/a","path":"/ab/c"}]`, `{"ab":{"c":1}}`},
		{"copy", `{"a":[1]}`, `[{"op":"copy","from":"/a","path":"/b"}]`, `{"a":[1],"b":[1]}`},
		{"copy into a list", `{"a":[1,2]}`, `[{"op":"copy","from":"/a/1","path":"/a/0"}]`, `{"a":[2,1,2]}`},
		{"copy all into itself", `{"a":1}`, `[{"op":"copy","from":"","path":"/b"}]`, `{"a":1,"b":{"a":1}}`},
		{"copy to the root", `{"a":[1]}`, `[{"op":"copy","from":"/a","path":""}]`, `[1]`},
		{"copy into its child", `{"a":{"b":1}}`, `[{"op":"copy","from":"/a","path":"/a/c"}]`, `{"a":{"b":1,"c":{"b":1}}}`},
		{"a copy is apart", `{"a":{"b":[1]}}`, `[{"op":"copy","from":"/a","path":"/c"},{"op":"add","path":"/c/b/-","value":2},{"op":"add","path":"/a/b/-","value":3}]`, `{"a":{"b":[1,3]},"c":{"b":[1,2]}}`},
		{"a copy of what was opened is apart", `{"a":{"b":[1]}}`, `[{"op":"test","path":"/a/b/0","value":1},{"op":"copy","from":"/a","path":"/c"},{"op":"add","path":"/c/b/-","value":2}]`, `{"a":{"b":[1]},"c":{"b":[1,2]}}`},
		{"test changes nothing", `{ "a" : [1 ,{"x":1,"x":2} ] }`, `[{"op":"test","path":"/a","value":[1.0,{"x":2}]},{"op":"test","path":"","value":{"a":[1,{"x":2}]}}]`, `{ "a" : [1 ,{"x":1,"x":2} ] }`},
		{"test after additions", `{"a":{"x":1}}`, `[{"op":"test","path":"/a","value":{"x":1}},{"op":"add","path":"/a/y","value":2},{"op":"test","path":"/a","value":{"x":1,"y":2}}]`, `{"a":{"x":1,"y":2}}`},
		{"test after removals", `{"a":{"x":1,"y":2}}`, `[{"op":"test","path":"/a","value":{"x":1,"y":2}},{"op":"remove","path":"/a/x"},{"op":"test","path":"/a","value":{"y":2}}]`, `{"a":{"y":2}}`},
		{"test after a return", `{"a":{"x":1,"y":2}}`, `[{"op":"test","path":"/a","value":{"x":1,"y":2}},{"op":"remove","path":"/a/x"},{"op":"add","path":"/a/x","value":3},{"op":"test","path":"/a","value":{"x":3,"y":2}}]`, `{"a":{"x":3,"y":2}}`},
		{"test after a replacement", `{"a":{"x":1}}`, `[{"op":"test","path":"/a","value":{"x":1}},{"op":"add","path":"/a/x","value":3},{"op":"test","path":"/a","value":{"x":3}}]`, `{"a":{"x":3}}`},
		{"test all", `5`, `[{"op":"test","path":"","value":5.0}]`, `5`},
		{"unknown members", `{"a":1}`, `[{"op":"remove","path":"/a","value":1,"from":7,"note":"x","Op":"add"}]`, `{}`},
		{"the last of double members", `{"a":1,"b":2}`, `[{"op":"add","path":"/b","op":"remove","path":"/a"}]`, `{"b":2}`},
		{"escapes in strings", `{"a":1}`, `[{"\u006fp":"re\u006dove","path":"\/\u0061"}]`, `{}`},
		{"a name spelt otherwise", `{"\u0061": 1}`, `[{"op":"replace","path":"/a","value":2},{"op":"add","path":"/a","value":3}]`, `{"\u0061": 3}`},
		{"a name that needs escapes", `{}`, `[{"op":"add","path":"/\"\u0000\ud800","value":1}]`, `{"\"\u0000\ud800":1}`},
		{"numbers as names", `{"0":{"-":1},"01":2}`, `[{"op":"replace","path":"/0/-","value":3},{"op":"remove","path":"/01"},{"op":"add","path":"/7","value":4}]`, `{"0":{"-":3},"7":4}`},
		{"indentation", "[\n  1,\n  2\n]", `[{"op":"add","path":"/0","value":0},{"op":"add","path":"/-","value":3}]`, "[\n  0,\n  1,\n  2,\n  3\n]"},
		{"indentation, removals", "[\n  1,\n  2,\n  3\n]", `[{"op":"remove","path":"/2"},{"op":"remove","path":"/0"}]`, "[\n  2\n]"},
		{"space before commas", `[1 , 2 ]`, `[{"op":"add","path":"/-","value":3},{"op":"remove","path":"/2"}]`, `[1 , 2 ]`},
	} {
		got := apply(t, mustJSON(t, c.ops), []byte(c.doc))
		if string(got) != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// TestP16_BadPatch: what is no JSON patch is refused when it is read, and never
// panics. Texts that are no JSON are in TestCheck_Invalid.
func TestP16_BadPatch(t *testing.T) {
	for _, c := range []struct{ name, ops, message string }{
		{"an object", `{"op":"remove","path":"/a"}`, "patch: malformed patch: a JSON patch is a list of operations"},
		{"null", `null`, "patch: malformed patch: a JSON patch is a list of operations"},
		{"a string as operation", `["remove"]`, "patch: operation 0: malformed patch: an operation is an object"},
		{"null as operation", `[{"op":"remove","path":"/a"},null]`, "patch: operation 1: malformed patch: an operation is an object"},
		{"no op", `[{"path":"/a"}]`, "patch: operation 0: malformed patch: op is missing"},
		{"op no string", `[{"op":1,"path":"/a"}]`, "patch: operation 0: malformed patch: op is no string"},
		{"op null", `[{"op":null,"path":"/a"}]`, "patch: operation 0: malformed patch: op is no string"},
		{"unknown op", `[{"op":"spam","path":"/a"}]`, `patch: operation 0: malformed patch: there is no operation "spam"`},
		{"op in upper case", `[{"op":"Add","path":"/a","value":1}]`, `patch: operation 0: malformed patch: there is no operation "Add"`},
		{"no path", `[{"op":"add","value":1}]`, "patch: operation 0: add: malformed patch: path is missing"},
		{"path no string", `[{"op":"add","path":null,"value":1}]`, "patch: operation 0: add: malformed patch: path is no string"},
		{"path without slash", `[{"op":"remove","path":"a/b"}]`, `patch: operation 0: remove: malformed patch: path is no JSON pointer: "a/b": a path is empty or begins with /`},
		{"tilde at the end", `[{"op":"remove","path":"/a~"}]`, `patch: operation 0: remove: malformed patch: path is no JSON pointer: "/a~": ~ goes before 0 or 1`},
		{"tilde before a slash", `[{"op":"remove","path":"/a~/0"}]`, `patch: operation 0: remove: malformed patch: path is no JSON pointer: "/a~/0": ~ goes before 0 or 1`},
		{"tilde two", `[{"op":"remove","path":"/~2"}]`, `patch: operation 0: remove: malformed patch: path is no JSON pointer: "/~2": ~ goes before 0 or 1`},
		{"tilde tilde", `[{"op":"remove","path":"/~~0"}]`, `patch: operation 0: remove: malformed patch: path is no JSON pointer: "/~~0": ~ goes before 0 or 1`},
		{"add without value", `[{"op":"add","path":"/a"}]`, "patch: operation 0: add: malformed patch: value is missing"},
		{"replace without value", `[{"op":"replace","path":"/a","Value":1}]`, "patch: operation 0: replace: malformed patch: value is missing"},
		{"test without value", `[{"op":"test","path":"/a"}]`, "patch: operation 0: test: malformed patch: value is missing"},
		{"move without from", `[{"op":"move","path":"/a"}]`, "patch: operation 0: move: malformed patch: from is missing"},
		{"copy without from", `[{"op":"copy","path":"/a","value":1}]`, "patch: operation 0: copy: malformed patch: from is missing"},
		{"from no string", `[{"op":"copy","path":"/a","from":["/a"]}]`, "patch: operation 0: copy: malformed patch: from is no string"},
		{"from no pointer", `[{"op":"move","path":"/a","from":"b"}]`, `patch: operation 0: move: malformed patch: from is no JSON pointer: "b": a path is empty or begins with /`},
		{"a later one", `[{"op":"add","path":"/a","value":1},{"op":"add","path":"/a","value":1},{"op":"add"}]`, "patch: operation 2: add: malformed patch: path is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := patch.JSON([]byte(c.ops))
			wantOnlyError(t, p, err, patch.ErrBadPatch)
			if err != nil && err.Error() != c.message {
				t.Errorf("%v\nwant %s", err, c.message)
			}
		})
	}
}

// TestP16_FailureChangesNothing: an operation that fails is named, and the
// document is as it was.
func TestP16_FailureChangesNothing(t *testing.T) {
	for _, c := range []struct {
		name, doc, ops string
		want           error
		op             int
		verb, path     string
		message        string
	}{
		{"operation 3 of 5", `{"a":1}`,
			`[{"op":"add","path":"/b","value":2},{"op":"remove","path":"/a"},{"op":"replace","path":"/b","value":3},{"op":"remove","path":"/a"},{"op":"add","path":"/c","value":1}]`,
			patch.ErrPath, 3, "remove", "/a", `patch: operation 3: remove: "/a": path leads nowhere: there is no member "a"`},
		{"remove a missing member", `{"a":{}}`, `[{"op":"remove","path":"/a/b"}]`,
			patch.ErrPath, 0, "remove", "/a/b", `patch: operation 0: remove: "/a/b": path leads nowhere: there is no member "b"`},
		{"replace a missing member", `{"a":{}}`, `[{"op":"replace","path":"/b","value":1}]`,
			patch.ErrPath, 0, "replace", "/b", `patch: operation 0: replace: "/b": path leads nowhere: there is no member "b"`},
		{"a removed member is missing", `{"a":1}`, `[{"op":"remove","path":"/a"},{"op":"test","path":"/a","value":1}]`,
			patch.ErrPath, 1, "test", "/a", `patch: operation 1: test: "/a": path leads nowhere: there is no member "a"`},
		{"a missing parent", `{"a":{}}`, `[{"op":"add","path":"/b/c/d","value":1}]`,
			patch.ErrPath, 0, "add", "/b/c/d", `patch: operation 0: add: "/b/c/d": path leads nowhere: there is no member "b"`},
		{"index beyond the end", `{"l":[1,2]}`, `[{"op":"replace","path":"/l/2","value":1}]`,
			patch.ErrPath, 0, "replace", "/l/2", `patch: operation 0: replace: "/l/2": path leads nowhere: index "2" is beyond the list's end`},
		{"add beyond the length", `[1,2]`, `[{"op":"add","path":"/3","value":1}]`,
			patch.ErrPath, 0, "add", "/3", `patch: operation 0: add: "/3": path leads nowhere: index "3" is beyond the list's end`},
		{"remove the end", `[1]`, `[{"op":"remove","path":"/-"}]`,
			patch.ErrPath, 0, "remove", "/-", `patch: operation 0: remove: "/-": path leads nowhere: "-" is no index of an element`},
		{"the end on the way", `[[1]]`, `[{"op":"add","path":"/-/0","value":1}]`,
			patch.ErrPath, 0, "add", "/-/0", `patch: operation 0: add: "/-/0": path leads nowhere: "-" is no index of an element`},
		{"leading zero", `[1,2]`, `[{"op":"test","path":"/01","value":2}]`, patch.ErrPath, 0, "test", "/01",
			`patch: operation 0: test: "/01": path leads nowhere: "01" is no index of an element`},
		{"negative index", `[1]`, `[{"op":"add","path":"/-1","value":2}]`, patch.ErrPath, 0, "add", "/-1",
			`patch: operation 0: add: "/-1": path leads nowhere: "-1" is no index of an element`},
		{"exponent", `[1,2]`, `[{"op":"test","path":"/1e0","value":2}]`, patch.ErrPath, 0, "test", "/1e0",
			`patch: operation 0: test: "/1e0": path leads nowhere: "1e0" is no index of an element`},
		{"no index", `[1]`, `[{"op":"test","path":"/","value":1}]`, patch.ErrPath, 0, "test", "/",
			`patch: operation 0: test: "/": path leads nowhere: "" is no index of an element`},
		{"an index that overflows", `[1]`, `[{"op":"add","path":"/18446744073709551616","value":1}]`, patch.ErrPath, 0, "add", "/9223372036854775807",
			``},
		{"remove all", `{"a":1}`, `[{"op":"remove","path":""}]`,
			patch.ErrPath, 0, "remove", "", `patch: operation 0: remove: "": path leads nowhere: the whole document can't be removed`},
		{"move all", `{"a":1}`, `[{"op":"move","from":"","path":"/b"}]`,
			patch.ErrPath, 0, "move", "", `patch: operation 0: move: "": path leads nowhere: the whole document can't be moved`},
		{"move all onto itself", `{"a":1}`, `[{"op":"move","from":"","path":""}]`,
			patch.ErrPath, 0, "move", "", `patch: operation 0: move: "": path leads nowhere: the whole document can't be moved`},
		{"move into itself", `{"a":{"b":{}}}`, `[{"op":"move","from":"/a","path":"/a/b/c"}]`,
			patch.ErrPath, 0, "move", "/a/b/c", `patch: operation 0: move: "/a/b/c": path leads nowhere: nothing can be moved into itself`},
		{"move what is missing", `{"a":{}}`, `[{"op":"move","from":"/b","path":"/a/c"}]`,
			patch.ErrPath, 0, "move", "/b", `patch: operation 0: move: "/b": path leads nowhere: there is no member "b"`},
		{"move what is missing onto itself", `{"a":{}}`, `[{"op":"move","from":"/b","path":"/b"}]`,
			patch.ErrPath, 0, "move", "/b", `patch: operation 0: move: "/b": path leads nowhere: there is no member "b"`},
		{"move to nowhere", `{"a":{}}`, `[{"op":"move","from":"/a","path":"/b/c"}]`,
			patch.ErrPath, 0, "move", "/b/c", `patch: operation 0: move: "/b/c": path leads nowhere: there is no member "b"`},
		{"copy what is missing", `{"a":{}}`, `[{"op":"copy","from":"/a/b","path":"/c"}]`,
			patch.ErrPath, 0, "copy", "/a/b", `patch: operation 0: copy: "/a/b": path leads nowhere: there is no member "b"`},
		{"another value", `{"a":{"b":1}}`, `[{"op":"test","path":"/a","value":{"b":"1"}}]`,
			patch.ErrTestFailed, 0, "test", "/a", `patch: operation 0: test: "/a": test failed: the value is another one`},
		{"no longer the value", `{"a":{"x":1}}`, `[{"op":"add","path":"/a/y","value":2},{"op":"test","path":"/a","value":{"x":1}}]`,
			patch.ErrTestFailed, 1, "test", "/a", `patch: operation 1: test: "/a": test failed: the value is another one`},
		{"no longer the list", `{"a":[1]}`, `[{"op":"add","path":"/a/-","value":2},{"op":"test","path":"/a","value":[1]}]`,
			patch.ErrTestFailed, 1, "test", "/a", `patch: operation 1: test: "/a": test failed: the value is another one`},
		{"another document", `{"a":1}`, `[{"op":"test","path":"","value":{"a":2}}]`,
			patch.ErrTestFailed, 0, "test", "", `patch: operation 0: test: "": test failed: the value is another one`},
		{"nothing is not null", `{}`, `[{"op":"test","path":"/a","value":null}]`,
			patch.ErrPath, 0, "test", "/a", `patch: operation 0: test: "/a": path leads nowhere: there is no member "a"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc := []byte(c.doc)
			got, err := mustJSON(t, c.ops).Apply(doc)
			if got != nil || !errors.Is(err, c.want) {
				t.Fatalf("%s, %v; want the error %v alone", got, err, c.want)
			}
			if !bytes.Equal(doc, []byte(c.doc)) {
				t.Errorf("the document was changed: %s", doc)
			}
			e, ok := errors.AsType[*patch.Error](err)
			if !ok || e.Op != c.op || e.Verb != c.verb || e.Path == nil {
				t.Fatalf("%#v", err)
			}
			if c.message == "" {
				return // it has the largest int in it, which is the machine's
			}
			if e.Path.String() != c.path || err.Error() != c.message {
				t.Errorf("%v\nwant %s", err, c.message)
			}
		})
	}
}

// TestError_Steps: as far as a path leads, the document says what its steps are.
func TestError_Steps(t *testing.T) {
	_, err := mustJSON(t, `[{"op":"remove","path":"/0/1/2/3"}]`).Apply([]byte(`{"0":["x",{"2":{}}]}`))
	e, ok := errors.AsType[*patch.Error](err)
	if !ok {
		t.Fatal(err)
	}
	want := patch.Path{{Member: "0"}, {Index: 1, InList: true}, {Member: "2"}, {Member: "3"}}
	if len(e.Path) != len(want) {
		t.Fatalf("%#v", e.Path)
	}
	for i := range want {
		if e.Path[i] != want[i] {
			t.Errorf("step %d: %#v; want %#v", i, e.Path[i], want[i])
		}
	}
	// Beyond the end it is an index still.
	_, err = mustJSON(t, `[{"op":"remove","path":"/7/8"}]`).Apply([]byte(`[]`))
	if e, ok := errors.AsType[*patch.Error](err); !ok || e.Path[0] != (patch.Step{Index: 7, InList: true}) || e.Path[1] != (patch.Step{Member: "8"}) {
		t.Errorf("%#v", err)
	}
}

// TestError_IsShort: what a stranger sent does not fill the log.
func TestError_IsShort(t *testing.T) {
	long := strings.Repeat("x", 1<<16)
	_, err := mustJSON(t, `[{"op":"remove","path":"/`+long+`"}]`).Apply([]byte(`{}`))
	if err == nil || len(err.Error()) > 600 {
		t.Errorf("%d bytes", len(err.Error()))
	}
	if _, err := patch.JSON([]byte(`[{"op":"` + long + `"}]`)); err == nil || len(err.Error()) > 300 {
		t.Errorf("%d bytes", len(err.Error()))
	}
}

// TestP18_OneRoutine: the destinations of move and copy go by the rules of add.
func TestP18_OneRoutine(t *testing.T) {
	doc := `[1,2,3,4,5]`
	for ops, want := range map[string]string{
		`[{"op":"move","from":"/2","path":"/-"}]`:  `[1,2,4,5,3]`,
		`[{"op":"move","from":"/2","path":"/4"}]`:  `[1,2,4,5,3]`,
		`[{"op":"move","from":"/2","path":"/0"}]`:  `[3,1,2,4,5]`,
		`[{"op":"move","from":"/2","path":"/3"}]`:  `[1,2,4,3,5]`,
		`[{"op":"move","from":"/2","path":"/5"}]`:  ``, // the length, before the removal
		`[{"op":"move","from":"/-","path":"/0"}]`:  ``,
		`[{"op":"copy","from":"/2","path":"/-"}]`:  `[1,2,3,4,5,3]`,
		`[{"op":"copy","from":"/2","path":"/5"}]`:  `[1,2,3,4,5,3]`,
		`[{"op":"copy","from":"/2","path":"/6"}]`:  ``,
		`[{"op":"copy","from":"/-","path":"/0"}]`:  ``,
		`[{"op":"copy","from":"/5","path":"/0"}]`:  ``,
		`[{"op":"copy","from":"/2","path":"/02"}]`: ``,
	} {
		got, err := applyJSON([]byte(doc), []byte(ops))
		if string(got) != want || (want == "") != errors.Is(err, patch.ErrPath) {
			t.Errorf("%s: %s, %v; want %s", ops, got, err, want)
		}
	}
}

// TestP19_ParentsExist, and only lists take indexes.
func TestP19_ParentsExist(t *testing.T) {
	doc := `{"a":{},"s":"text","n":1,"t":true,"z":null,"l":[]}`
	for _, ops := range []string{
		`[{"op":"copy","from":"/s","path":"/a/b/c"}]`,
		`[{"op":"add","path":"/x/y","value":1}]`,
		`[{"op":"test","path":"/s/0","value":"t"}]`,
		`[{"op":"add","path":"/s/0","value":"t"}]`,
		`[{"op":"add","path":"/s/-","value":"t"}]`,
		`[{"op":"replace","path":"/n/0","value":1}]`,
		`[{"op":"add","path":"/n/x","value":1}]`,
		`[{"op":"remove","path":"/t/0"}]`,
		`[{"op":"add","path":"/z/a","value":1}]`,
		`[{"op":"add","path":"/l/a","value":1}]`,
		`[{"op":"add","path":"/l/0/a","value":1}]`,
		`[{"op":"move","from":"/s","path":"/n/a"}]`,
	} {
		if got, err := applyJSON([]byte(doc), []byte(ops)); got != nil || !errors.Is(err, patch.ErrPath) {
			t.Errorf("%s: %s, %v", ops, got, err)
		}
	}
}

// TestP20_Escapes: / and ~ in names, on path and from alike.
func TestP20_Escapes(t *testing.T) {
	doc := `{"/":1,"~":2,"~1":3,"~01":4,"":5,"a/b~c":{"":{}}}`
	ops := `[{"op":"test","path":"/~1","value":1},{"op":"test","path":"/~0","value":2},{"op":"test","path":"/~01","value":3},
		{"op":"test","path":"/~001","value":4},{"op":"test","path":"/","value":5},
		{"op":"move","from":"/~01","path":"/a~1b~0c//~1~0"},{"op":"copy","from":"/a~1b~0c/","path":"/~0~1"},{"op":"remove","path":"/"}]`
	want := `{"/":1,"~":2,"~01":4,"a/b~c":{"":{"/~":3}},"~/":{"/~":3}}`
	if got := apply(t, mustJSON(t, ops), []byte(doc)); string(got) != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestP22_NullIsAValue.
func TestP22_NullIsAValue(t *testing.T) {
	ops := `[{"op":"replace","path":"/a","value":null},{"op":"test","path":"/a","value":null},{"op":"copy","from":"/a","path":"/b"},
		{"op":"remove","path":"/a"},{"op":"move","from":"/b","path":"/c"},{"op":"add","path":"/l/0","value":null},{"op":"test","path":"/l","value":[null,null]}]`
	if got := apply(t, mustJSON(t, ops), []byte(`{"a":{"x":1},"l":[null]}`)); string(got) != `{"l":[null,null],"c":null}` {
		t.Errorf("%s", got)
	}
}

func TestJSONBetween(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"nothing", `{"a":[1,{"b":null}]}`, `{ "a":[1.0,{"b":null}]}`, `[]`},
		{"nothing, scalars", `"a"`, `"\u0061"`, `[]`},
		{"members", `{"a":1,"b":{"c":1,"d":2},"e":3}`, `{"b":{"c":1,"d":3},"e":3,"f":null}`,
			`[{"op":"remove","path":"/a"},{"op":"replace","path":"/b/d","value":3},{"op":"add","path":"/f","value":null}]`},
		{"to null", `{"a":1}`, `{"a":null}`, `[{"op":"replace","path":"/a","value":null}]`},
		{"the whole", `{"a":1}`, `[1]`, `[{"op":"replace","path":"","value":[1]}]`},
		{"list to object", `{"a":[]}`, `{"a":{}}`, `[{"op":"replace","path":"/a","value":{}}]`},
		{"add in the middle", `[1,2,3]`, `[1,9,8,2,3]`, `[{"op":"add","path":"/1","value":9},{"op":"add","path":"/2","value":8}]`},
		{"add at the end", `[1]`, `[1,2]`, `[{"op":"add","path":"/1","value":2}]`},
		{"remove in the middle", `[1,2,3,4]`, `[1,4]`, `[{"op":"remove","path":"/2"},{"op":"remove","path":"/1"}]`},
		{"remove all", `[1,2]`, `[]`, `[{"op":"remove","path":"/1"},{"op":"remove","path":"/0"}]`},
		{"one of equal elements", `[1,1]`, `[1]`, `[{"op":"remove","path":"/1"}]`},
		{"inside an element", `[{"a":1},{"a":2},{"a":3}]`, `[{"a":1},{"a":0},{"a":3}]`, `[{"op":"replace","path":"/1/a","value":0}]`},
		{"change and add", `{"l":[1,2]}`, `{"l":[3,4,5]}`, `[{"op":"replace","path":"/l/0","value":3},{"op":"replace","path":"/l/1","value":4},{"op":"add","path":"/l/2","value":5}]`},
		{"change and remove", `[1,2,3]`, `[4]`, `[{"op":"replace","path":"/0","value":4},{"op":"remove","path":"/2"},{"op":"remove","path":"/1"}]`},
		{"odd names", `{"a/b":{"~1":1,"\"":[1]},"":2}`, `{"a/b":{"~1":2,"\"":[]}}`,
			`[{"op":"remove","path":"/"},{"op":"replace","path":"/a~1b/~01","value":2},{"op":"remove","path":"/a~1b/\"/0"}]`},
		{"half a pair", `{"\ud800":1}`, `{"\ud801":1}`, `[{"op":"remove","path":"/\ud800"},{"op":"add","path":"/\ud801","value":1}]`},
		{"duplicates", `{"a":1,"a":2,"b":1}`, `{"a":3,"b":0,"b":1}`, `[{"op":"replace","path":"/a","value":3}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := patch.JSONBetween([]byte(c.from), []byte(c.to))
			if err != nil {
				t.Fatal(err)
			}
			if text, err := p.MarshalJSON(); string(text) != c.want || err != nil {
				t.Errorf("%s, %v; want %s", text, err, c.want)
			}
			if p.MediaType() != "application/json-patch+json" {
				t.Error(p.MediaType())
			}
			if patch.IsEmpty(p) != (c.want == `[]`) {
				t.Errorf("IsEmpty: %v", patch.IsEmpty(p))
			}
			got := apply(t, p, []byte(c.from))
			if !patch.Equal(bytes.TrimSpace(got), []byte(c.to)) {
				t.Errorf("%s", got)
			}
		})
	}
}
