package informer

import (
	"hash/maphash"

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
	faults  []reflector.Fault
	wary    bool // equal versions do not mean equal objects
}

// Distrust is reflector.Relist's.
func (r *relist[T]) Distrust() { r.wary = true }

// Where a key is that is in no need of an event: the cache has the very state, or
// is to keep what it has.
const (
	unchanged = -1 - iota
	kept
)

// open prepares for what is staged first.
func (r *relist[T]) open(keys int) {
	if r.named == nil {
		r.named = make(map[string]int, max(keys, r.inf.cache.Len()))
		r.inf.staged = r
	}
}

// close forgets what was staged.
func (r *relist[T]) close() {
	r.named, r.changed, r.faults = nil, nil, nil
	if r.inf.staged == r {
		r.inf.staged = nil
	}
}

// Stage is reflector.Relist's.
func (r *relist[T]) Stage(items []object.Item[T]) error {
	r.open(len(items))
	for n := range items {
		item := &items[n]
		// Told again: in its old place, so that what is told often takes no room.
		if at, ok := r.named[item.Key]; ok && at >= 0 {
			r.changed[at].Item = *item
			continue
		}
		if cur, ok := r.inf.cache.Item(item.Key); ok && same(cur, *item, r.wary) {
			r.named[cur.Key] = unchanged // not item.Key: nothing of item is kept
			continue
		}
		r.named[item.Key] = len(r.changed)
		r.changed = append(r.changed, reflector.Event[T]{Op: reflector.OpPut, Known: true, Item: *item})
	}
	return nil
}

// StageKeys is reflector.Relist's.
func (r *relist[T]) StageKeys(items []object.Item[T]) error {
	r.open(len(items))
	for n := range items {
		item := &items[n]
		r.Unstage(item.Key)
		if cur, ok := r.inf.cache.Item(item.Key); ok && cur.ID == item.ID && cur.Version == item.Version {
			r.named[item.Key] = unchanged
			continue
		}
		r.named[item.Key] = len(r.changed)
		r.changed = append(r.changed, reflector.Event[T]{Op: reflector.OpPut, Item: *item})
	}
	return nil
}

// remember keeps, of what is about to change in the cache, the states that were
// staged and let go since the cache had them.
func (r *relist[T]) remember(events []reflector.Event[T]) {
	for n := range events {
		key := events[n].Key
		if at, ok := r.named[key]; !ok || at != unchanged {
			continue
		}
		item, _ := r.inf.cache.Item(key)
		r.named[key] = len(r.changed)
		r.changed = append(r.changed, reflector.Event[T]{Op: reflector.OpPut, Known: true, Item: item})
	}
}

// Keep is reflector.Relist's.
func (r *relist[T]) Keep(faults []reflector.Fault) {
	r.open(len(faults))
	for _, f := range faults {
		r.Unstage(f.Key)
		r.named[f.Key] = kept
	}
	r.faults = append(r.faults, faults...)
}

// Diff is reflector.Relist's. What the cache refuses, and has refused before, is no
// change.
func (r *relist[T]) Diff() reflector.Diff {
	i := r.inf
	d := reflector.Diff{Of: i.cache.Len()}
	for n := range r.changed {
		ev := &r.changed[n]
		if ev.Op != reflector.OpPut {
			continue
		}
		if h, refused := i.held[ev.Key]; refused && h.is(ev.Item, r.wary) {
			continue
		}
		if cur, ok := i.cache.Item(ev.Key); !ok || !same(cur, ev.Item, r.wary) {
			d.Puts++
		}
	}
	for key := range i.cache.All() {
		if _, named := r.named[key]; !named {
			d.Deletes++
			d.Gone += maphash.String(i.seed, key)
		}
	}
	// What was refused and is gone has to be forgotten, or it would come up again.
	for key := range i.held {
		if _, named := r.named[key]; named {
			continue
		}
		if _, cached := i.cache.Item(key); !cached {
			d.Deletes++
			d.Gone += maphash.String(i.seed, key)
		}
	}
	return d
}

// Unstage is reflector.Relist's.
func (r *relist[T]) Unstage(key string) {
	at, ok := r.named[key]
	if !ok {
		return
	}
	if at >= 0 {
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
	for n, f := range r.faults {
		if at, named := r.named[f.Key]; !named || at != kept { // told better since
			r.faults[n] = reflector.Fault{}
		}
	}
	i.unreadable(r.faults)
	r.close()
	return i.apply(events, step{why: r.why, inferred: true, full: r.seq, at: at, wary: r.wary})
}

// Unchanged is reflector.Relist's: a full state like any other, for those who wait
// for one.
func (r *relist[T]) Unchanged(at reflector.Cursor) error {
	r.close()
	return r.inf.apply(nil, step{why: r.why, full: r.seq, at: at})
}

// Abort is reflector.Relist's.
func (r *relist[T]) Abort() { r.close() }
