package informer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/informer"
)

var byGroup = indexer.By("group", func(o *obj) string { return o.Group })

// TestG1_G2_G3_Histories: whatever happens to the source and to the watch, and
// whoever joins and leaves meanwhile, in the end cache and handlers are equal to
// the source, and on the way no handler was told a lie (replay checks that).
func TestG1_G2_G3_Histories(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 200
	}
	for seed := range uint64(n) {
		bubble(t, func(t *testing.T) { history(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func history(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	src := newSource()
	src.noIDs = rnd.IntN(4) == 0
	src.bare = rnd.IntN(6) == 0
	src.powers.Initial = rnd.IntN(2) == 0 || src.bare
	key := func() string { return string(rune('a' + rnd.IntN(6))) }
	change := func() {
		tx := src.tx
		if rnd.IntN(8) == 0 {
			tx = src.Unseen
		}
		tx(func() {
			for range 1 + rnd.IntN(3) {
				switch k := key(); rnd.IntN(6) {
				case 0, 1:
					src.del(k)
				case 2: // deleted and created again, seen or unseen
					src.del(k)
					src.put(k, key())
				default:
					src.put(k, key())
				}
			}
		})
	}
	for range rnd.IntN(5) {
		change()
	}

	inf := informer.New(src, &informer.Options{Name: "h"}, byGroup)
	type member struct {
		*replay
		sub *informer.Subscription
	}
	var members []member
	join := func() {
		r := newReplay(fmt.Sprintf("handler %d", len(members)))
		r.bare = src.bare || src.noIDs
		o := &informer.HandlerOptions{Name: r.name}
		nap := time.Duration(rnd.IntN(40)) * time.Millisecond
		one := func(c informer.Change[*obj]) {
			// Cache and index have it, or something later of the key.
			now := inf.Cache().Snapshot() // both looks at one state
			if o, ok := now.Get(c.Key); c.Type != informer.Deleted && ok && o == c.New {
				if k, _, _ := byGroup.One(now, c.New.Group); k == "" {
					t.Errorf("%s: the index lacks %+v", r.name, *c.New)
				}
			}
			r.on(c)
		}
		var sub *informer.Subscription
		switch rnd.IntN(5) {
		case 0:
			o.Inline = true
			sub = inf.AddHandler(one, o)
		case 1:
			o.Inline = true
			sub = inf.AddBatchHandler(r.batch, o)
		case 2:
			sub = inf.AddBatchHandler(func(cs []informer.Change[*obj]) { time.Sleep(nap); r.batch(cs) }, o)
		case 3:
			sub = inf.AddHandler(func(c informer.Change[*obj]) { time.Sleep(nap); one(c) }, o)
		default:
			sub = inf.AddHandler(one, o)
		}
		members = append(members, member{r, sub})
	}
	for range rnd.IntN(4) {
		join()
	}
	stop := run(t, inf)
	for range 5 + rnd.IntN(40) {
		switch rnd.IntN(16) {
		case 0:
			join()
		case 1:
			if len(members) > 0 {
				n := rnd.IntN(len(members))
				members[n].sub.Cancel()
				<-members[n].sub.Done()
				members[n].verify(t, nil)
				members = append(members[:n], members[n+1:]...)
			}
		case 2:
			src.Cut()
		case 3:
			src.Hide()
		case 4:
			src.Fail(context.DeadlineExceeded)
		case 5:
			src.Fail(nil)
		case 6:
			inf.Relist("to see")
		case 7, 8:
			time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
		case 9, 10:
			synctest.Wait()
		default:
			change()
		}
	}
	src.Fail(nil)
	join()
	time.Sleep(15 * time.Minute)
	synctest.Wait()

	want := src.state()
	same := func(name string, have map[string]*obj) {
		for k, o := range want {
			if h := have[k]; h == nil || *h != *o {
				t.Errorf("%s has %s = %+v, want %+v", name, k, h, *o)
			}
		}
		if len(have) != len(want) {
			t.Errorf("%s has %d objects, want %d", name, len(have), len(want))
		}
	}
	same("cache", cached(inf))
	for _, m := range members {
		m.verify(t, nil)
		same(m.name, m.held)
		if err := m.sub.WaitForSync(t.Context()); err != nil {
			t.Error(err)
		}
		if keys, age := m.sub.Lag(); keys != 0 || age != 0 {
			t.Errorf("%s lags by %d keys, %v", m.name, keys, age)
		}
	}
	if s := inf.Status(); s.Handlers != len(members) || s.Objects != len(want) || !s.Synced {
		t.Errorf("status %+v", s)
	}
	stop()
	for _, m := range members {
		<-m.sub.Done()
	}
	same("stopped cache", cached(inf))
}
