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
	why    object.Cause
	relist Relist[T] // nil when it has ended
	items  []object.Item[T]
	faults map[string]error // what cannot be read of it
	wary   bool             // the sink compares objects
}

// begin tells the sink that a full state may be read from now on.
func (c *cycle[T]) begin() *staged[T] {
	why := object.Relist
	switch {
	case !c.synced:
		why = object.Initial
	case c.auditing:
		why = object.Audit
	}
	was := c.inside
	c.inside = "sink Begin"
	relist := c.sink.Begin(why)
	c.inside = was
	s := &staged[T]{cycle: c, why: why, relist: relist}
	if c.wary || c.ahead {
		s.distrust()
	}
	return s
}

// put stages one object; it goes to the sink with others.
func (s *staged[T]) put(item object.Item[T]) error {
	delete(s.faults, item.Key)
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
	delete(s.faults, key)
	was := s.cycle.inside
	s.cycle.inside = "sink Unstage"
	s.relist.Unstage(key)
	s.cycle.inside = was
	return nil
}

// keep names objects that cannot be read, after all puts before it.
func (s *staged[T]) keep(faults []Fault) error {
	if len(faults) == 0 {
		return nil
	}
	if err := s.cycle.strict(faults); err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	if s.faults == nil {
		s.faults = make(map[string]error, len(faults))
	}
	for _, f := range faults {
		s.faults[f.Key] = f.Err
	}
	was := s.cycle.inside
	s.cycle.inside = "sink Keep"
	s.relist.Keep(faults)
	s.cycle.inside = was
	return nil
}

// distrust has the sink compare objects. It is called before anything is staged.
func (s *staged[T]) distrust() {
	if s.wary || !s.cycle.synced {
		return
	}
	s.wary = true
	was := s.cycle.inside
	s.cycle.inside = "sink Distrust"
	s.relist.Distrust()
	s.cycle.inside = was
}

// diff asks the sink what a commit would change.
func (s *staged[T]) diff() Diff {
	was := s.cycle.inside
	s.cycle.inside = "sink Diff"
	d := s.relist.Diff()
	s.cycle.inside = was
	return d
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
	if len(s.faults) > 0 { // told better since
		for i := range items {
			delete(s.faults, items[i].Key)
		}
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

// stageKeys stages what an audit compares by version.
func (s *staged[T]) stageKeys(items []object.Item[T]) error {
	if len(items) == 0 {
		return nil
	}
	was := s.cycle.inside
	s.cycle.inside = "sink StageKeys"
	err := s.relist.StageKeys(items)
	ask(err)
	s.cycle.inside = was
	if err != nil {
		return fmt.Errorf("sink StageKeys: %w", err)
	}
	return nil
}

// commit publishes what was staged, if rule 6 lets it.
func (s *staged[T]) commit(at Cursor) error {
	if err := s.flush(); err != nil {
		return err
	}
	c := s.cycle
	reset, err := c.judge(at)
	if err != nil {
		return err
	}
	if reset && c.synced && !s.wary {
		// Known too late: what was equal by version is let go.
		c.wary = true
		return errWary
	}
	var d Diff
	wanted := c.opts.Trace != nil && c.opts.Trace.Full != nil
	if wanted || s.why == object.Audit || c.opts.guards() {
		d = s.diff()
	}
	if c.synced { // else there is nothing to delete
		if err := c.weigh(d); err != nil {
			return err
		}
	}
	if err := s.end(at, reset, "Commit", Relist[T].Commit); err != nil {
		return err
	}
	c.track.unreadable(s.faults)
	c.unread = len(s.faults) > 0
	if s.why == object.Audit {
		c.track.audited(d)
	}
	if wanted {
		c.track.to(func(tr *Trace) { tr.Full(s.why, d) })
	}
	return nil
}

// unchanged says that the full state is what the sink holds.
func (s *staged[T]) unchanged(at Cursor) error {
	reset, err := s.cycle.judge(at)
	if err != nil {
		return err
	}
	if err := s.end(at, reset, "Unchanged", Relist[T].Unchanged); err != nil {
		return err
	}
	if s.why == object.Audit {
		s.cycle.track.audited(Diff{})
	}
	return nil
}

func (s *staged[T]) end(at Cursor, reset bool, call string, how func(Relist[T], Cursor) error) error {
	c := s.cycle
	relist := s.relist
	s.relist = nil
	was := c.inside
	c.inside = "sink " + call
	err := how(relist, at)
	ask(err)
	c.inside = was
	if err != nil {
		return fmt.Errorf("sink %s: %w", call, err)
	}
	reset, c.ahead = c.synced && (reset || c.ahead), false
	c.cursor, c.behind = at, false
	c.full, c.whole, c.synced, c.auditing = false, true, true, false
	c.latest, c.wary, c.drift = false, false, false
	c.fresh = time.Now()
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
