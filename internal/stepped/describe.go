package stepped

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/homeostat/homeostat/reflector"
)

// describe says where everybody is.
func (w *world) describe() string {
	text := fmt.Sprintf("\n     store %s%s", w.model.now(), w.model.now().state.show())
	for _, c := range w.clients {
		text += fmt.Sprintf("\n     c%d %s: cache %s, told %s", c.id, c.doing(), c.cached().show(), c.ear.told.show())
		for _, l := range []*line{&c.src, &c.hnt} {
			if call := l.standing(); call != nil {
				text += "; " + w.standing(call)
			}
		}
	}
	return w.plain(text)
}

// standing says what a call is.
func (w *world) standing(c *call) string {
	text := c.what.String()
	switch c.what {
	case askList:
		if c.list.Page != "" {
			text = "page?"
		}
	case askWatch:
		if c.watch.After != "" {
			text += " after " + w.names(c.watch.After)
		}
	case gotPage:
		text += fmt.Sprintf(" of %d at %s", len(c.page.Items), w.names(c.page.Cursor))
	case gotBatch:
		if c.batch.Reset {
			text += " reset"
		}
		for _, e := range c.batch.Events {
			op := "put"
			if e.Op == reflector.OpDelete {
				op = "delete"
			}
			text += fmt.Sprintf(" %s %s", op, show(e.Item))
		}
		if c.batch.Synced {
			text += " synced"
		}
		if c.batch.Cursor != "" {
			text += " at " + w.names(c.batch.Cursor)
		}
	case gotHint, askGet, gotItem:
		text += " " + c.key
	}
	if c.err != nil {
		text += ": " + c.err.Error()
	}
	return text
}

// names are the points that cursors stand for, with their states.
func (w *world) names(at ...reflector.Cursor) string {
	var all []string
	for _, cur := range at {
		for _, p := range w.model.named[cur] {
			all = append(all, p.String()+p.state.show())
		}
		if len(w.model.named[cur]) == 0 {
			all = append(all, fmt.Sprintf("%q, which is no position", cur))
		}
	}
	return strings.Join(all, " or ")
}

// plain is text with cursors called by the names of their points: a store's own
// are others each time.
func (w *world) plain(text string) string {
	cursors := slices.SortedFunc(maps.Keys(w.model.named), func(a, b reflector.Cursor) int { return len(b) - len(a) })
	for _, cur := range cursors {
		text = strings.ReplaceAll(text, string(cur), w.model.named[cur][0].String())
	}
	return text
}

func (s state) show() string {
	var b strings.Builder
	for k, n := range s {
		if n != 0 {
			fmt.Fprintf(&b, "k%d=#%d ", k, n)
		}
	}
	return "[" + strings.TrimSpace(b.String()) + "]"
}
