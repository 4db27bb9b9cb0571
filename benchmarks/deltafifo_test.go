package benchmarks_test

import (
	"slices"
	"testing"

	"github.com/homeostat/homeostat/deltafifo"
	"github.com/homeostat/homeostat/object"
)

// keys is how many are pending at once in the rows of steady work.
const keys = 1000

// drainFIFO pops everything, buf's capacity at a time.
func drainFIFO(b *testing.B, f *deltafifo.FIFO[*Pod], buf []deltafifo.Delta[*Pod]) (popped int) {
	b.Helper()
	for f.Stats().Keys > 0 {
		got, err := f.PopBatch(b.Context(), buf[:0])
		must(b, err)
		popped += len(got)
	}
	return popped
}

// BenchmarkFIFOKeys adds 1000 keys one by one, then pops them.
func BenchmarkFIFOKeys(b *testing.B) {
	row(b, "keys", keys, func(b *testing.B) {
		f, items := deltafifo.New[*Pod](nil, nil), podItems(keys)
		buf := make([]deltafifo.Delta[*Pod], 0, keys)
		for b.Loop() {
			for i := range items {
				must(b, f.Put(items[i:i+1], object.Watched))
			}
			if n := drainFIFO(b, f, buf); n != keys {
				b.Fatalf("popped %d", n)
			}
		}
		perItem(b, keys, "key")
	})
}

// BenchmarkBufferKeys is the same for the Buffer, whose producer knows what the
// consumer holds.
func BenchmarkBufferKeys(b *testing.B) {
	row(b, "keys", keys, func(b *testing.B) {
		q, items := deltafifo.NewBuffer[*Pod](nil), podItems(keys)
		buf := make([]deltafifo.Delta[*Pod], 0, keys)
		for b.Loop() {
			for i := range items {
				must(b, q.Push(deltafifo.Delta[*Pod]{Type: deltafifo.Put, Item: items[i], Old: items[i], Had: true}))
			}
			got, err := q.PopBatch(b.Context(), buf[:0])
			must(b, err)
			if len(got) != keys {
				b.Fatalf("popped %d", len(got))
			}
		}
		perItem(b, keys, "key")
	})
}

// BenchmarkFIFOHotKey changes one key many times before it is popped.
func BenchmarkFIFOHotKey(b *testing.B) {
	for _, updates := range []int{100, 1000} {
		row(b, "updates", updates, func(b *testing.B) {
			f, item := deltafifo.New[*Pod](nil, nil), podItems(1)
			buf := make([]deltafifo.Delta[*Pod], 0, 2)
			for b.Loop() {
				for range updates {
					must(b, f.Put(item, object.Watched))
				}
				if n := drainFIFO(b, f, buf); n != 1 {
					b.Fatalf("popped %d", n)
				}
			}
			perItem(b, updates, "update")
		})
	}
}

// BenchmarkFIFOReplaceFirst takes a first list and pops it.
func BenchmarkFIFOReplaceFirst(b *testing.B) {
	row(b, "objects", objects, func(b *testing.B) {
		items := podItems(objects)
		buf := make([]deltafifo.Delta[*Pod], 0, keys)
		for b.Loop() {
			f := deltafifo.New[*Pod](nil, nil)
			must(b, f.Replace(items, object.Initial))
			if n := drainFIFO(b, f, buf); n != objects {
				b.Fatalf("popped %d", n)
			}
		}
		perItem(b, objects, "object")
	})
}

// BenchmarkFIFOReplaceAgain takes a list in which every object changed, and pops
// it.
func BenchmarkFIFOReplaceAgain(b *testing.B) {
	row(b, "objects", objects, func(b *testing.B) {
		f, lists := deltafifo.New[*Pod](nil, nil), [2][]object.Item[*Pod]{podItems(objects), changedList(objects)}
		buf := make([]deltafifo.Delta[*Pod], 0, keys)
		must(b, f.Replace(lists[1], object.Initial))
		drainFIFO(b, f, buf)
		for i := 0; b.Loop(); i++ {
			must(b, f.Replace(lists[i%2], object.Relist))
			if n := drainFIFO(b, f, buf); n != objects {
				b.Fatalf("popped %d", n)
			}
		}
		perItem(b, objects, "object")
	})
}

// BenchmarkFIFOReplaceSame takes a list in which nothing changed.
func BenchmarkFIFOReplaceSame(b *testing.B) {
	row(b, "objects", objects, func(b *testing.B) {
		f, list := deltafifo.New[*Pod](nil, nil), podItems(objects)
		must(b, f.Replace(list, object.Initial))
		drainFIFO(b, f, make([]deltafifo.Delta[*Pod], 0, keys))
		for b.Loop() {
			must(b, f.Replace(list, object.Relist))
			if f.Stats().Keys > 0 {
				b.Fatal("something changed")
			}
		}
		perItem(b, objects, "object")
	})
}

// changedList is podItems, each in a new version.
func changedList(n int) []object.Item[*Pod] {
	list := slices.Clone(podItems(n))
	for i := range list {
		list[i].Version = versions[0]
	}
	return list
}
