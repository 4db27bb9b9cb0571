package stepped

import (
	"errors"
	"slices"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

// ops are all steps there are.
var ops = []string{
	// The store: writes (how: now, any, stale, other, none), and what is done to it
	// from outside. "restore" and "rewind" name a save; rewind keeps the epoch.
	"create", "update", "patch", "delete", "get",
	"compact", "save", "restore", "rewind",
	// A call that stands at the gate of a client goes on, or ends otherwise.
	"go", "fail", "stale", "short", "drop", "dup", "hold", "replay", "cut",
	// The same for its hints.
	"hint", "mute",
	// The client.
	"handle", "relist", "rejoin", "restart", "wait",
	// So many seconds pass.
	"sleep",
}

// isFault says which of them count as such.
func isFault(op string) bool {
	return slices.Contains([]string{
		"compact", "restore", "rewind", "fail", "stale", "short", "drop", "dup", "hold", "replay", "cut", "mute",
	}, op)
}

var errBoom = errors.New("boom")

// failures are the ways in which a call fails, by the step's word.
var failures = map[string]error{
	"boom":      errBoom,
	"expired":   reflector.ErrExpired,
	"future":    reflector.ErrFutureCursor,
	"later":     retry.After(errBoom, 3*time.Second),
	"permanent": retry.Permanent(errBoom),
}

// do does a step; false when it can't be done now, and then nothing was.
func (w *world) do(s step) bool {
	var done bool
	switch {
	case s.client >= len(w.clients) || s.key >= len(w.keys):
		return false
	case s.client >= 0:
		done = w.clients[s.client].do(s)
	case s.key >= 0:
		done = w.write(s)
	default:
		done = w.outside(s)
	}
	if done && isFault(s.op) {
		w.faults++
	}
	return done
}

func (w *world) outside(s step) bool {
	switch s.op {
	case "compact":
		w.store.Compact()
		w.model.compact()
	case "save":
		w.saves = append(w.saves, save{w.model.now(), w.store.Save()})
	case "restore", "rewind":
		if s.number() < 0 || s.number() >= len(w.saves) {
			return false
		}
		w.restore(w.saves[s.number()], s.op == "restore")
	case "sleep":
		d := time.Duration(s.number()) * time.Second
		if d <= 0 {
			return false
		}
		time.Sleep(d)
	default:
		return false
	}
	return true
}

func (w *world) restore(to save, newEpoch bool) {
	if !newEpoch {
		w.disconnect()
	}
	w.restores++
	w.store.Restore(to.saved, newEpoch)
	at := w.head()
	was := w.model.now().at
	w.model.restored(to.of, newEpoch, at)
	if newEpoch {
		if at == was || w.compare(at, was) != 0 {
			w.fault("a new epoch begins at a position of the old one")
		}
		return
	}
	if at != to.of.at {
		w.fault("rewound to %s, the store is at %s", to.of, w.names(at))
	}
	// What was saved on the way that is gone now, or in another epoch, has versions
	// that will be given again.
	w.saves = slices.DeleteFunc(w.saves, func(s save) bool { return s.of != to.of && !w.model.leads(s.of) })
	for _, c := range w.clients {
		c.given = ""
		if c.remembers(at) {
			c.astray = w.step
		}
	}
}

// disconnect breaks every call that is on its way: what is told now was told of
// positions that will be given again.
func (w *world) disconnect() {
	for _, c := range w.clients {
		for _, l := range []*line{&c.src, &c.hnt} {
			switch call := l.standing(); {
			case call == nil, call.what == askList && call.list.Page == "", call.what == askHints:
			default:
				l.pass(verdict{do: "fail", err: errBoom})
			}
		}
	}
}

// remembers: the client has seen something that the source has not, when it is at
// the position at.
func (c *client) remembers(at reflector.Cursor) bool {
	if !c.kind.positions() {
		return c.inf.Synced()
	}
	return c.inf.Synced() && slices.ContainsFunc(c.position(), func(cur reflector.Cursor) bool {
		return cur != at && c.w.compare(cur, at) >= 0
	})
}

// mistakable: some client may take what is written now for what it has seen before a
// rewind. Nobody can help it, so nothing is written until it has looked.
func (w *world) mistakable() bool {
	return slices.ContainsFunc(w.clients, (*client).isAstray)
}

func (c *client) isAstray() bool { return c.astray >= 0 && c.committed <= c.astray }

// do does a step of one client.
func (c *client) do(s step) bool {
	switch s.op {
	case "handle":
		return c.ear.work()
	case "relist":
		c.inf.Relist("a step")
		return true
	case "rejoin":
		c.ear.quit()
		c.listen()
		return true
	case "restart":
		c.stop()
		synctest.Wait()
		if !c.ended.Load() {
			c.w.fault("c%d: Run has not returned", c.id)
		}
		c.w.clients[c.id] = c.w.start(c.id, c.kind)
		return true
	case "wait":
		return c.wait(s.word == "unknown")
	case "hint", "mute":
		call := c.hnt.standing()
		if call == nil || s.op == "mute" && (call.what != gotHint || call.key == "") {
			return false
		}
		if s.op == "mute" {
			c.lost = c.w.step
		}
		c.let(&c.hnt, verdict{do: s.op})
		return true
	}
	call := c.src.standing()
	if call == nil {
		if s.op != "cut" || c.hangUp == nil {
			return false
		}
		c.hangUp()
		return true
	}
	v := verdict{do: s.op}
	switch s.op {
	case "go":
	case "fail":
		if v.err = failures[s.word]; v.err == nil {
			return false
		}
		// Without an order, the source's word is all there is.
		c.resets = c.resets || s.word == "future"
	case "stale":
		if v.page = c.stale(call, s.number()); v.page == nil {
			return false
		}
	case "short":
		if call.what != gotPage || call.err != nil || len(call.page.Items) == 0 || c.kind.has("torn") || c.isAstray() {
			return false
		}
		c.lied, c.lost = c.w.step, c.w.step
		c.liedOf[c.w.keyAt(call.page.Items[len(call.page.Items)-1].Key)] = true
	default:
		if call.what != gotBatch || call.err != nil || !c.batch(s, call, &v) {
			return false
		}
	}
	c.let(&c.src, v)
	return true
}

// batch prepares what befalls a batch on its way.
func (c *client) batch(s step, call *call, v *verdict) bool {
	change := len(call.batch.Events) > 0 && !call.batch.Reset && c.point != nil && call.batch.Cursor != "" && !call.batch.Synced
	ordered := c.kind.positions() && c.kind.has("order") && !c.kind.has("sparse")
	switch s.op {
	case "cut":
		return true
	case "drop":
		if !change {
			return false
		}
		c.hidden()
	case "hold":
		// Without an order, and unless batches say what they follow, the older one
		// would be taken for the newer.
		if !change || !ordered && !(c.kind.positions() && c.kind.has("prev")) {
			return false
		}
		c.hidden()
		c.replays = true
	case "dup":
		if !change {
			return false
		}
		c.replays = true
	case "replay":
		n := len(c.sent) - s.number()
		if !ordered || s.number() < 1 || n < 0 || len(call.batch.Events) == 0 || call.batch.Synced || call.batch.Reset || !change {
			return false
		}
		old := c.sent[n]
		v.old = &old
		c.replays = true
	default:
		return false
	}
	return true
}

// hidden: a change does not come, or not in its place. Who is told what each batch
// follows will notice by the next one.
func (c *client) hidden() {
	c.gaps = true
	if !c.kind.has("prev") || !c.kind.positions() {
		c.lied = c.w.step
	}
	if !c.kind.has("prev") || !c.kind.positions() || !c.kind.has("progress") {
		c.lost = c.w.step
	}
}

// stale is an answer of a replica that is so many changes behind. It must not go
// on for so long that it is believed; and of a client that has more than it was told
// a position for, nobody can say what is old.
func (c *client) stale(call *call, back int) *reflector.Page[Thing] {
	m := c.w.model
	at := len(m.branch) - 1 - back
	if call.what != askList || call.list.Page != "" || !c.kind.positions() || !c.kind.has("order") || c.kind.has("sparse") ||
		c.isAstray() || back < 1 || at < 0 {
		return nil
	}
	now := time.Now()
	if c.oldSince.IsZero() {
		c.oldSince = now
	}
	if now.Sub(c.oldSince) > resetAfter/2 {
		return nil
	}
	p := m.branch[at]
	page := &reflector.Page[Thing]{Cursor: p.at}
	for _, n := range p.state {
		if n == 0 {
			continue
		}
		it := m.writes[n]
		if call.list.KeysOnly {
			it.Object = Thing{}
		}
		page.Items = append(page.Items, it)
	}
	c.olds++
	return page
}

// let lets what stands in a line go on.
func (c *client) let(l *line, v verdict) {
	call := l.standing()
	switch call.what {
	case askList:
		if call.list.Page != "" {
			break
		}
		c.listing.whole = false
		c.began, c.reading, c.life, c.last = c.w.step, c.w.model.now(), c.w.model.life, ""
		if v.page == nil {
			c.oldSince = time.Time{}
		}
		if c.kind.has("lazy") && call.list.IfModified && v.do == "go" && c.given == c.w.model.now().at {
			v.err = reflector.ErrNotModified
		}
	case askWatch:
		c.began, c.point, c.after, c.sent = c.w.step, nil, call.watch.After, nil
		if call.watch.Initial || c.kind.feed == "blind" {
			c.after = ""
		}
	}
	l.pass(v)
}
