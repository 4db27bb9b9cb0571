package informer

import (
	"context"

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
	wary     bool // of versions: objects are compared
}

// Apply is reflector.Sink's.
func (s sink[T]) Apply(b reflector.Batch[T], why object.Cause) error {
	if s.staged != nil {
		s.staged.remember(b.Events)
	}
	s.unreadable(b.Faults)
	if err := s.apply(b.Events, step{why: why, at: b.Cursor}); err != nil {
		return err
	}
	if len(b.Faults) > 0 { // whoever waits for such a state hears that it came
		events := make([]reflector.Event[T], len(b.Faults))
		for n, f := range b.Faults {
			events[n].Key, events[n].Version = f.Key, f.Version
		}
		s.settle(events, b.Cursor, 0)
	}
	return nil
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
	for {
		out, err := i.publish(p, events, s)
		if err != nil {
			return err
		}
		i.settle(events, s.at, s.full)
		i.tell(out, p)
		progress := len(p.finals) > 0
		p.reset()
		// What was refused for a value that has come free gets another chance, in
		// a step of its own. It ends: each round either lets some of the refused
		// in, or has fewer of them to try.
		if len(out.again) == 0 || !progress && len(out.again) >= len(events) || i.ctx.Err() != nil {
			return nil
		}
		events, s = out.again, step{why: s.why}
		if i.staged != nil {
			i.staged.remember(events)
		}
	}
}

// outcome is what is left to do after a step was made.
type outcome[T any] struct {
	inline []*handler[T] // to be told
	first  bool          // it was the first full state
	again  []reflector.Event[T]
}

// publish brings the cache and the buffers to where the events lead, and keeps
// the list of what the cache refused.
func (i *Informer[T]) publish(p *plan[T], events []reflector.Event[T], s step) (outcome[T], error) {
	refuse := keyless(events)
	var wants claims
	for {
		p.make(i.cache, events, s, refuse)
		out, err := i.write(p, s)
		if err == nil {
			out.again = i.quarantine(p, events, refuse)
			return out, nil
		}
		blamed := indexer.Refused(err)
		var more []string
		for key, why := range blamed {
			if _, known := refuse[key]; !known {
				if refuse == nil {
					refuse = make(map[string]error, len(blamed))
				}
				refuse[key] = why
				more = append(more, key)
			}
		}
		switch {
		case len(more) == 0: // each round leaves out more keys, or it is about no key
			return outcome[T]{}, err
		case i.ctx.Err() != nil: // there may be many rounds
			return outcome[T]{}, context.Cause(i.ctx)
		}
		if wants == nil {
			wants = claimsOf(i.cache, p, events)
		}
		wants.spread(refuse, more)
	}
}

// write is the step that nobody can see half of: what the cache shows from here
// on, every buffer has.
func (i *Informer[T]) write(p *plan[T], s step) (out outcome[T], err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(p.finals) > 0 {
		if err := i.cache.Write(p.write); err != nil {
			return out, err
		}
	}
	out.first = s.full > 0 && !i.told
	if out.first {
		// Handlers hear nothing of an incomplete cache. What they are told now is
		// the cache itself, whatever it took to fill it.
		i.told = true
		p.deltas = i.firstLocked()
		close(i.synced)
	}
	if !i.told {
		return out, nil
	}
	for _, h := range i.handlers {
		switch {
		case h.inline && !h.catching:
			i.inline = append(i.inline, h)
		case out.first:
			i.startLocked(h, p.deltas)
		case len(p.deltas) > 0:
			h.push(p.deltas)
		}
	}
	out.inline = i.inline
	return out, nil
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
func (i *Informer[T]) tell(out outcome[T], p *plan[T]) {
	if out.first {
		i.log.Info("synced", "informer", i.name, "objects", i.cache.Len())
	}
	if len(out.inline) == 0 {
		return
	}
	changes := appendChanges(i.changes[:0], p.deltas)
	for _, h := range out.inline {
		if !out.first {
			h.give(changes)
			continue
		}
		h.left.Store(int64(len(changes)))
		h.give(changes)
		h.sync()
	}
	// Keep the room, not what is in it; and not the room of a large batch.
	clear(changes)
	clear(i.inline)
	if i.inline = i.inline[:0]; cap(changes) > maxScratch {
		changes = nil
	}
	i.changes = changes
}
