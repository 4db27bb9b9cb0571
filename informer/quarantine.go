package informer

import (
	"fmt"
	"slices"
	"strings"

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
	fault  bool // the source cannot read it: there is no item but a key and a version
}

// is says that this is the state that was refused.
func (h held[T]) is(item object.Item[T], wary bool) bool {
	if h.fault {
		return h.item.Version != "" && h.item.Version == item.Version && !wary
	}
	return same(h.item, item, wary)
}

// keyless refuses what a source told without a key: the rest of the batch is not
// to blame. It is nil when there is none.
func keyless[T any](events []reflector.Event[T]) map[string]error {
	for n := range events {
		if ev := &events[n]; ev.Key == "" && ev.Op == reflector.OpPut {
			return map[string]error{"": fmt.Errorf("%w: %w", reflector.ErrContract, indexer.ErrNoKey)}
		}
	}
	return nil
}

// unreadable refuses what the source cannot read: the cache keeps what it has.
func (i *Informer[T]) unreadable(faults []reflector.Fault) {
	for _, f := range faults {
		if f.Key == "" {
			continue
		}
		if i.held == nil {
			i.held = make(map[string]held[T])
		}
		i.held[f.Key] = held[T]{item: object.Item[T]{Key: f.Key, Version: f.Version}, fault: true}
		// The reflector has logged it.
		i.barriers.refuse(&RefusedError{
			Informer: i.name, Key: f.Key, Version: f.Version, Err: fmt.Errorf("%w: %w", reflector.ErrUnreadable, f.Err),
		})
	}
}

// quarantine brings the list of refused keys up to date after a step: the last
// event of each key decides. It gives the puts that are worth another try: of
// those refused before, whose value was with a key that this step has changed; of
// those refused now for a key that was itself refused, whose value is free. (To try
// again what was refused for a key that this step has let in would be in vain.)
func (i *Informer[T]) quarantine(p *plan[T], events []reflector.Event[T], refuse map[string]error) []reflector.Event[T] {
	if len(refuse) == 0 && len(i.held) == 0 {
		return nil
	}
	for n := range events {
		key := events[n].Key
		if _, ok := i.held[key]; ok {
			delete(i.held, key)
			if _, again := p.refused[key]; !again {
				i.barriers.accept(key)
			}
		}
	}
	var again []reflector.Event[T]
	retry := func(item object.Item[T]) {
		again = append(again, reflector.Event[T]{Op: reflector.OpPut, Known: true, Item: item})
	}
	if len(p.finals) > 0 {
		for _, h := range i.held {
			if h.holder != "" && p.touches(h.holder) {
				retry(h.item)
			}
		}
	}
	for key, item := range p.refused {
		why := refuse[key]
		h := held[T]{item: item}
		// Not errors.As: what an index function panicked with may be an error that
		// can't be asked.
		if taken, ok := why.(*indexer.TakenError); ok {
			h.holder = taken.Holder
			if _, too := refuse[h.holder]; too {
				// Refused for a put that was itself refused: it has its chance if what
				// the holder has kept, or another one has got, is not what it wants.
				if now := i.cache.Taken(item); len(now) > 0 {
					h.holder = now[0].Holder
				} else {
					retry(item)
				}
			}
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
	// Who gets a value that several want should not be chance.
	slices.SortFunc(again, func(a, b reflector.Event[T]) int { return strings.Compare(a.Key, b.Key) })
	return again
}
