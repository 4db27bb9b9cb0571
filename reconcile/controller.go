package reconcile

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/workqueue"
)

// Controller calls a [Func] for each key that something happened to. Make one
// with [New]. All methods may be called from any goroutine, except that Only,
// Reads, [Watch] and [WatchFunc] belong before Run.
type Controller[T any] struct {
	name     string
	in       *informer.Informer[T]
	f        Func[T]
	opts     Options
	log      *slog.Logger
	queue    *workqueue.Queue[string]
	history  history
	seed     maphash.Seed // spreads the phases of Every
	timedOut error        // the cause of a run's context after Options.Timeout

	mu      sync.Mutex
	state   State
	since   time.Time // of state
	started time.Time // of Run; phases are counted from here
	faults  []error   // of the wiring, answered by Run
	only    func(informer.Change[T]) bool
	feeds   []feed
	needs   []Runner
	keys    map[string]*keyState[T]
	counts  Counts
	barred  int
}

// keyState is what is remembered of a key beside the queue; the entry goes when
// all of it is zero.
type keyState[T any] struct {
	causes    []Trigger
	last      *T        // what the object was before it went
	conflicts int       // in a row
	due       time.Time // the next look of Every
	run       *run      // at work, or held afterwards for what it wrote
}

func (s *keyState[T]) empty() bool {
	return len(s.causes) == 0 && s.last == nil && s.conflicts == 0 && s.due.IsZero() && s.run == nil
}

// State is where a controller stands in its life.
type State uint8

// The states, in the order in which they follow each other.
const (
	Idle     State = iota // Run was not called yet
	Waiting               // for its informers' first lists
	Running               // workers take keys
	Stopping              // no key is taken any more; what runs may end
	Stopped               // Run has returned
)

var stateNames = [...]string{"idle", "waiting", "running", "stopping", "stopped"}

// String is the state's name in lower case.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// MarshalText is String.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// New makes a controller that calls f for each key of in that was added, updated
// or deleted; [Watch] adds other triggers. The name shows up in errors, logs and
// explanations; it must not be empty, and no two controllers of one Run may share it.
// nil opts are the defaults.
//
// Nothing starts before Run, and whatever is wrong with the arguments is returned
// by Run, matching [ErrInvalidOptions].
func New[T any](name string, in *informer.Informer[T], f Func[T], opts *Options) *Controller[T] {
	c := &Controller[T]{
		name: name, in: in, f: f,
		seed: maphash.MakeSeed(),
		keys: map[string]*keyState[T]{},
	}
	if opts != nil {
		c.opts = *opts
	}
	c.fault(c.opts.validate())
	if name == "" {
		c.invalid("a controller needs a name")
	}
	if in == nil {
		c.invalid("controller %q has no informer", name)
	} else {
		c.feeds = append(c.feeds, ownFeed[T]{c})
		c.needs = append(c.needs, in)
	}
	if f == nil {
		c.invalid("controller %q has no function", name)
	}
	if c.opts.Workers == 0 {
		c.opts.Workers = defaultWorkers
	}
	if c.opts.Logger == nil {
		c.opts.Logger = slog.New(slog.DiscardHandler)
	}
	c.log = c.opts.Logger.With("controller", name)
	c.timedOut = fmt.Errorf("%w after %v: %w", ErrTimeout, c.opts.Timeout, context.DeadlineExceeded)
	c.queue = workqueue.New(&workqueue.Options[string]{Name: name, Backoff: c.opts.Backoff, Park: c.opts.Park})
	return c
}

// Name is the name that New was given.
func (c *Controller[T]) Name() string { return c.name }

// Needs are the informers that must run, and be synced, for this controller to
// work: its own, those it watches, and what Reads named.
func (c *Controller[T]) Needs() []Runner {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.needs)
}

// Only says which changes of the controller's own objects trigger: those for
// which f is true. It is a filter for what would do nothing; f is called on the
// informer's goroutine and must be quick. A panic in it counts as true. What
// Watch, Trigger and Options.Every bring is not asked about. It is also how a Func
// that writes to its own objects each time is kept from triggering itself (see the
// package documentation, What you return).
//
// A second Only narrows the first. It panics after Run was called.
func (c *Controller[T]) Only(f func(informer.Change[T]) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wiringLocked("Only")
	switch first := c.only; {
	case f == nil:
		c.faultLocked(fmt.Errorf("%w: controller %q: Only without a function", ErrInvalidOptions, c.name))
	case first == nil:
		c.only = f
	default:
		c.only = func(ch informer.Change[T]) bool { return first(ch) && f(ch) }
	}
}

// Reads names informers that the function reads besides its own, so that they are
// run and synced before it. They trigger nothing. It panics after Run was called.
func (c *Controller[T]) Reads(others ...Runner) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wiringLocked("Reads")
	for _, r := range others {
		if r = unwrap(r); r == nil {
			c.faultLocked(fmt.Errorf("%w: controller %q reads nil", ErrInvalidOptions, c.name))
			continue
		}
		c.needs = append(c.needs, r)
	}
}

// Trigger makes key run, whether there is an object under it or not. It never
// waits. Before Run it is remembered; after Run it does nothing.
func (c *Controller[T]) Trigger(key, reason string) { c.trigger(reason, key) }

// TriggerAll triggers each key that the cache has an object for.
func (c *Controller[T]) TriggerAll(reason string) {
	if c.in == nil {
		return
	}
	snap := c.in.Cache().Snapshot()
	keys := make([]string, 0, snap.Len())
	for key := range snap.All() {
		keys = append(keys, key)
	}
	c.trigger(reason, keys...)
}

func (c *Controller[T]) trigger(reason string, keys ...string) {
	now := time.Now()
	c.mu.Lock()
	for _, key := range keys {
		c.noteLocked(key, "trigger", key, reason, now)
	}
	c.mu.Unlock()
	c.queue.Add(keys...)
}

// noteLocked remembers why key will run. It comes before the queue's Add, so that
// the run which the Add makes finds its cause.
func (c *Controller[T]) noteLocked(key, source, srcKey, reason string, now time.Time) {
	if c.state >= Stopping {
		return // nobody will take it
	}
	s := c.keyLocked(key)
	s.causes = addCause(s.causes, source, srcKey, reason, now)
}

func (c *Controller[T]) keyLocked(key string) *keyState[T] {
	s := c.keys[key]
	if s == nil {
		s = &keyState[T]{}
		c.keys[key] = s
	}
	return s
}

func (c *Controller[T]) dropLocked(key string, s *keyState[T]) {
	if s.empty() {
		delete(c.keys, key)
	}
}

func (c *Controller[T]) allFeeds() []feed {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.feeds)
}

// item reads the cache.
func (c *Controller[T]) item(key string) (object.Item[T], bool) { return c.in.Cache().Item(key) }

func (c *Controller[T]) wiringLocked(what string) {
	if c.state != Idle {
		panic(fmt.Sprintf("reconcile: %s on controller %q after Run", what, c.name))
	}
}

func (c *Controller[T]) invalid(format string, args ...any) {
	c.fault(fmt.Errorf("%w: %w", ErrInvalidOptions, fmt.Errorf(format, args...)))
}

func (c *Controller[T]) fault(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faultLocked(err)
}

func (c *Controller[T]) faultLocked(err error) {
	if err != nil {
		c.faults = append(c.faults, err)
	}
}

func (c *Controller[T]) wiringError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.faults...)
}
