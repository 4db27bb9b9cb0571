package fake

import (
	"context"
	"fmt"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// Powers are those of backend/memory, as OnPowers lets them be. Their Get is
// [Backend.Get]; no fault strikes Head. StaleLists is set while the plan has a
// StaleRead.
func (b *Backend[T]) Powers() reflector.Powers[T] {
	p := b.to.Powers()
	p.Get = b.Get
	b.mu.Lock()
	p.StaleLists = b.weather.stale()
	f := b.powers
	b.mu.Unlock()
	if f != nil {
		return f(p)
	}
	return p
}

// Get reads one object.
func (b *Backend[T]) Get(ctx context.Context, key string) (object.Item[T], error) {
	return b.do(ctx, Get, key, "", func(c *call) (object.Item[T], error) {
		if c.back == 0 || ctx.Err() != nil {
			return b.to.Get(ctx, key)
		}
		item, ok := b.ago(c.back).Get(key)
		if !ok {
			return item, c.failed(backend.ErrNotFound)
		}
		return item, nil
	})
}

// List answers everything, or a page of it, as backend/memory does.
func (b *Backend[T]) List(ctx context.Context, opts reflector.ListOptions) (reflector.Page[T], error) {
	c, err := b.begin(ctx, List, "", "")
	var page reflector.Page[T]
	if err == nil {
		page, err = b.list(ctx, &c, opts)
		c.Revision = revision(page.Cursor)
	}
	if held := b.hold(ctx, List, true); held != nil {
		page, err = reflector.Page[T]{}, c.failed(held)
	}
	b.end(c, err)
	return page, err
}

func (b *Backend[T]) list(ctx context.Context, c *call, opts reflector.ListOptions) (reflector.Page[T], error) {
	page, err := b.to.List(ctx, opts)
	if err == nil && c.back > 0 && opts.Page == "" {
		page = b.ago(c.back).List(opts)
		if opts.NotBefore != "" && b.to.Powers().Compare(page.Cursor, opts.NotBefore) < 0 {
			return reflector.Page[T]{}, fmt.Errorf("fake: list: a replica at revision %d: %w", revision(page.Cursor), reflector.ErrFutureCursor)
		}
	}
	if c.partial {
		page.Items, page.Next = page.Items[:len(page.Items)/2], ""
	}
	return page, err
}
