package backendtest

import (
	"sync"

	"github.com/homeostat/homeostat/object"
)

// identity is what makes two objects one and the same (rule 9).
type identity struct {
	key, id string
	version object.Version
}

// registry keeps every object that a store has shown.
type registry[T any] struct {
	mu   sync.Mutex
	seen map[identity]T
}

// saw notes an object that the store has shown, by a list, a watch or an answer.
func (st *store[T]) saw(where string, item object.Item[T]) {
	st.found(item)
	if item.Version == "" {
		return
	}
	id := identity{item.Key, item.ID, item.Version}
	r := st.seen
	r.mu.Lock()
	before, again := r.seen[id]
	if r.seen == nil {
		r.seen = map[identity]T{}
	}
	r.seen[id] = item.Object
	r.mu.Unlock()
	if again && !st.k.h.Equal(before, item.Object) {
		st.k.note("object/identity", "%s shows %q (ID %q, version %q) with another object than before", where, item.Key, item.ID, item.Version)
	}
}

// found notes that there are versions and IDs.
func (st *store[T]) found(item object.Item[T]) {
	r := st.k.run
	r.mu.Lock()
	defer r.mu.Unlock()
	r.facts.versions = r.facts.versions || item.Version != ""
	r.facts.ids = r.facts.ids || item.ID != ""
}
