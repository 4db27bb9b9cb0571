package backendtest

import (
	"fmt"
	"slices"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// protocolChecks come last: each also judges what was noted for it all along.
func protocolChecks[T any]() []check[T] {
	return []check[T]{
		{Check{"watch/first-batch", []string{"reflector 2"}, "the first batch of every watch, on an idle or empty store too, says where it stands or begins a full state"}, firstBatch[T]},
		{Check{"watch/one-goroutine", []string{"reflector 1"}, "a watch yields on the goroutine that ranges over it"}, oneGoroutine[T]},
		{Check{"watch/stops-after-false", []string{"reflector 1"}, "when yield was false, the iterator returns and never yields again"}, stopsAfterFalse[T]},
		{Check{"watch/error-is-last", []string{"reflector 1", "reflector 10"}, "an error is the last thing that a watch yields"}, errorIsLast[T]},
		{Check{"watch/batches", []string{"reflector 3"}, "events are puts with an object or deletes, and full states begin with Reset and end with Synced"}, batches[T]},
		{Check{"order/cursors", []string{"reflector 6", "reflector 3"}, "no list, batch or bookmark goes back, Compare is an order, and Prev names where the watch stands"}, orderOfCursors[T]},
		{Check{"object/identity", []string{"reflector 9"}, "a key created again has another ID, a changed object another version, and equal key, ID and version are equal objects"}, objectIdentity[T]},
	}
}

// opens opens a watch, wants its first batch, and ends it.
func (st *store[T]) opens(what string, opts reflector.WatchOptions) event[T] {
	k := st.k
	s := st.watch(opts, nil)
	if err := s.opens(); err != nil {
		k.fail("%s: %w", what, err)
	}
	k.must(s.stop())
	return s.log[0]
}

func firstBatch[T any](k *kit[T]) {
	st := k.open()
	st.allOpen("an empty store")
	st.write(k.put(k.h.Key(0)))
	st.write(k.put(k.h.Key(1)))
	st.allOpen("an idle store")
	st.write(k.gone(k.h.Key(1)))
	st.allOpen("an idle store whose last change was a delete")
	st.write(k.gone(k.h.Key(0)))
	st.allOpen("a store that is empty again")
}

// allOpen opens a watch in each way that there is, on a store that is quiet.
func (st *store[T]) allOpen(on string) {
	k := st.k
	at := st.settled().at
	if at != "" {
		e := st.opens(fmt.Sprintf("on %s, a watch from the list's cursor %q", on, at), reflector.WatchOptions{After: at})
		b := e.batch
		if cmp := st.powers.Compare; !b.Reset && b.Cursor != at && cmp != nil && cmp(b.Cursor, at) <= 0 {
			k.fail("on %s, the first batch of a watch from %q stands at %q, which is not later", on, at, b.Cursor)
		}
	}
	e := st.opens("on "+on+", a watch without a position", reflector.WatchOptions{})
	if b := e.batch; !b.Reset && !b.Synced && (st.powers.Initial || !st.positional()) {
		k.fail("on %s, a watch without a position does not begin with a full state", on)
	}
	if st.powers.Initial {
		e := st.opens("on "+on+", a watch that is to stream the first list", reflector.WatchOptions{After: at, Initial: true})
		if !e.batch.Reset && !e.batch.Synced {
			k.fail("on %s, a watch that is to stream the first list begins at %q without Reset", on, e.batch.Cursor)
		}
	}
}

func oneGoroutine[T any](k *kit[T]) {
	st := k.open()
	st.write(k.put(k.h.Key(0)))
	c := st.client()
	k.must(c.follow("the first batch of a watch", func() bool { return c.opened }))
	st.write(k.put(k.h.Key(1)))
	k.must(c.follow("what was written while a watch was open", c.current))
}

func stopsAfterFalse[T any](k *kit[T]) {
	st := k.open()
	st.fill(k.h.Many)
	at := st.settled().at
	for _, stop := range []struct {
		what string
		opts reflector.WatchOptions
		when func(n int, b reflector.Batch[T]) bool
		live bool // something must be written
	}{
		{"the first batch", reflector.WatchOptions{After: at}, func(n int, _ reflector.Batch[T]) bool { return n == 0 }, false},
		{"a batch of a streamed list", reflector.WatchOptions{After: at, Initial: st.powers.Initial}, func(n int, b reflector.Batch[T]) bool { return n == 1 || b.Synced }, true},
		{"a live batch", reflector.WatchOptions{After: at}, func(n int, b reflector.Batch[T]) bool { return n > 0 && len(b.Events) > 0 }, true},
	} {
		s := st.watch(stop.opts, func(n int, e event[T]) bool { return e.err != nil || !stop.when(n, e.batch) })
		if err := s.opens(); err != nil {
			k.fail("a watch that is to be stopped at %s: %w", stop.what, err)
		}
		if stop.live {
			st.write(k.put(k.h.Key(k.h.Many + 1)))
		}
		k.must(s.wait("yield was to be false at " + stop.what))
		st.write(k.put(k.h.Key(k.h.Many + 2)))
	}
	k.quiet()
}

func errorIsLast[T any](k *kit[T]) {
	st := k.open()
	st.write(k.put(k.h.Key(0)))
	at := st.settled().at
	// Whatever these end with; an error is followed by nothing.
	for _, after := range []reflector.Cursor{"backendtest-no-such-cursor", at} {
		s := st.watch(reflector.WatchOptions{After: after}, nil)
		if e, ok := s.next(k.h.Wait, nil); ok && after == at && st.fx.Compact != nil && !e.over {
			st.write(k.put(k.h.Key(1)))
			st.do("Compact", st.fx.Compact)
		}
		s.next(k.h.Quiet, nil)
		k.must(s.stop())
	}
}

func batches[T any](k *kit[T]) {
	st := k.open()
	st.fill(5)
	c := st.client()
	k.must(c.follow("the first batch of a watch", func() bool { return c.opened }))
	st.write(k.gone(k.h.Key(2)))
	st.write(k.put(k.h.Key(1)))
	k.must(c.follow("what was written while a watch was open", c.current))
}

func orderOfCursors[T any](k *kit[T]) {
	st := k.open()
	st.write(k.put(k.h.Key(0)))
	st.needPositions()
	live := st.client()
	var all []reflector.Cursor
	all = append(all, live.at)
	live.onBatch = func(b reflector.Batch[T]) error {
		if b.Cursor != "" && live.stage == nil {
			all = append(all, b.Cursor)
		}
		return nil
	}
	cmp := st.powers.Compare
	for i := range 12 {
		if i%5 == 4 {
			st.write(k.gone(k.h.Key(i - 1)))
		} else {
			st.write(k.put(k.h.Key(i)))
		}
		k.must(live.follow("what was written while a watch was open", live.current))
		l := st.settled()
		all = append(all, l.at)
		if cmp != nil && !st.powers.StaleLists && cmp(l.at, live.at) < 0 {
			k.fail("a list at %q is older than a batch that was told before it, at %q", l.at, live.at)
		}
	}
	if cmp == nil || st.powers.StaleLists {
		return
	}
	for i, a := range all {
		for _, b := range all[i:] {
			there, back := cmp(a, b), cmp(b, a)
			switch {
			case a == b && (there != 0 || back != 0):
				k.fail("Compare(%q, %q) of equal cursors is %d, and %d", a, b, there, back)
			case a != b && there == 0 && back == 0:
				k.fail("Compare says that %q and %q, of one history, are of different epochs", a, b)
			case there > 0 || back < 0:
				k.fail("%q came before %q, but Compare says %d, and %d the other way round", a, b, there, back)
			}
		}
	}
	if !slices.IsSortedFunc(all, cmp) {
		k.fail("Compare is no order of %q", all)
	}
	for _, odd := range []reflector.Cursor{"", "backendtest-no-such-cursor"} {
		if cmp(odd, all[0]) != 0 || cmp(all[0], odd) != 0 {
			k.fail("Compare orders %q and %q, which no store has given out", all[0], odd)
		}
	}
}

func objectIdentity[T any](k *kit[T]) {
	st := k.open()
	key := k.h.Key(0)
	st.write(k.put(k.h.Key(1)))
	var all []object.Item[T] // each state of the key
	look := func() object.Item[T] {
		item := st.settled().items[key]
		for _, before := range all {
			if item.Version != "" && before.Version == item.Version && before.ID == item.ID {
				k.fail("%q was changed and is still ID %q, version %q", key, item.ID, item.Version)
			}
		}
		all = append(all, item)
		return item
	}
	c := st.client()
	for range 2 {
		st.write(k.put(key))
		first := look()
		st.write(k.put(key))
		if second := look(); second.ID != first.ID {
			k.fail("%q was changed, and its ID went from %q to %q", key, first.ID, second.ID)
		}
		st.write(k.gone(key))
		st.settled()
	}
	if first, last := all[0], all[len(all)-1]; first.ID == last.ID && first.ID != "" {
		k.fail("%q was deleted and created again, and still has the ID %q", key, first.ID)
	}
	st.write(k.put(key))
	now := look()
	k.must(c.follow("the present state", c.current))
	if got := c.state[key]; got.ID != now.ID || got.Version != now.Version {
		k.fail("%q is ID %q, version %q by the watch, and ID %q, version %q by the list", key, got.ID, got.Version, now.ID, now.Version)
	}
	k.run.mu.Lock()
	f := k.run.facts
	k.run.mu.Unlock()
	if !f.versions {
		k.run.lack("Versions")
	}
	if !f.ids {
		k.run.lack("IDs")
	}
}
