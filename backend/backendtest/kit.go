package backendtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// kit is what one check works with. Its methods that answer no error end the check
// when something is amiss, and are for the check's own goroutine.
type kit[T any] struct {
	run    *run[T]
	h      Harness[T]
	ctx    context.Context // of this check alone
	name   string
	stores []*store[T]

	mu       sync.Mutex
	objects  int // how many were made
	sessions []*session[T]
	stuck    error
}

// fail ends the check.
func (k *kit[T]) fail(format string, args ...any) {
	panic(verdict{err: fmt.Errorf(format, args...)})
}

// must ends the check if there is an error.
func (k *kit[T]) must(err error) {
	if err != nil {
		panic(verdict{err: err})
	}
}

// skip ends the check, since there is no such thing.
func (k *kit[T]) skip(lack string) {
	k.run.lack(lack)
	panic(verdict{skipped: lack})
}

// need skips the check if there is no such thing.
func (k *kit[T]) need(lack string, there bool) {
	if !there {
		k.skip(lack)
	}
}

// note keeps what the check named owner is to judge.
func (k *kit[T]) note(owner, format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if owner != k.name {
		err = fmt.Errorf("during %s: %w", k.name, err)
	}
	k.run.note(owner, err)
}

// object makes one that was not there before.
func (k *kit[T]) object() T {
	k.mu.Lock()
	n := k.objects
	k.objects++
	k.mu.Unlock()
	return k.h.Object(n)
}

// quiet listens for what must not come.
func (k *kit[T]) quiet() { k.sleep(k.h.Quiet) }

func (k *kit[T]) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-k.ctx.Done():
		k.must(k.ctx.Err())
	}
}

// soon asks again and again, for as long as the kit waits, until f has no error;
// the error is f's last.
func (k *kit[T]) soon(f func() error) error {
	end := time.Now().Add(k.h.Wait)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		err := f()
		if err == nil || errors.Is(err, errStuck) || errors.Is(err, errPanic) || time.Now().After(end) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-k.ctx.Done():
			return errors.Join(k.ctx.Err(), err)
		}
	}
}

// harnessTime is how long a function of the harness may take.
func (k *kit[T]) harnessTime() time.Duration { return max(6*k.h.Wait, time.Minute) }

// open makes a fresh store for this check.
func (k *kit[T]) open() *store[T] {
	fx, err := call(k.ctx, "Harness.New", k.harnessTime(), k.h.Wait, k.h.New)
	k.must(err)
	if fx == nil || fx.Source == nil {
		k.fail("%w: New gives no Source", ErrHarness)
	}
	st := &store[T]{k: k, fx: fx, hist: newHistory(k.h.Equal), seen: &registry[T]{}}
	k.stores = append(k.stores, st)
	st.use(fx.Source)
	return st
}

// close ends what the check has begun: watches first, then stores.
func (k *kit[T]) close() error {
	k.mu.Lock()
	sessions := k.sessions
	k.mu.Unlock()
	var all []error
	for _, s := range sessions {
		all = append(all, s.stop())
	}
	for _, st := range k.stores {
		if st.fx.Close != nil {
			_, err := call(context.WithoutCancel(k.ctx), "Fixture.Close", k.harnessTime(), k.h.Wait,
				func(context.Context) (struct{}, error) { return struct{}{}, st.fx.Close() })
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

func nowPlus(d time.Duration) time.Time { return time.Now().Add(d) }

func after(d time.Duration) <-chan time.Time { return time.After(d) }
