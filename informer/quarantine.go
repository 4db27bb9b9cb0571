package informer

import (
	"errors"

	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// held is an object that the cache refused, kept to be tried again.
type held[T any] struct {
	item object.Item[T]
	// holder is the key that has its value in a unique index; "" when an index
	// function panicked on it, which only another state of it can change.
	holder string
}

// quarantine brings the list of refused keys up to date after a step: the last
// event of each key decides.
func (i *Informer[T]) quarantine(p *plan[T], events []reflector.Event[T], refuse map[string]error) {
	if len(refuse) == 0 && len(i.held) == 0 {
		return
	}
	for n := range events {
		key := events[n].Key
		if _, ok := p.refused[key]; ok {
			continue
		}
		if _, ok := i.held[key]; ok {
			delete(i.held, key)
			i.barriers.accept(key)
		}
	}
	for key, item := range p.refused {
		why := refuse[key]
		var taken *indexer.TakenError
		h := held[T]{item: item}
		if errors.As(why, &taken) {
			h.holder = taken.Holder
		}
		if i.held == nil {
			i.held = make(map[string]held[T])
		}
		i.held[key] = h
		e := &RefusedError{Informer: i.name, Key: key, Version: item.Version, Err: why}
		if i.barriers.refuse(e) {
			i.log.Warn("object refused, its last good state is kept", "informer", i.name, "key", key, "error", why)
		}
	}
}

// freed are the refused objects whose unique value was held by a key that this
// step has changed.
func (i *Informer[T]) freed(p *plan[T]) []object.Item[T] {
	var items []object.Item[T]
	for _, h := range i.held {
		if h.holder != "" && p.touches(h.holder) {
			items = append(items, h.item)
		}
	}
	return items
}
