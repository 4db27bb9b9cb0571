package backendtest_test

import (
	"github.com/homeostat/homeostat/reflector"
)

// misbehaving is yield as some models call it.
func (w *watching) misbehaving(yield func(batch, error) bool) func(batch, error) bool {
	switch w.bad {
	case "event after return":
		return func(b batch, err error) bool {
			if !yield(b, err) {
				yield(b, err)
				return false
			}
			return true
		}
	case "does not stop":
		return func(b batch, err error) bool {
			if yield(b, err) {
				return true
			}
			select {
			case <-w.ctx.Done():
			case <-w.release:
			}
			return false
		}
	case "recovered yield panic":
		return func(b batch, err error) (ok bool) {
			defer func() {
				if recover() != nil {
					ok = false
				}
			}()
			return yield(b, err)
		}
	}
	return yield
}

// tellBadly tells a batch, wrongly if something is wrong with the model.
func (w *watching) tellBadly(b batch, steps []logged) bool {
	switch w.bad {
	case "a transaction split over two cursors":
		if len(b.Events) > 1 {
			half := b
			half.Events = b.Events[:1]
			half.Cursor = w.cursor(w.at - 1)
			if w.prev == b.Cursor && half.Cursor != w.opts.After {
				half.Cursor = ""
			}
			if !w.tell(half) {
				return false
			}
			b.Events = b.Events[1:]
			b.Prev = ""
		}
	case "reordered events":
		if len(steps) > 1 {
			next := batch{Cursor: b.Cursor, Events: steps[1].events}
			w.at = steps[1].rev
			b.Cursor, b.Prev = w.cursor(w.at), ""
			w.prev = b.Cursor
			return w.tell(next) && w.tell(b)
		}
	case "wrong Prev":
		b.Prev = w.cursor(w.at)
	case "backward cursor":
		b.Cursor = w.cursor(max(0, w.at-2))
	case "key order":
		if len(steps) > 1 {
			b.Events = append(append([]event(nil), steps[1].events...), b.Events...)
			b.Cursor = w.cursor(steps[1].rev)
			w.at = steps[1].rev
			w.prev = b.Cursor
		}
	case "delete without a key":
		for i := range b.Events {
			if b.Events[i].Op == reflector.OpDelete {
				b.Events[i].Key = ""
			}
		}
	case "silent after a while":
		if w.live > 4 {
			return w.ctx.Err() == nil
		}
	}
	return w.tell(b)
}
