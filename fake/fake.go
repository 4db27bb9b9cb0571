package fake

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// Backend is a backend.Backend under a plan of faults. Make one with [New].
type Backend[T any] struct {
	*core[T]
	to  backend.Backend[T] // the store, or its dry run
	dry bool
	who *caller
}

var _ backend.Backend[int] = (*Backend[int])(nil)

// core is what a Backend has in common with its dry run and with those of other
// callers.
type core[T any] struct {
	store *memory.Store[T]
	bad   error // the seed: what every call answers

	mu      sync.Mutex // guards what follows; never held while anything is called
	weather *weather
	callers map[string]*caller
	hooks   // about all callers
	log     []line
	onWrite func(T) T
	powers  func(reflector.Powers[T]) reflector.Powers[T]
	watches map[*session]struct{}
}

// New makes a Backend that holds the seed, as [Backend.SeedRaw] puts it there: of a
// key named twice the later item counts. What can't be stored, an item without a
// key, is what every call answers then, as a [*SeedError].
//
// It panics when the plan can't mean anything.
func New[T any](plan Plan, seed ...object.Item[T]) *Backend[T] {
	b := Over(Plan{}, memory.New[T](nil))
	b.bad = b.SeedRaw(seed...)
	b.SetPlan(plan)
	return b
}

// Over is New over a store that there is already: one with a short history, or one
// that outlives this Backend. Writes that bypass the Backend are not struck, and
// told by its watches like any other.
func Over[T any](plan Plan, store *memory.Store[T]) *Backend[T] {
	nobody := newCaller("")
	c := &core[T]{
		store:   store,
		weather: newWeather(Plan{}),
		callers: map[string]*caller{"": nobody},
		watches: map[*session]struct{}{},
	}
	b := &Backend[T]{core: c, to: store, who: nobody}
	b.SetPlan(plan)
	return b
}

// SetPlan changes the weather, for all callers and for open watches too. What the
// last plan has begun ends: silences and delays are over at once. An empty Plan is
// calm. It says nothing about the store: what was restored stays so.
//
// It panics when the plan can't mean anything.
func (b *Backend[T]) SetPlan(p Plan) {
	w := newWeather(p)
	if w.restores() {
		w.origin = b.store.Snapshot()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.weather.over)
	b.weather = w
}

// Intercept has f called before each operation in op (none means all), after it was
// counted and before any fault strikes it. When f returns an error, nothing is done
// and that is the answer. f may use the Backend. A later call replaces f for the
// operations that it names; a nil f is none. What is set for all callers is asked
// before what is set for one ([Backend.As]).
func (b *Backend[T]) Intercept(op Op, f func(ctx context.Context, key string) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hooksLocked()
	for i := range h.intercept {
		if op == 0 || op&(1<<i) != 0 {
			h.intercept[i] = f
		}
	}
}

// OnWrite has f fill in what a real store would: every object is stored, and
// answered, as f returns it, whoever writes. f gets what a Create, Update or Patch
// is about to store, may run again for one Patch, and must not change what lies
// behind a pointer that others hold. A later call replaces f; nil is none.
func (b *Backend[T]) OnWrite(f func(T) T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.onWrite = f
}

// OnPowers has f answer what Powers says, to be a source that can do less: one that
// has Initial taken away is listed, one without Compare has no order. f is given
// what there would be, and must not add to it. A later call replaces f; nil is
// none. Programs ask for powers at their own times: set it before they run.
func (b *Backend[T]) OnPowers(f func(reflector.Powers[T]) reflector.Powers[T]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.powers = f
}

// Cut ends all open watches, as if the store had closed them.
func (b *Backend[T]) Cut() {
	b.mu.Lock()
	open := slices.Collect(maps.Keys(b.watches))
	b.mu.Unlock()
	for _, s := range open {
		if b.about(s.who) {
			s.cut()
		}
	}
}

// Compact makes the store forget its history: watches that lag behind the present,
// and resumes from before it, are told reflector.ErrExpired.
func (b *Backend[T]) Compact() { b.store.Compact() }
