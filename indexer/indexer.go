package indexer

import (
	"fmt"
	"hash/maphash"
	"iter"
	"sync/atomic"

	"github.com/homeostat/homeostat/object"
)

// Indexer is the cache: objects by key, and by the values of any number of
// indexes. It is a [View] of its own newest state. All methods may be called from
// any goroutine; reads never wait, writers take turns. See the package
// documentation for what each costs.
type Indexer[T any] struct {
	home[T]
	changed atomic.Pointer[chan struct{}] // closed at the next change; nil when nobody waits

	// turn is held by the one who writes. It is a channel, not a mutex, as functions
	// of the user run within it.
	turn chan struct{}
	// The turn guards the rest.
	fault error    // what was wrong with the indexes given to New
	free  []uint32 // slots that nothing is in, below used
	used  uint32   // slots ever given out
	spare []op[T]  // kept from write to write
}

// New makes an empty cache with the given indexes. Registering a handle twice is
// the same as once. Faulty indexes ([ErrNameTaken], [ErrInvalidIndex]) are left
// out, and every write answers with all of them, joined; a Write of nothing asks.
func New[T any](indexes ...Indexed[T]) *Indexer[T] {
	c := &Indexer[T]{turn: make(chan struct{}, 1)}
	c.seed = maphash.MakeSeed()
	c.points.table.Store(newPointTable(pointsAtLeast))
	s := &Snapshot[T]{home: &c.home}
	var faults []error
	for _, x := range indexes {
		known, err := s.registered(x)
		switch {
		case err != nil:
			faults = append(faults, err)
		case !known:
			s.columns = append(s.columns, x.column(c.seed))
		}
	}
	if faults != nil {
		c.fault = join(faults)
	}
	c.head.Store(s)
	return c
}

// registered says whether s has x, and what forbids to add it.
func (s *Snapshot[T]) registered(x Indexed[T]) (bool, error) {
	if x == nil {
		return false, fmt.Errorf("%w: nil", ErrInvalidIndex)
	}
	if err := x.check(); err != nil {
		return false, err
	}
	for _, c := range s.columns {
		switch other := c.handle(); {
		case other == x:
			return true, nil
		case other.Name() == x.Name():
			return false, fmt.Errorf("%w: %q, declared at %s, is not the one registered before, declared at %s",
				ErrNameTaken, x.Name(), x.declared(), other.declared())
		}
	}
	return false, nil
}

// Get gives the object under key, as of now; false when there is none.
func (c *Indexer[T]) Get(key string) (T, bool) { return c.state().Get(key) }

// Item is Get with version and identity.
func (c *Indexer[T]) Item(key string) (object.Item[T], bool) { return c.state().Item(key) }

// Len is the number of objects, as of now.
func (c *Indexer[T]) Len() int { return c.state().Len() }

// All yields every key and object as of the call, in any order.
func (c *Indexer[T]) All() iter.Seq2[string, T] { return c.state().All() }

// Sorted is All in the order of the keys' bytes.
func (c *Indexer[T]) Sorted() iter.Seq2[string, T] { return c.state().Sorted() }

// Prefix is Sorted for the keys that begin with prefix.
func (c *Indexer[T]) Prefix(prefix string) iter.Seq2[string, T] { return c.state().Prefix(prefix) }

// Snapshot is the state as of now. It is the same pointer until the next write.
func (c *Indexer[T]) Snapshot() *Snapshot[T] { return c.state() }

func (c *Indexer[T]) state() *Snapshot[T] { return c.head.Load() }

// Indexes are the names of the registered indexes, in the order of registration.
// The slice is the caller's.
func (c *Indexer[T]) Indexes() []string {
	columns := c.state().columns
	names := make([]string, len(columns))
	for i, col := range columns {
		names[i] = col.handle().Name()
	}
	return names
}

// Named is a look-up by the name of the index and the text of the value, as
// fmt.Sprint prints it, for tools; programs use [Index.Lookup]. It yields the
// objects under all values that print so, each once, as of the call. Without such
// an index the error is [ErrNoIndex]; objects are never searched.
func (c *Indexer[T]) Named(index, value string) (iter.Seq2[string, T], error) {
	s := c.state()
	for _, col := range s.columns {
		if col.handle().Name() == index {
			return col.named(s, value), nil
		}
	}
	return nil, fmt.Errorf("%w: %q", ErrNoIndex, index)
}
