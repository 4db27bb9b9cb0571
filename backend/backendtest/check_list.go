package backendtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

func listChecks[T any]() []check[T] {
	return []check[T]{
		{Check{"list/whole", []string{"reflector 5"}, "a list has every object once, in however many pages, and no page is longer than asked for"}, listWhole[T]},
		{Check{"list/pages", []string{"reflector 5", "reflector 3"}, "pages show one state or a watch from the first one's cursor makes one of them, whatever is written between them"}, listPages[T]},
		{Check{"list/page-tokens", []string{"reflector 5", "reflector 10"}, "a page whose state is gone is an error, never a part of another list"}, listTokens[T]},
		{Check{"list/cursor", []string{"reflector 3", "reflector 5"}, "a watch from a list's cursor tells what was written after the list and nothing else, from an empty list and after deletes too"}, listCursor[T]},
		{Check{"list/failure-is-not-emptiness", []string{"reflector 10"}, "a list or watch that cannot be answered in full is an error, never a smaller state"}, listFailure[T]},
	}
}

func listWhole[T any](k *kit[T]) {
	st := k.open()
	l := st.settled() // of an empty store
	if len(l.pages) > 1 {
		k.fail("the list of an empty store has %d pages", len(l.pages))
	}
	st.fill(k.h.Many)
	st.settled()
	if st.powers.Paged {
		for _, limit := range []int{k.h.Many/7 + 1, k.h.Many, 2 * k.h.Many} {
			st.paged(limit)
		}
	}
	// The page is the caller's.
	page, err := st.page(k.ctx, reflector.ListOptions{})
	k.must(err)
	clear(page.Items)
	st.settled()
	st.write(k.gone(k.h.Key(0)))
	st.settled()
}

// paged lists in pages, of a store that is quiet.
func (st *store[T]) paged(limit int) {
	k := st.k
	l, err := st.list(k.ctx, reflector.ListOptions{Limit: limit})
	k.must(err)
	for i, n := range l.pages {
		if n > limit {
			k.fail("page %d has %d objects, asked for %d at most", i+1, n, limit)
		}
	}
	if diff := st.hist.differs(l.items, st.hist.now()); diff != "" && !st.powers.StaleLists {
		k.fail("with a limit of %d the list, in %d pages, is not the present state: %s", limit, len(l.pages), diff)
	}
	if len(l.twice) > 0 {
		k.fail("with a limit of %d the list shows more than once: %s", limit, named(l.twice))
	}
	if st.powers.SnapshotPages && l.at != l.last {
		k.fail("pages of one state (SnapshotPages) have different cursors, %q and %q", l.at, l.last)
	}
}

func listPages[T any](k *kit[T]) {
	st := k.open()
	k.need("Paged", st.powers.Paged)
	const n, limit = 13, 5
	st.fill(n)
	st.settled()
	was := st.hist.now()
	first, err := st.page(k.ctx, reflector.ListOptions{Limit: limit})
	k.must(err)
	if len(first.Items) > limit {
		k.fail("the first page has %d objects, asked for %d at most", len(first.Items), limit)
	}
	if first.Next == "" {
		k.fail("a page of %d objects says that it is the last, of %d", len(first.Items), n)
	}
	for _, i := range []int{1, 8, n - 1} {
		st.write(k.gone(k.h.Key(i)))
		st.write(k.put(k.h.Key(i + 1)))
	}
	st.write(k.put(k.h.Key(n + 5)))
	var l listing[T]
	l.add(first)
	rest, err := st.list(k.ctx, reflector.ListOptions{Limit: limit, Page: first.Next})
	if errors.Is(err, reflector.ErrExpired) {
		return
	}
	k.must(err)
	maps.Copy(l.items, rest.items)
	if st.powers.SnapshotPages {
		if rest.last != first.Cursor || rest.at != first.Cursor {
			k.fail("pages of one state (SnapshotPages) have different cursors, %q and %q", first.Cursor, rest.last)
		}
		if diff := st.hist.differs(l.items, was); diff != "" && !st.powers.StaleLists {
			k.fail("pages of one state (SnapshotPages) show another one than that of the first page: %s", diff)
		}
	}
	if first.Cursor == "" {
		return
	}
	c := &client[T]{st: st, state: l.items, at: first.Cursor, whole: true}
	k.must(c.follow("the present state, by a watch from the first page's cursor,", c.current))
}

func listTokens[T any](k *kit[T]) {
	st := k.open()
	k.need("Paged", st.powers.Paged)
	const n, limit = 9, 4
	st.fill(n)
	st.settled()
	was := st.hist.now()
	const bad = "backendtest-no-such-token"
	page, err := st.page(k.ctx, reflector.ListOptions{Limit: limit, Page: bad})
	// Where the pages are of different states, a token may be just a key to go on
	// after, and anything is one.
	if err == nil && st.powers.SnapshotPages {
		k.fail("a page token that was never given out, %q, is answered with %d objects", bad, len(page.Items))
	}
	if st.fx.Compact == nil {
		k.run.lack("Harness.Compact")
		return
	}
	first, err := st.page(k.ctx, reflector.ListOptions{Limit: limit})
	k.must(err)
	if first.Next == "" {
		k.fail("a page of %d objects says that it is the last, of %d", len(first.Items), n)
	}
	st.write(k.gone(k.h.Key(n - 1)))
	st.write(k.put(k.h.Key(n)))
	st.do("Compact", st.fx.Compact)
	rest, err := st.list(k.ctx, reflector.ListOptions{Limit: limit, Page: first.Next})
	if err != nil {
		if !errors.Is(err, reflector.ErrExpired) {
			k.fail("a page whose state is gone is not ErrExpired but: %w", err)
		}
		return
	}
	rest.add(first)
	if diff := st.hist.differs(rest.items, was); diff != "" && st.powers.SnapshotPages && !st.powers.StaleLists {
		k.fail("after the history was compacted, pages of one state (SnapshotPages) show another one: %s", diff)
	}
}

func listCursor[T any](k *kit[T]) {
	st := k.open()
	c := st.client() // of an empty store
	st.write(k.put(k.h.Key(0)))
	st.needPositions()
	if c.at == "" {
		k.fail("the list of an empty store has no cursor, others have one: a watch cannot begin there")
	}
	c.exact = true
	c.here()
	k.must(c.follow("what was written after the list of an empty store", c.current))
	clients := []*client[T]{c}
	between := func(what string, changes ...Change[T]) {
		c := st.client()
		for _, change := range changes {
			st.write(change)
		}
		k.must(c.follow("what was written between "+what+" and a watch", c.current))
		clients = append(clients, c)
	}
	between("a list", k.put(k.h.Key(1)))
	between("a list", k.put(k.h.Key(2)), k.gone(k.h.Key(0)))
	between("the list after a delete", k.put(k.h.Key(3)))
	st.write(k.gone(k.h.Key(3)))
	st.write(k.gone(k.h.Key(2)))
	idle := st.client()
	k.must(idle.follow("the first batch of a watch from the list's cursor", func() bool { return idle.opened }))
	clients = append(clients, idle)
	st.write(k.gone(k.h.Key(1)))
	between("the list of what is empty again", k.put(k.h.Key(4)))
	k.settle(clients...)
}

// settle has all clients come to the present state, and listens whether anything
// else comes.
func (k *kit[T]) settle(clients ...*client[T]) {
	for _, c := range clients {
		k.must(c.follow("the present state", c.current))
	}
	k.quiet()
	for _, c := range clients {
		k.must(c.seen())
		if !c.current() {
			k.fail("a watch that had come to the present state left it: %s", c.st.hist.differs(c.state, c.st.hist.now()))
		}
		k.must(c.close())
	}
}

func listFailure[T any](k *kit[T]) {
	st := k.open()
	st.fill(min(k.h.Many, 100))
	st.settled()
	over, cancel := context.WithCancel(k.ctx)
	cancel()
	st.fullOrError("with a context that has ended", over)
	// One that ends on the way: sooner or later, since nobody knows when that is.
	for _, after := range []time.Duration{0, time.Microsecond, 50 * time.Microsecond, 500 * time.Microsecond} {
		ctx, cancel := context.WithTimeout(k.ctx, after)
		st.fullOrError("with a context that ended on the way", ctx)
		cancel()
	}
	if st.fx.Down == nil {
		k.run.lack("Harness.Down")
		return
	}
	var up func() error
	st.do("Down", func(ctx context.Context) (err error) {
		up, err = st.fx.Down(ctx)
		return err
	})
	ctx, cancel := context.WithTimeout(k.ctx, k.h.Quiet)
	defer cancel()
	if !st.fullOrError("while the store is unreachable", ctx) {
		k.fail("%w: while it is Down, every list, fetch and watch is answered", ErrHarness)
	}
	if up == nil {
		k.fail("%w: Down gives no function that ends it", ErrHarness)
	}
	st.do("Down (up)", func(context.Context) error { return up() })
	c := &client[T]{st: st, patient: true, relist: true}
	k.must(c.follow("the present state, after the store was unreachable,", c.current))
}

// fullOrError lists, fetches and streams, and wants all of the state or an error. It
// says whether there was any.
func (st *store[T]) fullOrError(when string, ctx context.Context) (failed bool) {
	k := st.k
	for _, limit := range []int{0, 7} {
		l, err := st.list(ctx, reflector.ListOptions{Limit: limit})
		if errors.Is(err, errStuck) || errors.Is(err, errPanic) {
			k.must(err)
		}
		failed = failed || err != nil
		if err == nil && !st.powers.StaleLists {
			if diff := st.hist.differs(l.items, st.hist.now()); diff != "" {
				k.fail("%s, List answers without an error what is not the state: %s", when, diff)
			}
		}
	}
	key := k.h.Key(0)
	if get := st.powers.Get; get != nil {
		_, err := call(ctx, "Powers.Get", k.h.Wait, k.h.Wait, func(ctx context.Context) (object.Item[T], error) { return get(ctx, key) })
		if errors.Is(err, reflector.ErrNotFound) && !st.powers.StaleLists || errors.Is(err, errStuck) || errors.Is(err, errPanic) {
			k.fail("%s, Get of an object that is there: %w", when, err)
		}
		failed = failed || err != nil
	}
	return st.streamedOrError(when, ctx) || failed
}

func (st *store[T]) streamedOrError(when string, ctx context.Context) (failed bool) {
	k := st.k
	if st.positional() && !st.powers.Initial {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, k.h.Wait)
	var err error
	c := &client[T]{st: st, state: map[string]object.Item[T]{}}
	c.s = st.watchUnder(ctx, cancel, reflector.WatchOptions{Initial: st.powers.Initial}, func(_ int, e event[T]) bool { return !e.batch.Synced })
	for more := true; more && err == nil; {
		e, ok := c.s.next(2*k.h.Wait, nil)
		if !ok {
			k.must(fmt.Errorf("%s: %w", when, c.close()))
			return true
		}
		more = !e.over
		if !e.over && e.err == nil {
			err = c.batch(e.batch)
		} else if e.err != nil && errors.Is(e.err, errPanic) {
			err = e.err
		}
	}
	k.must(err)
	k.must(c.close())
	if c.whole && !st.powers.StaleLists {
		if diff := st.hist.differs(c.state, st.hist.now()); diff != "" {
			k.fail("%s, Watch ends a full state that is not the state: %s", when, diff)
		}
	}
	return !c.whole
}
