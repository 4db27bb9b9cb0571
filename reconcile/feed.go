package reconcile

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
)

// feed brings changes of one informer to a controller.
type feed interface {
	// start subscribes; after stop nothing comes any more.
	start(l *lifetime) (stop func())
	status() WatchStatus
	// busy are the keys that user code has not returned from.
	busy() []string
}

// subscribe is how every feed listens: on the informer's own goroutine, since all
// it does is to put keys into a queue.
func subscribe[U any](in *informer.Informer[U], name string, log *slog.Logger, f func([]informer.Change[U])) (stop func()) {
	return in.AddBatchHandler(f, &informer.HandlerOptions{Name: name, Inline: true, Logger: log}).Cancel
}

// ownFeed triggers by the controller's own objects.
type ownFeed[T any] struct{ c *Controller[T] }

func (f ownFeed[T]) start(*lifetime) func() {
	return subscribe(f.c.in, "controller "+f.c.name, f.c.log, f.handle)
}

func (f ownFeed[T]) status() WatchStatus { return WatchStatus{Source: f.c.in.Name()} }
func (f ownFeed[T]) busy() []string      { return nil }

func (f ownFeed[T]) handle(changes []informer.Change[T]) {
	c, now := f.c, time.Now()
	due := make([]int, 0, len(changes))
	var quiet []string // not to run now, but by Every
	for i := range changes {
		switch ch := &changes[i]; {
		case c.wants(ch):
			due = append(due, i)
		case ch.Type == informer.Added:
			quiet = append(quiet, ch.Key)
		}
	}
	keys := make([]string, len(due))
	c.mu.Lock()
	for n, i := range due {
		ch := &changes[i]
		keys[n] = ch.Key
		c.noteLocked(ch.Key, c.in.Name(), ch.Key, reasonOf(ch.Type, ch.Cause), now)
		if ch.Type == informer.Deleted && c.state < Stopping {
			gone := ch.Last
			c.keyLocked(ch.Key).last = &gone
		}
	}
	c.mu.Unlock()
	c.queue.Add(keys...)
	for _, key := range quiet {
		c.lookLater(key)
	}
}

// wants asks Only. A predicate that panics has not said no.
func (c *Controller[T]) wants(ch *informer.Change[T]) (yes bool) {
	if c.only == nil {
		return true
	}
	defer func() {
		if v := recover(); v != nil {
			err := caught(fmt.Sprintf("Only of controller %q, key %q", c.name, ch.Key), v)
			c.log.Error("a predicate panicked; its change triggers", "key", ch.Key, "err", err, "stack", string(err.Stack))
			yes = true
		}
	}()
	return c.only(*ch)
}

// reasonOf is a change in words; how it came to light only when that is not by the
// watch.
func reasonOf(t informer.Type, cause object.Cause) string {
	if int(t) < len(reasons) && int(cause) < len(reasons[t]) && reasons[t][cause] != "" {
		return reasons[t][cause]
	}
	return t.String()
}

// reasons are made once: one is needed for every event.
var reasons = func() (all [informer.Deleted + 1][object.Audit + 1]string) {
	for _, t := range []informer.Type{informer.Added, informer.Updated, informer.Deleted} {
		for cause := range object.Audit + 1 {
			all[t][cause] = t.String()
			if cause != 0 && cause != object.Watched {
				all[t][cause] += " (" + cause.String() + ")"
			}
		}
	}
	return all
}()

// Watch adds triggers from objects of any type: when one of in's is added,
// updated or deleted, the keys that keys gives for its old and for its new state
// run, each once. An index's Keys fits, so that one function both says whose an
// object is and finds what somebody owns.
//
// keys is called on the informer's goroutine and must be quick; for what is not,
// or may fail, there is [WatchFunc]. A panic in it is logged with its stack and
// counted in [Status]; the keys of that state are then not triggered.
//
// It panics after c's Run was called.
func Watch[T, U any](c *Controller[T], in *informer.Informer[U], keys func(U) []string) {
	w := &watch[T, U]{c: c, in: in, keys: keys}
	c.wire("Watch", in == nil || keys == nil, in, w)
}

// wire enters a feed, or a fault.
func (c *Controller[T]) wire(what string, faulty bool, in Runner, f feed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wiringLocked(what)
	if faulty {
		c.faultLocked(fmt.Errorf("%w: controller %q: %s without an informer or a function", ErrInvalidOptions, c.name, what))
		return
	}
	c.needs = append(c.needs, in)
	c.feeds = append(c.feeds, f)
}

type watch[T, U any] struct {
	c    *Controller[T]
	in   *informer.Informer[U]
	keys func(U) []string

	mu   sync.Mutex
	stat WatchStatus
}

func (w *watch[T, U]) start(*lifetime) func() {
	return subscribe(w.in, "controller "+w.c.name, w.c.log, w.handle)
}

func (w *watch[T, U]) busy() []string { return nil }

func (w *watch[T, U]) status() WatchStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stat
	s.Source = w.in.Name()
	return s
}

// mapped is one key to run, and the change that says so.
type mapped struct{ key, by, reason string }

func (w *watch[T, U]) handle(changes []informer.Change[U]) {
	due := make([]mapped, 0, len(changes))
	for i := range changes {
		ch := &changes[i]
		from := len(due)
		add := func(obj U) {
			for _, key := range w.ask(ch.Key, obj) {
				m := mapped{key, ch.Key, reasonOf(ch.Type, ch.Cause)}
				if !slices.Contains(due[from:], m) {
					due = append(due, m)
				}
			}
		}
		if ch.Type != informer.Added {
			add(ch.Old)
		}
		if ch.Type != informer.Deleted {
			add(ch.New)
		}
	}
	w.c.deliver(w.in.Name(), due)
}

// ask calls keys, and contains its panics.
func (w *watch[T, U]) ask(key string, obj U) (keys []string) {
	defer func() {
		if v := recover(); v != nil {
			err := caught(fmt.Sprintf("a Watch of controller %q on %s, key %q", w.c.name, w.in.Name(), key), v)
			w.mu.Lock()
			w.stat.Failures++
			w.stat.Key, w.stat.Err = key, err
			w.mu.Unlock()
			w.c.log.Error("a watch's keys panicked; what they are is not known", "source", w.in.Name(), "key", key, "err", err, "stack", string(err.Stack))
		}
	}()
	return w.keys(obj)
}

// deliver triggers what was mapped.
func (c *Controller[T]) deliver(source string, due []mapped) {
	if len(due) == 0 {
		return
	}
	now := time.Now()
	keys := make([]string, len(due))
	c.mu.Lock()
	for i, m := range due {
		keys[i] = m.key
		c.noteLocked(m.key, source, m.by, m.reason, now)
	}
	c.mu.Unlock()
	c.queue.Add(keys...)
}
