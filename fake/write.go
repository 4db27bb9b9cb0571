package fake

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
)

// Create stores a new object.
func (b *Backend[T]) Create(ctx context.Context, key string, obj T) (object.Item[T], error) {
	return b.do(ctx, Create, key, "", func(*call) (object.Item[T], error) {
		return b.to.Create(ctx, key, b.filledIn(obj))
	})
}

// Update replaces an object.
func (b *Backend[T]) Update(ctx context.Context, item object.Item[T]) (object.Item[T], error) {
	return b.do(ctx, Update, item.Key, item.Version, func(*call) (object.Item[T], error) {
		item.Object = b.filledIn(item.Object)
		return b.to.Update(ctx, item)
	})
}

// Patch changes an object where it is.
func (b *Backend[T]) Patch(ctx context.Context, key string, p patch.Patch, v object.Version) (object.Item[T], error) {
	return b.do(ctx, Patch, key, v, func(*call) (object.Item[T], error) {
		if f := b.hook(); f != nil && p != nil {
			return b.to.Patch(ctx, key, filling[T]{p, f}, v)
		}
		return b.to.Patch(ctx, key, p, v)
	})
}

// Delete removes an object.
func (b *Backend[T]) Delete(ctx context.Context, key string, v object.Version) (object.Item[T], error) {
	return b.do(ctx, Delete, key, v, func(*call) (object.Item[T], error) { return b.to.Delete(ctx, key, v) })
}

// DryRun is the same Backend, with its plan, counts and log, over the store's dry
// run.
func (b *Backend[T]) DryRun() (backend.Backend[T], error) {
	to, err := b.to.DryRun()
	if err != nil {
		return nil, err
	}
	return &Backend[T]{core: b.core, to: to, dry: true, who: b.who}, nil
}

// do is one call about one object.
func (b *Backend[T]) do(ctx context.Context, op Op, key string, v object.Version, f func(*call) (object.Item[T], error)) (object.Item[T], error) {
	c, err := b.begin(ctx, op, key, v)
	var item object.Item[T]
	began := err == nil
	if began {
		item, err = f(&c)
		c.Revision = revision(item.Version)
	}
	held := b.hold(ctx, op, true)
	switch {
	case began && c.lost: // refused or done: who asked can't know
		item, err = object.Item[T]{}, c.failed(backend.ErrOutcomeUnknown)
	case held != nil && began && op != Get && !c.DryRun:
		item, err = object.Item[T]{}, c.failed(fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, held))
	case held != nil:
		item, err = object.Item[T]{}, c.failed(held)
	}
	b.end(c, err)
	return item, err
}

func (b *Backend[T]) hook() func(T) T {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.onWrite
}

// filledIn is obj as OnWrite's function wants it.
func (b *Backend[T]) filledIn(obj T) T {
	if f := b.hook(); f != nil {
		return f(obj)
	}
	return obj
}

// filling is a patch and OnWrite's function, as one step.
type filling[T any] struct {
	patch.Patch
	f func(T) T
}

func (p filling[T]) Apply(doc []byte) ([]byte, error) {
	doc, err := p.Patch.Apply(doc)
	if err != nil {
		return nil, err
	}
	var obj T
	if err := json.Unmarshal(doc, &obj); err != nil {
		return nil, err
	}
	return json.Marshal(p.f(obj))
}
