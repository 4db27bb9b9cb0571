package reflector

import (
	"context"
	"fmt"
	"iter"

	"github.com/homeostat/homeostat/object"
)

// Transform shows what f makes of each object of lw: to drop what nobody needs
// before it is cached, say. Keys, versions, cursors and powers are those of lw.
//
// f is called once for each object that the source tells, and never for one that
// was deleted: its final state is not told any more (Known is false). f must not
// change an object that the source still holds, as an in-process one does: it
// then returns a changed copy. It may be called by many goroutines at once when
// the source is used so. Its panic is a *[PanicError] with the object's key.
func Transform[T any](lw ListWatcher[T], f func(T) T) ListWatcher[T] {
	if lw == nil || f == nil {
		return faulty[T]{fmt.Errorf("%w: Transform needs a source and a function", ErrInvalidOptions)}
	}
	return &transform[T]{lw: lw, f: f}
}

type transform[T any] struct {
	lw ListWatcher[T]
	f  func(T) T
}

func (t *transform[T]) Powers() Powers[T] {
	p := t.lw.Powers()
	if get := p.Get; get != nil {
		p.Get = func(ctx context.Context, key string) (object.Item[T], error) {
			item, err := get(ctx, key)
			if err != nil {
				return item, err
			}
			out, err := t.items([]object.Item[T]{item})
			if err != nil {
				return object.Item[T]{}, err
			}
			return out[0], nil
		}
	}
	return p
}

func (t *transform[T]) List(ctx context.Context, opts ListOptions) (Page[T], error) {
	page, err := t.lw.List(ctx, opts)
	// A list of keys has no objects to be made into something.
	if err != nil || opts.KeysOnly && t.lw.Powers().KeysOnly {
		return page, err
	}
	page.Items, err = t.items(page.Items)
	return page, err
}

// items gives a slice of its own: in is the source's.
func (t *transform[T]) items(in []object.Item[T]) (out []object.Item[T], err error) {
	i := 0
	defer func() {
		if v := recover(); v != nil {
			out, err = nil, caught("transform", in[i].Key, v)
		}
	}()
	out = make([]object.Item[T], len(in))
	for i = range in {
		out[i] = in[i]
		out[i].Object = t.f(in[i].Object)
	}
	return out, nil
}

func (t *transform[T]) Watch(ctx context.Context, opts WatchOptions) iter.Seq2[Batch[T], error] {
	return func(yield func(Batch[T], error) bool) {
		var own []Event[T]
		for b, err := range t.lw.Watch(ctx, opts) {
			if err == nil {
				own, err = t.events(b.Events, own)
			}
			if err != nil {
				yield(Batch[T]{}, err)
				return
			}
			b.Events = own
			if !yield(b, nil) {
				return
			}
			own = reuse(own)
		}
	}
}

// events gives what to tell, in own: in is the source's.
func (t *transform[T]) events(in, own []Event[T]) (out []Event[T], err error) {
	i := 0
	defer func() {
		if v := recover(); v != nil {
			out, err = nil, caught("transform", in[i].Key, v)
		}
	}()
	out = append(own, in...)
	for i = range out {
		e := &out[i]
		if e.Op == OpPut {
			e.Object = t.f(e.Object)
			continue
		}
		var none T
		e.Known, e.Object = false, none
	}
	return out, nil
}
