package object_test

import (
	"slices"
	"testing"

	"github.com/homeostat/homeostat/object"
)

func TestKey(t *testing.T) {
	tests := []struct {
		name  string
		parts []string
		want  string
	}{
		{"one part is itself", []string{"web"}, "web"},
		{"parts are joined", []string{"shop", "web", "1"}, "shop/web/1"},
		{"a slash inside a part", []string{"a/b", "c"}, "a%2Fb/c"},
		{"a percent sign inside a part", []string{"100%"}, "100%25"},
		{"what looks escaped", []string{"a%2Fb"}, "a%252Fb"},
		{"both", []string{"a%/b", "c/d"}, "a%25%2Fb/c%2Fd"},
		{"escaped in the last part only", []string{"a", "b", "/"}, "a/b/%2F"},
		{"empty parts stay", []string{"", "a", ""}, "/a/"},
		{"two empty parts", []string{"", ""}, "/"},
		{"any text", []string{"日本", "\x00\xff"}, "日本/\x00\xff"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := object.Key(tt.parts...)
			if got != tt.want {
				t.Errorf("Key(%q) = %q, want %q", tt.parts, got, tt.want)
			}
			if back := object.Split(got); !slices.Equal(back, tt.parts) {
				t.Errorf("Split(%q) = %q, want %q", got, back, tt.parts)
			}
		})
	}
	t.Run("no part is one empty part", func(t *testing.T) {
		if got := object.Key(); got != object.Key("") {
			t.Errorf("got %q, want %q", got, object.Key(""))
		}
	})
}

func TestSplit_OfKeysThatKeyDidNotMake(t *testing.T) {
	tests := []struct {
		name, key string
		want      []string
	}{
		{"empty", "", []string{""}},
		{"a lone percent sign", "50%/a", []string{"50%", "a"}},
		{"another escape", "a%20b/c", []string{"a%20b", "c"}},
		{"lower case is no escape of ours", "a%2fb", []string{"a%2fb"}},
		{"cut off", "a%2", []string{"a%2"}},
		{"one of ours among others", "%2F%2f%25", []string{"/%2f%"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := object.Split(tt.key); !slices.Equal(got, tt.want) {
				t.Errorf("Split(%q) = %q, want %q", tt.key, got, tt.want)
			}
		})
	}
}

// Split gives back what Key joined, and different parts have different keys.
func FuzzKey(f *testing.F) {
	f.Add("a", "b", "c", "d")
	f.Add("a/b", "", "a", "b/")
	f.Add("%2F", "/", "%", "2F")
	f.Add("%25", "%2", "5", "%%//")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		one, two := []string{a, b}, []string{c, d}
		for _, parts := range [][]string{one, two, {a}, {a, b, c, d}} {
			if back := object.Split(object.Key(parts...)); !slices.Equal(back, parts) {
				t.Errorf("Split(Key(%q)) = %q", parts, back)
			}
		}
		if same := object.Key(one...) == object.Key(two...); same != slices.Equal(one, two) {
			t.Errorf("%q and %q: the same key is %t", one, two, same)
		}
	})
}

func TestKey_AllocatesOnce(t *testing.T) {
	ns, name := "shop", "we/b"
	for what, f := range map[string]func(){
		"plain":   func() { _ = object.Key(ns, "web") },
		"escaped": func() { _ = object.Key(ns, name) },
	} {
		if got := testing.AllocsPerRun(100, f); got > 1 {
			t.Errorf("%s: %v allocations", what, got)
		}
	}
}
