package informer

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/reflector"
)

// Informer keeps a cache equal to a source and tells any number of handlers what
// changes. All methods may be called from any goroutine, before, during and after
// Run.
type Informer[T any] struct {
	name  string
	src   reflector.ListWatcher[T]
	cache *indexer.Indexer[T]
	view  indexer.View[T] // the cache, as others may have it
	refl  *reflector.Reflector[T]
	log   *slog.Logger
	ctx   context.Context // Run's: the writer has long work that may be given up

	// synced is closed after the first full state was committed, stopped before
	// Run returns.
	synced, stopped chan struct{}
	// running counts the goroutines of buffered handlers, and the inline handlers
	// that are just joining, on somebody else's.
	running sync.WaitGroup

	barriers barriers
	stats    stats
	// The writer's own, only used on the goroutine of Run: scratch space, and what
	// the cache refused.
	work    plan[T]
	inline  []*handler[T]
	changes []Change[T]
	held    map[string]held[T]
	staged  *relist[T] // the full state that is staged, nil if none is
	seed    maphash.Seed

	// mu makes one step of "the cache has it" and "every handler is told of it":
	// the write of a batch with its pushes, and the snapshot of a handler that
	// joins. The index functions run under it; no handler does.
	mu       sync.Mutex
	state    state
	told     bool // the first full state is in the cache and with the handlers
	handlers []*handler[T]
	named    int // counts handlers, for their default names
	// registered is len(handlers), for those who must not wait for mu.
	registered atomic.Int32
}

type state uint8

const (
	idle state = iota
	running
	stopped
)

// New makes an Informer of what src has. Each index is kept from the first object
// on. What is faulty comes out of [Informer.Run].
func New[T any](src reflector.ListWatcher[T], opts *Options, indexes ...indexer.Indexed[T]) *Informer[T] {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Name == "" {
		o.Name = reflect.TypeFor[T]().String()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	i := &Informer[T]{
		name:    o.Name,
		src:     src,
		cache:   indexer.New(indexes...),
		log:     o.Logger,
		ctx:     context.Background(),
		synced:  make(chan struct{}),
		stopped: make(chan struct{}),
		seed:    maphash.MakeSeed(),
	}
	i.view = i.cache.View()
	i.refl = reflector.New(src, sink[T]{i}, o.reflector())
	return i
}

// Run keeps the cache equal to the source and the handlers told, until ctx ends.
// It waits for every call of a handler that has started, also for one that never
// ends, and drops what is still pending for them. The cache stays readable.
//
// Run returns nil when ctx ended it; [ErrInvalidOptions], joined with each fault,
// when it could not start; [ErrAlreadyRunning] at every call but the first; and with
// Options.StopOnPermanent a source's error that is retry.Permanent.
func (i *Informer[T]) Run(ctx context.Context) error {
	i.mu.Lock()
	if i.state != idle {
		i.mu.Unlock()
		return fmt.Errorf("informer %q: %w", i.name, ErrAlreadyRunning)
	}
	i.state = running
	i.mu.Unlock()
	// Deferred, so that waiters are let go also when an inline handler ended this
	// goroutine.
	defer i.stop()

	// Nothing is written; the cache answers with what is wrong with its indexes.
	faults := i.cache.Write(func(*indexer.Batch[T]) error { return nil })
	if faults != nil {
		// With an ended context the reflector has time to name its own, and no more.
		ended, cancel := context.WithCancel(ctx)
		cancel()
		ctx = ended
	}
	i.ctx = ctx
	err := i.refl.Run(ctx)
	switch {
	case faults == nil && err == nil:
		return nil
	case faults == nil && !errors.Is(err, reflector.ErrInvalidOptions):
		return fmt.Errorf("informer %q: %w", i.name, err) // Options.StopOnPermanent
	}
	return fmt.Errorf("informer %q: %w: %w", i.name, ErrInvalidOptions, errors.Join(faults, err))
}

// learn asks the source what it can do.
func (i *Informer[T]) learn() {
	p := i.src.Powers()
	i.barriers.learn(p.Reached, p.StaleLists)
}

// stop ends every subscription and waits for the last calls.
func (i *Informer[T]) stop() {
	i.mu.Lock()
	i.state = stopped
	handlers := i.handlers
	i.handlers = nil
	i.registered.Store(0)
	i.mu.Unlock()
	close(i.stopped)
	for _, h := range handlers {
		h.end()
		h.buf.Close()
	}
	i.running.Wait()
}

// Name is Options.Name.
func (i *Informer[T]) Name() string { return i.name }

// Cache is the state that the source had when it was last heard. Reads never wait
// for the source, for handlers or for writes. Empty until the first list is
// complete; readable also after Run. Nobody can write through it.
func (i *Informer[T]) Cache() indexer.View[T] { return i.view }

// Synced says that the cache has had a complete list of its source. It stays
// true. [Subscription.WaitForSync] says the same of one handler.
func (i *Informer[T]) Synced() bool {
	select {
	case <-i.synced:
		return true
	default:
		return false
	}
}

// WaitForSync waits until the cache holds a complete list of its source. The
// error is a *[WaitError] with what the source is doing, since when, how many
// attempts failed and why the last one did; its cause is the context's, or
// [ErrStopped] when Run returned before.
func (i *Informer[T]) WaitForSync(ctx context.Context) error {
	if i.Synced() {
		return nil
	}
	select {
	case <-i.synced:
		return nil
	case <-i.stopped:
		if i.Synced() {
			return nil
		}
		return i.waitError("", "the first list", ErrStopped)
	case <-ctx.Done():
		return i.waitError("", "the first list", context.Cause(ctx))
	}
}

// Until waits until the cache is in a state that ok accepts. ok is called on the
// caller's goroutine, at once and then with later states; states that follow each
// other quickly may be skipped. It does not wait for the first list: ok decides
// what an empty cache means.
//
// The error is a *[WaitError] with the context's cause, or with [ErrStopped] once
// Run has returned, for no other state will come; or an *indexer.PanicError of ok.
func (i *Informer[T]) Until(ctx context.Context, ok func(*indexer.Snapshot[T]) bool) error {
	waiting, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	defer func() {
		cancel(nil)
		<-ended
	}()
	go func() {
		defer close(ended)
		select {
		case <-i.stopped:
			cancel(ErrStopped)
		case <-waiting.Done():
		}
	}()
	err := i.cache.Until(waiting, ok)
	if errors.Is(err, ErrStopped) {
		// The last state may have come just before: look once more.
		err = i.cache.Until(waiting, ok)
	}
	if errors.Is(err, context.Cause(waiting)) && err != nil {
		return i.waitError("", "a state of the cache", err)
	}
	return err
}

// Relist asks the reflector for a new full state, whatever the watch says; reason
// goes into its log. It returns at once. Objects that did not change cause no
// event.
func (i *Informer[T]) Relist(reason string) { i.refl.Relist(reason) }

func (i *Informer[T]) waitError(handler, what string, cause error) *WaitError {
	s := i.refl.Status()
	return &WaitError{
		Informer: i.name,
		Handler:  handler,
		For:      what,
		State:    s.State,
		Since:    s.Since,
		Failures: s.Failures,
		Err:      s.Err,
		Cause:    cause,
	}
}

// ConfirmDeletes lets a list through that is held for what it would delete
// (Options.MaxDelete), if it still deletes no more than Status.Source.WouldDelete
// says; it is taken anew, at once. It is false when none is held.
func (i *Informer[T]) ConfirmDeletes() bool { return i.refl.ConfirmDeletes() }
