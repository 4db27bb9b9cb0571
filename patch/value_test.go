package patch_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"sync"
	"testing"

	"github.com/homeostat/homeostat/patch"
)

type inner struct {
	Size  uint64            `json:"size"`
	Names map[string]string `json:"names,omitempty"`
}

type outer struct {
	Name   string   `json:"name"`
	Count  int64    `json:"count"`
	Inner  *inner   `json:"inner"`
	List   []string `json:"list"`
	Ratio  float64  `json:"ratio,omitempty"`
	Hidden string   `json:"-"`
}

func sample() outer {
	return outer{
		Name: "a<b", Count: math.MaxInt64 - 1, List: []string{"x"}, Hidden: "h",
		Inner: &inner{Size: math.MaxUint64 - 1, Names: map[string]string{"a/b": "1", "": "2"}},
	}
}

func TestInto(t *testing.T) {
	p := mustMerge(t, `{"inner":{"names":{"a/b":null,"c":"3"}},"list":["y"]}`)
	want := sample()
	want.Hidden = ""
	want.List = []string{"y"}
	want.Inner.Names = map[string]string{"": "2", "c": "3"}

	old := sample()
	got, err := patch.Into(p, old)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("by value: %+v, %v", got, err)
	}
	through, err := patch.Into(p, &old)
	if err != nil || !reflect.DeepEqual(*through, want) {
		t.Errorf("by pointer: %+v, %v", through, err)
	}
	if !reflect.DeepEqual(old, sample()) {
		t.Errorf("the object was changed: %+v", old)
	}
	// Nothing is shared, also where nothing was changed.
	same, err := patch.Into(mustMerge(t, `{}`), &old)
	if err != nil || same == &old || same.Inner == old.Inner {
		t.Errorf("shared: %v", err)
	}
	same.Inner.Names["a/b"] = "spoilt"
	if !reflect.DeepEqual(old, sample()) {
		t.Error("the answer shares a map with the object")
	}
	// A nil pointer is null, and null a nil pointer.
	made, err := patch.Into[*outer](mustMerge(t, `{"name":"new"}`), nil)
	if err != nil || made.Name != "new" {
		t.Errorf("%v, %v", made, err)
	}
	if gone, err := patch.Into(mustMerge(t, `null`), &old); gone != nil || err != nil {
		t.Errorf("%v, %v", gone, err)
	}
	listed, err := patch.Into(mustJSON(t, `[{"op":"add","path":"/list/-","value":"z"},{"op":"remove","path":"/inner"}]`), old)
	if err != nil || len(listed.List) != 2 || listed.Inner != nil {
		t.Errorf("%+v, %v", listed, err)
	}
}

func TestInto_Errors(t *testing.T) {
	old := sample()
	check := func(name string, p patch.Patch, want error) {
		t.Helper()
		got, err := patch.Into(p, old)
		if !errors.Is(err, want) || !reflect.DeepEqual(got, outer{}) {
			t.Errorf("%s: %+v, %v; want the error %v alone", name, got, err, want)
		}
		if through, err := patch.Into(p, &old); !errors.Is(err, want) || through != nil {
			t.Errorf("%s, by pointer: %+v, %v", name, through, err)
		}
	}
	check("no patch", nil, patch.ErrBadPatch)
	// The name comes before the member that does not fit, and is not handed out.
	check("another type", mustMerge(t, `{"name":"new","count":"many"}`), patch.ErrWrongType)
	check("a number that is too large", mustMerge(t, `{"inner":{"size":18446744073709551616}}`), patch.ErrWrongType)
	check("no object", mustMerge(t, `[1]`), patch.ErrWrongType)
	check("a failed test", mustJSON(t, `[{"op":"test","path":"/name","value":"b"}]`), patch.ErrTestFailed)
	check("no such place", mustJSON(t, `[{"op":"remove","path":"/names"}]`), patch.ErrPath)

	_, err := patch.Into(mustMerge(t, `{"count":"many"}`), old)
	if typeErr, ok := errors.AsType[*json.UnmarshalTypeError](err); !ok || typeErr.Field != "count" {
		t.Errorf("%v does not tell the field", err)
	}
	if want := "patch: does not fit the Go type patch_test.outer: "; err == nil || len(err.Error()) < len(want) || err.Error()[:len(want)] != want {
		t.Errorf("%v", err)
	}
	if f, err := patch.Into(mustMerge(t, `{}`), func() {}); f != nil || !errors.Is(err, patch.ErrWrongType) {
		t.Errorf("a function: %v", err)
	}
	if _, err := patch.Into(mustMerge(t, `{}`), math.NaN()); !errors.Is(err, patch.ErrWrongType) {
		t.Errorf("NaN: %v", err)
	}
}

func TestBetween(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*outer)
		want   string
	}{
		{"nothing", func(*outer) {}, `{}`},
		{"what has no JSON form", func(o *outer) { o.Hidden = "other" }, `{}`},
		{"a text", func(o *outer) { o.Name = "é&" }, `{"name":"é\u0026"}`},
		{"the last digit of an int64", func(o *outer) { o.Count++ }, `{"count":9223372036854775807}`},
		{"the last digit of a uint64", func(o *outer) { o.Inner.Size++ }, `{"inner":{"size":18446744073709551615}}`},
		{"a map's entry", func(o *outer) { o.Inner.Names["a/b"] = "3" }, `{"inner":{"names":{"a/b":"3"}}}`},
		{"a map's entry gone", func(o *outer) { delete(o.Inner.Names, "") }, `{"inner":{"names":{"":null}}}`},
		{"a map left out", func(o *outer) { o.Inner.Names = nil }, `{"inner":{"names":null}}`},
		{"a list", func(o *outer) { o.List = append(o.List, "y") }, `{"list":["x","y"]}`},
		{"an empty list", func(o *outer) { o.List = []string{} }, `{"list":[]}`},
		{"no list", func(o *outer) { o.List = nil }, `{"list":null}`},
		{"no pointer", func(o *outer) { o.Inner = nil }, `{"inner":null}`},
		{"a number new", func(o *outer) { o.Ratio = 0.1 }, `{"ratio":0.1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, to := sample(), sample()
			c.change(&to)
			p, err := patch.Between(from, to)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := p.MarshalJSON()
			if string(text) != c.want {
				t.Errorf("%s; want %s", text, c.want)
			}
			through, err := patch.Between(&from, &to)
			if err != nil {
				t.Fatal(err)
			}
			if again, _ := through.MarshalJSON(); string(again) != string(text) {
				t.Errorf("by pointer: %s", again)
			}
			if patch.IsEmpty(p) != (c.want == `{}`) {
				t.Errorf("IsEmpty: %v", patch.IsEmpty(p))
			}
			got, err := patch.Into(p, from)
			to.Hidden = ""
			if err != nil || !reflect.DeepEqual(got, to) {
				t.Errorf("%+v, %v; want %+v", got, err, to)
			}
			if !reflect.DeepEqual(from, sample()) {
				t.Error("the object was changed")
			}
		})
	}
	// The way back, where nulls turn into something.
	from, to := sample(), sample()
	from.Inner, from.List = nil, nil
	p, err := patch.Between(&from, &to)
	if err != nil {
		t.Fatal(err)
	}
	got, err := patch.Into(p, &from)
	to.Hidden = ""
	if err != nil || !reflect.DeepEqual(got, &to) {
		t.Errorf("%+v, %v", got, err)
	}
}

// told is a value that tells null from absence, as a type may.
type told struct {
	Set  bool
	Null bool
}

func (v *told) UnmarshalJSON(text []byte) error {
	v.Set, v.Null = true, string(text) == "null"
	return nil
}

func (v told) MarshalJSON() ([]byte, error) {
	if v.Null {
		return []byte("null"), nil
	}
	return []byte(`1`), nil
}

func (v told) IsZero() bool { return !v.Set }

type picky struct {
	V told `json:"v,omitzero"`
}

// refusing can't be read back without its member.
type refusing struct{ A *int }

func (v *refusing) UnmarshalJSON(text []byte) error {
	var members map[string]*int
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	a, ok := members["A"]
	if !ok {
		return errors.New("A is missing")
	}
	v.A = a
	return nil
}

// TestBetween_NotRepresentable: Between answers a patch only if it leads to the
// value, by T's own reading.
func TestBetween_NotRepresentable(t *testing.T) {
	one := 1
	check := func(name string, p patch.Patch, err error, path string) {
		t.Helper()
		wantOnlyError(t, p, err, patch.ErrNotRepresentable)
		if e, ok := errors.AsType[*patch.Error](err); !ok || e.Op != -1 || e.Path.String() != path {
			t.Errorf("%s: %v; want it at %s", name, err, path)
		}
	}
	p, err := patch.Between(map[string]any{}, map[string]any{"a": nil})
	check("a nil in a map", p, err, "/a")
	p, err = patch.Between(map[string]*int{"a": &one}, map[string]*int{"a": nil})
	check("a nil pointer in a map", p, err, "/a")
	p, err = patch.Between(json.RawMessage(`{}`), json.RawMessage(`{"a":{"b":null}}`))
	check("a null in text", p, err, "/a/b")
	p, err = patch.Between(picky{told{Set: true}}, picky{told{Set: true, Null: true}})
	check("a type that tells", p, err, "/v")
	p, err = patch.Between(refusing{&one}, refusing{})
	check("a type that refuses", p, err, "/A")
	// The same types, where nothing is lost.
	for _, c := range []struct{ from, to map[string]any }{
		{map[string]any{"a": nil}, map[string]any{"a": nil, "b": []any{nil}}},
		{map[string]any{"a": nil}, map[string]any{}},
	} {
		p, err := patch.Between(c.from, c.to)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := patch.Into(p, c.from); err != nil || !reflect.DeepEqual(got, c.to) {
			t.Errorf("%v, %v; want %v", got, err, c.to)
		}
	}
	if _, err := patch.Between(func() {}, func() {}); !errors.Is(err, patch.ErrWrongType) {
		t.Errorf("functions: %v", err)
	}
	if _, err := patch.Between(0, math.Inf(1)); !errors.Is(err, patch.ErrWrongType) {
		t.Errorf("infinity: %v", err)
	}
	if _, err := patch.Between(json.RawMessage(nested(1001)), json.RawMessage(`1`)); !errors.Is(err, patch.ErrTooLarge) {
		t.Errorf("too deep: %v", err)
	}
}

type silent struct{ patch.Patch }

type speaking struct {
	patch.Patch
	empty bool
}

func (s speaking) IsEmpty() bool { return s.empty }

func TestIsEmpty(t *testing.T) {
	for name, c := range map[string]struct {
		p    patch.Patch
		want bool
	}{
		"nil":                    {nil, true},
		"merge, nothing":         {mustMerge(t, ` { } `), true},
		"merge, something":       {mustMerge(t, `{"a":null}`), false},
		"merge, an empty object": {mustMerge(t, `{"a":{}}`), false},
		"merge, a scalar":        {mustMerge(t, `1`), false},
		"merge, an empty list":   {mustMerge(t, `[]`), false},
		"merge, null":            {mustMerge(t, `null`), false},
		"JSON, nothing":          {mustJSON(t, `[]`), true},
		"JSON, something":        {mustJSON(t, `[{"op":"remove","path":"/a"}]`), false},
		"JSON, a test":           {mustJSON(t, `[{"op":"test","path":"","value":{}}]`), false},
		"a stranger":             {silent{mustMerge(t, `{}`)}, false},
		"a stranger, empty":      {speaking{mustMerge(t, `1`), true}, true},
		"a stranger, not empty":  {speaking{mustMerge(t, `{}`), false}, false},
	} {
		if got := patch.IsEmpty(c.p); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	// Values that are no objects, whose patch has no empty form.
	for _, c := range []struct {
		from, to any
		want     bool
	}{
		{5, 5, true}, {5, 6, false}, {5, 5.0, true}, {nil, nil, true}, {"a", "a", true},
		{[]int{1}, []int{1}, true}, {[]int{1}, []int{2}, false}, {5, map[string]int{}, false}, {map[string]int{}, map[string]int{}, true},
	} {
		p, err := patch.Between(c.from, c.to)
		if err != nil {
			t.Fatal(err)
		}
		if got := patch.IsEmpty(p); got != c.want {
			t.Errorf("%v to %v: %v", c.from, c.to, got)
		}
		from, to := encode(t, c.from), encode(t, c.to)
		wantSame(t, apply(t, p, from), to)
	}
}

// TestPatch_Concurrent: one patch, many goroutines. The race detector looks on.
func TestPatch_Concurrent(t *testing.T) {
	merge := mustMerge(t, `{"a":{"b":{"c":null,"d":{"e":null,"f":1}}},"g":[{"h":1}]}`)
	list := mustJSON(t, `[{"op":"add","path":"/a","value":{"b":[1,{"c":2}]}},{"op":"add","path":"/a/b/1/d","value":3},
		{"op":"test","path":"/a","value":{"b":[1.0,{"d":3,"c":2}]}},{"op":"copy","from":"/a","path":"/e"}]`)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if out, err := merge.Apply([]byte(`{"x":1}`)); string(out) != `{"x":1,"a":{"b":{"d":{"f":1}}},"g":[{"h":1}]}` {
					t.Errorf("%s, %v", out, err)
				}
				if out, err := list.Apply([]byte(`{}`)); string(out) != `{"a":{"b":[1,{"c":2,"d":3}]},"e":{"b":[1,{"c":2,"d":3}]}}` {
					t.Errorf("%s, %v", out, err)
				}
				if patch.IsEmpty(merge) || patch.IsEmpty(list) {
					t.Error("empty")
				}
				if _, err := list.MarshalJSON(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
