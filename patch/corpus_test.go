package patch_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/homeostat/homeostat/patch"
)

// corpusCase is a line of testdata/*.jsonl.
type corpusCase struct {
	Name, Kind                        string
	Original, Modified, Patch, Result json.RawMessage
	Error, Quirk                      string
	Exact                             bool
}

func readCorpus(t *testing.T, name string) []corpusCase {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []corpusCase
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c corpusCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestCorpus_Merge runs the cases of RFC 7386, its appendix included.
func TestCorpus_Merge(t *testing.T) {
	all := readCorpus(t, "json-merge.jsonl")
	if len(all) != 327 {
		t.Fatalf("%d cases", len(all))
	}
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			p, err := patch.Merge(c.Patch)
			if err != nil {
				t.Fatal(err)
			}
			got := apply(t, p, c.Original)
			if c.Quirk != "" {
				return
			}
			wantSame(t, got, c.Result)
			if c.Kind != "json-merge-create" {
				return
			}
			near, err := patch.MergeNear(c.Original, c.Modified)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, apply(t, near, c.Original), c.Result)
			strict, err := patch.MergeBetween(c.Original, c.Modified)
			if !c.Exact {
				if !errors.Is(err, patch.ErrNotRepresentable) || strict != nil {
					t.Fatalf("%v, %v; want ErrNotRepresentable alone", strict, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, apply(t, strict, c.Original), c.Modified)
		})
	}
}

var errorClasses = map[string]error{
	"bad-patch":   patch.ErrBadPatch,
	"path":        patch.ErrPath,
	"test-failed": patch.ErrTestFailed,
}

// TestCorpus_JSON runs the cases of RFC 6902.
func TestCorpus_JSON(t *testing.T) {
	all := readCorpus(t, "json-patch.jsonl")
	if len(all) != 318 {
		t.Fatalf("%d cases", len(all))
	}
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			if c.Kind == "json-patch-create" {
				p, err := patch.JSONBetween(c.Original, c.Modified)
				if err != nil {
					t.Fatal(err)
				}
				wantSame(t, apply(t, p, c.Original), c.Modified)
				return
			}
			before := bytes.Clone(c.Original)
			got, err := applyJSON(c.Original, c.Patch)
			if !bytes.Equal(c.Original, before) {
				t.Fatal("the document was changed")
			}
			if c.Error != "" {
				if !errors.Is(err, errorClasses[c.Error]) || got != nil {
					t.Fatalf("%s, %v; want the error %s alone", got, err, c.Error)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Quirk == "" {
				wantSame(t, got, c.Result)
			}
		})
	}
}

// TestSuite_JSONPatchTests runs the public suite of RFC 6902, which is not ours
// to copy, from where JSON_PATCH_TESTS says it lies.
func TestSuite_JSONPatchTests(t *testing.T) {
	dir := os.Getenv("JSON_PATCH_TESTS")
	if dir == "" {
		t.Log("JSON_PATCH_TESTS is unset: it names a folder with spec_tests.json and tests.json of github.com/json-patch/json-patch-tests; without it the public suite is not run")
		return
	}
	ran := 0
	for _, name := range []string{"spec_tests.json", "tests.json"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var all []struct {
			Comment, Error       string
			Doc, Patch, Expected json.RawMessage
			Disabled             bool
		}
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatal(err)
		}
		for i, c := range all {
			if c.Disabled || c.Patch == nil {
				continue
			}
			ran++
			got, err := applyJSON(c.Doc, c.Patch)
			switch {
			case c.Error != "" && err == nil:
				t.Errorf("%s %d %q: %s; want the error %q", name, i, c.Comment, got, c.Error)
			case c.Error == "" && err != nil:
				t.Errorf("%s %d %q: %v", name, i, c.Comment, err)
			case c.Error == "" && c.Expected != nil && !refEqual(decode(t, got), decode(t, c.Expected)):
				t.Errorf("%s %d %q: %s; want %s", name, i, c.Comment, got, c.Expected)
			}
		}
	}
	if ran < 100 {
		t.Errorf("only %d cases found in %s", ran, dir)
	}
}

func applyJSON(doc, ops []byte) ([]byte, error) {
	p, err := patch.JSON(ops)
	if err != nil {
		return nil, err
	}
	return p.Apply(doc)
}

// apply applies a patch that must succeed, and sees that doc stays as it was.
func apply(t testing.TB, p patch.Patch, doc []byte) []byte {
	t.Helper()
	before := bytes.Clone(doc)
	out, err := p.Apply(doc)
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	if !bytes.Equal(doc, before) {
		t.Fatalf("the document was changed: %s, then %s", before, doc)
	}
	if !json.Valid(out) {
		t.Fatalf("not JSON: %s", out)
	}
	return out
}

// wantSame compares two documents as JSON values.
func wantSame(t testing.TB, got, want []byte) {
	t.Helper()
	if !refEqual(decode(t, got), decode(t, want)) {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}
