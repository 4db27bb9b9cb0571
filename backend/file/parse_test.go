package file_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/homeostat/homeostat/backend/file"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

func TestWhatAFileCanSay(t *testing.T) {
	for _, c := range []struct {
		name, file, content string
		want                state
	}{
		{"one document", "a.yaml", yamlOf("a", 1), state{"a": 1}},
		{"the other ending", "a.yml", yamlOf("a", 1), state{"a": 1}},
		{"JSON", "a.json", `{"name": "a", "size": 1}`, state{"a": 1}},
		{"JSON in YAML", "a.yaml", "{\n\t\"name\": \"a\",\n\t\"size\": 1\n}", state{"a": 1}},
		{"several documents", "a.yaml", "---\n" + yamlOf("a", 1) + "---\n" + yamlOf("b", 2) + "---\n# nothing\n---\n" + yamlOf("c", 3), state{"a": 1, "b": 2, "c": 3}},
		{"several JSON documents", "a.json", "{\"name\":\"a\"}\n\n{\"name\":\"b\",\"size\":2} null", state{"a": 0, "b": 2}},
		{"a comment", "a.yaml", "# nothing today\n", state{}},
		{"a comment and a null", "a.yaml", "---\n  # nothing\nnull\n", state{}},
		{"a byte order mark", "a.yaml", "\xef\xbb\xbfname: a\n", state{"a": 0}},
		{"a byte order mark in JSON", "a.json", "\xef\xbb\xbf{\"name\":\"a\"}", state{"a": 0}},
		{"an ending in capitals", "A.YAML", yamlOf("a", 1), state{"a": 1}},
		{"line ends of Windows", "a.yaml", "name: a\r\nsize: 1\r\n", state{"a": 1}},
		{"hidden", ".a.yaml", yamlOf("a", 1), state{}},
		{"not a manifest", "a.txt", yamlOf("a", 1), state{}},
		{"a backup", "a.yaml~", yamlOf("a", 1), state{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, c.file, c.content)
			src := newSource(t, dir, quick())
			require.Equal(t, c.want, list(t, src))
			require.Empty(t, src.Faults())
		})
	}
}

func TestYAMLIsReadAsJSONWouldBe(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", `
name: "a"
size: 0x1F
ratio: 1_000.5
on: true
big: 123456789012345678901234567890.10
tags: [yes, "1", 2026-11-30, ~x, <b>]
since: 2026-11-30T12:00:00Z
env:
  <<: {COLOUR: red, SIZE: "9"}
  COLOUR: blue
  1: one
`)
	src := newSource(t, dir, quick())
	page, err := src.List(t.Context(), reflector.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, src.Faults())
	require.Equal(t, &app{
		Name: "a", Size: 31, Ratio: 1000.5, On: true,
		Tags:  []string{"yes", "1", "2026-11-30", "~x", "<b>"},
		Env:   map[string]string{"COLOUR": "blue", "SIZE": "9", "1": "one"},
		Since: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
		Big:   "123456789012345678901234567890.10",
	}, page.Items[0].Object)
}

func TestAliasesAndMerges(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", `
name: a
tags: &t [x, y]
env: &e {A: "1"}
---
name: b
tags: [z]
env: {<<: [{A: "1", B: "2"}, {A: "3", C: "4"}]}
`)
	src := newSource(t, dir, quick())
	page, err := src.List(t.Context(), reflector.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, src.Faults())
	require.Equal(t, map[string]string{"A": "1", "B": "2", "C": "4"}, page.Items[1].Object.Env)
}

func TestEveryFaultNamesFileAndLine(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for last, c := "a", 'b'; c < 'm'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+last+", ", 9) + "*" + last + "]\n"
		last = string(c)
	}
	mergeBomb := "m0: &m0 {x: y}\n"
	for i := 1; i < 12; i++ {
		one := fmt.Sprintf("*m%d", i-1)
		mergeBomb += fmt.Sprintf("m%d: &m%d {<<: [%s]}\n", i, i, strings.Repeat(one+", ", 9)+one)
	}
	for _, c := range []struct {
		name, file, content string
		line                int
		kind                error
		says                string
	}{
		{"YAML syntax", "a.yaml", "name: a\nsize: 1\n  on: true\n", 3, file.ErrSyntax, "mapping values"},
		{"YAML cut off", "a.yaml", "name: a\ntags: [x,\n", 2, file.ErrSyntax, ""},
		{"a tab", "a.yaml", "name: a\n\tsize: 1\n", 2, file.ErrSyntax, ""},
		{"in the second document", "a.yaml", yamlOf("a", 1) + "---\nname: b\nsize: [\n", 5, file.ErrSyntax, ""},
		{"a member twice", "a.yaml", "name: a\nsize: 1\nname: b\n", 3, file.ErrInvalid, `member "name" stands on line 1`},
		{"an unknown member", "a.yaml", "name: a\nenv: {A: b}\nsise: 1\n", 3, file.ErrInvalid, `unknown member "sise"`},
		{"an unknown member that is known elsewhere", "a.yaml", "name: a\nsize: 1\nparts:\n- title: x\n- title: y\n  size: 1\n", 6, file.ErrInvalid, `parts[1]: unknown member "size"`},
		{"a member in other letters", "a.yaml", "name: a\nSize: 1\n", 2, file.ErrInvalid, `unknown member "Size" ("size"?)`},
		{"an unknown member below what is embedded", "a.yaml", "name: a\nowner: x\nowned: y\n", 3, file.ErrInvalid, `"owned"`},
		{"a value that the type's own code refuses", "a.yaml", "name: a\nsize: 1\nsince: yesterday\n", 3, file.ErrInvalid, "since: "},
		{"a control character", "a.yaml", "name: a\nsize: 1\nx: \x01\n", 3, file.ErrSyntax, ""},
		{"not text", "a.yaml", "name: a\n\xff\xfe\n", 2, file.ErrSyntax, ""},
		{"merged into itself", "a.yaml", "name: a\n<<: &x [*x]\n", 2, file.ErrInvalid, "merged"},
		{"mapping merged into itself", "a.yaml", "name: a\nenv: &x\n  <<: *x\n", 0, file.ErrInvalid, ""},
		{"nothing but white space", "a.yaml", " \n\n", 0, file.ErrEmpty, ""},
		{"nothing but a marker", "a.yaml", "---\n", 0, file.ErrEmpty, ""},
		{"nothing but a null", "a.yaml", "null\n", 0, file.ErrEmpty, ""},
		{"the beginning of a comment", "a.yaml", "# hea", 0, file.ErrEmpty, ""},
		{"white space in JSON", "a.json", " \n", 0, file.ErrEmpty, ""},
		{"a null in JSON", "a.json", "null", 0, file.ErrEmpty, ""},
		{"a member twice in JSON", "a.json", "{\"name\":\"a\",\n\"env\":{\"A\":\"1\",\n\"A\":\"2\"}}", 3, file.ErrInvalid, `env: member "A" stands on line 2`},
		{"an unknown member whose name is a value before", "a.json", "{\"name\":\"nme\",\n\"size\":1,\n\"nme\":1}", 3, file.ErrInvalid, `"nme"`},
		{"UnmarshalJSON panics", "a.yaml", "name: a\nbig: 666\n", 1, file.ErrInvalid, "panicked: told to"},
		{"a wrong type", "a.yaml", "name: a\ntags:\n- x\n- [y]\n", 4, file.ErrInvalid, "tags"},
		{"a wrong type in a later document", "a.yaml", "name: a\n---\nname: b\nsize: many\n", 4, file.ErrInvalid, "size: string where int is wanted"},
		{"a number too large", "a.yaml", "name: a\nsize: 99999999999999999999\n", 2, file.ErrInvalid, "size"},
		{"not an object", "a.yaml", "# a list\n- name: a\n", 2, file.ErrInvalid, ""},
		{"text", "a.yaml", "hello\n", 1, file.ErrInvalid, ""},
		{"no number for JSON", "a.yaml", "name: a\nratio: .inf\n", 2, file.ErrInvalid, ".inf"},
		{"does not validate", "a.yaml", "name: a\n---\n\nname: b\nsize: -1\n", 4, file.ErrInvalid, "size: -1 is negative"},
		{"no key", "a.yaml", "size: 1\n", 1, file.ErrInvalid, "no key"},
		{"its own code panics", "a.yaml", "\nname: panic\n", 2, file.ErrInvalid, "told to"},
		{"unknown anchor", "a.yaml", "name: a\ntags: *x\n", 2, file.ErrSyntax, "anchor"},
		{"a bomb of merges", "a.yaml", mergeBomb, 0, file.ErrInvalid, "aliases"},
		{"a bomb of aliases", "a.yaml", bomb, 0, file.ErrInvalid, "aliases"},
		{"too deep", "a.yaml", "name: a\ntags: " + strings.Repeat("[", 1100) + strings.Repeat("]", 1100), 2, file.ErrInvalid, "levels"},
		{"JSON syntax", "a.json", "{\n\"name\": \"a\",\n\"size\": x\n}", 3, file.ErrSyntax, "invalid character 'x'"},
		{"JSON cut off", "a.json", "{\"name\": \"a\",\n\"size\": 1", 2, file.ErrSyntax, "unexpected E"},
		{"a wrong type in JSON", "a.json", "{\"name\":\"a\"}\n\n{\"name\":\"b\",\n\"size\":\"x\"}", 4, file.ErrInvalid, "size"},
		{"an unknown member in JSON", "a.json", "{\"name\":\"a\",\n\"sise\":1}", 2, file.ErrInvalid, "sise"},
		{"does not validate in JSON", "a.json", "\n{\"name\":\"a\", \"size\":-1}", 2, file.ErrInvalid, "negative"},
		{"empty", "a.yaml", "", 0, file.ErrEmpty, ""},
		{"empty JSON", "a.json", "", 0, file.ErrEmpty, ""},
		{"too large", "a.yaml", strings.Repeat("#\n", 2001), 0, file.ErrTooLarge, "4000 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, c.file, c.content)
			opts := quick()
			opts.MaxSize = 4000
			src := newSource(t, dir, opts)
			require.Empty(t, list(t, src), "a fault is no error of List, and no object")
			got := faults(t, src, 1)[0]
			require.ErrorIs(t, got, c.kind)
			require.Contains(t, got.Error(), c.says)
			require.Contains(t, got.Error(), dir)
			require.Contains(t, got.Error(), c.file)
			if c.line > 0 {
				require.Equal(t, c.line, got.Line, got.Error())
			}
		})
	}
}

// What YAML takes for the end of a line.
var lineBreak = regexp.MustCompile("[\n\r\u0085\u2028\u2029]")

func FuzzFileContent(f *testing.F) {
	for _, seed := range []string{"name: a\n", "- a", "{\"name\":\"a\"}", "a: &a [*a]", "<<: {a: b}", "? [a]\n: b", "--- !!binary aGk=\n", "name: !!int 0o17", "&a a: *a"} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, content string, yaml bool) {
		name := "a.json"
		if yaml {
			name = "a.yaml"
		}
		dir := t.TempDir()
		write(t, dir, name, content)
		src := newSource(t, dir, quick())
		objects := list(t, src) // no error, no panic, whatever it says
		if found := src.Faults(); len(found) > 0 && found[0].Line > len(lineBreak.FindAllString(content, -1))+1 {
			t.Errorf("line %d of %q", found[0].Line, content)
		} else if len(objects) > 0 && len(found) > 0 {
			for _, f := range found {
				require.ErrorIs(t, f, file.ErrDuplicate)
			}
		}
	})
}
