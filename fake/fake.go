package fake

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/object"
)

// Backend is a backend.Backend under a plan of faults. Make one with [New].
type Backend[T any] struct {
	*core[T]
	to  backend.Backend[T] // the store, or its dry run
	dry bool
}

var _ backend.Backend[int] = (*Backend[int])(nil)

// core is what a Backend and its dry run have in common.
type core[T any] struct {
	store *memory.Store[T]

	mu        sync.Mutex // guards what follows; never held while anything is called
	weather   *weather
	calls     [ops]int
	log       []line
	intercept [ops]func(ctx context.Context, key string) error
	onWrite   func(T) T
	watches   map[*session]struct{}
}

// New makes a Backend that holds the seed, each item created (or, when its key is
// named twice, updated) in the given order. Of an item, key and object count; its
// version and ID are the store's to give. No fault strikes the seed.
//
// It panics when the plan can't mean anything.
func New[T any](plan Plan, seed ...object.Item[T]) *Backend[T] {
	store := memory.New[T](nil)
	for _, item := range seed {
		ctx := context.Background() // the store never waits
		if _, err := store.Create(ctx, item.Key, item.Object); err != nil {
			item.Version, item.ID = object.Any, ""
			store.Update(ctx, item)
		}
	}
	return Over(plan, store)
}

// Over is New over a store that there is already: one with a short history, or one
// that outlives this Backend. Writes that bypass the Backend are not struck, and
// told by its watches like any other.
func Over[T any](plan Plan, store *memory.Store[T]) *Backend[T] {
	c := &core[T]{store: store, weather: newWeather(plan), watches: map[*session]struct{}{}}
	return &Backend[T]{core: c, to: store}
}

// SetPlan changes the weather, for open watches too. What the last plan has begun
// ends: silences and delays are over at once. An empty Plan is calm.
//
// It panics when the plan can't mean anything.
func (b *Backend[T]) SetPlan(p Plan) {
	w := newWeather(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.weather.over)
	b.weather = w
}

// Intercept has f called before each operation in op (none means all), after it was
// counted and before any fault strikes it. When f returns an error, nothing is done
// and that is the answer. f may use the Backend. A later call replaces f for the
// operations that it names; a nil f is none.
func (b *Backend[T]) Intercept(op Op, f func(ctx context.Context, key string) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.intercept {
		if op == 0 || op&(1<<i) != 0 {
			b.intercept[i] = f
		}
	}
}

// OnWrite has f fill in what a real store would: every object is stored, and
// answered, as f returns it. f gets what a Create, Update or Patch is about to
// store, may run again for one Patch, and must not change what lies behind a
// pointer that others hold. A later call replaces f; nil is none.
func (b *Backend[T]) OnWrite(f func(T) T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.onWrite = f
}

// Cut ends all open watches, as if the store had closed them.
func (b *Backend[T]) Cut() {
	b.mu.Lock()
	open := slices.Collect(maps.Keys(b.watches))
	b.mu.Unlock()
	for _, s := range open {
		s.cut()
	}
}

// Compact makes the store forget its history: watches that lag behind the present,
// and resumes from before it, are told reflector.ErrExpired.
func (b *Backend[T]) Compact() { b.store.Compact() }
