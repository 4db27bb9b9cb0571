package benchmarks_test

import (
	"context"
	"testing"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
)

// BenchmarkInformerEventToCache brings one change from the source to the cache
// and its two indexes.
func BenchmarkInformerEventToCache(b *testing.B) {
	row(b, "objects", objects, func(b *testing.B) {
		src, ch := newSource(objects), newChanges(objects)
		pods := newInformer(src)
		start(b, pods.Run)
		must(b, pods.WaitForSync(b.Context()))
		src.play(func(tell func(object.Item[*Pod])) {
			for b.Loop() {
				tell(ch.next())
			}
		})
		if last, _ := pods.Cache().Item(ch.last.Key); last.Version != ch.last.Version {
			b.Fatal("the last change is not in the cache")
		}
	})
}

// BenchmarkInformerEventToHandler brings each change on to one handler that has a
// buffer of its own. The handler is kept from falling so far behind that changes
// of one object would be merged.
func BenchmarkInformerEventToHandler(b *testing.B) {
	row(b, "objects", objects, func(b *testing.B) {
		src, ch, win := newSource(objects), newChanges(objects), newWindow(objects)
		pods := newInformer(src)
		handled := pods.AddBatchHandler(func(changes []informer.Change[*Pod]) {
			for i := range changes {
				if changes[i].Type == informer.Updated {
					win.receive()
				}
			}
		}, nil)
		start(b, pods.Run)
		must(b, handled.WaitForSync(b.Context()))
		src.play(func(tell func(object.Item[*Pod])) {
			for b.Loop() {
				win.send()
				tell(ch.next())
			}
			win.wait()
		})
	})
}

// BenchmarkInformerSync starts a new informer, waits until it has all objects,
// and stops it.
func BenchmarkInformerSync(b *testing.B) {
	row(b, "objects", objects, func(b *testing.B) {
		src := newSource(objects)
		for b.Loop() {
			pods := newInformer(src)
			ctx, cancel := context.WithCancel(b.Context())
			ended := make(chan error)
			go func() { ended <- pods.Run(ctx) }()
			must(b, pods.WaitForSync(ctx))
			if n := pods.Cache().Len(); n != objects {
				b.Fatalf("%d objects", n)
			}
			cancel()
			must(b, <-ended)
		}
		perItem(b, objects, "object")
	})
}
