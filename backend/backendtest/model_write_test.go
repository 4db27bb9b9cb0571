package backendtest_test

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/backendtest"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
)

var _ backend.Backend[thing] = (*model)(nil)

func failed(op, key string, err error) error { return &backend.Error{Op: op, Key: key, Err: err} }

// dry is a model whose writes are not done.
type dry struct{ *model }

func (d dry) DryRun() (backend.Backend[thing], error) { return d, nil }

func (d dry) Create(ctx context.Context, key string, obj thing) (item, error) {
	return d.create(ctx, key, obj, d.bad != "dry run that writes")
}

func (d dry) Update(ctx context.Context, it item) (item, error) { return d.update(ctx, it, true) }

func (d dry) Patch(ctx context.Context, key string, p patch.Patch, v object.Version) (item, error) {
	return d.patch(ctx, key, p, v, true)
}

func (d dry) Delete(ctx context.Context, key string, v object.Version) (item, error) {
	return d.delete(ctx, key, v, true)
}

func (m *model) DryRun() (backend.Backend[thing], error) {
	if !m.traits.DryRun {
		return nil, errors.ErrUnsupported
	}
	return dry{m}, nil
}

func (m *model) Create(ctx context.Context, key string, obj thing) (item, error) {
	return m.create(ctx, key, obj, false)
}

func (m *model) Update(ctx context.Context, it item) (item, error) { return m.update(ctx, it, false) }

func (m *model) Patch(ctx context.Context, key string, p patch.Patch, v object.Version) (item, error) {
	return m.patch(ctx, key, p, v, false)
}

func (m *model) Delete(ctx context.Context, key string, v object.Version) (item, error) {
	return m.delete(ctx, key, v, false)
}

// ready is what every write looks at first.
func (m *model) ready(ctx context.Context, v object.Version) error {
	if v == "" && m.bad != "no version accepted" {
		return backend.ErrNoVersion
	}
	return m.reach(ctx)
}

// lost is the answer of a write that was done.
func (m *model) lost(ctx context.Context) error {
	if err := ctx.Err(); err != nil && m.bad == "lost answer reported as a failure" {
		return err
	}
	return nil
}

// meetsLocked finds what a write is meant for.
func (m *model) meetsLocked(key string, v object.Version, id string) (item, error) {
	cur, there := m.objects[key]
	switch {
	case !there:
		return cur, backend.ErrNotFound
	case v != object.Any && v != cur.Version && m.bad != "preconditions not checked" && m.bad != "no version accepted",
		id != "" && m.IDs && id != cur.ID && m.bad != "another ID accepted":
		return cur, backend.ErrConflict
	}
	return cur, nil
}

// putLocked makes obj the next step and answers it.
func (m *model) putLocked(key string, obj thing) item {
	m.rev++
	m.addLocked(logged{m.rev, m.applyLocked(m.rev, []backendtest.Change[thing]{{Key: key, Object: obj}})})
	return m.objects[key]
}

func (m *model) create(ctx context.Context, key string, obj thing, dry bool) (item, error) {
	if m.bad == "keys in lower case" {
		key = strings.ToLower(key)
	}
	if key == "" && m.bad != "Create without a key" {
		return item{}, failed("create", key, backend.ErrNoKey)
	}
	if err := m.reach(ctx); err != nil {
		return item{}, failed("create", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.objects[key]; there && m.bad != "Create overwrites" {
		return item{}, failed("create", key, backend.ErrExists)
	}
	if dry {
		return item{Key: key, Object: obj}, nil
	}
	it := m.putLocked(key, obj)
	if m.bad == "answers what was given" {
		it = item{Key: key, Object: obj}
	}
	return it, m.lost(ctx)
}

func (m *model) update(ctx context.Context, it item, dry bool) (item, error) {
	if err := m.ready(ctx, it.Version); err != nil {
		return item{}, failed("update", it.Key, err)
	}
	if m.bad == "preconditions not checked" {
		time.Sleep(time.Millisecond) // others write meanwhile
	}
	if m.bad == "Any fails when others write" && it.Version == object.Any {
		var cur item
		m.locked(func() { cur = m.objects[it.Key] })
		time.Sleep(time.Millisecond)
		it.Version = cur.Version
	}
	if m.bad == "Update brings back" && it.Version == object.Any {
		_, err := m.Get(ctx, it.Key)
		time.Sleep(time.Millisecond)
		if _, gone := m.Get(ctx, it.Key); err == nil && gone != nil {
			return m.create(ctx, it.Key, it.Object, dry)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	cur, err := m.meetsLocked(it.Key, it.Version, it.ID)
	if err != nil {
		return item{}, failed("update", it.Key, err)
	}
	if dry {
		cur.Object = it.Object
		return cur, nil
	}
	return m.putLocked(it.Key, it.Object), m.lost(ctx)
}

func (m *model) patch(ctx context.Context, key string, p patch.Patch, v object.Version, dry bool) (item, error) {
	if !m.traits.Patch {
		if m.bad == "unsupported, but done" {
			m.locked(func() { m.putLocked(key, thing{N: 99}) })
		}
		return item{}, failed("patch", key, errors.ErrUnsupported)
	}
	for {
		if err := m.ready(ctx, v); err != nil {
			return item{}, failed("patch", key, err)
		}
		var cur item
		var err error
		m.locked(func() { cur, err = m.meetsLocked(key, v, "") })
		if err != nil {
			return item{}, failed("patch", key, err)
		}
		if m.bad == "JSON patches passed over" && p.MediaType() == "application/json-patch+json" {
			return cur, nil
		}
		obj, changed, err := backend.Patched(p, cur.Object)
		if err != nil {
			return item{}, failed("patch", key, err)
		}
		if m.bad == "patch not atomic" {
			time.Sleep(time.Millisecond)
		}
		it, done := m.swap(cur, obj, changed || m.bad == "patch of nothing writes", dry)
		if done {
			return it, m.lost(ctx)
		}
	}
}

// swap puts obj where cur is, if it still is; cur and obj are as read and patched.
func (m *model) swap(cur item, obj thing, changed, dry bool) (item, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, there := m.objects[cur.Key]
	same := there && now.ID == cur.ID && now.Version == cur.Version && equalThings(now.Object, cur.Object)
	if !same && m.bad != "patch not atomic" {
		return item{}, false
	}
	if dry || !changed {
		cur.Object = obj
		return cur, true
	}
	return m.putLocked(cur.Key, obj), true
}

func (m *model) delete(ctx context.Context, key string, v object.Version, dry bool) (item, error) {
	if err := m.ready(ctx, v); err != nil {
		return item{}, failed("delete", key, err)
	}
	if m.bad == "Delete looks first" && v != object.Any {
		var err error
		m.locked(func() { _, err = m.meetsLocked(key, v, "") })
		if err != nil {
			return item{}, failed("delete", key, err)
		}
		time.Sleep(time.Millisecond)
		v = object.Any
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	cur, err := m.meetsLocked(key, v, "")
	if err != nil || dry {
		if err != nil {
			err = failed("delete", key, err)
		}
		return cur, err
	}
	m.rev++
	m.addLocked(logged{m.rev, m.applyLocked(m.rev, []backendtest.Change[thing]{{Key: key, Delete: true}})})
	if m.bad != "Delete under the old version" {
		cur.Version = m.version(m.rev)
	}
	if m.bad == "Delete under a version to come" {
		cur.Version = m.version(m.rev + 1000)
	}
	return cur, m.lost(ctx)
}
