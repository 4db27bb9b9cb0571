package backend

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
)

// WithFinalizers gives soft deletion to a store without it, for types that embed
// [object.Meta] by value: T is such a struct or a pointer to one. The package
// documentation has the rules that it keeps. For other types see
// [WithFinalizersBy].
//
// Every write costs one Get besides. What matters is decided by the writes that
// go through this wrapper: whoever writes to b directly can bypass finalizers.
// Over a store without versions there is no telling what was written between the
// Get and the write, and rule 5 does not hold.
func WithFinalizers[T any](b Backend[T]) Backend[T] {
	f := &finalizing[T]{Backend: b, now: time.Now, marks: metaMarks[T](), has: notNil[T]}
	if !hasMeta[T]() {
		f.fault = ErrNoMeta
	}
	return f
}

// Marks says where a type without [object.Meta] has its finalizers and its mark of
// being deleted. The functions are pure, change nothing that they are given, and may
// be called by many goroutines at once.
type Marks[T any] struct {
	// Finalizers are the names of those that still have to clean up after obj.
	Finalizers func(obj T) []string
	// Deleting is when the deletion of obj was asked for; zero when it was not.
	Deleting func(obj T) time.Time
	// WithDeleting is obj with that time: a copy, when T is a pointer.
	WithDeleting func(obj T, at time.Time) T
}

// WithFinalizersBy is [WithFinalizers] for any type. Every function of marks is
// needed: without one, every write is [ErrNoMeta].
func WithFinalizersBy[T any](b Backend[T], marks Marks[T]) Backend[T] {
	f := &finalizing[T]{Backend: b, now: time.Now, marks: marks, has: func(T) bool { return true }}
	if marks.Finalizers == nil || marks.Deleting == nil || marks.WithDeleting == nil {
		f.fault = ErrNoMeta
	}
	return f
}

// finalizing wraps the writes; all that reads, Powers included, is the inner one's.
type finalizing[T any] struct {
	Backend[T]
	now   func() time.Time
	marks Marks[T]
	has   func(T) bool // the object can be marked
	fault error        // what every write answers
}

func (f *finalizing[T]) DryRun() (Backend[T], error) {
	inner, err := f.Backend.DryRun()
	if err != nil {
		return nil, err
	}
	dry := *f
	dry.Backend = inner
	return &dry, nil
}

// mark is obj with this Deleting; obj itself when it has that.
func (f *finalizing[T]) mark(obj T, t time.Time) T {
	if !f.has(obj) || f.marks.Deleting(obj).Equal(t) {
		return obj
	}
	return f.marks.WithDeleting(obj, t)
}

func (f *finalizing[T]) Create(ctx context.Context, key string, obj T) (object.Item[T], error) {
	if f.fault != nil || !f.has(obj) { // in this order: it may panic
		return object.Item[T]{}, &Error{Op: "create", Key: key, Err: ErrNoMeta}
	}
	return f.Backend.Create(ctx, key, f.mark(obj, time.Time{}))
}

func (f *finalizing[T]) Update(ctx context.Context, item object.Item[T]) (object.Item[T], error) {
	return f.write(ctx, "update", item.Key, item.ID, item.Version, func(cur object.Item[T]) (object.Item[T], error) {
		return f.put(ctx, cur, item.Object, nil)
	})
}

func (f *finalizing[T]) Patch(ctx context.Context, key string, p patch.Patch, v object.Version) (object.Item[T], error) {
	return f.write(ctx, "patch", key, "", v, func(cur object.Item[T]) (object.Item[T], error) {
		obj, changed, err := Patched(p, cur.Object)
		if err != nil || !changed {
			return cur, err
		}
		return f.put(ctx, cur, obj, p)
	})
}

func (f *finalizing[T]) Delete(ctx context.Context, key string, v object.Version) (object.Item[T], error) {
	return f.write(ctx, "delete", key, "", v, func(cur object.Item[T]) (object.Item[T], error) {
		switch {
		case !f.has(cur.Object) || len(f.marks.Finalizers(cur.Object)) == 0:
			return f.Backend.Delete(ctx, key, at(cur))
		case !f.marks.Deleting(cur.Object).IsZero():
			return cur, nil
		}
		cur.Version, cur.Object = at(cur), f.mark(cur.Object, f.now().UTC())
		return f.Backend.Update(ctx, cur)
	})
}

// put writes obj over cur: by p where there is one and it says all of it.
func (f *finalizing[T]) put(ctx context.Context, cur object.Item[T], obj T, p patch.Patch) (object.Item[T], error) {
	if !f.has(obj) {
		return cur, ErrNoMeta
	}
	var deleting time.Time
	var names []string
	if f.has(cur.Object) {
		deleting, names = f.marks.Deleting(cur.Object), f.marks.Finalizers(cur.Object)
	}
	if !deleting.IsZero() {
		next := f.marks.Finalizers(obj)
		for _, name := range next {
			if !slices.Contains(names, name) {
				return cur, ErrDeleting
			}
		}
		if len(next) == 0 {
			gone, err := f.Backend.Delete(ctx, cur.Key, at(cur))
			gone.Object = f.mark(obj, deleting)
			return gone, err
		}
	}
	if p != nil && f.marks.Deleting(obj).Equal(deleting) {
		return f.Backend.Patch(ctx, cur.Key, p, at(cur))
	}
	cur.Version, cur.Object = at(cur), f.mark(obj, deleting)
	return f.Backend.Update(ctx, cur)
}

// write reads the object and does one step at the version read; under object.Any
// again, as long as somebody else is faster.
func (f *finalizing[T]) write(ctx context.Context, op, key, id string, v object.Version, step func(cur object.Item[T]) (object.Item[T], error)) (object.Item[T], error) {
	var none object.Item[T]
	if f.fault != nil {
		return none, &Error{Op: op, Key: key, Want: v, Err: f.fault}
	}
	if v == "" {
		return none, &Error{Op: op, Key: key, Err: ErrNoVersion}
	}
	var r rounds
	for {
		cur, err := f.Backend.Get(ctx, key)
		if err != nil {
			return none, as(op, key, v, err)
		}
		if err := expect(op, cur, v, id); err != nil {
			return none, err
		}
		item, err := step(cur)
		if err == nil {
			return item, nil
		}
		if v == object.Any && errors.Is(err, ErrConflict) {
			if err = r.again(ctx, err); err == nil {
				continue
			}
		}
		return none, as(op, key, v, err)
	}
}
