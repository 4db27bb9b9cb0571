package benchmarks_test

import (
	"context"
	"iter"
	"strconv"
	"testing"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// script is what a source tells next: it calls tell for each change.
type script func(tell func(object.Item[*Pod]))

// source is as cheap as a source can be, so that what is measured is not the
// source. It tells changes on the goroutine that watches, as all sources do.
type source struct {
	items   []object.Item[*Pod]
	scripts chan script
	done    chan struct{}
}

func newSource(n int) *source {
	return &source{items: podItems(n), scripts: make(chan script), done: make(chan struct{})}
}

// play runs s within the watch, and waits for its end.
func (s *source) play(f script) {
	s.scripts <- f
	<-s.done
}

func (s *source) List(context.Context, reflector.ListOptions) (reflector.Page[*Pod], error) {
	return reflector.Page[*Pod]{Items: s.items, Cursor: cursors[0]}, nil
}

func (s *source) Watch(ctx context.Context, _ reflector.WatchOptions) iter.Seq2[reflector.Batch[*Pod], error] {
	return func(yield func(reflector.Batch[*Pod], error) bool) {
		if !yield(reflector.Bookmark[*Pod](cursors[0]), nil) {
			return
		}
		event := make([]reflector.Event[*Pod], 1)
		n, open := 0, true
		tell := func(item object.Item[*Pod]) {
			n++
			event[0] = reflector.Event[*Pod]{Op: reflector.OpPut, Known: true, Item: item}
			open = open && yield(reflector.Batch[*Pod]{Events: event, Cursor: cursors[n%len(cursors)]}, nil)
		}
		for open {
			select {
			case f := <-s.scripts:
				f(tell)
				s.done <- struct{}{}
			case <-ctx.Done():
				return
			}
		}
	}
}

func (s *source) Powers() reflector.Powers[*Pod] {
	return reflector.Powers[*Pod]{ResumeProven: true}
}

// cursors are made beforehand: to print a number is the source's business.
var cursors = func() (c [1024]reflector.Cursor) {
	for i := range c {
		c[i] = reflector.Cursor(strconv.Itoa(i + 1))
	}
	return c
}()

// newInformer is one over s, with two indexes.
func newInformer(s reflector.ListWatcher[*Pod]) *informer.Informer[*Pod] {
	return informer.New(s, nil, byNode, byOwner)
}

// start runs something until the row's end.
func start(b *testing.B, run func(context.Context) error) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
}

// window keeps a sender from running so far ahead of a receiver that two changes
// of one object meet, and count as one.
type window struct {
	size     int
	sent     int
	received chan struct{} // one for each
}

func newWindow(n int) *window {
	size := min(1024, n/4)
	return &window{size: size, received: make(chan struct{}, size)}
}

// send is called before each change; it waits for the receiver when that is a
// window behind.
func (w *window) send() {
	if w.sent == w.size {
		<-w.received
		w.sent--
	}
	w.sent++
}

func (w *window) receive() { w.received <- struct{}{} }

// wait ends when everything sent was received.
func (w *window) wait() {
	for ; w.sent > 0; w.sent-- {
		<-w.received
	}
}
