package reflector_test

import (
	"context"
	"testing"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// idleSink takes everything and does nothing.
type idleSink struct{}

func (idleSink) Apply(batch, object.Cause) error             { return nil }
func (idleSink) Begin(object.Cause) reflector.Relist[string] { return idleRelist{} }

type idleRelist struct{}

func (idleRelist) Stage([]item) error  { return nil }
func (idleRelist) Unstage(string)      {}
func (idleRelist) Commit(cursor) error { return nil }
func (idleRelist) Abort()              {}

func (idleRelist) StageKeys([]item) error { return nil }
func (idleRelist) Distrust()              {}
func (idleRelist) Keep([]reflector.Fault) {}
func (idleRelist) Diff() reflector.Diff   { return reflector.Diff{} }

func (idleRelist) Unchanged(cursor) error { return nil }

// A live batch on its way to the sink allocates nothing.
func TestBatchesDoNotAllocate(t *testing.T) {
	for name, wrap := range map[string]func(reflector.ListWatcher[string]) reflector.ListWatcher[string]{
		"alone": func(lw reflector.ListWatcher[string]) reflector.ListWatcher[string] { return lw },
		"filter": func(lw reflector.ListWatcher[string]) reflector.ListWatcher[string] {
			return reflector.Filter(lw, keep)
		},
		"transform": func(lw reflector.ListWatcher[string]) reflector.ListWatcher[string] {
			return reflector.Transform(lw, func(s string) string { return s })
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			src := &source{powers: powers{ResumeProven: true}, list: one("1", "a=1")}
			src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
				defer cancel()
				a, b := live("2", "a=1", "b=x", "-c"), live("3", "a=2")
				yield(batch{Cursor: o.After}, nil)
				yield(a, nil)
				if n := testing.AllocsPerRun(1000, func() {
					yield(b, nil)
					yield(a, nil)
				}); n > 0 {
					t.Errorf("%v allocations", n)
				}
			}
			want(t, "Run", reflector.New(wrap(src), idleSink{}, nil).Run(ctx), nil)
		})
	}
}

func BenchmarkBatch(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	src := &source{powers: powers{ResumeProven: true}, list: one("1", "a=1")}
	src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
		defer cancel()
		bs := []batch{live("2", "a=1"), live("3", "a=2")}
		yield(batch{Cursor: o.After}, nil)
		b.ResetTimer()
		b.ReportAllocs()
		for i := range b.N {
			yield(bs[i%2], nil)
		}
		b.StopTimer()
	}
	if err := reflector.New(src, idleSink{}, nil).Run(ctx); err != nil {
		b.Fatal(err)
	}
}
