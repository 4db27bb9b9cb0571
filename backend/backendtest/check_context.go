package backendtest

import (
	"context"
	"errors"
	"time"

	"github.com/homeostat/homeostat/reflector"
)

func contextChecks[T any]() []check[T] {
	return []check[T]{
		{Check{"ctx/list", []string{"reflector 8"}, "List returns soon after its context ended"}, contextList[T]},
		{Check{"ctx/watch-opening", []string{"reflector 8"}, "a watch returns soon when its context ends before or while it opens"}, contextOpening[T]},
		{Check{"ctx/watch-idle", []string{"reflector 8", "reflector 1"}, "a watch returns soon when its context ends while there is nothing to tell"}, contextIdle[T]},
		{Check{"ctx/watch-busy", []string{"reflector 8"}, "a watch returns soon when its context ended while it was in yield"}, contextBusy[T]},
	}
}

// untilUp calls f with a context that ends soon, on a store that is unreachable.
func (st *store[T]) whileDown(f func(ctx context.Context)) {
	k := st.k
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
	f(ctx)
	st.do("Down (up)", func(context.Context) error { return up() })
}

func contextList[T any](k *kit[T]) {
	st := k.open()
	st.fill(5)
	list := func(ctx context.Context) {
		_, err := st.page(ctx, reflector.ListOptions{})
		if errors.Is(err, errStuck) || errors.Is(err, errPanic) {
			k.must(err)
		}
	}
	for _, d := range []time.Duration{0, time.Microsecond, 100 * time.Microsecond, time.Millisecond} {
		ctx, cancel := context.WithTimeout(k.ctx, d)
		list(ctx)
		cancel()
	}
	st.whileDown(list)
}

func contextOpening[T any](k *kit[T]) {
	st := k.open()
	st.fill(5)
	at := st.settled().at
	watch := func(ctx context.Context) {
		for _, opts := range []reflector.WatchOptions{{After: at}, {}} {
			inner, cancel := context.WithCancel(ctx)
			s := st.watchUnder(inner, cancel, opts, nil)
			<-ctx.Done()
			k.must(s.wait("the end of its context"))
			cancel()
		}
	}
	for _, d := range []time.Duration{0, time.Microsecond, 100 * time.Microsecond, time.Millisecond} {
		ctx, cancel := context.WithTimeout(k.ctx, d)
		watch(ctx)
		cancel()
	}
	st.whileDown(watch)
}

func contextIdle[T any](k *kit[T]) {
	st := k.open()
	st.fill(5)
	c := st.client()
	k.must(c.follow("the first full state", func() bool { return c.opened && c.current() }))
	// With time for whatever an idle watch does.
	k.quiet()
	k.must(c.seen())
	k.must(c.close())
	st.write(k.put(k.h.Key(0))) // for whoever notices only when there is something to tell
}

func contextBusy[T any](k *kit[T]) {
	st := k.open()
	st.fill(5)
	at := st.settled().at
	for _, wait := range []int{0, 1} { // in the first batch, in a later one
		ctx, cancel := context.WithCancel(k.ctx)
		release, held := make(chan struct{}), make(chan struct{})
		s := st.watchUnder(ctx, cancel, reflector.WatchOptions{After: at}, func(n int, _ event[T]) bool {
			if n == wait {
				close(held)
				select {
				case <-release:
				case <-k.ctx.Done():
				}
			}
			return true
		})
		if wait > 0 {
			k.must(s.opens())
		}
		st.write(k.put(k.h.Key(10)))
		if err := k.soonClosed(held, s.done); err != nil {
			k.fail("batch %d of a watch %w", wait+1, err)
		}
		st.write(k.put(k.h.Key(11)))
		cancel()
		close(release)
		k.must(s.wait("the end of its context"))
	}
}
