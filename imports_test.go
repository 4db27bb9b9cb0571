package homeostat_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/homeostat/homeostat"

// mayImport is the floor plan: who may import whom among our packages, apart
// from the two packages of words, which everybody above them may use.
// "…/" at the end of a name stands for everything below it.
var mayImport = map[string][]string{
	".":      {},
	"object": {},
	"retry":  {},

	"reflector": {},
	"deltafifo": {},
	"indexer":   {},
	"workqueue": {},
	"patch":     {},

	"informer": {"reflector", "deltafifo", "indexer"},
	"backend":  {"reflector", "patch"},

	"backend/memory": {"backend", "reflector", "patch"},
	"backend/file":   {"backend", "reflector", "patch"},
	"backend/bolt":   {"backend", "reflector", "patch"},

	"backend/backendtest": {"backend", "reflector", "patch"},
	"fake":                {"backend", "backend/memory", "reflector", "patch"},
	"reconcile":           {"informer", "indexer", "workqueue", "backend", "reflector", "patch"},

	"examples/…/":   {"…/"},
	"tools":         {},
	"benchmarks/…/": {"…/"},
	"internal/…/":   {"…/"},
}

var (
	words = []string{"object", "retry"}
	// The core's whole outside world. Tests may use more.
	coreRequires = []string{"golang.org/x/time/rate"}
)

// TestImportsKeepToTheirFloors reads the imports of every file of every module.
func TestImportsKeepToTheirFloors(t *testing.T) {
	seen := map[string]bool{}
	for file, imports := range importsOf(t) {
		pkg := path.Dir(file)
		allowed, ok := floor(pkg)
		require.True(t, ok, "%s: the package %s has no place in the floor plan", file, pkg)
		seen[pkg] = true
		for _, imported := range imports {
			ours, isOurs := strings.CutPrefix(imported, module+"/")
			switch {
			case isOurs:
				require.True(t, permitted(pkg, ours, allowed), "%s must not import %s", file, ours)
			case isStandard(imported) || isNested(pkg):
			default:
				require.Contains(t, coreRequires, imported, "%s: the core stays small", file)
			}
		}
	}
	for pkg := range mayImport {
		if !strings.HasSuffix(pkg, "…/") {
			require.True(t, seen[pkg], "the floor plan names %s, which does not exist", pkg)
		}
	}
}

func permitted(pkg, imported string, allowed []string) bool {
	switch {
	case slices.Contains(words, imported):
		return !slices.Contains(words, pkg)
	case slices.Contains(allowed, imported), slices.Contains(allowed, "…/"):
		return true
	}
	// An internal package may be used by what lies beside it, and by examples of examples.
	before, _, isInternal := strings.Cut(imported, "internal/")
	return isInternal && strings.HasPrefix(pkg+"/", before) && !slices.Contains(words, pkg)
}

func floor(pkg string) ([]string, bool) {
	if allowed, ok := mayImport[pkg]; ok {
		return allowed, true
	}
	for pattern, allowed := range mayImport {
		if prefix, ok := strings.CutSuffix(pattern, "…/"); ok && strings.HasPrefix(pkg+"/", prefix) {
			return allowed, true
		}
	}
	return nil, false
}

func isStandard(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return !strings.Contains(first, ".")
}

// isNested says that a package has a module of its own, with requirements of its own.
func isNested(pkg string) bool {
	return slices.Contains([]string{"backend/file", "backend/bolt"}, pkg) ||
		strings.HasPrefix(pkg, "internal/stores/") || strings.HasPrefix(pkg, "examples/")
}

// importsOf lists what each file imports, by its path from the root, leaving out
// tests, which are free to import anything.
func importsOf(t *testing.T) map[string][]string {
	files := map[string][]string{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != "." && (strings.HasPrefix(name, ".") || name == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		imports := []string{}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imports = append(imports, imported)
		}
		files[filepath.ToSlash(file)] = imports
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}
