package backendtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/homeostat/homeostat/reflector"
)

func resumeChecks[T any]() []check[T] {
	return []check[T]{
		{Check{"resume/compacted", []string{"reflector 4"}, "after the history was compacted, a cursor is refused or leads to the present state; an open watch tells all or ends"}, resumeCompacted[T]},
		{Check{"resume/forgotten", []string{"reflector 4"}, "when deletes were forgotten, a cursor from before them is refused or leads to a state without the deleted"}, resumeForgotten[T]},
		{Check{"resume/restarted", []string{"reflector 4", "reflector 6"}, "a cursor from before a restart is refused or leads to the present state, also when the numbers have come round"}, resumeRestarted[T]},
		{Check{"resume/foreign", []string{"reflector 4"}, "a cursor of another epoch, or of nobody, is refused or begins a full state"}, resumeForeign[T]},
		{Check{"resume/cut", []string{"reflector 1", "reflector 10"}, "a watch whose connection breaks goes on or ends, and nothing is lost"}, resumeCut[T]},
	}
}

// steps writes some and gives all places seen on the way.
func (st *store[T]) someHistory() []place {
	st.fill(6)
	st.needPositions()
	c := st.client()
	st.k.must(c.follow("the first batch of a watch", func() bool { return c.opened }))
	st.someSteps()
	st.k.must(c.follow("what was written while a watch was open", c.current))
	st.k.must(c.close())
	return c.places
}

// leads has a watch from each place be refused, or lead to the present state, by
// whatever steps.
func (st *store[T]) leads(why string, places []place) {
	k := st.k
	var clients []*client[T]
	for _, p := range places {
		c := st.clientAt(p)
		c.exact = false
		k.must(c.open(nowPlus(k.h.Wait), nil))
		clients = append(clients, c)
	}
	for _, c := range clients {
		from := c.at
		err := c.follow("the present state", func() bool { return c.opened && c.current() })
		switch {
		case err == nil:
		case refused(err):
			k.must(c.close())
		case errors.Is(err, errLate):
			k.fail("%s, a watch from %q is not refused, and leads to another state: %s", why, from, st.hist.differs(c.state, st.hist.now()))
		default:
			k.fail("%s, a watch from %q: %w", why, from, err)
		}
	}
	k.quiet()
	for _, c := range clients {
		err := c.seen()
		if err != nil && !refused(err) {
			k.must(err)
		}
		if c.s != nil && err == nil && !c.current() {
			k.fail("%s, a watch left the present state: %s", why, st.hist.differs(c.state, st.hist.now()))
		}
		k.must(c.close())
	}
}

func resumeCompacted[T any](k *kit[T]) {
	st := k.open()
	k.need("Harness.Compact", st.fx.Compact != nil)
	places := st.someHistory()
	k.need("ResumeProven", st.powers.ResumeProven)

	// One that is busy in yield meanwhile.
	busy := st.client()
	busy.exact, busy.relist = false, true
	release := make(chan struct{})
	busy.s = st.watch(reflector.WatchOptions{After: busy.at}, func(int, event[T]) bool {
		select {
		case <-release:
		case <-k.ctx.Done():
		}
		return true
	})
	if _, ok := busy.s.next(k.h.Wait, nil); !ok {
		k.fail("no first batch within %v", k.h.Wait)
	}
	busy.opened = true
	st.write(k.gone(k.h.Key(0)))
	st.write(k.put(k.h.Key(20)))
	st.write(k.gone(k.h.Key(1)))
	st.do("Compact", st.fx.Compact)
	close(release)
	k.must(busy.follow("the present state, by a watch that was busy while the history was compacted,", busy.current))

	st.leads("after the history was compacted", places)
	st.write(k.put(k.h.Key(21)))
	st.leads("after the history was compacted and written on", places)
	fresh := st.client()
	st.write(k.gone(k.h.Key(21)))
	k.must(fresh.follow("what was written after a new list", fresh.current))
}

func resumeForgotten[T any](k *kit[T]) {
	st := k.open()
	k.need("Harness.Forget", st.fx.Forget != nil)
	places := st.someHistory()
	k.need("ResumeProven", st.powers.ResumeProven)
	st.write(k.gone(k.h.Key(0)))
	st.write(k.gone(k.h.Key(1)))
	st.do("Forget", st.fx.Forget)
	st.leads("after deletes were forgotten", places)
	st.write(k.put(k.h.Key(20)))
	st.leads("after deletes were forgotten and something was written", places)
	fresh := st.client()
	st.write(k.gone(k.h.Key(20)))
	k.must(fresh.follow("what was written after a new list", fresh.current))
}

func resumeRestarted[T any](k *kit[T]) {
	st := k.open()
	k.need("Harness.Restart", st.fx.Restart != nil)
	places := st.someHistory()
	k.need("ResumeProven", st.powers.ResumeProven)
	var src reflector.ListWatcher[T]
	st.do("Restart", func(ctx context.Context) (err error) {
		src, err = st.fx.Restart(ctx)
		return err
	})
	st.use(src)
	st.seen = &registry[T]{} // versions may begin anew
	// What it keeps; where reads may be stale, together with something new.
	var l listing[T]
	var sign Change[T]
	if st.powers.StaleLists {
		sign = k.put(k.h.Key(markers))
		st.write(sign)
	}
	k.must(k.soon(func() (err error) {
		l, err = st.list(k.ctx, reflector.ListOptions{})
		if now, there := l.items[sign.Key]; err == nil && sign.Key != "" && (!there || !k.h.Equal(now.Object, sign.Object)) {
			err = errors.New("a list after a restart does not show what was written after it")
		}
		return err
	}))
	if st.hist.differs(l.items, st.hist.now()) != "" {
		st.hist.set(objects(l.items))
	}
	st.leads("after a restart", places)
	for i := range 2*len(places) + 8 {
		st.write(k.put(k.h.Key(30 + i)))
	}
	st.leads("after a restart and as many writes as there were before it", places)
	fresh := st.client()
	st.write(k.gone(k.h.Key(30)))
	k.must(fresh.follow("what was written after a new list", fresh.current))
}

func resumeForeign[T any](k *kit[T]) {
	one := k.open()
	one.someHistory()
	k.need("ResumeProven", one.powers.ResumeProven)
	for _, odd := range []reflector.Cursor{"garbage", "9999999999999999999999"} {
		one.refuses(odd, fmt.Sprintf("%q, which no store has given out,", odd))
	}
	two := k.open()
	two.write(k.put(k.h.Key(0)))
	foreign := two.settled().at
	for range 3 { // one is well past it, or well before
		here := one.settled().at
		if cmp := one.powers.Compare; foreign != here && cmp != nil && cmp(foreign, here) == 0 {
			one.refuses(foreign, fmt.Sprintf("%q, of another store,", foreign))
		}
		for i := range 10 {
			two.write(k.put(k.h.Key(i)))
		}
		foreign = two.settled().at
	}
}

// refuses wants a watch from this cursor to be refused, or to begin with a full state.
func (st *store[T]) refuses(at reflector.Cursor, what string) {
	k := st.k
	c := &client[T]{st: st, at: at, whole: true}
	k.must(c.open(nowPlus(k.h.Wait), nil))
	e, ok := c.s.next(k.h.Wait, nil)
	switch {
	case !ok:
		k.fail("a watch from %s is neither refused nor opened within %v", what, k.h.Wait)
	case errors.Is(e.err, errPanic):
		k.must(e.err)
	case e.err != nil:
	case e.over:
		k.fail("a watch from %s ends without a word", what)
	case e.batch.Reset:
		k.must(c.take(e))
		k.must(c.follow("the full state of a watch from "+what, c.current))
	default:
		k.fail("a watch from %s opens, at %q, as if nothing were missing", what, e.batch.Cursor)
	}
	k.must(c.close())
}

func resumeCut[T any](k *kit[T]) {
	st := k.open()
	k.need("Harness.Cut", st.fx.Cut != nil)
	st.fill(3)
	c := st.client()
	c.exact, c.relist, c.patient = false, true, true
	k.must(c.follow("the first batch of a watch", func() bool { return c.opened }))
	for i := range 3 {
		if i == 1 { // while something is on its way
			st.write(k.put(k.h.Key(20)))
			st.write(k.gone(k.h.Key(0)))
		}
		st.do("Cut", st.fx.Cut)
		if i == 2 {
			k.must(c.seen())
		}
		st.write(k.put(k.h.Key(10 + i)))
		k.must(c.follow("what was written after a watch was cut", c.current))
	}
}
