package benchmarks_test

import (
	"testing"

	"github.com/homeostat/homeostat/indexer"
)

// newCache has two indexes and n pods.
func newCache(b *testing.B, n int) *indexer.Indexer[*Pod] {
	b.Helper()
	c := indexer.New[*Pod](byNode, byOwner)
	must(b, c.Write(func(w *indexer.Batch[*Pod]) error {
		for _, item := range podItems(n) {
			w.Put(item)
		}
		return nil
	}))
	return c
}

// BenchmarkIndexerGet reads one object: all of them in turn, which misses the
// processor's cache, and 500 hot ones.
func BenchmarkIndexerGet(b *testing.B) {
	get := func(b *testing.B, hot int) {
		c, ch := newCache(b, objects), newChanges(hot)
		for b.Loop() {
			if _, ok := c.Get(ch.next().Key); !ok {
				b.Fatal("lost")
			}
		}
	}
	row(b, "objects", objects, func(b *testing.B) { get(b, objects) })
	row(b, "hot", min(500, objects/2), func(b *testing.B) { get(b, min(500, objects/2)) })
}

// BenchmarkIndexerUpdate puts a new state of an object that stays where it is in
// all indexes.
func BenchmarkIndexerUpdate(b *testing.B) {
	row(b, "objects", objects, func(b *testing.B) {
		c, ch := newCache(b, objects), newChanges(objects)
		for b.Loop() {
			must(b, c.Put(ch.next()))
		}
	})
}

// BenchmarkIndexerUpdateBatch puts 64 new states in one write.
func BenchmarkIndexerUpdateBatch(b *testing.B) {
	row(b, "objects", objects, func(b *testing.B) {
		const batch = 64
		c, ch := newCache(b, objects), newChanges(objects)
		for b.Loop() {
			must(b, c.Write(func(w *indexer.Batch[*Pod]) error {
				for range batch {
					w.Put(ch.next())
				}
				return nil
			}))
		}
		perItem(b, batch, "object")
	})
}

// BenchmarkIndexerInsert fills an empty cache, 1000 objects a write.
func BenchmarkIndexerInsert(b *testing.B) {
	row(b, "objects", objects, func(b *testing.B) {
		items := podItems(objects)
		for b.Loop() {
			c := indexer.New[*Pod](byNode, byOwner)
			for from := 0; from < len(items); from += 1000 {
				must(b, c.Write(func(w *indexer.Batch[*Pod]) error {
					for _, item := range items[from:min(from+1000, len(items))] {
						w.Put(item)
					}
					return nil
				}))
			}
		}
		perItem(b, len(items), "object")
	})
}

// BenchmarkIndexerLookup visits the 100 pods of one owner.
func BenchmarkIndexerLookup(b *testing.B) {
	row(b, "objects", objects, func(b *testing.B) {
		c, owners := newCache(b, objects), make([]string, objects/perOwner)
		for i := range owners {
			owners[i] = ownerKey(i * perOwner)
		}
		for i := 0; b.Loop(); i++ {
			found := 0
			for range byOwner.Lookup(c, owners[i%len(owners)]) {
				found++
			}
			if found != perOwner {
				b.Fatalf("found %d", found)
			}
		}
	})
}

// BenchmarkIndexerAll visits every object.
func BenchmarkIndexerAll(b *testing.B) {
	row(b, "objects", objects, func(b *testing.B) {
		c := newCache(b, objects)
		for b.Loop() {
			seen := 0
			for _, pod := range c.All() {
				if pod != nil {
					seen++
				}
			}
			if seen != objects {
				b.Fatalf("saw %d objects", seen)
			}
		}
		perItem(b, objects, "object")
	})
}

// BenchmarkIndexerSnapshot takes a snapshot and asks it one thing.
func BenchmarkIndexerSnapshot(b *testing.B) {
	row(b, "objects", objects, func(b *testing.B) {
		c := newCache(b, objects)
		for b.Loop() {
			if c.Snapshot().Len() != objects {
				b.Fatal("not all there")
			}
		}
	})
}
