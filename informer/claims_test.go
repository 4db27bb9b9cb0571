package informer_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reflector"
)

func polled(list func() []obj) reflector.ListWatcher[obj] {
	return reflector.Poll(func(context.Context) ([]obj, error) { return list(), nil },
		func(o obj) string { return o.Key }, &reflector.PollOptions{Every: time.Hour})
}

// Each object asks for the value of the next one, and the last can't have its own:
// that none gets any is found without a write for each, at each list.
func TestChainOfRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		calls, shift, end := 0, 0, n
		rev := indexer.Unique("rev", func(o obj) (int, bool) {
			calls++
			return o.Rev, true
		})
		i := informer.New(polled(func() []obj {
			var l []obj
			for k := range n {
				l = append(l, obj{Key: fmt.Sprintf("k%04d", k), Rev: k + shift})
			}
			return append(l, obj{Key: "last", Rev: end})
		}), &informer.Options{Session: -1}, rev)
		run(t, i)
		synctest.Wait()
		relist := func() {
			i.Relist("test")
			time.Sleep(time.Second)
			synctest.Wait()
		}
		for shift = 1; len(i.Status().Refused) == 0; {
			calls = 0
			relist()
		}
		relist()
		if s := i.Status(); len(s.Refused) != n || s.Source.Err != nil || calls > 10*n {
			t.Errorf("%d refused, %v, %d calls of the index function", len(s.Refused), s.Source.Err, calls)
		}
		if o, _ := i.Cache().Get("k0007"); o.Rev != 7 {
			t.Errorf("k0007 is %+v", o)
		}
		// The end of the chain is let go, and so all of it.
		end = n + 1
		relist()
		if s := i.Status(); len(s.Refused) != 0 {
			t.Errorf("%d refused", len(s.Refused))
		}
		if o, _ := i.Cache().Get("k0007"); o.Rev != 8 {
			t.Errorf("k0007 is %+v", o)
		}
	})
}

// Where there are many rounds all the same, the end of Run ends them.
func TestRefusalsEndWithRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 400
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		// Neighbours share a value in one of two indexes by turns: each refused one
		// makes room for the next.
		odd := indexer.Unique("odd", func(o obj) (int, bool) {
			if calls++; calls > 2*n {
				cancel()
			}
			return (o.Rev - 1) / 2, true
		})
		even := indexer.Unique("even", func(o obj) (int, bool) { return o.Rev / 2, true })
		i := informer.New(polled(func() []obj {
			var l []obj
			for k := 1; k <= n; k++ {
				l = append(l, obj{Key: fmt.Sprintf("k%04d", k), Rev: k})
			}
			return l
		}), nil, odd, even)
		if err := i.Run(ctx); err != nil {
			t.Error(err)
		}
		if calls < 2*n || calls > 6*n {
			t.Errorf("%d calls of the index function", calls)
		}
	})
}
