package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

func convergeChecks[T any]() []check[T] {
	return []check[T]{
		{Check{"converge", []string{"reflector 3", "reflector 4", "reflector 10"}, "a reflector over the source ends at the store's state after random writes, cuts and compactions, and finds no rule broken"}, converge[T]},
	}
}

// reopen is how long the reflector waits, at least, between two watches.
const reopen = time.Millisecond

func converge[T any](k *kit[T]) {
	st := k.open()
	st.write(k.put(k.h.Key(0)))
	sink := &sink[T]{state: map[string]object.Item[T]{}}
	r := reflector.New[T](st.src, sink, &reflector.Options{
		Name:       "backendtest",
		Backoff:    retry.Backoff{Base: reopen, Max: 20 * time.Millisecond},
		PageSize:   7,
		ResetAfter: k.h.Wait / 10,
	})
	ctx, cancel := context.WithCancel(k.ctx)
	done := make(chan error, 1)
	go func() {
		_, err := call(ctx, "a reflector's Run", time.Duration(1<<62), k.h.Wait, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, r.Run(ctx)
		})
		done <- err
	}()
	var broken error
	equal := func() error {
		status := r.Status()
		if errors.Is(status.Err, reflector.ErrContract) {
			broken = status.Err
		}
		if diff := sink.differs(st.hist); diff != "" {
			return errors.Join(fmt.Errorf("a reflector has not come to the present state: %s; it is %v", diff, status.State), status.Err)
		}
		return nil
	}
	err := k.soon(equal)
	rnd := rand.New(rand.NewPCG(1, 2))
	proven := st.powers.ResumeProven || !st.positional()
	for i := 0; i < 8 && err == nil; i++ {
		for range 1 + rnd.IntN(6) {
			key := k.h.Key(rnd.IntN(12))
			if rnd.IntN(3) == 0 {
				st.write(k.gone(key))
			} else {
				st.write(k.put(key))
			}
		}
		// Of what is forgotten nothing is promised before the next full state, unless
		// resumes are proven.
		switch {
		case i%4 == 0:
			st.may(st.fx.Cut)
		case i%4 == 1 && proven:
			st.may(st.fx.Compact)
		case i%4 == 2 && proven:
			st.may(st.fx.Forget)
		case i%4 == 3:
			r.Relist("the kit wants to see one")
		}
		// Before, while and after the reflector opens another watch.
		for range 4 {
			st.write(k.put(k.h.Key(rnd.IntN(12))))
			k.sleep(reopen / 2)
		}
		err = k.soon(equal)
	}
	cancel()
	k.must(errors.Join(<-done, err))
	if broken == nil && errors.Is(r.Status().Err, reflector.ErrContract) {
		broken = r.Status().Err
	}
	k.must(broken)
}

// may is do, for what there may not be.
func (st *store[T]) may(f func(context.Context) error) {
	if f == nil {
		return
	}
	k := st.k
	_, err := call(k.ctx, "the harness", k.harnessTime(), k.h.Wait, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	if !errors.Is(err, errors.ErrUnsupported) {
		k.must(err)
	}
}

// sink is the simplest one.
type sink[T any] struct {
	mu    sync.Mutex
	state map[string]object.Item[T]
}

func (s *sink[T]) differs(h *history[T]) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return h.differs(s.state, h.now())
}

// Apply takes a live batch.
func (s *sink[T]) Apply(b reflector.Batch[T], _ object.Cause) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	apply(s.state, b.Events)
	return nil
}

// Begin begins a full state.
func (s *sink[T]) Begin(object.Cause) reflector.Relist[T] {
	return &relist[T]{sink: s, items: map[string]object.Item[T]{}}
}

type relist[T any] struct {
	sink  *sink[T]
	items map[string]object.Item[T]
}

func (r *relist[T]) Stage(items []object.Item[T]) error {
	for _, item := range items {
		r.items[item.Key] = item
	}
	return nil
}

func (r *relist[T]) Unstage(key string) { delete(r.items, key) }
func (r *relist[T]) Distrust()          {}

func (r *relist[T]) Commit(reflector.Cursor) error {
	r.sink.mu.Lock()
	defer r.sink.mu.Unlock()
	r.sink.state = r.items
	return nil
}

func (r *relist[T]) StageKeys([]object.Item[T]) error { return nil }
func (r *relist[T]) Keep([]reflector.Fault)           {}
func (r *relist[T]) Diff() reflector.Diff             { return reflector.Diff{} }
func (r *relist[T]) Unchanged(reflector.Cursor) error { return nil }
func (r *relist[T]) Abort()                           {}
