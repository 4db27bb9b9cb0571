package deltafifo_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/homeostat/homeostat/deltafifo"
	"github.com/homeostat/homeostat/object"
)

func manyItems(n int) []item {
	items := make([]item, n)
	for i := range items {
		items[i] = at(fmt.Sprint("key-", i), i)
	}
	return items
}

// What a big list has filled goes back when the consumer has drained it.
func TestG4_MemoryGoesBackAfterADrain(t *testing.T) {
	const n = 100_000
	items := manyItems(n)
	deltas := make([]delta, n)
	for i := range items {
		deltas[i] = delta{Type: put, Item: items[i]}
	}
	buf := make([]delta, 0, 128)
	before := heap()

	b := deltafifo.NewBuffer[int](nil)
	must(t, b.Push(deltas...))
	full := heap() - before
	for b.Stats().Keys > 0 {
		var err error
		buf, err = b.PopBatch(t.Context(), buf[:0])
		must(t, err)
	}
	if drained := heap() - before; drained > full/20 {
		t.Errorf("kept %d of %d bytes", drained, full)
	}
	if keys, entries := b.Room(); keys > 1024 || entries > 1024 {
		t.Errorf("room for %d keys, %d entries", keys, entries)
	}
	runtime.KeepAlive(items)
	runtime.KeepAlive(b)
}

func TestG4_MemoryGoesBackWithoutEverRunningEmpty(t *testing.T) {
	f := deltafifo.New[int](nil, nil)
	must(t, f.Put(manyItems(10_000), object.Initial))
	for f.Stats().Keys > 10 {
		_, err := f.Pop(t.Context())
		must(t, err)
	}
	if keys, _, held := f.Room(); keys > 1024 || held != 9_990 {
		t.Errorf("room for %d keys, %d held", keys, held)
	}
}

// Keys that come and go unseen leave nothing, nor do those that the consumer was
// told the end of.
func TestG4_WhatIsGoneIsForgotten(t *testing.T) {
	items := manyItems(10_000)
	unseen := deltafifo.New[int](nil, nil)
	must(t, unseen.Put([]item{at("stays", 1)}, object.Watched)) // a consumer that stands still
	seen := deltafifo.New[int](nil, nil)
	for _, it := range items {
		must(t, unseen.Put([]item{it}, object.Watched))
		must(t, unseen.Delete(it, object.Watched))
		must(t, seen.Put([]item{it}, object.Watched))
	}
	if keys, entries, _ := unseen.Room(); keys > 2 || entries > 1 {
		t.Errorf("unseen: room for %d keys, %d entries", keys, entries)
	}
	for seen.Stats().Keys > 0 {
		_, err := seen.Pop(t.Context())
		must(t, err)
	}
	must(t, seen.Replace(nil, object.Relist))
	for seen.Stats().Keys > 0 {
		_, err := seen.Pop(t.Context())
		must(t, err)
	}
	if keys, _, held := seen.Room(); keys > 1024 || held > 1024 {
		t.Errorf("seen: room for %d keys, %d held", keys, held)
	}
}

// A list in which nothing changed takes no room.
func TestG4_AListWithoutChangesTakesNothing(t *testing.T) {
	items := manyItems(5_000)
	f := holding(items...)
	must(t, f.Replace(items, object.Initial))
	if keys, entries, held := f.Room(); keys+entries != 0 || held != len(items) {
		t.Errorf("room for %d keys, %d entries, %d held", keys, entries, held)
	}
}

// Of what was handed over, and of what was merged away while its key still waits,
// nothing is kept.
func TestG4_NoObjectOutlivesItsUse(t *testing.T) {
	type big struct{ _ [1 << 10]byte }
	died := make(chan struct{}, 4)
	fresh := func(ty deltafifo.Type) deltafifo.Delta[*big] {
		obj := &big{}
		runtime.AddCleanup(obj, func(int) { died <- struct{}{} }, 0)
		it := object.Item[*big]{Key: "a", Object: obj}
		return deltafifo.Delta[*big]{Type: ty, Item: it, Old: it, Had: true}
	}
	tests := map[string]struct {
		use  func(b *deltafifo.Buffer[*big]) error
		dies int
	}{
		"handed over": {func(b *deltafifo.Buffer[*big]) error {
			if err := b.Push(fresh(deltafifo.Delete), fresh(deltafifo.Put)); err != nil {
				return err
			}
			_, err := b.Pop(t.Context())
			return err
		}, 2},
		"newer one put": {func(b *deltafifo.Buffer[*big]) error {
			return b.Push(deltafifo.Delta[*big]{Type: put, Item: object.Item[*big]{Key: "a"}},
				fresh(deltafifo.Put), deltafifo.Delta[*big]{Type: put, Item: object.Item[*big]{Key: "a"}})
		}, 1},
		"came and went behind a delete": {func(b *deltafifo.Buffer[*big]) error {
			return b.Push(deltafifo.Delta[*big]{Type: del, Item: object.Item[*big]{Key: "a"}, Had: true},
				fresh(deltafifo.Put), deltafifo.Delta[*big]{Type: del, Item: object.Item[*big]{Key: "a"}})
		}, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := deltafifo.NewBuffer[*big](nil)
			must(t, tt.use(b))
			for range tt.dies {
				runtime.GC()
				select {
				case <-died:
				case <-time.After(10 * time.Second):
					t.Fatal("an object is kept")
				}
			}
			runtime.KeepAlive(b)
		})
	}
}

// Also with KeepAll, where one key's deltas may be any number.
func TestBuffer_KeepAllGivesBackToo(t *testing.T) {
	const n = 100_000
	b := deltafifo.NewBuffer[int](&deltafifo.Options{KeepAll: true})
	before := heap()
	for i := range n {
		must(t, b.Push(added("a", i)))
	}
	full := heap() - before
	_, err := b.Pop(t.Context())
	must(t, err)
	if kept := heap() - before; kept > full/20 {
		t.Errorf("kept %d of %d bytes", kept, full)
	}
	runtime.KeepAlive(b)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestFIFO_SteadyStateDoesNotAllocate(t *testing.T) {
	items := manyItems(500)
	f := deltafifo.New[int](nil, nil)
	buf := make([]delta, 0, 1000)
	round := func() {
		must(t, f.Put(items, object.Watched))
		buf, _ = f.PopBatch(t.Context(), buf[:0])
		must(t, f.Put(items[:1], object.Watched))
		buf, _ = f.PopBatch(t.Context(), buf[:0])
	}
	round()
	if got := testing.AllocsPerRun(10, round); got > 0 {
		t.Errorf("%v allocations a round, want none", got)
	}
}

func TestBuffer_AtMostOneAllocationPerKey(t *testing.T) {
	const n = 10_000
	deltas := make([]delta, n)
	for i, it := range manyItems(n) {
		deltas[i] = delta{Type: put, Item: it}
	}
	got := testing.AllocsPerRun(3, func() {
		must(t, deltafifo.NewBuffer[int](nil).Push(deltas...))
	})
	if got > n*1.05 { // and the map
		t.Errorf("%v allocations for %d keys", got, n)
	}
}
