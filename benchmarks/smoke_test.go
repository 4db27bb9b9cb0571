package benchmarks_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// started and finished count rows.
var started, finished atomic.Int64

// all is every benchmark, so that an ordinary test run notices one that rots.
var all = map[string]func(*testing.B){
	"BenchmarkIndexerGet":         BenchmarkIndexerGet,
	"BenchmarkIndexerUpdate":      BenchmarkIndexerUpdate,
	"BenchmarkIndexerUpdateBatch": BenchmarkIndexerUpdateBatch,
	"BenchmarkIndexerInsert":      BenchmarkIndexerInsert,
	"BenchmarkIndexerLookup":      BenchmarkIndexerLookup,
	"BenchmarkIndexerAll":         BenchmarkIndexerAll,
	"BenchmarkIndexerSnapshot":    BenchmarkIndexerSnapshot,

	"BenchmarkFIFOKeys":         BenchmarkFIFOKeys,
	"BenchmarkFIFOHotKey":       BenchmarkFIFOHotKey,
	"BenchmarkFIFOReplaceFirst": BenchmarkFIFOReplaceFirst,
	"BenchmarkFIFOReplaceAgain": BenchmarkFIFOReplaceAgain,
	"BenchmarkFIFOReplaceSame":  BenchmarkFIFOReplaceSame,
	"BenchmarkBufferKeys":       BenchmarkBufferKeys,

	"BenchmarkWorkqueueAddGetDone": BenchmarkWorkqueueAddGetDone,
	"BenchmarkWorkqueueDrain":      BenchmarkWorkqueueDrain,
	"BenchmarkWorkqueueAddQueued":  BenchmarkWorkqueueAddQueued,

	"BenchmarkInformerEventToCache":   BenchmarkInformerEventToCache,
	"BenchmarkInformerEventToHandler": BenchmarkInformerEventToHandler,
	"BenchmarkInformerSync":           BenchmarkInformerSync,
	"BenchmarkInformerRelist":         BenchmarkInformerRelist,
	"BenchmarkReflectorBatch":         BenchmarkReflectorBatch,

	"BenchmarkControllerEventToReconcile": BenchmarkControllerEventToReconcile,
	"BenchmarkControllerLatency":          BenchmarkControllerLatency,

	"BenchmarkPatchMergeApply":  BenchmarkPatchMergeApply,
	"BenchmarkPatchMergeCreate": BenchmarkPatchMergeCreate,
	"BenchmarkPatchJSONApply":   BenchmarkPatchJSONApply,
}

func TestBenchmarksRun(t *testing.T) {
	defer func(n int) { objects = n }(objects)
	objects = 200
	once := flag.Lookup("test.benchtime").Value
	defer func(was string) { _ = once.Set(was) }(once.String())
	if err := once.Set("1x"); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			before, done := started.Load(), finished.Load()
			testing.Benchmark(all[name])
			n := started.Load() - before
			if ok := finished.Load() - done; n == 0 || ok != n {
				t.Errorf("%d of %d rows came to their end", ok, n)
			}
		})
	}
}

func TestBenchmarksAreAllTried(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && strings.HasPrefix(fn.Name.Name, "Benchmark") && all[fn.Name.Name] == nil {
				t.Errorf("%s: TestBenchmarksRun does not know %s", file, fn.Name.Name)
			}
		}
	}
}
