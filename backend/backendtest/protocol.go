package backendtest

import (
	"slices"

	"github.com/homeostat/homeostat/reflector"
)

// protocol judges what any session may say, whatever it was opened for. What is
// amiss is noted for the checks that are made for it.
type protocol[T any] struct {
	st      *store[T]
	after   reflector.Cursor
	initial bool

	opened  bool
	staging bool
	at      reflector.Cursor // where the watch stands
}

func (p *protocol[T]) judge(b reflector.Batch[T]) {
	p.objects(b)
	if !p.opened {
		p.first(b)
	}
	p.state(b)
	p.order(b)
}

func (p *protocol[T]) note(owner, format string, args ...any) { p.st.k.note(owner, format, args...) }

// objects judges each event by itself.
func (p *protocol[T]) objects(b reflector.Batch[T]) {
	for _, e := range b.Events {
		if e.Op != reflector.OpPut && e.Op != reflector.OpDelete {
			p.note("watch/batches", "an event of %q is neither put nor delete but Op(%d)", e.Key, e.Op)
		}
		if e.Key == "" {
			p.note("object/identity", "a watch tells of an object without a key")
		}
		if e.Op == reflector.OpPut && !e.Known {
			p.note("watch/batches", "a put of %q does not say that its object is known", e.Key)
		}
		if e.Known {
			p.st.saw("a watch", e.Item)
		}
	}
	for _, f := range b.Faults {
		switch {
		case f.Key == "":
			p.note("object/identity", "a watch tells of an object that it cannot decode, without a key")
		case f.Err == nil:
			p.note("watch/batches", "a watch cannot decode %q, and does not say why", f.Key)
		case slices.ContainsFunc(b.Events, func(e reflector.Event[T]) bool { return e.Key == f.Key }):
			p.note("watch/batches", "a batch tells of %q both by an event and as what cannot be decoded", f.Key)
		}
	}
}

// first judges the batch that opens the watch.
func (p *protocol[T]) first(b reflector.Batch[T]) {
	const owner = "watch/first-batch"
	p.opened = true
	p.at = p.after
	if p.initial {
		p.at = "" // After counts for nothing
	}
	switch {
	case b.Reset:
	case len(b.Events) > 0 || len(b.Faults) > 0:
		p.note(owner, "the first batch of a watch from %q has events and does not begin a full state", p.after)
	case p.after == "" || p.initial:
		if b.Cursor == "" && !b.Synced && p.st.positional() {
			p.note(owner, "the first batch of a watch without a position neither says where it stands nor begins a full state")
		}
	case b.Cursor == "":
		p.note(owner, "the first batch of a watch from %q does not say where it stands", p.after)
	}
}

// state judges how full states begin and end.
func (p *protocol[T]) state(b reflector.Batch[T]) {
	const owner = "watch/batches"
	switch {
	case b.Reset && p.staging:
		p.note(owner, "a full state begins within another")
	case b.Synced && !b.Reset && !p.staging:
		if b.Cursor != "" || len(b.Events) > 0 || p.st.positional() {
			p.note(owner, "a full state ends that did not begin (Synced without Reset, at %q, %d events)", b.Cursor, len(b.Events))
		}
	}
	if b.Reset {
		p.staging = true
	}
}

// order judges cursors, and ends the full state.
func (p *protocol[T]) order(b reflector.Batch[T]) {
	const owner = "order/cursors"
	if p.staging {
		if !b.Synced {
			return // only Synced has a cursor that counts
		}
		p.staging = false
		if b.Cursor != "" && p.before(b.Cursor, p.at) {
			p.note(owner, "a watch goes back from %q to a full state at %q", p.at, b.Cursor)
		}
		p.at = b.Cursor
		return
	}
	if b.Prev != "" && p.at != "" && b.Prev != p.at && !p.before(b.Prev, p.at) {
		p.note(owner, "a batch says that it follows %q (Prev), and the watch stands at %q", b.Prev, p.at)
	}
	if b.Cursor == "" {
		return
	}
	switch {
	case p.at == "":
	case b.Cursor == p.at && len(b.Events) > 0:
		p.note(owner, "a batch with events has the cursor of before, %q", p.at)
	case p.before(b.Cursor, p.at):
		p.note(owner, "a watch goes back from %q to %q", p.at, b.Cursor)
	case b.Cursor != p.at && p.compare(b.Cursor, p.at) == 0:
		p.note(owner, "a watch goes from %q to another epoch, at %q, without a full state", p.at, b.Cursor)
	}
	p.at = b.Cursor
}

// compare is 1 without an order.
func (p *protocol[T]) compare(a, b reflector.Cursor) int {
	if p.st.powers.Compare == nil {
		return 1
	}
	return p.st.powers.Compare(a, b)
}

func (p *protocol[T]) before(a, b reflector.Cursor) bool {
	return a != b && b != "" && p.compare(a, b) < 0
}
