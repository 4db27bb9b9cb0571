package backendtest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/homeostat/homeostat/reflector"
)

func softChecks[T any]() []check[T] {
	return []check[T]{
		{Check{"soft/delete", []string{"backend soft 1"}, "with backend.WithFinalizers, a Delete marks an object that has finalizers and takes away one that has none"}, softDelete[T]},
		{Check{"soft/last-finalizer", []string{"backend soft 2"}, "the write that takes the last finalizer away is the delete, and nobody sees the object without finalizers"}, softLast[T]},
		{Check{"soft/only-taken-away", []string{"backend soft 3"}, "a finalizer that is added to an object being deleted is ErrDeleting"}, softAdd[T]},
		{Check{"soft/mark", []string{"backend soft 4"}, "what a writer puts into Meta.Deleting is ignored"}, softMark[T]},
		{Check{"soft/preconditions", []string{"backend soft 5"}, "preconditions hold, and writes under object.Any at the same time skip neither a finalizer nor a deletion"}, softPreconditions[T]},
		{Check{"soft/no-meta", []string{"backend soft 6"}, "without object.Meta every write is ErrNoMeta"}, softNoMeta[T]},
	}
}

// soft is a writer with soft deletion.
func (k *kit[T]) soft() *writer[T] {
	w := k.writer()
	obj := k.object()
	if object.MetaOf(&obj) == nil {
		panic(verdict{skipped: "an object.Meta in its objects"})
	}
	// Without versions nothing is promised.
	probe := w.new(k.h.Key(99))
	k.need("Versions", probe.Version != "")
	_, err := w.delete(probe.Key, object.Any)
	w.can("Delete", probe, err)
	if w.st.powers.StaleLists {
		panic(verdict{skipped: "a Get that is never stale"})
	}
	// The answer of the write that deletes has what else that changed, which is no
	// state of the store.
	return &writer[T]{st: w.st, b: backend.WithFinalizers(w.b), aside: true}
}

// with is a copy of obj with another Meta.
func (w *writer[T]) with(obj T, change func(*object.Meta)) T {
	k := w.st.k
	out, err := cloned(obj)
	k.must(err)
	change(object.MetaOf(&out))
	back, err := cloned(out)
	k.must(err)
	if !slices.Equal(object.MetaOf(&back).Finalizers, object.MetaOf(&out).Finalizers) {
		panic(verdict{skipped: "an object.Meta in its objects' JSON"})
	}
	return out
}

func (w *writer[T]) finalized(names ...string) T {
	return w.with(w.st.k.object(), func(m *object.Meta) { m.Finalizers = names })
}

// newFinalized creates an object with finalizers.
func (w *writer[T]) newFinalized(key string, names ...string) object.Item[T] {
	item, err := w.create(key, w.finalized(names...))
	return w.can("Create", item, err)
}

func meta[T any](item object.Item[T]) object.Meta {
	if m := object.MetaOf(&item.Object); m != nil {
		return *m
	}
	return object.Meta{}
}

// deleting deletes an object that has finalizers.
func (w *writer[T]) deleting(item object.Item[T]) object.Item[T] {
	got, err := w.delete(item.Key, object.Any)
	got = w.can("Update", got, err)
	m := meta(got)
	if !m.IsDeleting() || !slices.Equal(m.Finalizers, meta(item).Finalizers) || got.ID != item.ID {
		w.st.k.fail("Delete of an object with finalizers answers one that is not marked, or another one: deleting %v, finalizers %q, ID %q", m.Deleting, m.Finalizers, got.ID)
	}
	w.still(got, "it was marked")
	return got
}

func softDelete[T any](k *kit[T]) {
	w := k.soft()
	item := w.newFinalized(k.h.Key(0), "one", "two")
	marked := w.deleting(item)
	for _, v := range []object.Version{object.Any, marked.Version} {
		again, err := w.delete(item.Key, v)
		k.must(err)
		if !w.same(again, marked) {
			k.fail("a second Delete answers version %q, not the object as it is, version %q", again.Version, marked.Version)
		}
	}
	w.still(marked, "a second Delete")
	plain := w.newFinalized(k.h.Key(1))
	gone, err := w.delete(plain.Key, plain.Version)
	k.must(err)
	if m := meta(gone); m.IsDeleting() {
		k.fail("Delete of an object without finalizers marks it")
	}
	w.absent(plain.Key, "Delete of an object without finalizers")
}

func softLast[T any](k *kit[T]) {
	w := k.soft()
	c := w.st.client()
	c.exact = false
	c.onBatch = func(b reflector.Batch[T]) error {
		for _, e := range b.Events {
			if m := meta(e.Item); e.Op == reflector.OpPut && m.IsDeleting() && len(m.Finalizers) == 0 {
				return fmt.Errorf("a watch shows %q being deleted and without finalizers", e.Key)
			}
		}
		return nil
	}
	k.must(c.follow("the first batch of a watch", func() bool { return c.opened }))
	for i, how := range []string{"Update", "Patch"} {
		item := w.deleting(w.newFinalized(k.h.Key(i), "one", "two"))
		less := w.with(item.Object, func(m *object.Meta) { m.Finalizers = []string{"two"} })
		item.Object = less
		item, err := w.update(item)
		item = w.can("Update", item, err)
		last := w.with(k.object(), func(m *object.Meta) { m.Deleting = meta(item).Deleting })
		var gone object.Item[T]
		if how == "Update" {
			next := item
			next.Object = last
			gone, err = w.update(next)
		} else {
			p, perr := patch.Between(item.Object, last)
			k.must(perr)
			gone, err = w.patch(item.Key, p, item.Version)
			if !w.supports("Patch", err) {
				continue
			}
		}
		k.must(err)
		want, err := cloned(last)
		k.must(err)
		object.MetaOf(&want).Deleting = meta(gone).Deleting
		if gone.Key != item.Key || !k.h.Equal(gone.Object, want) || !meta(gone).IsDeleting() {
			k.fail("the %s that takes the last finalizer away does not answer what else it changed", how)
		}
		w.absent(item.Key, "the "+how+" that took the last finalizer away")
		k.must(c.follow("that the object is gone", func() bool { _, there := c.state[item.Key]; return !there }))
	}
}

func softAdd[T any](k *kit[T]) {
	w := k.soft()
	item := w.deleting(w.newFinalized(k.h.Key(0), "one"))
	more := item
	more.Object = w.with(item.Object, func(m *object.Meta) { m.Finalizers = []string{"one", "more"} })
	p, err := patch.Between(item.Object, more.Object)
	k.must(err)
	for _, v := range []object.Version{item.Version, object.Any} {
		more.Version = v
		if _, err := w.update(more); !errors.Is(err, backend.ErrDeleting) {
			k.fail("an Update that adds a finalizer to an object being deleted is not ErrDeleting but: %w", orNil(err))
		}
		if _, err := w.patch(item.Key, p, v); !errors.Is(err, backend.ErrDeleting) {
			k.fail("a Patch that adds a finalizer to an object being deleted is not ErrDeleting but: %w", orNil(err))
		}
	}
	w.still(item, "a finalizer was refused")
}

func softMark[T any](k *kit[T]) {
	w := k.soft()
	day := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	marked := func(obj T, at time.Time) T {
		return w.with(obj, func(m *object.Meta) { m.Finalizers, m.Deleting = []string{"one"}, at })
	}
	item, err := w.create(k.h.Key(0), marked(k.object(), day))
	item = w.can("Create", item, err)
	if m := meta(item); m.IsDeleting() {
		k.fail("Create takes a mark of being deleted from its caller")
	}
	item.Object = marked(k.object(), day)
	item, err = w.update(item)
	item = w.can("Update", item, err)
	if m := meta(item); m.IsDeleting() {
		k.fail("Update takes a mark of being deleted from its caller")
	}
	before := w.deleting(item)
	for _, at := range []time.Time{{}, day} {
		next := before
		next.Object = marked(k.object(), at)
		next.Version = object.Any
		now, err := w.update(next)
		k.must(err)
		if !meta(now).Deleting.Equal(meta(before).Deleting) {
			k.fail("Update changes the mark of being deleted from %v to %v", meta(before).Deleting, meta(now).Deleting)
		}
	}
}

func softPreconditions[T any](k *kit[T]) {
	w := k.soft()
	old := w.newFinalized(k.h.Key(0), "one")
	next := old
	next.Object = w.finalized("one", "two")
	now, err := w.update(next)
	now = w.can("Update", now, err)
	w.refuses("an object with finalizers", now, "", backend.ErrNoVersion)
	w.refuses("an object with finalizers", now, old.Version, backend.ErrConflict)
	// A finalizer is added while somebody deletes.
	for i := range 6 {
		item := w.newFinalized(k.h.Key(10+i), "one")
		errs := many(4, func(n int) (err error) {
			switch n {
			case 0:
				_, err = w.delete(item.Key, object.Any)
			default:
				more := item
				more.Version = object.Any
				more.Object = w.with(item.Object, func(m *object.Meta) { m.Finalizers = []string{"one", fmt.Sprint("more-", n)} })
				_, err = w.update(more)
			}
			return err
		})
		k.must(errs[0])
		added := false
		for _, err := range errs[1:] {
			added = added || err == nil
			if err != nil && !errors.Is(err, backend.ErrDeleting) {
				k.fail("Update under object.Any, while somebody deletes: %w", err)
			}
		}
		now, err := w.get(item.Key)
		k.must(err)
		if m := meta(now); !m.IsDeleting() || added != (len(m.Finalizers) == 2) {
			k.fail("an object that was deleted while finalizers were added has deleting %v, finalizers %q", m.Deleting, m.Finalizers)
		}
	}
}

func softNoMeta[T any](k *kit[T]) {
	w := k.writer()
	item := w.new(k.h.Key(0))
	obj := k.object()
	soft := &writer[T]{st: w.st, b: backend.WithFinalizersBy(w.b, backend.Marks[T]{})}
	if object.MetaOf(&obj) == nil {
		soft.b = backend.WithFinalizers(w.b)
	}
	if _, err := soft.create(k.h.Key(1), obj); !errors.Is(err, backend.ErrNoMeta) {
		k.fail("Create of a type without object.Meta is not ErrNoMeta but: %w", orNil(err))
	}
	soft.refuses("a type without object.Meta", item, object.Any, backend.ErrNoMeta)
	w.absent(k.h.Key(1), "a Create that was refused")
}
