package informer_test

import (
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
)

// A late inline handler that ends its goroutine would never be called again: its
// subscription ends.
func TestLateInlineHandlerEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newSource()
		src.Put("a", "g")
		src.Put("b", "g")
		i := informer.New(src, nil)
		run(t, i)
		if err := i.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		calls := 0
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			i.AddHandler(func(informer.Change[*obj]) {
				calls++
				runtime.Goexit()
			}, &informer.HandlerOptions{Inline: true})
			t.Error("AddHandler has returned")
		}()
		<-ended
		src.Put("c", "g")
		synctest.Wait()
		if n := i.Status().Handlers; n != 0 || calls != 1 {
			t.Errorf("%d handlers, %d calls", n, calls)
		}
	})
}

// What a full state tells over and over takes the room of one.
func TestRelistKeepsOneOfAKey(t *testing.T) {
	i := informer.New(newSource(), nil)
	r := informer.SinkOf(i).Begin(object.Initial)
	it := object.Item[*obj]{Key: "a", Version: "1", Object: &obj{Key: "a"}}
	for range 1000 {
		if err := r.Stage([]object.Item[*obj]{it}); err != nil {
			t.Fatal(err)
		}
	}
	if n := informer.Staged(r); n != 1 {
		t.Errorf("%d are kept", n)
	}
	it.Object = &obj{Key: "a", Rev: 7}
	if err := r.Stage([]object.Item[*obj]{it}); err != nil {
		t.Fatal(err)
	}
	if err := r.Commit("1"); err != nil {
		t.Fatal(err)
	}
	if o, _ := i.Cache().Get("a"); o == nil || o.Rev != 7 {
		t.Errorf("the last does not count: %+v", o)
	}
}
