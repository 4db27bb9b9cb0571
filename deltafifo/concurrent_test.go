package deltafifo_test

import (
	"errors"
	"fmt"
	"strings"
	stdsync "sync"
	"testing"

	"github.com/homeostat/homeostat/deltafifo"
	"github.com/homeostat/homeostat/object"
)

// Many tell, one takes: every key ends as its teller left it.
func TestFIFO_ManyProducersOneConsumer(t *testing.T) {
	const producers, keys, rounds = 8, 20, 200
	f := deltafifo.New[int](nil, nil)
	var wg stdsync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			name := func(k int) string { return fmt.Sprintf("%d/%d", p, k) }
			for rev := range rounds {
				k := rev % keys
				if err := errors.Join(
					f.Put([]item{at(name(k), rev)}, object.Watched),
					f.Resync(),
				); err != nil {
					t.Error(err)
				}
				if rev%7 == 0 {
					_ = f.Delete(at(name(k), rev), object.Watched)
				}
				_ = f.Stats()
			}
			var last []item
			for k := range keys {
				last = append(last, at(name(k), rounds))
			}
			_ = f.Put(last, object.Watched)
			_ = f.Put([]item{at(fmt.Sprint("done/", p), 0)}, object.Watched)
		})
	}
	holds := map[string]item{}
	buf := make([]delta, 0, 32)
	for batch, done := 0, 0; done < producers; batch++ {
		var err error
		buf, err = f.PopBatch(t.Context(), buf[:0])
		must(t, err)
		taken := buf
		if batch%3 == 0 { // fails at the last key
			n := len(buf) - 1
			for n > 0 && buf[n-1].Item.Key == buf[n].Item.Key {
				n--
			}
			taken = buf[:n]
			must(t, f.Requeue(buf[n:]...))
		}
		for _, d := range taken {
			was, had := holds[d.Item.Key]
			if had != d.Had || was != d.Old {
				t.Fatalf("told %+v, held %t %+v", d, had, was)
			}
			switch {
			case d.Type == del:
				delete(holds, d.Item.Key)
			case d.Type == put:
				holds[d.Item.Key] = d.Item
				if strings.HasPrefix(d.Item.Key, "done/") && !had {
					done++
				}
			}
		}
	}
	wg.Wait()
	for k := range keys {
		for p := range producers {
			name := fmt.Sprintf("%d/%d", p, k)
			if holds[name] != at(name, rounds) {
				t.Errorf("%s: %+v", name, holds[name])
			}
		}
	}
}

// Many tell, many take: nothing is lost, nothing comes twice, nobody sleeps over
// what is pending.
func TestBuffer_ManyProducersManyConsumers(t *testing.T) {
	const producers, consumers, keys = 4, 4, 500
	b := deltafifo.NewBuffer[int](nil)
	got := make(chan string, producers*keys)
	var tell, take stdsync.WaitGroup
	for p := range producers {
		tell.Go(func() {
			for k := range keys {
				_ = b.Push(added(fmt.Sprintf("%d/%d", p, k), k))
			}
		})
	}
	for range consumers {
		take.Go(func() {
			buf := make([]delta, 0, 3)
			for {
				var err error
				if buf, err = b.PopBatch(t.Context(), buf[:0]); err != nil {
					return
				}
				for _, d := range buf {
					got <- d.Item.Key
				}
			}
		})
	}
	seen := map[string]bool{}
	for range producers * keys {
		key := <-got
		if seen[key] {
			t.Errorf("%s came twice", key)
		}
		seen[key] = true
	}
	tell.Wait()
	b.Close()
	take.Wait()
	same(t, len(seen), producers*keys)
}
