package informer

import (
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// relist takes one full state. What is in the cache already is let go at once: of
// it only the key is kept, to know that it was named.
type relist[T any] struct {
	inf *Informer[T]
	why object.Cause
	seq uint64
	// named has every key of the full state: where in changed, or unchanged.
	named   map[string]int
	changed []reflector.Event[T]
}

const unchanged = -1

// Stage is reflector.Relist's. Nobody writes to the cache between the first Stage
// and Commit, so what is equal now is equal then.
func (r *relist[T]) Stage(items []object.Item[T]) error {
	if r.named == nil {
		r.named = make(map[string]int, max(len(items), r.inf.cache.Len()))
	}
	for n := range items {
		item := &items[n]
		// Told again: in its old place, so that what is told often takes no room.
		if at, ok := r.named[item.Key]; ok && at != unchanged {
			r.changed[at].Item = *item
			continue
		}
		if cur, ok := r.inf.cache.Item(item.Key); ok && same(cur, *item) {
			r.named[item.Key] = unchanged
			continue
		}
		r.named[item.Key] = len(r.changed)
		r.changed = append(r.changed, reflector.Event[T]{Op: reflector.OpPut, Known: true, Item: *item})
	}
	return nil
}

// Unstage is reflector.Relist's.
func (r *relist[T]) Unstage(key string) {
	at, ok := r.named[key]
	if !ok {
		return
	}
	if at != unchanged {
		r.changed[at] = reflector.Event[T]{} // of no Op: left out
	}
	delete(r.named, key)
}

// Commit is reflector.Relist's. The deletes come first: what was freed in a
// unique index can be taken by what is new.
func (r *relist[T]) Commit(at reflector.Cursor) error {
	i := r.inf
	var events []reflector.Event[T]
	gone := func(key string) {
		if _, named := r.named[key]; !named {
			events = append(events, reflector.Event[T]{Op: reflector.OpDelete, Item: object.Item[T]{Key: key}})
		}
	}
	for key := range i.cache.All() {
		gone(key)
	}
	for key := range i.held {
		gone(key)
	}
	if len(events) == 0 {
		events = r.changed
	} else {
		events = append(events, r.changed...)
	}
	// A refused key that is back at the good state which the cache has kept did not
	// count as changed. Told again, it is no change, but no longer refused.
	for key := range i.held {
		if at, named := r.named[key]; named && at == unchanged {
			item, _ := i.cache.Item(key)
			events = append(events, reflector.Event[T]{Op: reflector.OpPut, Known: true, Item: item})
		}
	}
	r.named, r.changed = nil, nil
	return i.apply(events, step{why: r.why, inferred: true, full: r.seq, at: at})
}

// Unchanged is reflector.Relist's: a full state like any other, for those who wait
// for one.
func (r *relist[T]) Unchanged(at reflector.Cursor) error {
	return r.inf.apply(nil, step{why: r.why, full: r.seq, at: at})
}

// Abort is reflector.Relist's.
func (r *relist[T]) Abort() { r.named, r.changed = nil, nil }
