package benchmarks_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// nowhere is a sink that lets go of everything.
type nowhere struct{}

func (nowhere) Apply(reflector.Batch[*Pod], object.Cause) error { return nil }
func (nowhere) Begin(object.Cause) reflector.Relist[*Pod]       { return nowhere{} }
func (nowhere) Stage([]object.Item[*Pod]) error                 { return nil }
func (nowhere) StageKeys([]object.Item[*Pod]) error             { return nil }
func (nowhere) Unstage(string)                                  {}
func (nowhere) Keep([]reflector.Fault)                          {}
func (nowhere) Distrust()                                       {}
func (nowhere) Diff() reflector.Diff                            { return reflector.Diff{} }
func (nowhere) Commit(reflector.Cursor) error                   { return nil }
func (nowhere) Unchanged(reflector.Cursor) error                { return nil }
func (nowhere) Abort()                                          {}

// BenchmarkReflectorBatch brings one change from the source through the reflector.
func BenchmarkReflectorBatch(b *testing.B) {
	row(b, "objects", objects, func(b *testing.B) {
		src, ch := newSource(objects), newChanges(objects)
		start(b, reflector.New(src, nowhere{}, nil).Run)
		src.play(func(tell func(object.Item[*Pod])) {
			for b.Loop() {
				tell(ch.next())
			}
		})
	})
}

// listed counts the lists of a source.
type listed struct {
	*source
	lists atomic.Int64
}

func (l *listed) List(ctx context.Context, o reflector.ListOptions) (reflector.Page[*Pod], error) {
	defer l.lists.Add(1)
	return l.source.List(ctx, o)
}

// BenchmarkInformerRelist takes a full state in which nothing has changed.
func BenchmarkInformerRelist(b *testing.B) {
	row(b, "objects", objects, func(b *testing.B) {
		src := &listed{source: newSource(objects)}
		pods := newInformer(src)
		start(b, pods.Run)
		must(b, pods.WaitForSync(b.Context()))
		for b.Loop() {
			before := src.lists.Load()
			pods.Relist("a benchmark")
			for src.lists.Load() == before {
				runtime.Gosched()
			}
			src.play(func(func(object.Item[*Pod])) {}) // in the watch after it
		}
	})
}
