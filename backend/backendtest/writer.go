package backendtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/homeostat/homeostat/reflector"
)

// writer is the write side of a store. Each call may be made on any goroutine.
type writer[T any] struct {
	st    *store[T]
	b     backend.Backend[T]
	aside bool // its answers are no states of the store
	raced int  // keys that were used for races
}

// writer opens a store whose write side is to be tested.
func (k *kit[T]) writer() *writer[T] {
	st := k.open()
	k.need("Backend", st.backend() != nil)
	return &writer[T]{st: st, b: st.backend()}
}

func (w *writer[T]) call(op string, f func(context.Context) (object.Item[T], error)) (object.Item[T], error) {
	k := w.st.k
	return call(k.ctx, op, k.h.Wait, k.h.Wait, f)
}

// answered notes what a write that was done answered.
func (w *writer[T]) answered(op string, item object.Item[T], err error) (object.Item[T], error) {
	if err == nil && !w.aside {
		w.st.saw("the answer of "+op, item)
	}
	return item, err
}

func (w *writer[T]) get(key string) (object.Item[T], error) {
	return w.call("Get", func(ctx context.Context) (object.Item[T], error) { return w.b.Get(ctx, key) })
}

func (w *writer[T]) create(key string, obj T) (object.Item[T], error) {
	item, err := w.call("Create", func(ctx context.Context) (object.Item[T], error) { return w.b.Create(ctx, key, obj) })
	return w.answered("Create", item, err)
}

func (w *writer[T]) update(item object.Item[T]) (object.Item[T], error) {
	item, err := w.call("Update", func(ctx context.Context) (object.Item[T], error) { return w.b.Update(ctx, item) })
	return w.answered("Update", item, err)
}

func (w *writer[T]) patch(key string, p patch.Patch, v object.Version) (object.Item[T], error) {
	item, err := w.call("Patch", func(ctx context.Context) (object.Item[T], error) { return w.b.Patch(ctx, key, p, v) })
	return w.answered("Patch", item, err)
}

func (w *writer[T]) delete(key string, v object.Version) (object.Item[T], error) {
	item, err := w.call("Delete", func(ctx context.Context) (object.Item[T], error) { return w.b.Delete(ctx, key, v) })
	return w.answered("Delete", item, err)
}

// can ends the check when err is an error, and skips it when the store has no such
// operation.
func (w *writer[T]) can(op string, item object.Item[T], err error) object.Item[T] {
	if errors.Is(err, errors.ErrUnsupported) {
		w.st.k.skip(op)
	}
	w.st.k.must(err)
	return item
}

// supports says whether the store has the operation; if not, that is noted.
func (w *writer[T]) supports(op string, err error) bool {
	if errors.Is(err, errors.ErrUnsupported) {
		w.st.k.run.lack(op)
		return false
	}
	return true
}

// new creates an object that must not be there yet.
func (w *writer[T]) new(key string) object.Item[T] {
	item, err := w.create(key, w.st.k.object())
	return w.can("Create", item, err)
}

// other is item with another object, for an Update under this version.
func (w *writer[T]) other(item object.Item[T], v object.Version) object.Item[T] {
	item.Version, item.Object = v, w.st.k.object()
	return item
}

// anyPatch is a patch that changes item's object, and what it makes of it.
func (w *writer[T]) anyPatch(item object.Item[T]) (patch.Patch, T) {
	k := w.st.k
	to := k.object()
	p, err := patch.Between(item.Object, to)
	if err != nil {
		k.fail("%w: two of its objects can't be compared as JSON: %w", ErrHarness, err)
	}
	return p, to
}

// writes are all that name a precondition, on item and under version v.
func (w *writer[T]) writes(item object.Item[T], v object.Version) map[string]func() (object.Item[T], error) {
	p, _ := w.anyPatch(item)
	return map[string]func() (object.Item[T], error){
		"Update": func() (object.Item[T], error) { return w.update(w.other(item, v)) },
		"Patch":  func() (object.Item[T], error) { return w.patch(item.Key, p, v) },
		"Delete": func() (object.Item[T], error) { return w.delete(item.Key, v) },
	}
}

// refuses wants each write to be refused with an error, or not to be supported,
// and the object to stay as it is.
func (w *writer[T]) refuses(when string, item object.Item[T], v object.Version, want error) {
	k := w.st.k
	for op, write := range w.writes(item, v) {
		if _, err := write(); w.supports(op, err) && !errors.Is(err, want) {
			k.fail("%s of %s, under version %q, is not %q but: %w", op, when, v, want, orNil(err))
		}
	}
	w.still(item, "a write was refused")
}

// orNil makes an error of none.
func orNil(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}

// still wants an object to be as it was; one without any version and ID and object
// is one that is not there.
func (w *writer[T]) still(item object.Item[T], why string) {
	k := w.st.k
	k.must(k.ifStale(w.st, func() error {
		now, err := w.get(item.Key)
		if item.Version == "" && item.ID == "" {
			return nil // nothing to compare with
		}
		if err != nil || !w.same(now, item) {
			return fmt.Errorf("%q is another one after %s: version %q, ID %q, was version %q, ID %q; error: %v", item.Key, why, now.Version, now.ID, item.Version, item.ID, err)
		}
		return nil
	}))
}

// absent wants nothing to be under the key.
func (w *writer[T]) absent(key, why string) {
	k := w.st.k
	k.must(k.ifStale(w.st, func() error {
		if now, err := w.get(key); !errors.Is(err, backend.ErrNotFound) {
			return fmt.Errorf("after %s, Get of %q is not ErrNotFound but version %q, error: %v", why, key, now.Version, err)
		}
		return nil
	}))
}

func (w *writer[T]) same(a, b object.Item[T]) bool {
	return a.Key == b.Key && a.Version == b.Version && a.ID == b.ID && w.st.k.h.Equal(a.Object, b.Object)
}

// all lists everything, with item in it.
func (w *writer[T]) all(item object.Item[T]) map[string]object.Item[T] {
	k := w.st.k
	var l listing[T]
	k.must(k.ifStale(w.st, func() (err error) {
		l, err = w.st.list(k.ctx, reflector.ListOptions{})
		if now, there := l.items[item.Key]; err == nil && item.Key != "" && (!there || !w.same(now, item)) {
			err = fmt.Errorf("the list does not show %q as it is", item.Key)
		}
		return err
	}))
	return l.items
}
