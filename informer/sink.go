package informer

import (
	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// sink is the Informer as its reflector sees it. All its methods run on the
// goroutine of Run, the cache's only writer.
type sink[T any] struct{ *Informer[T] }

// step says what kind of step a list of events is.
type step struct {
	why      object.Cause
	inferred bool   // the deletes: nobody saw them
	full     uint64 // the number of the full state that this is; 0: a batch
	at       reflector.Cursor
}

// Apply is reflector.Sink's.
func (s sink[T]) Apply(b reflector.Batch[T], why object.Cause) error {
	return s.apply(b.Events, step{why: why, at: b.Cursor})
}

// Begin is reflector.Sink's: counting is all that is done, for the source may
// never use what was begun.
func (s sink[T]) Begin(why object.Cause) reflector.Relist[T] {
	s.learn()
	return &relist[T]{inf: s.Informer, why: why, seq: s.barriers.begin()}
}

// apply makes one step: the cache, the buffers, the barriers, the inline
// handlers, in this order.
func (i *Informer[T]) apply(events []reflector.Event[T], s step) error {
	p := &i.work
	inline, first, err := i.publish(p, events, s)
	if err != nil {
		return err
	}
	i.settle(events, s.at, s.full)
	i.tell(inline, p, first)
	freed := i.freed(p)
	p.reset()

	// A value of a unique index came free: those that were refused for it get
	// another chance, each in a step of its own. It ends, as each success makes
	// the refused fewer.
	for ; len(freed) > 0; freed = freed[1:] {
		put := reflector.Put(freed[0], "")
		inline, _, err := i.publish(p, put.Events, step{why: s.why})
		if err != nil {
			return err
		}
		i.tell(inline, p, false)
		freed = append(freed, i.freed(p)...)
		p.reset()
	}
	return nil
}

// publish brings the cache and the buffers to where the events lead, and keeps
// the list of what the cache refused. It gives the inline handlers that are to be
// told, and whether this was the first full state.
func (i *Informer[T]) publish(p *plan[T], events []reflector.Event[T], s step) (inline []*handler[T], first bool, err error) {
	var refuse map[string]error
	for {
		p.make(i.cache, events, s, refuse)
		inline, first, err = i.write(p, s)
		if err == nil {
			break
		}
		blamed := indexer.Refused(err)
		more := false
		for key, why := range blamed {
			if _, known := refuse[key]; !known {
				if refuse == nil {
					refuse = make(map[string]error, len(blamed))
				}
				refuse[key] = why
				more = true
			}
		}
		// Each round leaves out more keys, or it is about no key.
		if !more {
			return nil, false, err
		}
	}
	i.quarantine(p, events, refuse)
	if first {
		close(i.synced)
		i.log.Info("synced", "informer", i.name, "objects", i.cache.Len())
	}
	return inline, first, nil
}

// write is the step that nobody can see half of: what the cache shows from here
// on, every buffer has.
func (i *Informer[T]) write(p *plan[T], s step) (inline []*handler[T], first bool, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(p.finals) > 0 {
		if err := i.cache.Write(p.write); err != nil {
			return nil, false, err
		}
	}
	first = s.full > 0 && !i.told
	if first {
		// Handlers hear nothing of an incomplete cache. What they are told now is
		// the cache itself, whatever it took to fill it.
		i.told = true
		p.deltas = i.firstLocked()
	}
	if !i.told {
		return nil, false, nil
	}
	for _, h := range i.handlers {
		switch {
		case h.inline && !h.catching:
			inline = append(inline, h)
		case first:
			i.startLocked(h, p.deltas)
		case len(p.deltas) > 0:
			h.push(p.deltas)
		}
	}
	return inline, first, nil
}

func (p *plan[T]) write(b *indexer.Batch[T]) error {
	for n := range p.finals {
		if f := &p.finals[n]; f.live {
			b.Put(f.item)
		} else {
			b.Delete(f.item.Key)
		}
	}
	return nil
}

// tell calls the inline handlers, under no lock.
func (i *Informer[T]) tell(inline []*handler[T], p *plan[T], first bool) {
	if len(inline) == 0 {
		return
	}
	var changes []Change[T]
	if len(p.deltas) > 0 {
		changes = appendChanges(make([]Change[T], 0, len(p.deltas)), p.deltas)
	}
	for _, h := range inline {
		if !first {
			h.give(changes)
			continue
		}
		h.left.Store(int64(len(changes)))
		h.give(changes)
		h.sync()
	}
}
