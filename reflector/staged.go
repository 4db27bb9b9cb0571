package reflector

import (
	"fmt"
	"time"

	"github.com/homeostat/homeostat/object"
)

// chunk is how many streamed objects are handed to the sink at once.
const chunk = 512

// staged is a Relist that was begun: it ends once, and says who panicked.
type staged[T any] struct {
	cycle  *cycle[T]
	relist Relist[T] // nil when it has ended
	items  []object.Item[T]
}

// begin tells the sink that a full state may be read from now on.
func (c *cycle[T]) begin() *staged[T] {
	why := object.Relist
	if !c.synced {
		why = object.Initial
	}
	was := c.inside
	c.inside = "sink Begin"
	relist := c.sink.Begin(why)
	c.inside = was
	return &staged[T]{cycle: c, relist: relist}
}

// put stages one object; it goes to the sink with others.
func (s *staged[T]) put(item object.Item[T]) error {
	if s.items == nil {
		s.items = make([]object.Item[T], 0, chunk)
	}
	s.items = append(s.items, item)
	if len(s.items) < chunk {
		return nil
	}
	return s.flush()
}

func (s *staged[T]) putAll(items map[string]object.Item[T]) error {
	for _, item := range items {
		if err := s.put(item); err != nil {
			return err
		}
	}
	return nil
}

// remove takes an object out again, after all puts before it.
func (s *staged[T]) remove(key string) error {
	if err := s.flush(); err != nil {
		return err
	}
	was := s.cycle.inside
	s.cycle.inside = "sink Unstage"
	s.relist.Unstage(key)
	s.cycle.inside = was
	return nil
}

func (s *staged[T]) flush() error {
	if len(s.items) == 0 {
		return nil
	}
	err := s.stage(s.items)
	s.items = s.items[:0]
	return err
}

func (s *staged[T]) stage(items []object.Item[T]) error {
	if len(items) == 0 {
		return nil
	}
	was := s.cycle.inside
	s.cycle.inside = "sink Stage"
	err := s.relist.Stage(items)
	ask(err)
	s.cycle.inside = was
	if err != nil {
		return fmt.Errorf("sink Stage: %w", err)
	}
	return nil
}

// commit publishes what was staged, if rule 6 lets it.
func (s *staged[T]) commit(at Cursor) error {
	if err := s.flush(); err != nil {
		return err
	}
	return s.end(at, "Commit", Relist[T].Commit)
}

// unchanged says that the full state is what the sink holds.
func (s *staged[T]) unchanged(at Cursor) error {
	return s.end(at, "Unchanged", Relist[T].Unchanged)
}

func (s *staged[T]) end(at Cursor, call string, how func(Relist[T], Cursor) error) error {
	c := s.cycle
	reset, err := c.judge(at)
	if err != nil {
		return err
	}
	relist := s.relist
	s.relist = nil
	was := c.inside
	c.inside = "sink " + call
	err = how(relist, at)
	ask(err)
	c.inside = was
	if err != nil {
		return fmt.Errorf("sink %s: %w", call, err)
	}
	reset, c.ahead = reset || c.ahead, false
	c.cursor, c.behind = at, false
	c.full, c.whole, c.synced = false, true, true
	c.lagging = time.Time{}
	c.track.committed(at, reset)
	return nil
}

// abort forgets what was staged, if it has not ended yet.
func (s *staged[T]) abort() {
	relist := s.relist
	if relist == nil {
		return
	}
	s.relist = nil
	was := s.cycle.inside
	s.cycle.inside = "sink Abort"
	relist.Abort()
	s.cycle.inside = was
}
