package stepped

import (
	"cmp"
	"context"
	"slices"

	"github.com/homeostat/homeostat/reflector"
)

// pieces is how many objects of a streamed full state come at once.
const pieces = 3

// session is one watch between the store and a reflector.
type session struct {
	gate
	ctx   context.Context
	yield func(reflector.Batch[Thing], error) bool
	stash *reflector.Batch[Thing] // held back until the next one has gone
}

// fail passes the store's error on.
func (s *session) fail(err error) {
	v := s.src.stand(s.ctx, &call{what: gotBatch, err: err, fresh: true})
	s.yield(reflector.Batch[Thing]{}, cmp.Or(v.err, err))
}

// take passes on a batch of the store, a large full state in pieces; false ends
// the watch.
func (s *session) take(b reflector.Batch[Thing]) bool {
	whole, fresh := b, true
	for {
		piece := b
		if b.Synced && len(b.Events) > pieces {
			piece.Events, b.Events = b.Events[:pieces], b.Events[pieces:]
			piece.Synced, piece.Cursor = false, ""
			b.Reset = false
		}
		if !s.piece(&call{what: gotBatch, batch: piece, whole: whole, fresh: fresh}) {
			return false
		}
		if fresh = false; piece.Synced == b.Synced {
			return true
		}
	}
}

func (s *session) piece(c *call) bool {
	for {
		v := s.src.stand(s.ctx, c)
		switch {
		case v.gone:
			return false
		case v.err != nil:
			s.yield(reflector.Batch[Thing]{}, v.err)
			return false
		case v.do == "replay":
			if !s.give(*v.old) {
				return false
			}
			continue
		case v.do == "drop":
			return true
		case v.do == "cut":
			return false
		case v.do == "hold":
			b := c.batch
			b.Events = slices.Clone(b.Events)
			s.stash = &b
			return true
		case v.do == "dup" && !s.give(c.batch):
			return false
		}
		if !s.give(c.batch) {
			return false
		}
		if b := s.stash; b != nil && len(c.batch.Events) > 0 {
			s.stash = nil
			return s.give(*b)
		}
		return true
	}
}

// give yields b as this kind of source tells it.
func (s *session) give(b reflector.Batch[Thing]) bool {
	at := b.Cursor
	s.deliver(b, at)
	b.Events = slices.Clone(b.Events)
	for i := range b.Events {
		e := &b.Events[i]
		e.Item = s.strip(e.Item)
		if e.Op == reflector.OpDelete && s.kind.has("bare") {
			*e = reflector.Event[Thing]{Op: reflector.OpDelete, Item: item{Key: e.Key}}
		}
	}
	if !s.kind.has("prev") {
		b.Prev = ""
	}
	untold := s.kind.has("sparse") && len(b.Events) > 0 && !b.Synced && s.w.model.named[at] != nil && s.w.model.named[at][0].name%2 == 0
	if !s.kind.positions() || untold {
		b.Cursor = ""
	}
	ok := s.yield(b, nil)
	s.delivered(b, at, ok)
	return ok
}
