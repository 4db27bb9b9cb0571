package patch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/homeostat/homeostat/patch"
)

func TestCheck_Valid(t *testing.T) {
	for _, text := range []string{
		`null`, `true`, `false`, `0`, `-0`, `10`, `-1.5`, `0.25`, `1e5`, `1E+05`, `12.5e-10`,
		`""`, `"x"`, `"\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00"`, `"\ud800"`, `"é😀"`, "\"\u007f\u2028\"",
		`[]`, `{}`, `[ ]`, `{ }`, `[1,2]`, `[[],{}]`, `{"a":1,"b":[true,null]}`, `{"":{}}`,
		" \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : null } \n",
		`["]","}","\\","\"]"]`, `{"a\"":"\\"}`,
	} {
		if err := patch.Check([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got := patch.Reopen(bytes.TrimSpace([]byte(text))); string(got) != strings.TrimSpace(text) {
			t.Errorf("%s, opened and written: %s", text, got)
		}
	}
}

func TestCheck_Invalid(t *testing.T) {
	for _, c := range []struct {
		name, text string
		offset     int
		reason     string
	}{
		{"nothing", ``, 0, "the text ends where a value should be"},
		{"white space alone", " \n", 2, "the text ends where a value should be"},
		{"other white space", "\f1", 0, `'\f' where a value should be`},
		{"byte order mark", "\ufeff{}", 0, `'\ufeff' where a value should be`},
		{"not UTF-8", "[1,\"\xff\"]", 4, "not UTF-8"},
		{"UTF-8 cut short", "\"é\xc3", 3, "not UTF-8"},
		{"surrogate as UTF-8", "\"\xed\xa0\x80\"", 1, "not UTF-8"},
		{"two values", `1 2`, 2, `'2' where the end should be`},
		{"trailing comma", `{"a":1},`, 7, `',' where the end should be`},
		{"comment", `1//`, 1, `'/' where the end should be`},
		{"misspelt", `nul1`, 3, `'1' where null should be`},
		{"cut short", `tru`, 3, "the text ends where true should be"},
		{"upper case", `False`, 0, `'F' where a value should be`},
		{"false misspelt", `falsy`, 4, `'y' where false should be`},
		{"NaN", `NaN`, 0, `'N' where a value should be`},
		{"plus", `+1`, 0, `'+' where a value should be`},
		{"leading zero", `01`, 1, `'1' where the end should be`},
		{"leading zero, negative", `-01`, 2, `'1' where the end should be`},
		{"minus alone", `-`, 1, "the text ends where a digit should be"},
		{"minus and letter", `-x`, 1, `'x' where a digit should be`},
		{"no integer part", `.5`, 0, `'.' where a value should be`},
		{"no fraction", `1.`, 2, "the text ends where a digit should be"},
		{"no fraction but exponent", `1.e5`, 2, `'e' where a digit should be`},
		{"no exponent", `1e`, 2, "the text ends where a digit should be"},
		{"sign but no exponent", `[1e+]`, 4, `']' where a digit should be`},
		{"hexadecimal", `0x10`, 1, `'x' where the end should be`},
		{"open string", `"abc`, 4, "the text ends where a closing quote should be"},
		{"escaped end", `"abc\"`, 6, "the text ends where a closing quote should be"},
		{"backslash at the end", `"\`, 2, "the text ends where an escape should be"},
		{"unknown escape", `"\x"`, 2, `'x' where an escape should be`},
		{"short hex", `"\u12"`, 5, `'"' where a hexadecimal digit should be`},
		{"bad hex", `"\u12g4"`, 5, `'g' where a hexadecimal digit should be`},
		{"hex at the end", `"\u123`, 6, "the text ends where a hexadecimal digit should be"},
		{"control character", "\"a\nb\"", 2, `'\n' where a control character's escape should be`},
		{"single quotes", `'a'`, 0, `'\'' where a value should be`},
		{"open list", `[1`, 2, "the text ends where a comma or ] should be"},
		{"open list, comma", `[1,`, 3, "the text ends where a value should be"},
		{"comma before ]", `[1,]`, 3, `']' where a value should be`},
		{"comma after [", `[,1]`, 1, `',' where a value should be`},
		{"no comma in list", `[1 2]`, 3, `'2' where a comma or ] should be`},
		{"wrong bracket", `[1}`, 2, `'}' where a comma or ] should be`},
		{"bracket alone", `[`, 1, "the text ends where a value should be"},
		{"open object", `{"a":1`, 6, "the text ends where a comma or } should be"},
		{"brace alone", `{`, 1, "the text ends where a member's name should be"},
		{"comma before }", `{"a":1,}`, 7, `'}' where a member's name should be`},
		{"bare name", `{a:1}`, 1, `'a' where a member's name should be`},
		{"bad name", `{"a`, 3, "the text ends where a closing quote should be"},
		{"no colon", `{"a" 1}`, 5, `'1' where a colon should be`},
		{"no colon, end", `{"a"`, 4, "the text ends where a colon should be"},
		{"no value", `{"a":}`, 5, `'}' where a value should be`},
		{"no comma in object", `{"a":1 "b":2}`, 7, `'"' where a comma or } should be`},
		{"wrong brace", `{"a":1]`, 6, `']' where a comma or } should be`},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := patch.Check([]byte(c.text))
			syntax, ok := errors.AsType[*patch.SyntaxError](err)
			if !ok || !errors.Is(err, patch.ErrInvalidJSON) {
				t.Fatalf("%v is no ErrInvalidJSON", err)
			}
			if syntax.Offset != c.offset || syntax.Reason != c.reason {
				t.Errorf("%v; want offset %d, %s", err, c.offset, c.reason)
			}
			// Wherever text comes in, it is refused.
			p, err := patch.Merge([]byte(c.text))
			wantOnlyError(t, p, err, patch.ErrInvalidJSON)
			p, err = patch.JSON([]byte(c.text))
			wantOnlyError(t, p, err, patch.ErrInvalidJSON)
			for _, sound := range []patch.Patch{mustMerge(t, `{}`), mustMerge(t, `1`), mustJSON(t, `[]`)} {
				doc, err := sound.Apply([]byte(c.text))
				if doc != nil || !errors.Is(err, patch.ErrInvalidJSON) {
					t.Errorf("apply: %s, %v", doc, err)
				}
			}
			for _, between := range []func(a, b []byte) (patch.Patch, error){patch.MergeBetween, patch.JSONBetween} {
				p, err = between([]byte(c.text), []byte(`{}`))
				wantOnlyError(t, p, err, patch.ErrInvalidJSON)
				p, err = between([]byte(`{}`), []byte(c.text))
				wantOnlyError(t, p, err, patch.ErrInvalidJSON)
			}
		})
	}
}

func wantOnlyError(t *testing.T, p patch.Patch, err, want error) {
	t.Helper()
	if p != nil || !errors.Is(err, want) {
		t.Errorf("%v, %v; want the error %v alone", p, err, want)
	}
}

func TestCheck_Depth(t *testing.T) {
	for text, want := range map[string]int{
		`1`: 0, `"[[["`: 0, `[]`: 1, `{"[":[]}`: 2, `[[],[[]],[]]`: 3, `{"a":{"b":[{}]}}`: 4, `["\"[", "\\"]`: 1,
	} {
		if checked, scanned := patch.Depth([]byte(text)); checked != want || scanned != want {
			t.Errorf("%s: %d and %d; want %d", text, checked, scanned, want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{`{"a":[1,"\u00e9",null]}`, `[1,]`, "\"\xff\"", `{"a":{"a":2},"a":1}`, ` [ 1 , { } ] `, `1e5`, `"\ud800"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := patch.Check(data)
		if errors.Is(err, patch.ErrTooLarge) {
			return
		}
		if want := json.Valid(data) && utf8.Valid(data); (err == nil) != want {
			t.Fatalf("%q: %v; encoding/json says %v", data, err, want)
		}
		if err != nil {
			return
		}
		value := bytes.Trim(data, " \t\r\n")
		if got := patch.Reopen(value); !bytes.Equal(got, value) {
			t.Fatalf("%q, opened and written: %q", value, got)
		}
		if !patch.Equal(value, patch.Reopen(value)) {
			t.Fatalf("%q does not equal itself", value)
		}
		if checked, scanned := patch.Depth(data); checked != scanned {
			t.Fatalf("%q: depth %d or %d", data, checked, scanned)
		}
	})
}
