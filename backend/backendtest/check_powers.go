package backendtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

func powerChecks[T any]() []check[T] {
	return []check[T]{
		{Check{"powers/initial", []string{"reflector 3", "reflector 2"}, "Initial streams all objects between Reset and Synced, and goes on from there without a gap"}, powerInitial[T]},
		{Check{"powers/progress", []string{"reflector 7"}, "Progress yields a batch at least as often as it was asked to"}, powerProgress[T]},
		{Check{"powers/keys-only", []string{"reflector 9"}, "KeysOnly lists the same keys, versions and IDs"}, powerKeysOnly[T]},
		{Check{"powers/get", []string{"reflector 9", "reflector 10"}, "Get gives what a list gives, and ErrNotFound when there is nothing"}, powerGet[T]},
		{Check{"powers/head", []string{"reflector 3"}, "Head lies at or after every acknowledged write, and a watch can begin there"}, powerHead[T]},
		{Check{"powers/reached", []string{"reflector 3"}, "Reached is true from the cursor of the batch with the version on, and false before"}, powerReached[T]},
		{Check{"powers/freshness", []string{"reflector 6"}, "a list shows every acknowledged write unless lists may be stale, and is not before NotBefore"}, powerFreshness[T]},
	}
}

func powerInitial[T any](k *kit[T]) {
	st := k.open()
	k.need("Initial", st.powers.Initial)
	initial := func(c *client[T]) *client[T] {
		c.s = st.watch(reflector.WatchOptions{After: c.at, Initial: true}, nil)
		k.must(c.follow("a full state, by Initial", func() bool { return c.whole && c.stage == nil }))
		return c
	}
	fresh := func() *client[T] { return &client[T]{st: st, exact: st.positional()} }
	first := initial(fresh()) // of an empty store
	st.fill(k.h.Many)
	l := st.settled()
	if len(first.state) > 0 {
		k.fail("a full state of an empty store has %d objects", len(first.state))
	}
	k.must(first.close())
	plain := initial(fresh())
	if !plain.exact {
		k.must(plain.follow("the present state", plain.current))
	}
	old := fresh()
	old.at = l.at
	clients := []*client[T]{plain, initial(old)} // whatever After says

	// What is written while a full state is on its way is in it or told after it.
	slow := fresh()
	step, wrote := make(chan int), make(chan struct{})
	slow.s = st.watch(reflector.WatchOptions{Initial: true}, func(n int, _ event[T]) bool {
		if n < 2 {
			select {
			case step <- n:
				<-wrote
			case <-k.ctx.Done():
			}
		}
		return true
	})
	for _, wait := range []time.Duration{k.h.Wait, k.h.Quiet} {
		select {
		case n := <-step:
			gone, put := k.gone(k.h.Key(1+5*n)), k.put(k.h.Key(k.h.Many+n))
			err := errors.Join(st.tryWrite(gone), st.tryWrite(put))
			st.hist.add(gone)
			st.hist.add(put)
			wrote <- struct{}{}
			k.must(err)
		case <-time.After(wait): // all was in one batch
		}
	}
	done := slow.s.done
	go func() { // in case that it was just slow
		for {
			select {
			case <-step:
				wrote <- struct{}{}
			case <-done:
				return
			case <-k.ctx.Done():
				return
			}
		}
	}()
	clients = append(clients, slow)
	for _, c := range clients {
		k.must(c.follow("the present state", c.current))
	}
	st.write(k.put(k.h.Key(k.h.Many + 10)))
	for _, c := range clients {
		k.must(c.follow("what was written after a full state was streamed", c.current))
	}
	if slow.exact && slow.at != "" {
		st.write(k.gone(k.h.Key(2)))
		c := st.clientAt(slow.places[0])
		k.must(c.follow("what came after a full state that was streamed", c.current))
		clients = append(clients, c)
	}
	k.settle(clients...)
}

func powerProgress[T any](k *kit[T]) {
	st := k.open()
	k.need("Progress", st.powers.Progress)
	st.write(k.put(k.h.Key(0)))
	at := st.settled().at
	s := st.watch(reflector.WatchOptions{After: at, ProgressEvery: k.h.Progress}, nil)
	// Three times the interval is when a reflector takes a watch for dead.
	limit := max(3*k.h.Progress, k.h.Quiet)
	for i := range 3 {
		d := limit
		if i == 0 {
			d = k.h.Wait
		}
		e, ok := s.next(d, nil)
		switch {
		case !ok:
			k.fail("asked for a batch every %v, the watch has told nothing for %v after batch %d", k.h.Progress, d, i)
		case e.err != nil:
			k.must(e.err)
		case e.over:
			k.fail("an idle watch with progress ended after %d batches", i)
		}
	}
	k.must(s.stop())
}

func powerKeysOnly[T any](k *kit[T]) {
	st := k.open()
	k.need("KeysOnly", st.powers.KeysOnly)
	st.fill(12)
	full := st.settled()
	k.must(k.ifStale(st, func() error {
		l, err := st.list(k.ctx, reflector.ListOptions{KeysOnly: true})
		if err != nil {
			return err
		}
		if len(l.items) != len(full.items) {
			return fmt.Errorf("a list of keys has %d of them, the full one %d", len(l.items), len(full.items))
		}
		for key, item := range l.items {
			want, ok := full.items[key]
			if !ok || want.Version != item.Version || want.ID != item.ID {
				return fmt.Errorf("a list of keys has %q with version %q, ID %q, the full one with version %q, ID %q", key, item.Version, item.ID, want.Version, want.ID)
			}
		}
		if st.positional() && l.at == "" {
			return errors.New("a list of keys has no cursor, the full one has")
		}
		return nil
	}))
}

// ifStale tries again until f has no error, where reads may be stale.
func (k *kit[T]) ifStale(st *store[T], f func() error) error {
	if st.powers.StaleLists {
		return k.soon(f)
	}
	return f()
}

// get calls Powers.Get.
func (st *store[T]) get(key string) (object.Item[T], error) {
	k := st.k
	item, err := call(k.ctx, "Powers.Get", k.h.Wait, k.h.Wait, func(ctx context.Context) (object.Item[T], error) {
		return st.powers.Get(ctx, key)
	})
	if err == nil {
		st.saw("Get", item)
	}
	return item, err
}

func powerGet[T any](k *kit[T]) {
	st := k.open()
	k.need("Get", st.powers.Get != nil)
	key := k.h.Key(0)
	absent := func(when string) {
		k.must(k.ifStale(st, func() error {
			if item, err := st.get(key); !errors.Is(err, reflector.ErrNotFound) {
				return fmt.Errorf("a Get of what %s is not ErrNotFound but version %q, error %v", when, item.Version, err)
			}
			return nil
		}))
	}
	absent("was never there")
	for range 4 {
		st.write(k.put(key))
		want := st.hist.now()[key]
		k.must(k.ifStale(st, func() error {
			item, err := st.get(key)
			switch {
			case err != nil:
				return err
			case item.Key != key:
				return fmt.Errorf("a Get of %q gives %q", key, item.Key)
			case !k.h.Equal(item.Object, want):
				return fmt.Errorf("a Get of %q does not give what was written before", key)
			}
			return nil
		}))
		listed := st.settled().items[key]
		k.must(k.ifStale(st, func() error {
			if item, err := st.get(key); err != nil || item.Version != listed.Version || item.ID != listed.ID {
				return fmt.Errorf("a Get gives version %q, ID %q of %q, the list version %q, ID %q; error: %v", item.Version, item.ID, key, listed.Version, listed.ID, err)
			}
			return nil
		}))
	}
	st.write(k.gone(key))
	absent("was deleted")
	if got, err := st.get(key); !st.powers.StaleLists && err != nil && got.Key != "" {
		k.fail("Get gives an object together with an error")
	}
}

// head calls Powers.Head.
func (st *store[T]) head() reflector.Cursor {
	k := st.k
	at, err := call(k.ctx, "Powers.Head", k.h.Wait, k.h.Wait, st.powers.Head)
	k.must(err)
	if at == "" {
		k.fail("Head is no position")
	}
	return at
}

func powerHead[T any](k *kit[T]) {
	st := k.open()
	k.need("Head", st.powers.Head != nil)
	st.fill(3)
	heads := []place{{st.head(), st.hist.last()}}
	for i := range 4 {
		if i == 2 {
			st.write(k.gone(k.h.Key(1)))
		} else {
			st.write(k.put(k.h.Key(10 + i)))
		}
		heads = append(heads, place{st.head(), st.hist.last()})
	}
	if cmp := st.powers.Compare; cmp != nil {
		at := st.settled().at
		for _, head := range heads {
			if !st.powers.StaleLists && cmp(head.at, at) > 0 {
				k.fail("Head was at %q, and a list after it at %q", head.at, at)
			}
		}
		live := st.clientAt(heads[0])
		k.must(live.follow("what was written after the first Head", live.current))
		for _, p := range live.places[1:] {
			i := slices.IndexFunc(heads, func(h place) bool { return h.known >= p.known })
			if i >= 0 && cmp(heads[i].at, p.at) < 0 && heads[i].known == p.known {
				k.fail("Head was at %q after a write that a watch tells at %q", heads[i].at, p.at)
			}
		}
	}
	st.resume(heads, true)
}

func powerReached[T any](k *kit[T]) {
	st := k.open()
	k.need("Reached", st.powers.Reached != nil)
	st.write(k.put(k.h.Key(0)))
	st.needPositions()
	c := st.client()
	reached := st.powers.Reached
	type told struct {
		before, at reflector.Cursor
		version    object.Version
	}
	var all []told
	before := c.at
	c.onBatch = func(b reflector.Batch[T]) error {
		if b.Cursor == "" || c.stage != nil {
			return nil
		}
		for _, e := range b.Events {
			if e.Version != "" && e.Op == reflector.OpPut && !b.Reset {
				all = append(all, told{before, b.Cursor, e.Version})
			}
		}
		before = b.Cursor
		return nil
	}
	for i := range 25 { // past 9, 99 and the like, where text and numbers part
		st.write(k.put(k.h.Key(i % 3)))
		k.must(c.follow("what was written while a watch was open", c.current))
	}
	st.reachedDelete(c)
	for i, w := range all {
		if !reached(w.at, w.version) {
			k.fail("Reached(%q, %q) is false, and that version was told at that cursor", w.at, w.version)
		}
		if reached(w.before, w.version) {
			k.fail("Reached(%q, %q) is true, and that version was told after that cursor, at %q", w.before, w.version, w.at)
		}
		for _, later := range all[i:] {
			if !reached(later.at, w.version) {
				k.fail("Reached(%q, %q) is false, and that version was told before that cursor, at %q", later.at, w.version, w.at)
			}
		}
		if reached("", w.version) {
			k.fail("Reached(\"\", %q) is true, and \"\" is no position", w.version)
		}
	}
}

func powerFreshness[T any](k *kit[T]) {
	st := k.open()
	st.write(k.put(k.h.Key(0)))
	var places []place
	for i := range 8 {
		if i%4 == 3 {
			st.write(k.gone(k.h.Key(i - 1)))
		} else {
			st.write(k.put(k.h.Key(i)))
		}
		if at := st.settled().at; at != "" {
			places = append(places, place{at, st.hist.last()})
		}
	}
	for _, p := range places {
		for _, fresh := range []reflector.Freshness{reflector.Any, reflector.Latest} {
			l, err := st.list(k.ctx, reflector.ListOptions{Freshness: fresh, NotBefore: p.at})
			if st.powers.StaleLists && errors.Is(err, reflector.ErrFutureCursor) {
				continue
			}
			k.must(err)
			if cmp := st.powers.Compare; cmp != nil && cmp(l.at, p.at) < 0 {
				k.fail("a list that must not be before %q is at %q", p.at, l.at)
			}
			if st.hist.find(l.items, p.known) < 0 {
				k.fail("a list that must not be before %q shows an older state, or none that there was; from the present one it differs by: %s",
					p.at, st.hist.differs(l.items, st.hist.now()))
			}
		}
	}
	// "Not modified" is no answer where something was.
	st.write(k.put(k.h.Key(0)))
	if _, err := st.page(k.ctx, reflector.ListOptions{IfModified: true}); errors.Is(err, reflector.ErrNotModified) && !st.powers.StaleLists {
		k.fail("a list after a write is not modified, it says")
	}
	l, err := st.list(k.ctx, reflector.ListOptions{Freshness: reflector.Any})
	k.must(err)
	if st.hist.find(l.items, 0) < 0 {
		k.fail("a list of any age shows a state that never was; from the present one it differs by: %s", st.hist.differs(l.items, st.hist.now()))
	}
	cmp := st.powers.Compare
	if cmp == nil || l.at == "" {
		return
	}
	two := k.open()
	two.write(k.put(k.h.Key(0)))
	foreign := two.settled().at
	if foreign == l.at || cmp(foreign, l.at) != 0 {
		return // of one epoch
	}
	if _, err := st.list(k.ctx, reflector.ListOptions{NotBefore: foreign}); !refused(err) {
		k.fail("a list that must not be before %q, of another epoch, is neither ErrExpired nor ErrFutureCursor but: %w", foreign, orNil(err))
	}
}

// reachedDelete deletes something that c shows, and wants the answer's version, if it
// has one, to be reached with the delete and not before.
func (st *store[T]) reachedDelete(c *client[T]) {
	k := st.k
	if st.backend() == nil {
		return
	}
	key := k.h.Key(0)
	before := c.at
	gone, err := call(k.ctx, "Delete", k.h.Wait, k.h.Wait, func(ctx context.Context) (object.Item[T], error) {
		return st.backend().Delete(ctx, key, object.Any)
	})
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	k.must(err)
	st.hist.add(k.gone(key))
	k.must(c.follow("a delete", c.current))
	switch reached := st.powers.Reached; {
	case gone.Version == "":
	case !reached(c.at, gone.Version):
		k.fail("Reached(%q, %q) is false, and the delete that answered that version was told at that cursor", c.at, gone.Version)
	case reached(before, gone.Version):
		k.fail("Reached(%q, %q) is true, and the delete that answered that version was told after that cursor, at %q", before, gone.Version, c.at)
	}
}
