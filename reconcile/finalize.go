package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
)

// Finalize makes one Func of two: next, for as long as the object is wanted, and
// cleanup, once it is being deleted. T embeds object.Meta, and b is a store that
// deletes softly: backend.WithFinalizers, in a [Client] so that the writes are
// waited for.
//
// The finalizer called name is on the object before next runs for the first time;
// next then sees the object with it. When the object is being deleted, cleanup
// runs instead, as often as it returns something other than nil (retry.Later to
// look again), and only after it returned nil is the finalizer taken off. Cleanup
// may run again after that, so it must be able to find nothing to do.
//
// next is also called for a key without an object, but neither of the two for an
// object that is being deleted without this finalizer. Over a store that deletes at
// once, whatever finalizers there are, cleanup never runs; an object that went that
// way is named in the log, at Error.
func Finalize[T any](b backend.Backend[T], name string, cleanup, next Func[T]) Func[T] {
	if name == "" || b == nil || cleanup == nil || next == nil {
		panic("reconcile: Finalize needs a backend, a name and two functions")
	}
	f := finalizer[T]{b, name}
	return func(ctx context.Context, req Request[T]) error {
		item, exists := req.Item()
		if !exists {
			if last, told := req.Last(); told && f.wanted(object.MetaOf(&last)) {
				req.Log().Error("deleted past its finalizer: is the store wrapped in backend.WithFinalizers?", "finalizer", name)
			}
			return next(ctx, req)
		}
		meta := object.MetaOf(&item.Object)
		switch {
		case meta == nil:
			return backend.ErrNoMeta
		case meta.IsDeleting() && !f.on(meta):
			return nil
		case meta.IsDeleting():
			if err := cleanup(ctx, req); err != nil {
				return err
			}
			return f.remove(ctx, req.Key, meta.Deleting)
		case f.on(meta):
			return next(ctx, req)
		}
		item, err := f.add(ctx, req.Key)
		if errors.Is(err, errGoing) {
			return nil // the cache is behind; what it gets triggers again
		}
		if err != nil {
			return err
		}
		return next(ctx, req.with(item))
	}
}

type finalizer[T any] struct {
	b    backend.Backend[T]
	name string
}

func (f finalizer[T]) on(m *object.Meta) bool { return slices.Contains(m.Finalizers, f.name) }

// wanted: the object was not even being deleted when it was seen last, and still
// had the finalizer.
func (f finalizer[T]) wanted(m *object.Meta) bool { return m != nil && !m.IsDeleting() && f.on(m) }

// errGoing: there is nothing to put a finalizer on any more.
var errGoing = errors.New("reconcile: the object is going")

func (f finalizer[T]) add(ctx context.Context, key string) (object.Item[T], error) {
	item, err := backend.Modify(ctx, f.b, key, func(obj T) (T, error) {
		m := object.MetaOf(&obj)
		switch {
		case m == nil:
			return obj, backend.ErrNoMeta
		case m.IsDeleting():
			return obj, errGoing
		case !f.on(m):
			m.Finalizers = append(m.Finalizers, f.name)
		}
		return obj, nil
	})
	if errors.Is(err, backend.ErrNotFound) {
		err = errGoing
	}
	return item, err
}

// remove takes the finalizer off the object whose deletion was cleaned up after.
func (f finalizer[T]) remove(ctx context.Context, key string, deleting time.Time) error {
	_, err := backend.Modify(ctx, f.b, key, func(obj T) (T, error) {
		m := object.MetaOf(&obj)
		switch {
		case m == nil:
			return obj, backend.ErrNoMeta
		case m.Deleting.Equal(deleting): // else it is another object under the same key
			m.Finalizers = slices.DeleteFunc(m.Finalizers, func(s string) bool { return s == f.name })
		}
		return obj, nil
	})
	if errors.Is(err, backend.ErrNotFound) {
		return nil
	}
	return err
}
