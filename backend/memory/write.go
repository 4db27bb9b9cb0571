package memory

import (
	"context"
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
// JSON; one that changes nothing makes no revision.
func (s *Store[T]) Patch(ctx context.Context, key string, p patch.Patch, v object.Version) (object.Item[T], error) {
	return s.patch(ctx, key, p, v, false)
}

// Delete removes the object and answers its last state, under the version of the
// delete.
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
	item := object.Item[T]{Key: key, Object: obj}
	if err := s.usable(ctx); err != nil {
		return object.Item[T]{}, &backend.Error{Op: "create", Key: key, Err: err}
	}
	if key == "" {
		return object.Item[T]{}, &backend.Error{Op: "create", Err: backend.ErrNoKey}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cur, ok := s.objects[key]; ok {
		return object.Item[T]{}, &backend.Error{Op: "create", Key: key, Found: cur.Version, Err: backend.ErrExists}
	}
	if dry {
		return item, nil
	}
	return s.putLocked(item), nil
}

func (s *Store[T]) update(ctx context.Context, item object.Item[T], dry bool) (object.Item[T], error) {
	if err := s.ready(ctx, "update", item.Key, item.Version); err != nil {
		return object.Item[T]{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cur, err := s.meetsLocked("update", item.Key, item.Version, item.ID)
	if err != nil {
		return object.Item[T]{}, err
	}
	item.ID, item.Version = cur.ID, cur.Version
	if dry {
		return item, nil
	}
	return s.putLocked(item), nil
}

// patch applies p outside the lock, since it runs the caller's code, and begins
// anew when the object is another one by then.
func (s *Store[T]) patch(ctx context.Context, key string, p patch.Patch, v object.Version, dry bool) (object.Item[T], error) {
	for {
		if err := s.ready(ctx, "patch", key, v); err != nil {
			return object.Item[T]{}, err
		}
		s.mu.RLock()
		cur, err := s.meetsLocked("patch", key, v, "")
		s.mu.RUnlock()
		if err != nil {
			return object.Item[T]{}, err
		}
		obj, changed, err := backend.Patched(p, cur.Object)
		if err != nil {
			return object.Item[T]{}, &backend.Error{Op: "patch", Key: key, Want: v, Found: cur.Version, Err: err}
		}
		if !changed {
			obj = cur.Object // as it is, not as JSON would give it back
		}
		if item, done := s.swap(cur, obj, changed && !dry); done {
			return item, nil
		}
	}
}

// swap puts obj where cur is, if cur is still there.
func (s *Store[T]) swap(cur *object.Item[T], obj T, write bool) (object.Item[T], bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[cur.Key] != cur {
		return object.Item[T]{}, false
	}
	item := *cur
	item.Object = obj
	if write {
		item = s.putLocked(item)
	}
	return item, true
}

func (s *Store[T]) delete(ctx context.Context, key string, v object.Version, dry bool) (object.Item[T], error) {
	if err := s.ready(ctx, "delete", key, v); err != nil {
		return object.Item[T]{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cur, err := s.meetsLocked("delete", key, v, "")
	if err != nil {
		return object.Item[T]{}, err
	}
	gone := *cur
	if dry {
		return gone, nil
	}
	at, version := s.nextLocked()
	gone.Version = version
	delete(s.objects, key)
	s.commitLocked(cur, nil, at)
	return gone, nil
}

// ready is what a write with a precondition checks first.
func (s *Store[T]) ready(ctx context.Context, op, key string, v object.Version) error {
	err := s.usable(ctx)
	if v == "" {
		err = backend.ErrNoVersion
	}
	if err != nil {
		return &backend.Error{Op: op, Key: key, Want: v, Err: err}
	}
	return nil
}

// meetsLocked finds the object that a write is meant for.
func (s *Store[T]) meetsLocked(op, key string, v object.Version, id string) (*object.Item[T], error) {
	cur, ok := s.objects[key]
	if !ok {
		return nil, &backend.Error{Op: op, Key: key, Want: v, Err: backend.ErrNotFound}
	}
	if v != object.Any && v != cur.Version {
		return nil, &backend.Error{Op: op, Key: key, Want: v, Found: cur.Version, Err: backend.ErrConflict}
	}
	if id != "" && id != cur.ID {
		err := fmt.Errorf("%w: deleted and created again in the meantime", backend.ErrConflict)
		return nil, &backend.Error{Op: op, Key: key, Want: v, Found: cur.Version, Err: err}
	}
	return cur, nil
}

// putLocked makes item, new or with the ID it has, the next revision. The epoch in
// an ID keeps the objects of two stores apart.
func (s *Store[T]) putLocked(item object.Item[T]) object.Item[T] {
	at, version := s.nextLocked()
	item.Version = version
	if item.ID == "" {
		item.ID = string(at) + s.suffix
	}
	was := s.objects[item.Key]
	s.objects[item.Key] = &item
	s.commitLocked(was, &item, at)
	return item
}
