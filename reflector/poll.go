package reflector

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/homeostat/homeostat/object"
)

// PollOptions say how often [Poll] and [PollItems] list.
type PollOptions struct {
	// Every is the time from the end of one list to the begin of the next, give
	// or take a twentieth, so that many do not fall into step. 0 is 30 s.
	//
	// A reflector's longest session ([Options].Session, 10 min) begins a new
	// one, and so another list, when lists are further apart.
	Every time.Duration
	// Max, when longer than Every, lets the pause double from Every up to Max
	// while nothing changes; a change brings Every back. To see that nothing
	// changed, the last list is kept and compared with each new one: that is a
	// second slice of items and a map of keys, and per object and list a look-up
	// and a comparison of versions, or of the objects themselves
	// (reflect.DeepEqual) where there are none. A list that answers
	// [ErrNotModified] costs none of it. 0 is Every.
	Max time.Duration
}

const defaultEvery = 30 * time.Second

// Poll makes a source of any function that lists all objects, and of one that
// tells an object's key. Its watch lists again and again; what is gone from a
// list is deleted. The source has no positions and no versions: consumers
// compare objects.
//
// An error of list ends the watch, changes nothing and is tried again by the
// reflector's backoff. A list with two objects under one key, or one without a
// key, is such an error too ([ErrDuplicateKey], [ErrEmptyKey]). Where [IfModified]
// is true of its ctx, list may answer [ErrNotModified] when nothing is different
// from what it gave last; a list that remembers that serves one consumer.
// It must return when its ctx ends, and must finish within [Options].Open.
//
// The source keeps nothing between two calls of Watch, and may be watched by
// many at once if list and key can be called so.
func Poll[T any](list func(context.Context) ([]T, error), key func(T) string, opts *PollOptions) ListWatcher[T] {
	if list == nil || key == nil {
		return faulty[T]{fmt.Errorf("%w: Poll needs a list and a key function", ErrInvalidOptions)}
	}
	return newPoll(func(ctx context.Context) ([]object.Item[T], error) {
		objs, err := list(ctx)
		if err != nil {
			return nil, err
		}
		return keyed(objs, key)
	}, opts)
}

// PollItems is [Poll] for lists that know their objects' keys and, where there
// are any, versions and IDs. No key may be empty ([ErrEmptyKey]).
func PollItems[T any](list func(context.Context) ([]object.Item[T], error), opts *PollOptions) ListWatcher[T] {
	if list == nil {
		return faulty[T]{fmt.Errorf("%w: PollItems needs a list function", ErrInvalidOptions)}
	}
	return newPoll(list, opts)
}

func newPoll[T any](list func(context.Context) ([]object.Item[T], error), opts *PollOptions) ListWatcher[T] {
	var o PollOptions
	if opts != nil {
		o = *opts
	}
	if o.Every < 0 || o.Max < 0 {
		return faulty[T]{fmt.Errorf("%w: Every %v or Max %v is negative", ErrInvalidOptions, o.Every, o.Max)}
	}
	if o.Every == 0 {
		o.Every = defaultEvery
	}
	if o.Max == 0 {
		o.Max = o.Every
	}
	if o.Max < o.Every {
		return faulty[T]{fmt.Errorf("%w: Max %v is shorter than Every %v", ErrInvalidOptions, o.Max, o.Every)}
	}
	return &poll[T]{list: list, every: o.Every, max: o.Max}
}

// keyed makes items of objects.
func keyed[T any](objs []T, key func(T) string) (items []object.Item[T], err error) {
	i := 0
	defer func() {
		if v := recover(); v != nil {
			items, err = nil, fmt.Errorf("object %d of the list: %w", i, caught("key", "", v))
		}
	}()
	items = make([]object.Item[T], len(objs))
	for i = range objs {
		items[i] = object.Item[T]{Key: key(objs[i]), Object: objs[i]}
	}
	return items, nil
}

// IfModified says to the list function of a [Poll] that its caller still has what the
// function gave last, and no more, so that [ErrNotModified] will do. Where it is false
// the whole list is needed, whatever was answered before.
func IfModified(ctx context.Context) bool { return ctx.Value(ifModified{}) != nil }

type ifModified struct{}

// with tells a list function whether ErrNotModified will do.
func with(ctx context.Context, will bool) context.Context {
	if !will {
		return ctx
	}
	return context.WithValue(ctx, ifModified{}, true)
}

type poll[T any] struct {
	list       func(context.Context) ([]object.Item[T], error)
	every, max time.Duration
}

// Powers: each watch streams its first list, and that is all.
func (p *poll[T]) Powers() Powers[T] { return Powers[T]{Initial: true} }

// List is one call of the list function: one page, without a cursor.
func (p *poll[T]) List(ctx context.Context, opts ListOptions) (Page[T], error) {
	if opts.Page != "" {
		return Page[T]{}, fmt.Errorf("a poll has one page, not %q: %w", opts.Page, ErrExpired)
	}
	items, _, err := p.get(with(ctx, opts.IfModified))
	return Page[T]{Items: items}, err
}

// get lists, and finds each item's place by its key.
func (p *poll[T]) get(ctx context.Context) ([]object.Item[T], map[string]int, error) {
	items, err := p.list(ctx)
	if err != nil {
		return nil, nil, err
	}
	places := make(map[string]int, len(items))
	for i := range items {
		key := items[i].Key
		if key == "" {
			return nil, nil, fmt.Errorf("item %d of the list: %w", i, ErrEmptyKey)
		}
		if _, twice := places[key]; twice {
			return nil, nil, fmt.Errorf("%w: %q", ErrDuplicateKey, key)
		}
		places[key] = i
	}
	return items, places, nil
}

// Watch lists until ctx ends or a list fails: each list is one batch, a full
// state; one that was not modified is Synced without Reset.
func (p *poll[T]) Watch(ctx context.Context, opts WatchOptions) iter.Seq2[Batch[T], error] {
	return func(yield func(Batch[T], error) bool) {
		if opts.After != "" && !opts.Initial {
			yield(Batch[T]{}, fmt.Errorf("a poll has no positions such as %q: %w", opts.After, ErrExpired))
			return
		}
		var last []object.Item[T] // kept only to see whether anything changed
		listed := false
		pause := p.every
		ask := with(ctx, opts.IfModified)
		for {
			items, places, err := p.get(ask)
			unchanged := errors.Is(err, ErrNotModified)
			var b Batch[T]
			switch {
			case unchanged:
				b.Synced = true
			case err != nil:
				yield(b, err)
				return
			default:
				b = full(items)
				if p.max > p.every {
					unchanged = listed && equal(last, items, places)
					last, listed = items, true
				}
			}
			if unchanged {
				pause += min(pause, p.max-pause)
			} else {
				pause = p.every
			}
			ask = with(ctx, true) // yielded is taken, or else this was the last
			// Also after the end of ctx: list may believe that it was heard.
			if !yield(b, nil) || !sleep(ctx, jittered(pause)) {
				return
			}
		}
	}
}

// full is a full state in one batch.
func full[T any](items []object.Item[T]) Batch[T] {
	return Batch[T]{Events: puts(items), Reset: true, Synced: true}
}

func puts[T any](items []object.Item[T]) []Event[T] {
	events := make([]Event[T], len(items))
	for i := range items {
		events[i] = Event[T]{Op: OpPut, Known: true, Item: items[i]}
	}
	return events
}

// equal says that two lists, without duplicates, show one state. places finds
// b's items.
func equal[T any](a, b []object.Item[T], places map[string]int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x := &a[i]
		place, ok := places[x.Key]
		if !ok {
			return false
		}
		y := &b[place]
		if x.Version != y.Version || x.ID != y.ID {
			return false
		}
		if x.Version == "" && !reflect.DeepEqual(x.Object, y.Object) {
			return false
		}
	}
	return true
}

// jittered is d, give or take a twentieth; the longest time there is stays that.
func jittered(d time.Duration) time.Duration {
	least := d - d/20
	return least + min(time.Duration(rand.Int64N(int64(d)/10+1)), math.MaxInt64-least)
}
