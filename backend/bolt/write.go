package bolt

import (
	"context"
	"errors"
	"fmt"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
)

// Create stores obj under a key that has no object, with a new ID;
// backend.ErrExists when there is one.
func (s *Store[T]) Create(ctx context.Context, key string, obj T) (object.Item[T], error) {
	return s.create(ctx, key, obj, false)
}

// Update replaces the object under item.Key if item.Version, and item.ID unless
// it is empty, are those of the object there.
func (s *Store[T]) Update(ctx context.Context, item object.Item[T]) (object.Item[T], error) {
	return s.update(ctx, item, false)
}

// Patch changes the object, in one step. The patch is applied to the object's
// JSON, whatever the codec, on the caller's goroutine and, when others keep being
// faster, while all other writers wait; one that changes nothing makes no revision.
func (s *Store[T]) Patch(ctx context.Context, key string, p patch.Patch, v object.Version) (object.Item[T], error) {
	return s.patch(ctx, key, p, v, false)
}

// Delete removes the object and answers its last state, under the version of the
// delete; without the object when the codec can't read it.
func (s *Store[T]) Delete(ctx context.Context, key string, v object.Version) (object.Item[T], error) {
	return s.delete(ctx, key, v, false)
}

// DryRun is the same store with writes that are checked and answered alone. Their
// answers have the version and ID that there are now.
func (s *Store[T]) DryRun() (backend.Backend[T], error) { return dryRun[T]{s}, nil }

type dryRun[T any] struct{ *Store[T] }

func (d dryRun[T]) Create(ctx context.Context, key string, obj T) (object.Item[T], error) {
	return d.create(ctx, key, obj, true)
}

func (d dryRun[T]) Update(ctx context.Context, item object.Item[T]) (object.Item[T], error) {
	return d.update(ctx, item, true)
}

func (d dryRun[T]) Patch(ctx context.Context, key string, p patch.Patch, v object.Version) (object.Item[T], error) {
	return d.patch(ctx, key, p, v, true)
}

func (d dryRun[T]) Delete(ctx context.Context, key string, v object.Version) (object.Item[T], error) {
	return d.delete(ctx, key, v, true)
}

func (d dryRun[T]) DryRun() (backend.Backend[T], error) { return d, nil }

func (s *Store[T]) create(ctx context.Context, key string, obj T, dry bool) (object.Item[T], error) {
	fail := func(err error) (object.Item[T], error) {
		return object.Item[T]{}, failed("create", key, "", err)
	}
	switch {
	case ctx.Err() != nil:
		return fail(ctx.Err())
	case key == "":
		return fail(backend.ErrNoKey)
	case len(key) > maxKey:
		return fail(fmt.Errorf("%w: a key of %d bytes, at most %d", ErrTooLarge, len(key), maxKey))
	}
	data, stored, err := s.encoded(key, obj)
	if err != nil {
		return fail(err)
	}
	if dry {
		switch cur, err := s.file.get(ctx, key); {
		case err == nil:
			return fail(&backend.Error{Op: "create", Key: key, Found: cur.version(), Err: backend.ErrExists})
		case !errors.Is(err, backend.ErrNotFound):
			return fail(err)
		}
		return object.Item[T]{Key: key, Object: stored}, nil
	}
	w := &write{op: "create", key: key, data: data}
	if err := s.file.submit(ctx, w); err != nil {
		return fail(err)
	}
	return answer(w.made, stored), nil
}

func (s *Store[T]) update(ctx context.Context, item object.Item[T], dry bool) (object.Item[T], error) {
	fail := func(err error) (object.Item[T], error) {
		return object.Item[T]{}, failed("update", item.Key, item.Version, err)
	}
	if err := ready(ctx, item.Version); err != nil {
		return fail(err)
	}
	data, stored, err := s.encoded(item.Key, item.Object)
	if err != nil {
		return fail(err)
	}
	if dry {
		cur, err := s.file.get(ctx, item.Key)
		if err == nil {
			err = meets("update", cur, item.Version, item.ID)
		}
		if err != nil {
			return fail(err)
		}
		return answer(cur, stored), nil
	}
	w := &write{op: "update", key: item.Key, want: item.Version, id: item.ID, data: data}
	if err := s.file.submit(ctx, w); err != nil {
		return fail(err)
	}
	return answer(w.made, stored), nil
}

func (s *Store[T]) patch(ctx context.Context, key string, p patch.Patch, v object.Version, dry bool) (object.Item[T], error) {
	return s.modify(ctx, "patch", key, v, dry, func(cur object.Item[T]) (w *write, stored T, err error) {
		obj, changed, err := patched(key, p, cur.Object)
		if err != nil || !changed {
			return nil, cur.Object, err
		}
		data, stored, err := s.encoded(key, obj)
		return &write{op: "patch", key: key, data: data}, stored, err
	})
}

func (s *Store[T]) delete(ctx context.Context, key string, v object.Version, dry bool) (object.Item[T], error) {
	return s.modify(ctx, "delete", key, v, dry, func(cur object.Item[T]) (*write, T, error) {
		return &write{op: "delete", key: key}, cur.Object, nil
	})
}

// patched is p applied to a copy of obj.
func patched[T any](key string, p patch.Patch, obj T) (made T, changed bool, err error) {
	defer caught("patch", key, &err)
	return backend.Patched(p, obj)
}

// tries is how often a write that depends on what is there is made ready while
// others may write.
const tries = 2

// modify reads the object, has plan say what to write, and writes it if the object
// is still the same; else again. Plan runs others' code, so it runs outside of any
// transaction. Who was overtaken twice keeps the others waiting instead.
func (s *Store[T]) modify(
	ctx context.Context, op, key string, v object.Version, dry bool, plan func(object.Item[T]) (*write, T, error),
) (object.Item[T], error) {
	var item object.Item[T]
	err := ready(ctx, v)
	if err != nil {
		return item, failed(op, key, v, err)
	}
	once := func(put func(*write) error) error {
		r, err := s.file.get(ctx, key)
		if err != nil {
			return err
		}
		if err := meets(op, r, v, ""); err != nil {
			return err
		}
		cur, err := s.item(r, false)
		if err != nil && op == "delete" { // of what can't be read, too
			cur, err = s.item(r, true)
		}
		if err != nil {
			return &backend.Error{Op: op, Key: key, Want: v, Found: r.version(), Err: err}
		}
		w, stored, err := plan(cur)
		if err != nil {
			return &backend.Error{Op: op, Key: key, Want: v, Found: r.version(), Err: err}
		}
		if w == nil || dry {
			item = answer(r, stored)
			return nil
		}
		w.at = r.rev
		if err := put(w); err != nil {
			return err
		}
		item = answer(w.made, stored)
		return nil
	}
	err = errMoved
	for try := 0; try < tries && errors.Is(err, errMoved); try++ {
		err = once(func(w *write) error { return s.file.submit(ctx, w) })
	}
	if errors.Is(err, errMoved) {
		err = s.file.alone(ctx, func() error { return once(s.file.put) })
	}
	if err != nil {
		return object.Item[T]{}, failed(op, key, v, err)
	}
	return item, nil
}

// put writes w, for who has the turn.
func (f *file) put(w *write) error {
	if err := f.enter(); err != nil {
		return err
	}
	defer f.leave()
	f.commit([]*write{w})
	return w.err
}

// ready is what a write with a precondition checks first.
func ready(ctx context.Context, v object.Version) error {
	if v == "" {
		return backend.ErrNoVersion
	}
	return ctx.Err()
}

func answer[T any](r record, stored T) object.Item[T] {
	return object.Item[T]{Key: r.key, Version: version(r.rev), ID: r.id, Object: stored}
}

// failed is err as a write tells it, unless it says so already.
func failed(op, key string, want object.Version, err error) error {
	if e, ok := err.(*backend.Error); ok {
		return e
	}
	return &backend.Error{Op: op, Key: key, Want: want, Err: err}
}

// Compact forgets the history, as a store does that runs out of room: every watch
// that lags behind the present, every resume from before it and every list that is
// still being read is told reflector.ErrExpired. Where there is nothing to miss,
// nothing is expired. The room is used again; the file does not shrink.
func (s *Store[T]) Compact(ctx context.Context) error {
	err := s.file.alone(ctx, func() error {
		if err := s.file.enter(); err != nil {
			return err
		}
		defer s.file.leave()
		err := s.file.update((*state).forget)
		if err != nil {
			err = s.file.outcome(err)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("bolt: compact: %w", err)
	}
	return nil
}
