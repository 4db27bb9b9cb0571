package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/homeostat/homeostat/reflector"
)

// Client is one type, ready for reconcilers: an informer to read from and a
// backend to write to. Cache().Get(key) reads the cache, Get(ctx, key) the store.
//
// A write made with a run's context is remembered: the key whose run it was does
// not run again before this informer's cache provably contains it, whatever the
// type. So a run always sees what the runs of its key before it did. Only that
// key waits, and no worker does. A write belongs to the run if it begins before
// the run's Func returned; one made with another context, as by a goroutine that
// goes on, is not remembered.
//
// A controller of parents that keeps children reads like this:
//
//	apps := NewClient(backend.WithFinalizers(appStore), nil)
//	pods := NewClient(podStore, nil, byOwner)
//	c := New("apps", apps.Informer, Finalize(apps, "apps/cleanup", cleanup, sync), nil)
//	Watch(c, pods.Informer, byOwner.Keys)
//	err := Run(ctx, c)
//
// In a run a Client refuses to write while its cache is not synced, with an error
// that matches [ErrNotSynced]: an empty cache that has seen nothing must not make
// anybody create what is there already. Outside a run it just writes.
type Client[T any] struct {
	*informer.Informer[T]
	backend.Backend[T]
}

// NewClient makes both halves over one backend, which must be there. The informer has to be run: by
// naming it to a controller (New, Watch, Reads) or to [Run].
func NewClient[T any](b backend.Backend[T], opts *informer.Options, indexes ...indexer.Indexed[T]) Client[T] {
	in := informer.New(b, opts, indexes...)
	return Client[T]{Informer: in, Backend: Tracked(in, b)}
}

// runner lets a Client stand for its informer, wherever a Runner is asked for.
func (c Client[T]) runner() Runner {
	if c.Informer == nil {
		return nil
	}
	return c.Informer
}

// Tracked is the writing half of a [Client] for an informer that is there
// already: b, whose writes in a run are remembered and waited for in the cache of
// in. Its reads, Powers and Get are b's own. Both arguments must be there.
func Tracked[T any](in *informer.Informer[T], b backend.Backend[T]) backend.Backend[T] {
	if in == nil || b == nil {
		panic("reconcile: Tracked needs an informer and a backend")
	}
	return &tracked[T]{Backend: b, in: in, stale: sync.OnceValue(func() bool { return b.Powers().StaleLists })}
}

// Wrote remembers, on the run that ctx belongs to, a write that was made by other
// means than a tracked backend, and has returned. v is the version that it made;
// "" when there is none, or when the object was deleted, or may have been
// written: then the key waits for a list. Outside a run it does nothing.
func Wrote[T any](ctx context.Context, in *informer.Informer[T], key string, v object.Version) {
	r := runOf(ctx)
	if r == nil || in == nil {
		return
	}
	if w := r.begin(in.Name(), key, in.Status().StaleLists); w != nil {
		w.await(v, func(ctx context.Context) error { return in.WaitFor(ctx, key, v) })
	}
}

// tracked overrides the writes; everything else is the inner backend's.
type tracked[T any] struct {
	backend.Backend[T]
	in    *informer.Informer[T]
	stale func() bool // its lists may be older than they should be
	dry   bool        // refuses like the real one, remembers nothing
}

func (t *tracked[T]) DryRun() (backend.Backend[T], error) {
	inner, err := t.Backend.DryRun()
	if err != nil {
		return nil, err
	}
	return &tracked[T]{Backend: inner, in: t.in, dry: true}, nil
}

func (t *tracked[T]) Create(ctx context.Context, key string, obj T) (object.Item[T], error) {
	return t.write(ctx, "create", key, func() (object.Item[T], error) { return t.Backend.Create(ctx, key, obj) })
}

func (t *tracked[T]) Update(ctx context.Context, item object.Item[T]) (object.Item[T], error) {
	return t.write(ctx, "update", item.Key, func() (object.Item[T], error) { return t.Backend.Update(ctx, item) })
}

func (t *tracked[T]) Patch(ctx context.Context, key string, p patch.Patch, v object.Version) (object.Item[T], error) {
	return t.write(ctx, "patch", key, func() (object.Item[T], error) { return t.Backend.Patch(ctx, key, p, v) })
}

func (t *tracked[T]) Delete(ctx context.Context, key string, v object.Version) (object.Item[T], error) {
	return t.write(ctx, "delete", key, func() (object.Item[T], error) { return t.Backend.Delete(ctx, key, v) })
}

// write makes a write, and remembers it if there is a run.
func (t *tracked[T]) write(ctx context.Context, op, key string, do func() (object.Item[T], error)) (object.Item[T], error) {
	r := runOf(ctx)
	if r == nil || r.over() {
		return do()
	}
	if !t.in.Synced() {
		why := "nothing is written on the word of an empty cache"
		if t.in.Status().Source.State == reflector.Starting {
			why = "it is not running; name it in Reads, Watch or Run"
		}
		return object.Item[T]{}, &backend.Error{Op: op, Key: key,
			Err: fmt.Errorf("%w: informer %q: %s", ErrNotSynced, t.in.Name(), why)}
	}
	if t.dry {
		return do()
	}
	w := r.begin(t.in.Name(), key, t.stale())
	if w == nil {
		return do()
	}
	returned := false
	defer func() {
		if !returned { // it panicked (or its error does), perhaps after the write
			t.await(w, key, "")
		}
	}()
	item, err := do()
	switch {
	case err == nil:
		t.await(w, key, item.Version)
	case uncertain(ctx, err):
		t.await(w, key, "")
	default:
		t.conflicted(r, key, err)
		w.drop()
	}
	returned = true
	return item, err
}

func (t *tracked[T]) await(w *write, key string, v object.Version) {
	w.await(v, func(ctx context.Context) error { return t.in.WaitFor(ctx, key, v) })
}

// conflicted remembers which state a run has to see before it is of use to run
// it again.
func (t *tracked[T]) conflicted(r *run, key string, err error) {
	if !errors.Is(err, backend.ErrConflict) {
		return
	}
	if e, ok := errors.AsType[*backend.Error](err); ok && e.Found != "" {
		r.conflicted(hint{
			Barrier{Kind: t.in.Name(), Key: key, Version: e.Found, Since: time.Now(), StaleLists: t.stale()},
			func(ctx context.Context) error { return t.in.WaitFor(ctx, key, e.Found) },
		})
	}
}

// uncertain says that the write may have happened all the same. An error means
// that it has not, but one that comes with the end of ctx may be that of a store
// which didn't know better.
func uncertain(ctx context.Context, err error) bool {
	if errors.Is(err, backend.ErrOutcomeUnknown) {
		return true
	}
	for _, certain := range []error{
		backend.ErrNotFound, backend.ErrExists, backend.ErrConflict, backend.ErrNoVersion,
		backend.ErrDeleting, backend.ErrNoMeta, errors.ErrUnsupported,
	} {
		if errors.Is(err, certain) {
			return false
		}
	}
	return ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
