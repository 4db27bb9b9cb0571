package reflector

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/homeostat/homeostat/object"
)

// Hint makes a source of one that lists and of hints that say where to look:
// LISTEN/NOTIFY, webhooks, file events, and whatever else tells that something
// changed but not what, and loses what it tells while nobody listens.
//
// hints is called once for each watch. It subscribes and then yields "" to say
// that the subscription is live: only then is the full state listed, so that a
// write between the two is in the list, or is hinted after it, or both. After
// that it yields the key of each object that may have changed, or "" when that
// can be any. A key is fetched by the Powers.Get of lw, if it has that; else, and
// for "", everything is listed again.
//
// hints runs on a goroutine of its own, and never waits long in its yield: what it
// tells while something is listed or fetched is kept, each key once, and looked at
// after that. When more than 500 keys are waiting, one list takes their place.
// It must return when its ctx ends; the watch waits for it.
//
// A hint with an error ends the watch, and so does a list or fetch that fails, or a
// panic of hints ([PanicError]); the reflector then subscribes anew. When hints
// return, the watch looks at what they left and ends too.
//
// The watch of lw itself is not used. The source has no positions: each watch
// begins with a full state, which is also the safety net against hints that are
// lost: the reflector begins a new watch at least every [Options].Session.
func Hint[T any](lw ListWatcher[T], hints func(context.Context) iter.Seq2[string, error]) ListWatcher[T] {
	if lw == nil || hints == nil {
		return faulty[T]{fmt.Errorf("%w: Hint needs a source and hints", ErrInvalidOptions)}
	}
	return &hint[T]{lw: lw, hints: hints}
}

type hint[T any] struct {
	lw    ListWatcher[T]
	hints func(context.Context) iter.Seq2[string, error]
}

// Powers: what lists and fetches can do stays; what watches and cursors can do
// is not that of lw.
func (h *hint[T]) Powers() Powers[T] {
	p := h.lw.Powers()
	return Powers[T]{
		Paged: p.Paged, SnapshotPages: p.SnapshotPages, KeysOnly: p.KeysOnly, StaleLists: p.StaleLists,
		Get: p.Get, Initial: true,
	}
}

// List is that of lw, without its cursors: no watch of this source begins there.
func (h *hint[T]) List(ctx context.Context, opts ListOptions) (Page[T], error) {
	page, err := h.lw.List(ctx, opts)
	page.Cursor = ""
	return page, err
}

func (h *hint[T]) Watch(ctx context.Context, opts WatchOptions) iter.Seq2[Batch[T], error] {
	return func(yield func(Batch[T], error) bool) {
		if opts.After != "" && !opts.Initial {
			yield(Batch[T]{}, fmt.Errorf("hints have no positions such as %q: %w", opts.After, ErrExpired))
			return
		}
		powers := h.lw.Powers()
		pending := newHinted(powers.Get != nil)
		defer pending.collect(ctx, h.hints)()
		// whole: the consumer has the last list, and nothing that was fetched since.
		whole := opts.IfModified
		for listed := false; ; listed = true {
			key, more, err := pending.take(ctx)
			switch {
			case err != nil:
				yield(Batch[T]{}, err)
				return
			case !more:
				return
			// The first hint, whatever it says, proves the subscription.
			case key == "" || !listed:
				more = h.list(ctx, powers, whole, yield)
				whole = true
			default:
				whole = false
				more = fetch(ctx, powers.Get, key, yield)
			}
			if !more {
				return
			}
		}
	}
}

// list yields all pages as one full state, or says that it is the last one; false
// ends the watch.
func (h *hint[T]) list(ctx context.Context, powers Powers[T], whole bool, yield func(Batch[T], error) bool) bool {
	opts := ListOptions{IfModified: whole}
	var seen tokens
	if powers.Paged {
		opts.Limit = defaultPageSize
	}
	for first := true; ; first = false {
		page, err := h.lw.List(ctx, opts)
		if first && errors.Is(err, ErrNotModified) {
			return yield(Batch[T]{Synced: true}, nil)
		}
		if err == nil && page.Next != "" {
			err = seen.follow(page.Next)
		}
		if err != nil {
			yield(Batch[T]{}, err)
			return false
		}
		last := page.Next == ""
		if !yield(Batch[T]{Events: puts(page.Items), Faults: page.Faults, Reset: first, Synced: last}, nil) {
			return false
		}
		if last {
			return true
		}
		opts.Page = page.Next
	}
}

// fetch yields one object, or its absence; false ends the watch.
func fetch[T any](
	ctx context.Context, get func(context.Context, string) (object.Item[T], error), key string,
	yield func(Batch[T], error) bool,
) bool {
	item, err := get(ctx, key)
	switch {
	case errors.Is(err, ErrNotFound):
		return yield(Delete[T](key, ""), nil)
	case errors.Is(err, ErrUnreadable):
		return yield(Batch[T]{Faults: []Fault{{Key: key, Err: err}}}, nil)
	case err == nil && item.Key != key:
		err = broken(fmt.Sprintf("Get of %q gave %q", key, item.Key))
	}
	if err != nil {
		yield(Batch[T]{}, err)
		return false
	}
	return yield(Put(item, ""), nil)
}
