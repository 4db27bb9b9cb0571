package benchmarks_test

import (
	"context"
	"testing"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reconcile"
)

// newController reconciles the pods of src and calls ran after the first run of
// each, as often as a pod runs again.
func newController(b *testing.B, src *source, workers int, ran func()) {
	b.Helper()
	first := make(chan struct{}, len(src.items))
	c := reconcile.New("bench", newInformer(src), func(_ context.Context, req reconcile.Request[*Pod]) error {
		item, ok := req.Item()
		switch {
		case !ok:
			b.Errorf("%s is gone", req.Key)
		case item.Version == src.items[0].Version:
			first <- struct{}{}
		default:
			ran()
		}
		return nil
	}, &reconcile.Options{Workers: workers})
	start(b, func(ctx context.Context) error { return reconcile.Run(ctx, c) })
	for range src.items {
		<-first
	}
}

// BenchmarkControllerEventToReconcile brings each change through cache and queue
// to a reconcile.
func BenchmarkControllerEventToReconcile(b *testing.B) {
	for _, workers := range []int{1, 4} {
		row(b, "workers", workers, func(b *testing.B) {
			src, ch, win := newSource(objects), newChanges(objects), newWindow(objects)
			newController(b, src, workers, win.receive)
			src.play(func(tell func(object.Item[*Pod])) {
				for b.Loop() {
					win.send()
					tell(ch.next())
				}
				win.wait()
			})
		})
	}
}

// BenchmarkControllerLatency waits for the reconcile of each change before it
// makes the next one.
func BenchmarkControllerLatency(b *testing.B) {
	row(b, "objects", objects, func(b *testing.B) {
		src, ch := newSource(objects), newChanges(objects)
		ran := make(chan struct{}, 1)
		newController(b, src, 1, func() { ran <- struct{}{} })
		src.play(func(tell func(object.Item[*Pod])) {
			for b.Loop() {
				tell(ch.next())
				<-ran
			}
		})
	})
}
