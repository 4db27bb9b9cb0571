package reflector

import (
	"context"
	"fmt"
	"iter"

	"github.com/homeostat/homeostat/object"
)

// Filter shows only the objects of lw that keep keeps. An object that changes so
// that it is not kept any more is deleted, as far as a consumer can see, its
// final state not told. Cursors, bookmarks and all powers are those of lw, but
// for KeysOnly: keep needs the object.
//
// keep must depend on the object alone, must not change it, and may be called by
// many goroutines at once when the source is used so. Its panic is a *[PanicError]
// with the object's key.
func Filter[T any](lw ListWatcher[T], keep func(T) bool) ListWatcher[T] {
	if lw == nil || keep == nil {
		return faulty[T]{fmt.Errorf("%w: Filter needs a source and a function", ErrInvalidOptions)}
	}
	return &filter[T]{lw: lw, keep: keep}
}

type filter[T any] struct {
	lw   ListWatcher[T]
	keep func(T) bool
}

func (f *filter[T]) Powers() Powers[T] {
	p := f.lw.Powers()
	p.KeysOnly = false
	if get := p.Get; get != nil {
		p.Get = func(ctx context.Context, key string) (object.Item[T], error) {
			item, err := get(ctx, key)
			if err != nil {
				return item, err
			}
			kept, err := f.items([]object.Item[T]{item})
			if err == nil && len(kept) == 0 {
				err = ErrNotFound
			}
			if err != nil {
				return object.Item[T]{}, err
			}
			return item, nil
		}
	}
	return p
}

// List leaves out what is not kept: a page may have less than Limit, or nothing,
// and still have a next one.
func (f *filter[T]) List(ctx context.Context, opts ListOptions) (Page[T], error) {
	opts.KeysOnly = false
	page, err := f.lw.List(ctx, opts)
	if err != nil {
		return page, err
	}
	page.Items, err = f.items(page.Items)
	return page, err
}

// items gives those that are kept, in a slice of its own where any is not.
func (f *filter[T]) items(items []object.Item[T]) (kept []object.Item[T], err error) {
	i := 0
	defer func() {
		if v := recover(); v != nil {
			kept, err = nil, caught("keep", items[i].Key, v)
		}
	}()
	for i = range items {
		if !f.keep(items[i].Object) {
			break
		}
		if i == len(items)-1 {
			return items, nil
		}
	}
	kept = append(kept, items[:i]...)
	for i++; i < len(items); i++ {
		if f.keep(items[i].Object) {
			kept = append(kept, items[i])
		}
	}
	return kept, nil
}

// Watch turns a put of what is not kept into a delete.
func (f *filter[T]) Watch(ctx context.Context, opts WatchOptions) iter.Seq2[Batch[T], error] {
	return func(yield func(Batch[T], error) bool) {
		var own []Event[T]
		for b, err := range f.lw.Watch(ctx, opts) {
			if err != nil {
				yield(b, err)
				return
			}
			out, err := f.events(b.Events, own)
			if err != nil {
				yield(Batch[T]{}, err)
				return
			}
			if out != nil {
				own, b.Events = out, out
			}
			if !yield(b, nil) {
				return
			}
			own = reuse(own)
		}
	}
}

// reuse gives a slice of events back for the next batch: without the objects,
// which nobody may need any more, and not a large one at all.
func reuse[T any](own []Event[T]) []Event[T] {
	if cap(own) > chunk {
		return nil
	}
	clear(own)
	return own[:0]
}

// events gives nil when all of in is kept, and else the events to tell, in own:
// in is the source's.
func (f *filter[T]) events(in, own []Event[T]) (out []Event[T], err error) {
	i := 0
	defer func() {
		if v := recover(); v != nil {
			out, err = nil, caught("keep", in[i].Key, v)
		}
	}()
	for i = range in {
		e := &in[i]
		if e.Op != OpPut || f.keep(e.Object) {
			if out != nil {
				out = append(out, *e)
			}
			continue
		}
		if out == nil {
			out = append(own, in[:i]...)
		}
		out = append(out, Event[T]{Op: OpDelete, Item: object.Item[T]{Key: e.Key, Version: e.Version, ID: e.ID}})
	}
	return out, nil
}
