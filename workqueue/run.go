package workqueue

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// Run calls work for each due key, on so many goroutines, until ctx ends or the
// queue is closed. It then takes no more keys, waits for the work under way, and
// returns nil; what is queued stays queued. work gets ctx as it is, and what it
// returns decides about the key as in [Queue.Done]; a panic is a failure with a
// [*PanicError].
//
// It may be called again after it returned, and several times at once: the
// workers add up. It returns an error only for faulty options, no workers, or no
// work.
func (q *Queue[K]) Run(ctx context.Context, workers int, work func(context.Context, K) error) error {
	if q.fault != nil {
		return q.fault
	}
	if workers < 1 {
		return fmt.Errorf("%w: %q: %d workers", ErrInvalidOptions, q.opts.Name, workers)
	}
	if work == nil {
		return fmt.Errorf("%w: %q: no work", ErrInvalidOptions, q.opts.Name)
	}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() { q.worker(ctx, &all, work) })
	}
	all.Wait()
	return nil
}

func (q *Queue[K]) worker(ctx context.Context, all *sync.WaitGroup, work func(context.Context, K) error) {
	for {
		key, err := q.Get(ctx)
		if err != nil {
			return // ctx ended or the queue is closed: nothing else comes out here
		}
		returned := false
		func() {
			defer func() {
				if returned {
					return
				}
				// work ended the goroutine (t.FailNow does). The key is given back,
				// and another worker takes the place of this one.
				q.done(key, judge(errGoexit))
				all.Go(func() { q.worker(ctx, all, work) })
			}()
			v := contain(ctx, key, work)
			returned = true
			q.done(key, v)
		}()
	}
}

// contain is the boundary at which a panic of work is caught; reading the outcome
// is inside, for it calls methods of the user's errors. (A runtime.Goexit passes:
// it can't be stopped.)
func contain[K comparable](ctx context.Context, key K, work func(context.Context, K) error) (v verdict) {
	defer func() {
		if p := recover(); p != nil {
			v = verdict{err: &PanicError{Key: key, Value: p, Stack: debug.Stack()}}
		}
	}()
	return judge(work(ctx, key))
}
