package informer

import (
	"reflect"

	"github.com/homeostat/homeostat/deltafifo"
	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// plan is what a list of events comes to, seen from a cache: the deltas that
// handlers are told, in order, and the state in which each key is left. Of a key
// that is told of several times the cache takes the last state only, while the
// deltas have each step, so that no delete and no change of identity is lost; the
// one place that compacts is the buffer of each handler.
type plan[T any] struct {
	deltas []deltafifo.Delta[T]
	finals []final[T]
	// refused has the last put of each key whose put must be left out.
	refused map[string]object.Item[T]
	// at finds a key's final. A list of one event, the common case, does without.
	at    map[string]int
	multi bool
}

type final[T any] struct {
	item object.Item[T]
	live bool // else the key is deleted
}

// maxScratch is how large a plan may be to be kept for the next batch.
const maxScratch = 1024

// make fills the plan. Puts of the keys in refuse are left out.
func (p *plan[T]) make(cache *indexer.Indexer[T], events []reflector.Event[T], s step, refuse map[string]error) {
	p.reset()
	if p.multi = len(events) > 1; p.multi && p.at == nil {
		p.at = make(map[string]int, len(events))
	}
	for n := range events {
		ev := &events[n]
		cur, held := p.current(cache, ev.Key)
		switch ev.Op {
		case reflector.OpPut:
			if _, bad := refuse[ev.Key]; bad {
				p.refuse(ev.Item, cur, held, s)
			} else {
				p.put(ev.Item, cur, held, s)
			}
		case reflector.OpDelete:
			delete(p.refused, ev.Key)
			if held {
				p.delete(lastOf(ev, cur), cur, s.inferred, s)
			}
		}
	}
}

// reset forgets the last plan, its objects too, and the room of a large one.
func (p *plan[T]) reset() {
	if cap(p.deltas) > maxScratch || cap(p.finals) > maxScratch {
		*p = plan[T]{}
		return
	}
	clear(p.deltas)
	clear(p.finals)
	if p.multi {
		clear(p.at)
	}
	clear(p.refused)
	p.deltas, p.finals = p.deltas[:0], p.finals[:0]
}

// current is the state of key after the events so far.
func (p *plan[T]) current(cache *indexer.Indexer[T], key string) (object.Item[T], bool) {
	if p.multi {
		if n, ok := p.at[key]; ok {
			if f := &p.finals[n]; f.live {
				return f.item, true
			}
			return object.Item[T]{}, false
		}
	}
	return cache.Item(key)
}

// leave notes in which state the events so far leave a key.
func (p *plan[T]) leave(item object.Item[T], live bool) {
	if p.multi {
		if n, ok := p.at[item.Key]; ok {
			p.finals[n] = final[T]{item, live}
			return
		}
		p.at[item.Key] = len(p.finals)
	}
	p.finals = append(p.finals, final[T]{item, live})
}

// touches says that the plan changes key.
func (p *plan[T]) touches(key string) bool {
	if !p.multi {
		return len(p.finals) > 0 && p.finals[0].item.Key == key
	}
	_, ok := p.at[key]
	return ok
}

func (p *plan[T]) put(item, cur object.Item[T], held bool, s step) {
	if held && same(cur, item, s.wary) {
		return
	}
	if held && recreated(cur, item) {
		p.delete(cur, cur, true, s)
		cur, held = object.Item[T]{}, false
	}
	p.deltas = append(p.deltas, deltafifo.Delta[T]{
		Type: deltafifo.Put, Cause: s.why, Item: item, Old: cur, Had: held,
	})
	p.leave(item, true)
}

func (p *plan[T]) delete(last, cur object.Item[T], inferred bool, s step) {
	p.deltas = append(p.deltas, deltafifo.Delta[T]{
		Type: deltafifo.Delete, Cause: s.why, Inferred: inferred, Item: last, Old: cur, Had: true,
	})
	p.leave(last, false)
}

// refuse keeps the last good state; but not that of an object which, as the
// refused one proves, is gone.
func (p *plan[T]) refuse(item, cur object.Item[T], held bool, s step) {
	if held && recreated(cur, item) {
		p.delete(cur, cur, true, s)
	}
	if p.refused == nil {
		p.refused = make(map[string]object.Item[T])
	}
	p.refused[item.Key] = item
}

// lastOf is the newest state known of what ev deletes.
func lastOf[T any](ev *reflector.Event[T], cur object.Item[T]) object.Item[T] {
	last := cur
	if ev.Known {
		last.Object = ev.Object
	}
	if ev.Version != "" {
		last.Version = ev.Version
	}
	return last
}

// recreated: as far as the source tells, these are two objects.
func recreated[T any](a, b object.Item[T]) bool {
	return a.ID != "" && b.ID != "" && a.ID != b.ID
}

// same: nothing has changed. Versions tell; without any, or when they are not to be
// trusted, the objects are compared.
func same[T any](a, b object.Item[T], wary bool) bool {
	if a.ID != b.ID || a.Version != b.Version {
		return false
	}
	return a.Version != "" && !wary || reflect.DeepEqual(a.Object, b.Object)
}
