package reflector

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/homeostat/homeostat/object"
)

// take is what one batch does.
func (s *session[T]) take(b Batch[T]) error {
	first := s.opened.IsZero()
	if first {
		if !empty(b) && !b.Reset {
			return broken("the first batch of a watch has events")
		}
		s.opened = time.Now()
	}
	switch {
	case b.Reset && s.staging:
		return broken("a full state begins within another")
	case b.Reset:
		if b.Synced && b.Cursor != "" { // all in one batch: it is known in time
			reset, err := s.cycle.judge(b.Cursor)
			if err != nil {
				return err
			}
			if reset {
				s.into.distrust()
			}
		}
		// A list that waited for this watch is of no use any more.
		s.staging, s.held = true, nil
		s.drop("the watch began a full state before it came to the list")
		s.cycle.whole = false
		if !b.Synced {
			s.stream()
		}
		return s.stage(b)
	case s.staging:
		return s.stage(b)
	case b.Synced:
		return s.unchanged(b, first)
	case s.owed:
		return s.early(b, first)
	}
	return s.change(b, first)
}

func broken(how string) error { return fmt.Errorf("%w: %s", ErrContract, how) }

// stream: a full state is on its way.
func (s *session[T]) stream() {
	s.guard.turn(streaming)
	s.cycle.track.enter(Streaming)
}

// live: nothing is owed, from here on changes come in as they happen.
func (s *session[T]) live() {
	s.guard.turn(live)
	s.cycle.track.well()
	if !s.arm() {
		s.stop(errRelist)
	}
}

// early is a batch before the full state that the session owes.
func (s *session[T]) early(b Batch[T], first bool) error {
	if !empty(b) {
		return broken("changes before the full state of a watch without a position")
	}
	if first {
		s.stream()
	}
	return nil
}

// unchanged is a full state that is the one before. What did not reach the sink,
// or was changed since, is not what the sink holds: then it says nothing.
func (s *session[T]) unchanged(b Batch[T], first bool) error {
	c := s.cycle
	switch {
	case !empty(b), b.Cursor != "", c.cursor != "": // with positions there are bookmarks
		return broken("a full state ends that did not begin")
	case !c.whole:
		if first {
			s.stream()
		}
		return nil
	}
	return s.settle("", s.into.unchanged(""))
}

// stage is a part of a full state.
func (s *session[T]) stage(b Batch[T]) error {
	if err := s.into.keep(b.Faults); err != nil {
		return err
	}
	for i := range b.Events {
		var err error
		switch e := &b.Events[i]; e.Op {
		case OpPut:
			err = s.into.put(e.Item)
		case OpDelete:
			err = s.into.remove(e.Key)
		default:
			err = broken("an event is neither put nor delete")
		}
		if err != nil {
			return err
		}
	}
	if !b.Synced {
		if len(b.Events)+len(b.Faults) > 0 {
			s.guard.advance()
		}
		return nil
	}
	s.staging = false
	s.cycle.track.torn(false)
	return s.commit(b.Cursor)
}

// commit publishes the full state that was staged.
func (s *session[T]) commit(at Cursor) error {
	return s.settle(at, s.into.commit(at))
}

// settle goes on after a full state that the sink was told of; err is its answer.
func (s *session[T]) settle(at Cursor, err error) error {
	if err != nil {
		return err
	}
	s.owed, s.barren, s.at = false, false, at
	s.fulls++
	s.due()
	// Now, not at the next Reset: a source without positions may begin to read
	// the next full state as soon as it has this goroutine back.
	s.into = s.cycle.begin()
	s.live()
	return nil
}

// change is a batch outside a full state.
func (s *session[T]) change(b Batch[T], first bool) error {
	c := s.cycle
	for i := range b.Events {
		if op := b.Events[i].Op; op != OpPut && op != OpDelete {
			return broken("an event is neither put nor delete")
		}
	}
	fresh, err := s.place(b)
	if err != nil {
		return err
	}
	if s.held != nil {
		return s.catchUp(b, fresh, first)
	}
	if first {
		s.live()
	}
	if !fresh {
		return nil
	}
	if err := c.strict(b.Faults); err != nil {
		return err
	}
	s.guard.advance()
	if err := s.reach(b.Cursor, later); err != nil {
		return err
	}
	if err := s.apply(b); err != nil {
		return err
	}
	return s.reach(b.Cursor, same)
}

// place compares a batch with where the watch stands. It is not fresh when there
// is nothing new in it.
func (s *session[T]) place(b Batch[T]) (fresh bool, err error) {
	c := s.cycle
	r := c.relate(b.Cursor, s.at)
	switch {
	case r == foreign:
		return false, fmt.Errorf("the watch went from %q to another epoch, at %q: %w", s.at, b.Cursor, ErrExpired)
	case r == earlier && empty(b):
		return false, fmt.Errorf("the source is at %q, which lies before %q: %w", b.Cursor, s.at, ErrFutureCursor)
	case r == same && empty(b):
		return false, nil
	case r == same, r == earlier:
		c.track.update(func(st *Status) { st.Replays++ })
		return false, nil
	}
	// Later, or without an order to tell by.
	if s.skips(b.Prev) {
		c.track.update(func(st *Status) { st.Gaps++ })
		return false, fmt.Errorf("a batch that follows %q came after %q, what lies between was lost: %w", b.Prev, s.at, ErrExpired)
	}
	if b.Cursor != "" {
		s.at, s.barren = b.Cursor, false
	}
	return b.Cursor != "" || !empty(b), nil
}

// empty: the batch tells of no object.
func empty[T any](b Batch[T]) bool { return len(b.Events)+len(b.Faults) == 0 }

// skips says that something lies between where the watch stands and prev. Without
// an order, any other cursor than the watch's own proves it.
func (s *session[T]) skips(prev Cursor) bool {
	if prev == "" || s.at == "" {
		return false
	}
	switch s.cycle.relate(prev, s.at) {
	case same, earlier: // a batch may begin before what is known
		return false
	}
	return true
}

// apply gives a live batch to the sink.
func (s *session[T]) apply(b Batch[T]) error {
	c := s.cycle
	if !empty(b) {
		c.whole = false
	}
	var began time.Time
	timed := c.opts.Trace != nil && c.opts.Trace.Batch != nil
	if timed {
		began = time.Now()
	}
	was := c.inside
	c.inside = "sink Apply"
	err := c.sink.Apply(b, object.Watched)
	ask(err)
	c.inside = was
	if err != nil {
		return fmt.Errorf("sink Apply: %w", err)
	}
	if timed {
		c.track.to(func(tr *Trace) { tr.Batch(len(b.Events), time.Since(began)) })
	}
	if c.unread || len(b.Faults) > 0 {
		c.unread = reread(c.track, b)
	}
	if b.Cursor == "" {
		c.behind = true
		return nil
	}
	c.cursor, c.behind = b.Cursor, false
	c.track.moved(b.Cursor)
	return nil
}

// catchUp brings a list whose pages show different states to one state (rule 5),
// and publishes it once the watch has passed the last page.
func (s *session[T]) catchUp(b Batch[T], fresh, first bool) error {
	if first {
		s.stream()
	}
	if fresh {
		s.guard.advance()
		for i := range b.Events {
			if e := &b.Events[i]; e.Op == OpPut {
				s.held.items[e.Key] = e.Item
			} else {
				delete(s.held.items, e.Key)
			}
			delete(s.held.faults, b.Events[i].Key)
		}
		for _, f := range b.Faults {
			delete(s.held.items, f.Key)
			s.held.faults[f.Key] = f
		}
	}
	switch s.cycle.relate(s.at, s.held.to) {
	case same, later:
	default:
		return nil
	}
	items, faults := s.held.items, s.held.faults
	s.held = nil
	if err := s.into.putAll(items); err != nil {
		return err
	}
	if err := s.into.keep(slices.Collect(maps.Values(faults))); err != nil {
		return err
	}
	return s.commit(s.at)
}
