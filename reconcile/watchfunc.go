package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/retry"
	"github.com/homeostat/homeostat/workqueue"
)

// WatchFunc is [Watch] for what needs the change itself, takes its time, or may
// fail: keys is called on goroutines of the controller's own, in order for each
// object, and never for one object twice at once. What it returns runs.
//
// An error is retried with the controller's backoff, or as the words of package
// retry say; the changes of that object wait meanwhile, those of others do not.
// A change that fails with retry.Permanent is given up, and the next one's turn has
// come. Failures are logged and shown in [Status]; retry.Later is none. Of one
// object at most eight changes wait: beyond that all keys of the controller's cache
// are triggered in place of the oldest ones, at the next attempt, and by backoff
// when that goes on.
//
// A panic is a failure. It panics itself after c's Run was called.
func WatchFunc[T, U any](c *Controller[T], in *informer.Informer[U], keys func(context.Context, informer.Change[U]) ([]string, error)) {
	w := &watchFunc[T, U]{c: c, in: in, keys: keys, pending: map[string][]numbered[U]{}, calling: map[string]bool{}, lost: map[string]bool{}}
	c.wire("WatchFunc", in == nil || keys == nil, in, w)
}

// maxPending is how many changes of one object wait to be mapped. They are not
// merged: each may name keys that no other does, of which one may have looked at
// just that state.
const maxPending = 8

type watchFunc[T, U any] struct {
	c     *Controller[T]
	in    *informer.Informer[U]
	keys  func(context.Context, informer.Change[U]) ([]string, error)
	queue *workqueue.Queue[string]

	mu      sync.Mutex
	stopped bool
	pending map[string][]numbered[U]
	count   uint64
	calling map[string]bool
	lost    map[string]bool // objects of which changes were pushed out, not made up for yet
	next    time.Time       // not before is it made up for, while changes go on waiting
	times   int             // in a row that it was, without a change that was mapped
	stat    WatchStatus
}

// numbered is a change that waits. Its number tells it from others: the one that
// is being mapped may be pushed out meanwhile.
type numbered[U any] struct {
	informer.Change[U]
	n uint64
}

func (w *watchFunc[T, U]) start(l *lifetime) func() {
	w.queue = workqueue.New(&workqueue.Options[string]{
		Name: fmt.Sprintf("%s/%s", w.c.name, w.in.Name()), Backoff: w.c.opts.Backoff,
	})
	stop := subscribe(w.in, "controller "+w.c.name, w.c.log, w.handle)
	for range w.c.opts.Workers {
		l.crew.hire(func() { w.work(l) })
	}
	return func() {
		stop()
		w.mu.Lock()
		w.stopped = true
		clear(w.pending)
		clear(w.lost)
		w.mu.Unlock()
		w.queue.Abort()
	}
}

func (w *watchFunc[T, U]) handle(changes []informer.Change[U]) {
	keys := make([]string, len(changes))
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return
	}
	for i := range changes {
		ch := changes[i]
		keys[i] = ch.Key
		w.count++
		list := append(w.pending[ch.Key], numbered[U]{ch, w.count})
		if len(list) > maxPending {
			list = slices.Delete(list, 0, 1)
			w.lost[ch.Key] = true
		}
		w.pending[ch.Key] = list
	}
	w.mu.Unlock()
	w.queue.Add(keys...)
}

// work maps the changes of one object after the other until the intake ends.
func (w *watchFunc[T, U]) work(l *lifetime) {
	ended := false
	defer func() {
		if !ended { // keys called runtime.Goexit
			l.crew.hire(func() { w.work(l) })
		}
	}()
	for {
		key, err := w.queue.Get(l.intake)
		if err != nil {
			ended = true
			return
		}
		w.one(l, key)
	}
}

func (w *watchFunc[T, U]) one(l *lifetime, key string) {
	err := error(&PanicError{Where: w.where(key), Value: "runtime.Goexit was called"})
	defer func() {
		w.mu.Lock()
		delete(w.calling, key)
		w.mu.Unlock()
		if err != nil {
			w.failed(l.intake, key, err)
			w.catchUp(key, false)
		}
		_ = w.queue.Done(key, err)
	}()
	err = w.mapAll(l.intake, key)
}

// failed tells of an error, unless it is none or the end's.
func (w *watchFunc[T, U]) failed(ctx context.Context, key string, err error) {
	if ctx.Err() != nil || retry.IsLater(err) {
		return
	}
	w.mu.Lock()
	w.stat.Failures++
	w.stat.Key, w.stat.Err = key, err
	w.mu.Unlock()
	w.c.log.Warn("a change could not be mapped to keys", "source", w.in.Name(), "key", key, "err", err)
}

// mapAll maps what waits of one object, oldest first. A change leaves only when it
// was mapped, or never will be.
func (w *watchFunc[T, U]) mapAll(ctx context.Context, key string) error {
	for {
		w.mu.Lock()
		list := w.pending[key]
		if len(list) == 0 {
			delete(w.pending, key)
			w.mu.Unlock()
			w.catchUp(key, true)
			return nil
		}
		first := list[0]
		w.calling[key] = true
		w.mu.Unlock()
		err := w.mapOne(ctx, first.Change)
		if err != nil {
			if !retry.IsPermanent(err) {
				return err
			}
			w.failed(ctx, key, err)
		}
		w.mu.Lock()
		if list = w.pending[key]; len(list) > 0 && list[0].n == first.n {
			w.pending[key] = slices.Delete(list, 0, 1)
		}
		if err == nil {
			w.times = 0
			if w.stat.Key == key {
				w.stat.Key, w.stat.Err = "", nil
			}
		}
		w.mu.Unlock()
		w.catchUp(key, false)
	}
}

// catchUp makes up for changes of key that were pushed out, and by that for those
// of all objects. It costs as much as there are keys: so it is done here, where no
// informer waits for it, and no more often than the backoff says. When the last
// change of key has gone (last), nothing would come back to it: then it is done now.
func (w *watchFunc[T, U]) catchUp(key string, last bool) {
	now := time.Now()
	w.mu.Lock()
	due := w.lost[key] && (last || !now.Before(w.next))
	if due {
		clear(w.lost)
		w.times++
		w.next = now.Add(w.c.opts.Backoff.Delay(w.times))
	}
	w.mu.Unlock()
	if due {
		w.c.TriggerAll("changes of " + w.in.Name() + " that were not mapped")
	}
}

func (w *watchFunc[T, U]) mapOne(ctx context.Context, ch informer.Change[U]) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = caught(w.where(ch.Key), v)
		}
	}()
	keys, err := w.keys(ctx, ch)
	if err != nil {
		readable(err)
		return err
	}
	due := make([]mapped, 0, len(keys))
	for _, key := range keys {
		if m := (mapped{key, ch.Key, reasonOf(ch.Type, ch.Cause)}); !slices.Contains(due, m) {
			due = append(due, m)
		}
	}
	w.c.deliver(w.in.Name(), due)
	return nil
}

func (w *watchFunc[T, U]) where(key string) string {
	return fmt.Sprintf("a WatchFunc of controller %q on %s, key %q", w.c.name, w.in.Name(), key)
}

func (w *watchFunc[T, U]) status() WatchStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stat
	s.Source = w.in.Name()
	for _, list := range w.pending {
		s.Pending += len(list)
	}
	return s
}

func (w *watchFunc[T, U]) busy() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.calling))
}
