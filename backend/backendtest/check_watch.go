package backendtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/homeostat/homeostat/reflector"
)

func watchChecks[T any]() []check[T] {
	return []check[T]{
		{Check{"watch/whole-steps", []string{"reflector 3"}, "one step is one batch, and a watch from any cursor tells exactly what came after it, in order"}, wholeSteps[T]},
		{Check{"watch/key-order", []string{"reflector 3"}, "what is told of one key comes in the order in which it was written, and ends with the last of it"}, keyOrder[T]},
		{Check{"watch/concurrent-writers", []string{"reflector 3", "reflector 4"}, "watches that are resumed all the time while many write miss nothing"}, concurrentWriters[T]},
		{Check{"watch/each-range-a-session", []string{"reflector 1"}, "nothing happens before a watch is ranged over, and each range begins anew"}, eachRange[T]},
		{Check{"watch/lets-panics-through", []string{"reflector 1"}, "what yield panics with comes out of the iterator, which does not go on"}, letsPanicsThrough[T]},
	}
}

// someSteps makes steps that name each key once, so that a log that keeps only the
// last of each key has nothing to leave out. It wants keys 0 to 5 to be there.
func (st *store[T]) someSteps() {
	k := st.k
	st.write(k.put(k.h.Key(10)))
	st.write(k.put(k.h.Key(0)))
	st.together(k.put(k.h.Key(11)), k.put(k.h.Key(1)), k.gone(k.h.Key(2)), k.put(k.h.Key(12)))
	st.write(k.gone(k.h.Key(3)))
	st.together(k.gone(k.h.Key(4)), k.put(k.h.Key(13)))
	st.write(k.put(k.h.Key(14)))
	st.write(k.gone(k.h.Key(5)))
}

func wholeSteps[T any](k *kit[T]) {
	st := k.open()
	st.fill(6)
	st.needPositions()
	live := st.client()
	k.must(live.follow("the first batch of a watch", func() bool { return live.opened }))
	st.someSteps()
	k.must(live.follow("what was written while a watch was open", live.current))
	k.quiet()
	k.must(live.seen())
	k.must(live.close())
	st.resume(live.places, true)
	// Much at once, as after a long absence.
	far := st.client()
	far.exact, far.relist = false, true
	var much []Change[T]
	for i := range 300 {
		much = append(much, k.put(k.h.Key(i)))
	}
	st.spread(much)
	st.hist.add(much...)
	k.must(far.follow("all that was written since a list", far.current))
}

// resume has a watch from each place lead to the present state, in exact steps. Of
// all but the last place a source may say that it is too old.
func (st *store[T]) resume(places []place, mayRefuse bool) {
	k := st.k
	var clients []*client[T]
	for _, p := range places {
		c := st.clientAt(p)
		k.must(c.open(nowPlus(k.h.Wait), nil))
		clients = append(clients, c)
	}
	var open []*client[T]
	for _, c := range clients {
		from := c.at
		err := c.follow(fmt.Sprintf("what came after %q", from), func() bool { return c.opened && c.current() })
		old := c.known < st.hist.last() || !st.powers.ResumeProven
		if err != nil && mayRefuse && old && refused(err) {
			k.must(c.close())
			continue
		}
		k.must(err)
		open = append(open, c)
	}
	k.settle(open...)
}

// clientAt is a consumer that stands at a place of the history.
func (st *store[T]) clientAt(p place) *client[T] {
	c := &client[T]{st: st, state: items[T](st.hist.states[p.known], nil), at: p.at, whole: true, exact: true, known: p.known}
	c.here()
	return c
}

// refused: the source says that it cannot go on from there.
func refused(err error) bool {
	return errors.Is(err, reflector.ErrExpired) || errors.Is(err, reflector.ErrFutureCursor)
}

func keyOrder[T any](k *kit[T]) {
	st := k.open()
	key := k.h.Key(0)
	st.write(k.put(k.h.Key(1)))
	c := st.client()
	c.exact = false
	step := 0
	c.onBatch = func(reflector.Batch[T]) error {
		// The first state from here on that has this of the key.
		item, there := c.state[key]
		for i := step; i <= st.hist.last(); i++ {
			obj, was := st.hist.states[i][key]
			if was == there && (!there || k.h.Equal(obj, item.Object)) {
				step = i
				return nil
			}
		}
		if st.powers.StaleLists && !st.positional() {
			return nil
		}
		return fmt.Errorf("%q went back to a state before step %d, or to one that it never had", key, step)
	}
	k.must(c.follow("the first full state", func() bool { return c.opened && c.current() }))
	for i := range 12 {
		if i%4 == 2 {
			st.write(k.gone(key))
		} else {
			st.write(k.put(key))
		}
	}
	k.must(c.follow("the last state of a key that was written often", c.current))
	k.quiet()
	k.must(c.seen())
	if !c.current() {
		k.fail("a watch that had come to the present state left it: %s", st.hist.differs(c.state, st.hist.now()))
	}
}

func concurrentWriters[T any](k *kit[T]) {
	st := k.open()
	st.write(k.put(k.h.Key(9)))
	const writers, writes, keys = 4, 15, 3
	stop := make(chan struct{})
	var truth atomic.Pointer[map[string]T]
	var followers sync.WaitGroup
	fails := make(chan error, 4)
	for i := range cap(fails) {
		c := st.client()
		c.exact, c.relist, c.every, c.truth = false, true, i, &truth
		followers.Go(func() {
			err := c.run("", func() bool { return closed(stop) }, stop)
			if err == nil {
				err = c.follow("the state that all writes together lead to", func() bool {
					return c.whole && c.stage == nil && st.hist.differs(c.state, *truth.Load()) == ""
				})
			}
			fails <- errors.Join(err, c.close())
		})
	}
	var mu sync.Mutex
	all := map[string]T{}
	for key, obj := range st.hist.now() {
		all[key] = obj
	}
	wrote := make(chan error, writers)
	for w := range writers {
		go func() {
			mine := map[string]T{}
			var err error
			for i := 0; i < writes && err == nil; i++ {
				c := Change[T]{Key: k.h.Key(10 + w*keys + i%keys), Delete: i%7 == 6}
				if c.Delete {
					delete(mine, c.Key)
				} else {
					c.Object = k.object()
					mine[c.Key] = c.Object
				}
				err = st.tryWrite(c)
			}
			mu.Lock()
			for key, obj := range mine {
				all[key] = obj
			}
			mu.Unlock()
			wrote <- err
		}()
	}
	var errs []error
	for range writers {
		errs = append(errs, <-wrote)
	}
	truth.Store(&all)
	close(stop)
	followers.Wait()
	for range cap(fails) {
		errs = append(errs, <-fails)
	}
	k.must(errors.Join(errs...))
	l, err := st.list(k.ctx, reflector.ListOptions{})
	k.must(err)
	if diff := st.hist.differs(l.items, all); diff != "" && !st.powers.StaleLists {
		k.fail("a list after many wrote at once: %s", diff)
	}
}

func eachRange[T any](k *kit[T]) {
	st := k.open()
	st.write(k.put(k.h.Key(0)))
	base := st.client()
	opts := reflector.WatchOptions{After: base.at}
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	type seq = func(func(reflector.Batch[T], error) bool)
	it, err := call(k.ctx, "Watch", k.h.Wait, k.h.Wait, func(context.Context) (seq, error) { return st.src.Watch(ctx, opts), nil })
	k.must(err)
	st.write(k.put(k.h.Key(1)))
	begin := func() *client[T] {
		c := &client[T]{st: st, state: items(st.hist.states[base.known], base.state), at: base.at, whole: true, exact: base.exact, known: base.known}
		c.here()
		inner, end := context.WithCancel(ctx)
		c.s = st.rangeOver(inner, end, opts, nil, func() func(func(reflector.Batch[T], error) bool) { return it })
		return c
	}
	end := func(c *client[T]) {
		c.s.mu.Lock()
		c.s.stopping = true
		c.s.mu.Unlock()
	}
	one := begin()
	k.must(one.follow("what was written before a watch was ranged over", one.current))
	two := begin() // while the first is open
	k.must(two.follow("what was told before, by a second range at the same time,", two.current))
	end(one)
	end(two)
	st.write(k.put(k.h.Key(2))) // it shows them that they are to end
	for _, c := range []*client[T]{one, two} {
		k.must(c.s.wait("yield was false"))
	}
	three := begin()
	k.must(three.follow("what was told before, by a third range,", three.current))
}

func letsPanicsThrough[T any](k *kit[T]) {
	st := k.open()
	st.write(k.put(k.h.Key(0)))
	base := st.client()
	for _, at := range []int{0, 1} {
		ctx, cancel := context.WithCancel(k.ctx)
		opts := reflector.WatchOptions{After: base.at}
		ours := deliberate{fmt.Sprintf("by the kit, in yield %d", at)}
		var s *session[T]
		ready := make(chan struct{})
		foreign, hit := false, make(chan struct{})
		s = st.watchUnder(ctx, cancel, opts, func(n int, _ event[T]) bool {
			<-ready
			if n != at {
				return true
			}
			s.mu.Lock()
			foreign = goroutine() != s.on
			s.ended = true // whatever comes after this is amiss
			s.mu.Unlock()
			close(hit)
			if foreign {
				return false // there a panic would end the program
			}
			panic(ours)
		})
		close(ready)
		if at > 0 {
			k.must(s.opens())
			st.write(k.put(k.h.Key(1))) // something to tell
		}
		if err := k.soonClosed(hit, s.done); err != nil {
			k.fail("batch %d of a watch %w", at+1, err)
		}
		k.must(s.wait("a panic of yield"))
		s.mu.Lock()
		got := s.panicked
		s.mu.Unlock()
		if !foreign && got != any(ours) {
			k.fail("yield panicked with %v, and the iterator with %v", ours, got)
		}
		k.must(s.stop())
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// soonClosed waits until one of the channels is closed.
func (k *kit[T]) soonClosed(hit, done <-chan struct{}) error {
	select {
	case <-hit:
		return nil
	default:
	}
	timer := after(k.h.Wait)
	select {
	case <-hit:
	case <-done:
		select {
		case <-hit:
		default:
			return fmt.Errorf("%w: the watch has ended before", errLate)
		}
	case <-timer:
		return fmt.Errorf("%w within %v", errLate, k.h.Wait)
	}
	return nil
}
