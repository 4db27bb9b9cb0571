package patch_test

import (
	"encoding/json"
	"testing"

	"github.com/homeostat/homeostat/patch"
)

func TestUnquote(t *testing.T) {
	for text, want := range map[string]string{
		`""`:                         "",
		`"plain"`:                    "plain",
		`"\u0061b"`:                  "ab",
		`"\"\\\/\b\f\n\r\t"`:         "\"\\/\b\f\n\r\t",
		`"x\u00E9\u00e9y"`:           "xééy",
		`"\uD83D\uDE00!"`:            "😀!",
		`"\ud83d\ude00"`:             "😀",
		`"\u0000\uffff"`:             "\x00\uffff",
		`"\uabcd\uABCD"`:             "\uabcd\uabcd",
		`"\\u0061"`:                  `\u0061`,
		`"\uD83Dx"`:                  "\xed\xa0\xbdx",
		`"\uDE00\uD83D"`:             "\xed\xb8\x80\xed\xa0\xbd",
		`"\uD83D\uD83D\uDE00"`:       "\xed\xa0\xbd😀",
		`"\uD83D\n"`:                 "\xed\xa0\xbd\n",
		`"\ud800\udfff\ud7ff\ue000"`: "\U000103ff\ud7ff\ue000",
		`"\ud800\udc00\uDBFF\uDFFF"`: "\U00010000\U0010ffff",
		`"\udc00\udc00"`:             "\xed\xb0\x80\xed\xb0\x80",
		`"\ud800\ue000\udbff"`:       "\xed\xa0\x80\ue000\xed\xaf\xbf",
		`"\u09afAF\u09AF"`:           "\u09afAF\u09af",
		`"\uA000\uF000\ua000\uf000"`: "\ua000\uf000\ua000\uf000",
	} {
		if err := patch.Check([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got := patch.Unquote(text); got != want {
			t.Errorf("%s: %q; want %q", text, got, want)
		}
		if back := patch.Unquote(patch.Quote(want)); back != want {
			t.Errorf("%q, quoted and unquoted: %q", want, back)
		}
	}
}

func TestQuote(t *testing.T) {
	for s, want := range map[string]string{
		"":                          `""`,
		"a/b~é😀<&>\u2028":           "\"a/b~é😀<&>\u2028\"",
		"\"\\":                      `"\"\\"`,
		"\x00\n\x1f\x7f":            "\"\\u0000\\u000a\\u001f\x7f\"",
		"\xed\xa0\x80":              `"\ud800"`,
		"\xed\xbf\xbf.\xed\xa9\xa5": `"\udfff.\uda65"`,
		"\ud7ff":                    "\"\ud7ff\"", // the last one before the surrogates
	} {
		if got := patch.Quote(s); got != want {
			t.Errorf("%q: %s; want %s", s, got, want)
		}
	}
}

func FuzzQuote(f *testing.F) {
	f.Add(`"a\u00e9\ud83d"`)
	f.Add(`"\ud83d\ude00\\\" "`)
	f.Fuzz(func(t *testing.T, text string) {
		if patch.Check([]byte(text)) != nil || text[0] != '"' || text[len(text)-1] != '"' {
			return
		}
		s := patch.Unquote(text)
		quoted := patch.Quote(s)
		if err := patch.Check([]byte(quoted)); err != nil {
			t.Fatalf("%s: %v", quoted, err)
		}
		if back := patch.Unquote(quoted); back != s {
			t.Fatalf("%q came back as %q", s, back)
		}
		var x, y string
		if json.Unmarshal([]byte(text), &x) != nil || json.Unmarshal([]byte(quoted), &y) != nil || x != y {
			t.Fatalf("encoding/json reads %s as %q and %s as %q", text, x, quoted, y)
		}
	})
}

// TestP13_SameNumber is the one rule of numeric equality.
func TestP13_SameNumber(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"1", "1", true}, {"1", "2", false}, {"1", "-1", false},
		{"0", "-0", true}, {"-0", "0", true}, {"0", "-1", false}, {"10", "-0", false}, {"-10", "0", false},
		{"0.0", "-0", true}, {"0", "0e5", true},
		// integers are exact, within int64 and beyond
		{"9007199254740992", "9007199254740993", false},
		{"9223372036854775806", "9223372036854775807", false},
		{"-9223372036854775807", "-9223372036854775808", false},
		{"18446744073709551614", "18446744073709551615", false},
		{"100000000000000000000000000000", "100000000000000000000000000001", false},
		// else as float64
		{"1", "1.0", true}, {"1", "1e0", true}, {"100", "1E+2", true}, {"1.50", "1.5", true},
		{"0.1", "0.10000000000000000001", true}, {"0.1", "0.1000000000000001", false},
		{"9007199254740993", "9007199254740992.0", true}, {"1000000", "1e6", true}, {"1", "1.5", false},
		{"1.0", "2.0", false}, {"1e2", "1e3", false},
		// beyond float64, as decimals
		{"1e400", "1e400", true}, {"1e400", "10e399", true}, {"1e400", "0.1e401", true}, {"1.50e400", "15e399", true},
		{"1e400", "1e401", false}, {"1e400", "-1e400", false}, {"-1e400", "-10e399", true}, {"1e400", "2e400", false},
		{"1e400", "1", false}, {"1", "1e400", false}, {"1E400", "1e+400", true}, {"0.001e403", "1e400", true},
		{"1e99999999999999999999", "10e99999999999999999998", false}, // too far out to tell
	} {
		if got := patch.SameNumber(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
		if got := patch.SameNumber(c.b, c.a); got != c.want {
			t.Errorf("%s and %s: %v", c.b, c.a, got)
		}
	}
}

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`null`, `null`, true}, {`null`, `false`, false}, {`true`, `false`, false}, {`"1"`, `1`, false},
		{`"a"`, `"\u0061"`, true}, {`"a"`, `"b"`, false}, {`"\ud800"`, `"\ud801"`, false}, {`"1"`, `"1.0"`, false},
		{`[]`, `{}`, false}, {`[]`, `[ ]`, true}, {`{}`, `null`, false}, {`[null]`, `[]`, false},
		{`[0.5]`, `[5e-1]`, true}, {`[0]`, `[-0]`, true}, {`-1`, `-1.0`, true}, {`-1`, `1`, false},
		{`[1,2]`, `[1.0, 2]`, true}, {`[1,2]`, `[2,1]`, false}, {`[1]`, `[1,1]`, false},
		{`{"a":1,"b":2}`, `{ "b":2, "a":1 }`, true}, {`{"a":1}`, `{"a":1,"b":null}`, false},
		{`{"a":1,"b":2}`, `{"a":1,"c":2}`, false}, {`{"a":1}`, `{"a":2}`, false},
		{`{"a":1,"a":2}`, `{"a":2}`, true}, {`{"a":1,"a":2}`, `{"a":1}`, false},
		{`{"a":1,"a":2,"b":3}`, `{"b":3,"a":0,"a":2.0}`, true}, {`{"a":1,"a":1}`, `{"a":1,"b":1}`, false},
		{`{"\u0061":{"x":[{}]}}`, `{"a":{"x":[{ }]}}`, true},
	} {
		if got := patch.Equal([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
		if got := patch.Equal([]byte(c.b), []byte(c.a)); got != c.want {
			t.Errorf("%s and %s: %v", c.b, c.a, got)
		}
	}
}

func TestPath_String(t *testing.T) {
	for _, c := range []struct {
		path patch.Path
		want string
	}{
		{nil, ""},
		{patch.Path{{Member: ""}}, "/"},
		{patch.Path{{Member: "a"}, {Index: 0, InList: true}, {Member: "0"}}, "/a/0/0"},
		{patch.Path{{Index: 12, InList: true}}, "/12"},
		{patch.Path{{Member: "a/b"}, {Member: "~1"}, {Member: "~"}, {Member: "é"}}, "/a~1b/~01/~0/é"},
	} {
		if got := c.path.String(); got != c.want {
			t.Errorf("%#v: %s; want %s", c.path, got, c.want)
		}
	}
	if got := (patch.Step{Member: "a/b"}).String(); got != "/a~1b" {
		t.Errorf("a step: %s", got)
	}
}
