package stepped

import (
	"errors"
	"fmt"
	"time"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reflector"
)

// cached is what the cache has, by number; -1 is what no write made.
func (c *client) cached() state {
	var s state
	snap := c.inf.Cache().Snapshot()
	n := 0
	for k, key := range c.w.keys {
		it, ok := snap.Item(key)
		if !ok {
			continue
		}
		n++
		s[k] = it.Object.N
		if it.Object.N < 1 || it.Object.N >= len(c.w.model.writes) {
			s[k] = -1
			continue
		}
		want := c.w.model.writes[it.Object.N]
		if !c.kind.has("ids") {
			want.ID = ""
		}
		if it != want {
			c.w.fault("c%d: the cache has %s at version %q, its ID right: %t; it was version %q",
				c.id, show(it), it.Version, it.ID == want.ID, want.Version)
		}
	}
	if n != snap.Len() {
		c.w.fault("c%d: the cache has %d objects, %d of them under no key of the store", c.id, snap.Len(), snap.Len()-n)
	}
	return s
}

// check looks at what the client shows and has told.
func (c *client) check() {
	w := c.w
	now := c.cached()
	for k := range w.keys {
		if err := c.seen.see(w.model, k, now[k], c.liedOf[k]); err != nil {
			w.fault("c%d: the cache has k%d %v", c.id, k, err)
		}
	}
	c.place(now)
	c.waited()
	for _, ch := range c.ear.take() {
		if err := c.ear.heard(ch); err != nil {
			w.fault("c%d: the handler was told %s of %s: %v", c.id, ch.Type, ch.Key, err)
		}
	}
	if c.inf.Synced() && !c.ear.behind() && c.ear.told != now {
		w.fault("c%d: the handler was told %s, the cache has %s", c.id, c.ear.told.show(), now.show())
	}
	st := c.inf.Status().Source
	switch {
	case st.Resets > 0 && w.restores == 0 && !c.resets:
		w.fault("c%d: a reset, though nothing was restored", c.id)
	case st.Gaps > 0 && !c.gaps:
		w.fault("c%d: a gap, though nothing was lost", c.id)
	case st.Replays > 0 && !c.replays:
		w.fault("c%d: a replay, though nothing was told twice", c.id)
	}
}

// place checks that the cache is in a state that the source had, at the position
// where the reflector says that it is.
func (c *client) place(now state) {
	w := c.w
	if !c.inf.Synced() {
		if now != (state{}) {
			w.fault("c%d: the cache shows %s before the first full state", c.id, now.show())
		}
		return
	}
	if c.loose() {
		return
	}
	at := c.position()
	for _, cur := range at {
		for _, p := range w.model.named[cur] {
			if c.seen.masked(p.state) == now {
				return
			}
		}
	}
	w.fault("c%d: the cache shows %s at %s", c.id, now.show(), w.names(at...))
}

// loose: the source has hidden something since the last full state was begun, or
// gave it in parts of several states.
func (c *client) loose() bool { return c.lied >= 0 && c.lied >= c.committed || c.mixed }

// position is where the cache is; of a source that does not always tell, where it can
// be.
func (c *client) position() []reflector.Cursor {
	if !c.kind.positions() {
		return c.at
	}
	told := []reflector.Cursor{c.inf.Status().Source.Cursor}
	if c.kind.has("sparse") { // it may be further
		told = append(told, c.at...)
	}
	return told
}

// heard follows one change that the handler was told.
func (e *ear) heard(ch informer.Change[Thing]) error {
	m := e.c.w.model
	k := e.c.w.keyAt(ch.Key)
	if k < 0 {
		return errors.New("no such key")
	}
	had := e.told[k]
	if ch.Old.N != had {
		return fmt.Errorf("from %s, though it was told %s", state1(ch.Old.N), state1(had))
	}
	now := ch.New.N
	for _, n := range []int{ch.Old.N, ch.New.N, ch.Last.N} {
		if n < 0 || n >= len(m.writes) || n > 0 && m.writes[n].Key != ch.Key {
			return fmt.Errorf("a state #%d, which it never had", n)
		}
	}
	switch ch.Type {
	case informer.Added:
		if had != 0 {
			return fmt.Errorf("but it has %s", state1(had))
		}
	case informer.Updated:
		if had == 0 {
			return errors.New("which it does not have")
		}
		if a, b := m.writes[had].ID, m.writes[now].ID; a != b && e.c.kind.has("ids") {
			return fmt.Errorf("#%d and #%d, which are two objects", had, now)
		}
	case informer.Deleted:
		if had == 0 {
			return errors.New("which it does not have")
		}
		if err := e.last(ch, k); err != nil {
			return err
		}
	default:
		return errors.New("no type")
	}
	if ch.Type != informer.Deleted && (now == 0 || ch.Version != m.writes[now].Version) {
		return fmt.Errorf("state %s at version %q", state1(now), ch.Version)
	}
	// Where the source was set back, what was pending may lead to what it was.
	if now == had && e.c.w.restores == 0 {
		return errors.New("nothing that changed")
	}
	e.told[k] = now
	if err := e.seen.see(m, k, now, e.c.liedOf[k]); err != nil {
		return err
	}
	return nil
}

// last checks what was told of the deleted object, before the delete is seen.
func (e *ear) last(ch informer.Change[Thing], k int) error {
	m := e.c.w.model
	if ch.Last.N == 0 {
		return errors.New("with no last state")
	}
	s := e.seen
	s.hidden = false // a delete has the final state, whether it would be kept or not
	if err := s.see(m, k, ch.Last.N, e.c.liedOf[k]); err != nil {
		return fmt.Errorf("the last state is %w", err)
	}
	if ch.Inferred || ch.Version == m.writes[ch.Last.N].Version && (e.c.kind.has("bare") || e.c.kind.feed == "hint") {
		return nil
	}
	for _, d := range m.logs[k] {
		if e.seen.mask(d.n) == 0 && d.version != "" && d.version == ch.Version {
			return nil
		}
	}
	return fmt.Errorf("not inferred, but version %q is not that of a delete", ch.Version)
}

// equal: the cache and the handler have what the store has, and the client rests.
func (c *client) equal() bool {
	return c.inf.Status().Source.State == reflector.Watching && c.src.standing() == nil && c.knows()
}

// knows: the cache and the handler have what the store has.
func (c *client) knows() bool {
	now := c.seen.masked(c.w.model.now().state)
	return c.cached() == now && c.ear.told == now
}

// last1 is the look at the very end.
func (c *client) last1() {
	now := c.seen.masked(c.w.model.now().state)
	if got := c.cached(); got != now {
		c.w.fault("c%d: the cache ends at %s, the store at %s", c.id, got.show(), now.show())
	}
	if c.ear.told != now {
		c.w.fault("c%d: the handler ends at %s, the store at %s", c.id, c.ear.told.show(), now.show())
	}
}

// doing says what the client is at; to the second, since jitter moves what is less.
func (c *client) doing() string {
	st := c.inf.Status().Source
	text := fmt.Sprintf("%s since %s", st.State, st.Since.Sub(c.w.began).Truncate(time.Second))
	if st.Err != nil {
		text += ": " + st.Err.Error()
	}
	return text
}
