package patch_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// source draws documents. The names are few, so that patches hit, and odd.
type source struct{ *rand.Rand }

func newSource(seed uint64) source { return source{rand.New(rand.NewPCG(seed, 1))} }

var names = []string{"", "a", "b", "c", "/", "~", "~1", "~01", "a/b", "é", "\"\\", "0", "-", "1", "01", "😀", "\n"}

func (r source) name() string { return names[r.IntN(len(names))] }

// raw is a JSON number as a literal.
type raw string

var numbers = []raw{"0", "-0", "1", "1.0", "1e0", "-7", "0.5", "5e-1", "9007199254740992", "9007199254740993", "18446744073709551615", "18446744073709551616"}

// value draws a value: nil, bool, string, raw, []any or map[string]any.
func (r source) value(depth int) any {
	kinds := 7
	if depth <= 0 {
		kinds = 5
	}
	switch r.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return r.name()
	case 3, 4:
		return numbers[r.IntN(len(numbers))]
	case 5:
		out := make([]any, r.IntN(4))
		for i := range out {
			out[i] = r.value(depth - 1)
		}
		return out
	}
	return r.object(depth)
}

func (r source) object(depth int) map[string]any {
	out := map[string]any{}
	for range r.IntN(6) {
		out[r.name()] = r.value(depth - 1)
	}
	if r.IntN(20) == 0 { // enough of them for an index
		for i := range 20 {
			out["k"+strconv.Itoa(i)] = r.value(0)
		}
	}
	return out
}

// document draws a value that mostly is an object.
func (r source) document() any {
	if r.IntN(10) == 0 {
		return r.value(3)
	}
	return r.object(4)
}

// change gives a value that has much in common with v.
func (r source) change(v any) any {
	if r.IntN(8) == 0 {
		return r.value(2)
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, name := range sortedNames(v) {
			switch r.IntN(6) {
			case 0: // gone
			case 1, 2:
				out[name] = r.change(v[name])
			default:
				out[name] = v[name]
			}
		}
		if r.IntN(3) == 0 {
			out[r.name()] = r.value(2)
		}
		return out
	case []any:
		var out []any
		for _, e := range v {
			switch r.IntN(6) {
			case 0: // gone
			case 1:
				out = append(out, r.change(e))
			case 2:
				out = append(out, r.value(1), e)
			default:
				out = append(out, e)
			}
		}
		return out
	}
	return v
}

// text writes a value with white space, escapes and duplicates as they fall.
func (r source) text(v any) []byte {
	var b strings.Builder
	r.write(&b, v)
	return []byte(b.String())
}

func (r source) space(b *strings.Builder) {
	if r.IntN(4) == 0 {
		b.WriteString([]string{" ", "\n", "\t", "\r\n  "}[r.IntN(4)])
	}
}

func (r source) write(b *strings.Builder, v any) {
	r.space(b)
	switch v := v.(type) {
	case map[string]any:
		b.WriteByte('{')
		r.space(b)
		first := true
		for _, name := range r.shuffledNames(v) {
			if !first {
				b.WriteByte(',')
			}
			first = false
			if r.IntN(10) == 0 { // a duplicate that does not count
				r.writeString(b, name)
				b.WriteByte(':')
				r.write(b, r.value(1))
				b.WriteByte(',')
			}
			r.space(b)
			r.writeString(b, name)
			r.space(b)
			b.WriteByte(':')
			r.write(b, v[name])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		r.space(b)
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			r.write(b, e)
		}
		b.WriteByte(']')
	case string:
		r.writeString(b, v)
	case raw:
		b.WriteString(string(v))
	case nil:
		b.WriteString("null")
	default:
		fmt.Fprint(b, v)
	}
	r.space(b)
}

func (r source) writeString(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c < 0x20 || c == '"' || c == '\\' || c < 0x80 && r.IntN(8) == 0:
			fmt.Fprintf(b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
}

// sortedNames makes what is drawn depend on the seed alone.
func sortedNames(v map[string]any) []string { return slices.Sorted(maps.Keys(v)) }

func (r source) shuffledNames(v map[string]any) []string {
	out := sortedNames(v)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// pointer draws a pointer that more often than not leads somewhere in doc, and
// gives what is there.
func (r source) pointer(doc any) (string, any) {
	var b strings.Builder
	steps := 1 + r.IntN(4)
	if r.IntN(20) == 0 {
		steps = 0
	}
	for range steps {
		token := r.name()
		switch v := doc.(type) {
		case map[string]any:
			if all := sortedNames(v); len(all) > 0 && r.IntN(8) > 0 {
				token = all[r.IntN(len(all))]
			}
			doc = v[token]
		case []any:
			i := r.IntN(len(v) + 1)
			token = strconv.Itoa(i)
			if r.IntN(8) == 0 {
				token = "-"
			}
			if i < len(v) {
				doc = v[i]
			} else {
				doc = nil
			}
		default:
			if r.IntN(8) > 0 {
				return b.String(), doc
			}
		}
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(token))
	}
	return b.String(), doc
}

// operations draws a JSON patch for doc.
func (r source) operations(doc any) []any {
	ops := make([]any, r.IntN(4))
	for i := range ops {
		path, found := r.pointer(doc)
		op := map[string]any{"path": path}
		verb := []string{"add", "add", "remove", "replace", "move", "copy", "test"}[r.IntN(7)]
		switch verb {
		case "add", "replace":
			op["value"] = r.value(2)
		case "test":
			op["value"] = found
			if r.IntN(4) == 0 {
				op["value"] = r.value(1)
			}
		case "move", "copy":
			op["from"], _ = r.pointer(doc)
		}
		op["op"] = verb
		ops[i] = op
	}
	return ops
}
