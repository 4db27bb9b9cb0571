package indexer

import (
	"hash/maphash"
	"iter"
	"strings"
	"sync/atomic"

	"github.com/homeostat/homeostat/object"
)

// View is what can be read: an [Indexer], where each call answers from the newest
// state, or a [Snapshot], which is always the same. [Indexer.View] is the first
// without the means to write. No other type implements it.
//
// All methods may be called from any goroutine, and none ever waits. Objects are
// shared: they are read, not changed.
type View[T any] interface {
	// Get gives the object under key; false when there is none.
	Get(key string) (T, bool)
	// Item is Get with version and identity.
	Item(key string) (object.Item[T], bool)
	// Len is the number of objects.
	Len() int
	// All yields every key and object, in any order. Like Sorted and Prefix it shows
	// the state at the time of the call, and may be ranged over again, later, by
	// several goroutines. The loop may write to the cache.
	All() iter.Seq2[string, T]
	// Sorted is All in the order of the keys' bytes.
	Sorted() iter.Seq2[string, T]
	// Prefix is Sorted for the keys that begin with prefix.
	Prefix(prefix string) iter.Seq2[string, T]
	// Snapshot is the state as it is now, for reads that must agree.
	Snapshot() *Snapshot[T]

	state() *Snapshot[T]
}

// Snapshot is one state of a cache and never changes. It costs nothing to take; to
// keep it keeps alive what has changed since.
type Snapshot[T any] struct {
	seq     uint64 // counts the states of a cache; owns the nodes that were made for this one
	home    *home[T]
	items   vec[object.Item[T]]  // by slot
	keys    tree[string, uint32] // their slots
	columns []column[T]          // in the order of registration
}

// home is what all states of one cache share.
type home[T any] struct {
	head   atomic.Pointer[Snapshot[T]] // the newest state
	points points
	seed   maphash.Seed
}

func (h *home[T]) hash(key string) uint32 { return uint32(maphash.String(h.seed, key)) }

// find gives where key is; nil when it is not there.
func (s *Snapshot[T]) find(key string) (uint32, *object.Item[T]) {
	hash, step := s.home.hash(key), uint32(0)
	table := s.home.points.table.Load()
	for {
		slot, ok := table.probe(hash, &step)
		if !ok {
			break
		}
		if item := s.items.get(slot); item != nil && item.Key == key {
			return slot, item
		}
	}
	// A key gets into the table before, and out of it after, the state that has or
	// lacks it is published. So if this is still the newest state, it lacks the key.
	if s.home.head.Load() == s {
		return 0, nil
	}
	slot, ok := s.keys.get(key)
	if !ok {
		return 0, nil
	}
	return slot, s.items.get(slot)
}

// Get gives the object under key; false when there is none.
func (s *Snapshot[T]) Get(key string) (T, bool) {
	if _, item := s.find(key); item != nil {
		return item.Object, true
	}
	var none T
	return none, false
}

// Item is Get with version and identity.
func (s *Snapshot[T]) Item(key string) (object.Item[T], bool) {
	if _, item := s.find(key); item != nil {
		return *item, true
	}
	return object.Item[T]{}, false
}

// Len is the number of objects.
func (s *Snapshot[T]) Len() int { return s.keys.n }

// All yields every key and object, in any order.
func (s *Snapshot[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		s.items.walk(func(_ uint32, item *object.Item[T]) bool { return yield(item.Key, item.Object) })
	}
}

// Sorted is All in the order of the keys' bytes.
func (s *Snapshot[T]) Sorted() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		s.keys.walk(func(key string, slot uint32) bool { return yield(key, s.items.get(slot).Object) })
	}
}

// Prefix is Sorted for the keys that begin with prefix.
func (s *Snapshot[T]) Prefix(prefix string) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		s.keys.from(prefix, func(key string, slot uint32) bool {
			return strings.HasPrefix(key, prefix) && yield(key, s.items.get(slot).Object)
		})
	}
}

// Snapshot is s itself.
func (s *Snapshot[T]) Snapshot() *Snapshot[T] { return s }

func (s *Snapshot[T]) state() *Snapshot[T] { return s }

// View is the cache for those who may read it but not write: what it gives can't be
// turned back into c.
func (c *Indexer[T]) View() View[T] { return reader[T]{c} }

// reader hides all of an Indexer but what a View has: the field has another type, so
// that nothing else is promoted.
type reader[T any] struct{ View[T] }
