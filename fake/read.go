package fake

import (
	"context"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// Powers are those of backend/memory. Their Get is [Backend.Get]; no fault strikes
// Head.
func (b *Backend[T]) Powers() reflector.Powers[T] {
	p := b.to.Powers()
	p.Get = b.Get
	return p
}

// Get reads one object.
func (b *Backend[T]) Get(ctx context.Context, key string) (object.Item[T], error) {
	return b.do(ctx, Get, key, "", func() (object.Item[T], error) { return b.to.Get(ctx, key) })
}

// List answers everything, in one page.
func (b *Backend[T]) List(ctx context.Context, opts reflector.ListOptions) (reflector.Page[T], error) {
	c, err := b.begin(ctx, List, "", "")
	var page reflector.Page[T]
	if err == nil {
		page, err = b.to.List(ctx, opts)
		c.Revision = revision(page.Cursor)
	}
	b.end(c, err)
	return page, err
}
