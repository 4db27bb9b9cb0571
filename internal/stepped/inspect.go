package stepped

import (
	"errors"
	"fmt"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/reflector"
)

// inspect compares what the store has answered, and now stands at the gate, with
// the model.
func (c *client) inspect(call *call) {
	if call == nil {
		return
	}
	if call.what == askWatch && call.fresh {
		c.opening(call.watch.After)
	}
	if !call.fresh {
		return
	}
	call.fresh = false
	var err error
	switch call.what {
	case gotPage:
		err = c.inspectPage(call)
	case gotItem:
		err = c.w.found(call.key, call.item, call.err)
	case gotBatch:
		err = c.inspectBatch(call)
	}
	if err != nil {
		c.w.fault("c%d: the store's %s: %v", c.id, call.what, err)
	}
}

// opening looks at where a watch is to begin: at the list before it, which was then
// committed, or is held back until the watch has come to its last page. Anywhere
// else, and the list came to nothing, or was an audit.
func (c *client) opening(after reflector.Cursor) {
	l := &c.listing
	if after != "" && !l.whole && !c.kind.has("resume") {
		c.w.fault("c%d: a watch goes on after %s, though the source can't prove that it may", c.id, c.w.names(after))
	}
	switch {
	case !l.whole:
	case after != l.first:
		l.whole = false
	case l.first == l.to:
		c.committed, l.whole = l.began, false
	}
}

func (c *client) inspectPage(call *call) error {
	m, opts := c.w.model, call.list
	if c.kind.has("torn") {
		if call.err != nil {
			return call.err
		}
		return m.page(call.page, m.now(), c.w.keys, "", reflector.ListOptions{})
	}
	from := ""
	if opts.Page != "" {
		from = c.last
		if c.life != m.life || c.reading.place < m.floor {
			return wanted(call.err, reflector.ErrExpired)
		}
	}
	if call.err != nil {
		return call.err
	}
	if err := m.page(call.page, c.reading, c.w.keys, from, opts); err != nil {
		return err
	}
	if n := len(call.page.Items); n > 0 {
		c.last = call.page.Items[n-1].Key
	}
	return nil
}

// wanted: the error has to be this one.
func wanted(err, want error) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("error %v, want %v", err, want)
	}
	return nil
}

func (c *client) inspectBatch(call *call) error {
	m, b := c.w.model, call.whole
	full := c.after == ""
	switch {
	case c.point == nil && full:
		if call.err != nil {
			return call.err
		}
		c.point = m.now()
		return c.inspectFull(b)
	case c.point == nil:
		p, err := m.resume(c.after, c.w.compare)
		if err != nil {
			return wanted(call.err, err)
		}
		if call.err != nil {
			return call.err
		}
		c.point = p
		if len(b.Events) > 0 || b.Reset || b.Synced || b.Cursor != p.at {
			return fmt.Errorf("a watch after %s begins with %d events at %s", p, len(b.Events), c.w.names(b.Cursor))
		}
		return nil
	case call.err != nil:
		if m.leads(c.point) && c.point.place >= m.floor {
			return call.err
		}
		return wanted(call.err, reflector.ErrExpired)
	}
	return c.inspectChange(b)
}

// inspectFull looks at a streamed full state.
func (c *client) inspectFull(b reflector.Batch[Thing]) error {
	var s state
	for _, e := range b.Events {
		k := c.w.keyAt(e.Key)
		if k < 0 || e.Op != reflector.OpPut || e.Object.N < 1 || e.Object.N >= len(c.w.model.writes) || e.Item != c.w.model.writes[e.Object.N] {
			return fmt.Errorf("a full state has %s at version %q", show(e.Item), e.Version)
		}
		s[k] = e.Object.N
	}
	if p := c.point; s != p.state || b.Cursor != p.at || !b.Reset || !b.Synced {
		return fmt.Errorf("a full state is %s at %s, want %s at %s", s.show(), c.w.names(b.Cursor), p.state.show(), p)
	}
	return nil
}

// inspectChange looks at what follows the point where the watch stands.
func (c *client) inspectChange(b reflector.Batch[Thing]) error {
	m, at := c.w.model, c.point
	if b.Prev != at.at || b.Reset || b.Synced {
		return fmt.Errorf("a batch that follows %s, not %s", c.w.names(b.Prev), at)
	}
	if len(b.Events) == 0 {
		if b.Cursor != at.at {
			return fmt.Errorf("a bookmark at %s, where %s is", c.w.names(b.Cursor), at)
		}
		return nil
	}
	next := m.next(at)
	if next == nil || len(b.Events) != 1 {
		return fmt.Errorf("%d events after %s, where nothing is", len(b.Events), at)
	}
	c.point = next
	e := b.Events[0]
	want := reflector.Event[Thing]{Op: reflector.OpPut, Known: true, Item: m.writes[next.n]}
	if next.n == 0 {
		want.Op, want.Item = reflector.OpDelete, m.writes[at.state[next.key]]
		want.Version = next.version
	}
	if e != want || b.Cursor != next.at {
		return fmt.Errorf("%s at version %q comes after %s, want %s at version %q", show(e.Item), e.Version, at, show(want.Item), want.Version)
	}
	return nil
}

// found checks what Get has answered.
func (w *world) found(key string, got item, err error) error {
	n := w.model.now().state[w.keyAt(key)]
	switch {
	case n == 0:
		return wanted(err, backend.ErrNotFound)
	case err != nil:
		return err
	case got != w.model.writes[n]:
		return fmt.Errorf("%s at version %q, want %s", show(got), got.Version, show(w.model.writes[n]))
	}
	return nil
}
