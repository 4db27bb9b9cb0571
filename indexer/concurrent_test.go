package indexer_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/object"
)

// while runs each of readers in its own goroutine, over and over, until write ends.
func while(write func(), readers ...func()) {
	var over atomic.Bool
	var wg sync.WaitGroup
	for _, read := range readers {
		wg.Go(func() {
			for !over.Load() {
				read()
			}
		})
	}
	write()
	over.Store(true)
	wg.Wait()
}

type spot struct{ x, y, n int }

var (
	byX = indexer.By("x", func(s spot) int { return s.x })
	byY = indexer.By("y", func(s spot) int { return s.y })
	byN = indexer.By("n", func(s spot) int { return s.n })
)

// Several look-ups in one snapshot see one state, whatever moves meanwhile.
func TestX06_TwoIndexesOneState(t *testing.T) {
	const objects = 50
	c := indexer.New[spot](byX, byY)
	put := func(b *indexer.Batch[spot], i, at int) {
		b.Put(object.Item[spot]{Key: fmt.Sprint("k", i), Object: spot{x: at, y: at}})
	}
	require.NoError(t, c.Write(func(b *indexer.Batch[spot]) error {
		for i := range objects {
			put(b, i, 1)
		}
		return nil
	}))
	reader := func() {
		s := c.Snapshot()
		atX := map[string]bool{}
		for key := range byX.Lookup(s, 1) {
			atX[key] = true
		}
		for key := range byY.Lookup(s, 2) {
			if atX[key] {
				t.Errorf("%s is at x=1 and y=2", key)
			}
		}
		if n := byX.Count(s, 1) + byX.Count(s, 2); n != objects {
			t.Errorf("%d objects by x", n)
		}
		sum := 0
		for _, n := range byY.Values(c) {
			sum += n
		}
		if sum != objects {
			t.Errorf("%d objects by y", sum)
		}
		for _, obj := range byX.Lookup(c, 1) {
			if obj.x != 1 || obj.y != 1 {
				t.Errorf("%v found at x=1", obj)
			}
		}
	}
	while(func() {
		r := rand.New(rand.NewPCG(1, 1))
		for range 600 {
			err := c.Write(func(b *indexer.Batch[spot]) error {
				for range r.IntN(3) + 1 {
					put(b, r.IntN(objects), 1+r.IntN(2))
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	}, reader, reader, reader)
}

// Two keys that are always written together are never seen apart, by any read.
func TestG5_BatchesAppearAtOnce(t *testing.T) {
	c := indexer.New[spot](byN, byX)
	write := func(n int) {
		err := c.Write(func(b *indexer.Batch[spot]) error {
			if n%5 == 0 {
				b.Delete("a")
				b.Delete("b")
				return nil
			}
			b.Put(object.Item[spot]{Key: "a", Object: spot{n: n, x: 1}})
			b.Put(object.Item[spot]{Key: "b", Object: spot{n: n, x: 2}})
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	pair := func(how string, found map[string]int) {
		if len(found) != 0 && (len(found) != 2 || found["a"] != found["b"]) {
			t.Errorf("%s: %v", how, found)
		}
	}
	collect := func(seq func(func(string, spot) bool)) map[string]int {
		found := map[string]int{}
		for key, obj := range seq {
			found[key] = obj.n
		}
		return found
	}
	while(func() {
		for n := range 1500 {
			write(n)
		}
	}, func() {
		pair("All", collect(c.All()))
		pair("Sorted", collect(c.Sorted()))
		pair("Prefix", collect(c.Prefix("")))
	}, func() {
		for n, count := range byN.Values(c) {
			if count != 2 {
				t.Errorf("Values: %d of %d", count, n)
			}
			pair("Lookup", collect(byN.Lookup(c, n)))
		}
	}, func() {
		s := c.Snapshot()
		a, okA := s.Get("a")
		b, okB := s.Get("b")
		_, x1, okX := byX.One(s, 1)
		if okA != okB || a.n != b.n || okX != okA || x1.n != a.n || s.Len() != byX.Count(s, 1)+byX.Count(s, 2) {
			t.Errorf("Snapshot: %v %v %v", a, b, x1)
		}
	})
}

// For one key no read shows less than one before it, whichever way it is read, and
// a read after a write shows that write at least.
func TestG5_ReadsNeverGoBack(t *testing.T) {
	const keys = 8
	c := indexer.New[spot](byX)
	var written [keys]atomic.Int64
	reader := func() {
		var last [keys]int
		for range 200 {
			for k := range keys {
				least := int(written[k].Load())
				key := fmt.Sprint("k", k)
				for _, read := range []func() (spot, bool){
					func() (spot, bool) { return c.Get(key) },
					func() (spot, bool) { return c.Snapshot().Get(key) },
					func() (spot, bool) { item, ok := c.Item(key); return item.Object, ok },
					func() (spot, bool) { _, obj, ok := byX.One(c, k); return obj, ok },
				} {
					obj, ok := read()
					if least > 0 && (!ok || obj.n < max(least, last[k])) {
						t.Errorf("%s: %v %v after %d, %d", key, obj, ok, least, last[k])
					}
					last[k] = max(last[k], obj.n)
				}
			}
		}
	}
	while(func() {
		for n := 1; n <= 3000; n++ {
			k := n % keys
			key := fmt.Sprint("k", k)
			if n%3 == 0 { // delete and create in one batch is one step
				_ = c.Write(func(b *indexer.Batch[spot]) error {
					b.Delete(key)
					b.Put(object.Item[spot]{Key: key, Object: spot{x: k, n: n}})
					return nil
				})
			} else if err := c.Put(object.Item[spot]{Key: key, Object: spot{x: k, n: n}}); err != nil {
				t.Error(err)
			}
			written[k].Store(int64(n))
		}
	}, reader, reader)
}

// Keys that stay are found while the hash table is filled, emptied and built anew
// around them; keys that are gone, or not yet there, are not found.
func TestGetWhileTheTableChanges(t *testing.T) {
	c := indexer.New[spot](byX)
	for i := range 40 {
		require.NoError(t, c.Put(object.Item[spot]{Key: fmt.Sprint("stays", i), Object: spot{n: i}}))
	}
	var stage atomic.Int64 // odd: "comes" is surely there; even: surely not
	while(func() {
		r := rand.New(rand.NewPCG(1, 1))
		for range 100 {
			n := 1 + r.IntN(200)
			for i := range n {
				_ = c.Put(object.Item[spot]{Key: fmt.Sprint("passes", i)})
			}
			_ = c.Put(object.Item[spot]{Key: "comes"})
			stage.Add(1)
			_ = c.Write(func(b *indexer.Batch[spot]) error {
				for i := range n {
					b.Delete(fmt.Sprint("passes", i))
				}
				return nil
			})
			before := stage.Add(1) // neither, as from here
			c.Delete("comes")
			stage.Store(before + 2)
		}
	}, func() {
		snap := c.Snapshot()
		for i := range 40 {
			for _, v := range []indexer.View[spot]{c, snap} {
				if obj, ok := v.Get(fmt.Sprint("stays", i)); !ok || obj.n != i {
					t.Errorf("stays%d is lost", i)
				}
			}
		}
	}, func() {
		before := stage.Load()
		_, ok := c.Get("comes")
		if after := stage.Load(); before == after && before%4 == 1 && !ok {
			t.Error("not there at stage 1")
		}
	}, func() {
		s := c.Snapshot()
		_, first := s.Get("comes")
		listed := 0
		for range s.Prefix("comes") {
			listed++
		}
		if _, second := s.Get("comes"); first != second || first != (listed == 1) {
			t.Error("a snapshot changed its mind")
		}
	})
}

// A state that lists a key answers Get with it, at the very moment that it becomes
// the newest or ceases to be.
func TestGetAgreesWithItsSnapshot(t *testing.T) {
	// Keys so long that hashing them is most of the work: a write is in the middle
	// of publishing whenever it is looked at.
	const n = 100
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint(i, strings.Repeat(".", 1<<16))
	}
	c := indexer.New[spot]()
	reader := func() {
		s := c.Snapshot()
		for _, i := range []int{0, 1, n / 2, n - 2, n - 1} {
			if _, ok := s.Get(keys[i]); ok != (s.Len() == n) {
				t.Errorf("Get of key %d: %v, with %d of %d keys", i, ok, s.Len(), n)
			}
		}
	}
	while(func() {
		for round := range 40 {
			_ = c.Write(func(b *indexer.Batch[spot]) error {
				for _, key := range keys {
					if round%2 == 0 {
						b.Put(object.Item[spot]{Key: key})
					} else {
						b.Delete(key)
					}
				}
				return nil
			})
		}
	}, reader, reader)
}

func TestX04_IndexesAreAddedWhileRead(t *testing.T) {
	const objects = 100
	c := indexer.New[spot](byX)
	require.NoError(t, c.Write(func(b *indexer.Batch[spot]) error {
		for i := range objects {
			b.Put(object.Item[spot]{Key: fmt.Sprint(i), Object: spot{x: 1}})
		}
		return nil
	}))
	more := make([]*indexer.Index[spot, int], 50)
	for i := range more {
		more[i] = indexer.By(fmt.Sprint("more", i), func(s spot) int { return s.x })
	}
	reader := func() {
		names := c.Indexes()
		for i := range len(names) - 1 {
			if names[i+1] != more[i].Name() {
				t.Errorf("index %d is %s", i, names[i+1])
			}
			if n := more[i].Count(c, 1); n != objects {
				t.Errorf("%s has %d objects", names[i+1], n)
			}
			if seq, err := c.Named(names[i+1], "1"); err != nil || len(keysOf(seq)) != objects {
				t.Errorf("%s by name: %v", names[i+1], err)
			}
		}
	}
	while(func() {
		for i, x := range more {
			if err := c.AddIndex(x); err != nil {
				t.Error(err)
			}
			_ = c.Put(object.Item[spot]{Key: fmt.Sprint(i), Object: spot{x: 1, n: i}})
		}
	}, reader, reader, reader, reader, reader, reader, reader, reader)
	require.Len(t, c.Indexes(), 51)
}

// Writers take turns: nothing is lost between them.
func TestManyWriters(t *testing.T) {
	c := indexer.New[spot](byX)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				err := c.Write(func(b *indexer.Batch[spot]) error {
					item, _ := b.Item("sum")
					item.Key = "sum"
					item.Object.n++
					b.Put(item)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	sum, _ := c.Get("sum")
	require.Equal(t, 1600, sum.n)
}

// Of several who write on the condition of one version, one does.
func TestX12_CompareAndSet(t *testing.T) {
	c := indexer.New[spot]()
	require.NoError(t, c.Put(object.Item[spot]{Key: "k", Version: "0"}))
	var won atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := range 100 {
				err := c.Write(func(b *indexer.Batch[spot]) error {
					b.PutIf(object.Item[spot]{Key: "k", Version: object.Version(fmt.Sprint(n + 1)), Object: spot{n: g}},
						object.Version(fmt.Sprint(n)))
					return nil
				})
				if err == nil {
					won.Add(1)
				}
			}
		})
	}
	wg.Wait()
	item, _ := c.Item("k")
	require.Equal(t, fmt.Sprint(won.Load()), string(item.Version))
}
