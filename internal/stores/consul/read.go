package consul

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// consistent reads see every write that was answered before.
func consistent() url.Values { return url.Values{"consistent": {""}} }

func (s *Store[T]) reads(stale bool) url.Values {
	if stale {
		return url.Values{"stale": {""}}
	}
	return consistent()
}

// Get reads one object; backend.ErrNotFound when there is none.
func (s *Store[T]) Get(ctx context.Context, key string) (object.Item[T], error) {
	item, err := s.read(ctx, key)
	if err != nil {
		return object.Item[T]{}, &backend.Error{Op: "get", Key: key, Err: err}
	}
	return item, nil
}

func (s *Store[T]) read(ctx context.Context, key string) (object.Item[T], error) {
	if key == "" {
		return object.Item[T]{}, backend.ErrNotFound
	}
	f, err := s.query(ctx, s.prefix+key, consistent())
	if err == nil && len(f.items) == 0 {
		err = backend.ErrNotFound
	}
	if err != nil {
		return object.Item[T]{}, err
	}
	return f.items[0], nil
}

// List answers everything. There are no pages, and no keys without values.
func (s *Store[T]) List(ctx context.Context, opts reflector.ListOptions) (page reflector.Page[T], err error) {
	if opts.Page != "" {
		return page, fmt.Errorf("consul: list: page %q: %w", opts.Page, reflector.ErrExpired)
	}
	// Indexes do not say what comes before what, so whoever needs a state not
	// before another one is given the latest.
	stale := s.stale || opts.Freshness == reflector.Any
	q := s.reads(stale && opts.NotBefore == "")
	q.Set("recurse", "")
	f, err := s.query(ctx, s.prefix, q)
	if err != nil {
		return page, fmt.Errorf("consul: list: %w", err)
	}
	return reflector.Page[T]{Items: f.items, Cursor: f.cursor()}, nil
}

// Watch tells the full state whenever it is another one. After opts.After it waits
// until the index is not that any more, but not for ever: the first answer is told
// also when it is, since the state may be another one all the same.
func (s *Store[T]) Watch(ctx context.Context, opts reflector.WatchOptions) iter.Seq2[reflector.Batch[T], error] {
	return func(yield func(reflector.Batch[T], error) bool) {
		w := watch[T]{store: s, every: opts.ProgressEvery, yield: yield}
		if opts.After != "" && !opts.Initial {
			var err error
			if w.at, err = strconv.ParseUint(string(opts.After), 10, 64); err != nil || w.at == 0 {
				w.fail(fmt.Errorf("%q is no index: %w", opts.After, reflector.ErrExpired))
				return
			}
			if !yield(reflector.Bookmark[T](opts.After), nil) {
				return
			}
		}
		for ctx.Err() == nil {
			f, err := w.next(ctx)
			if err != nil && ctx.Err() == nil {
				w.fail(err)
			}
			if err != nil || !w.tell(f) {
				return
			}
		}
	}
}

// watch is one session.
type watch[T any] struct {
	store *Store[T]
	every time.Duration
	yield func(reflector.Batch[T], error) bool
	at    uint64   // the index to wait for the end of; 0: do not wait
	told  *full[T] // without its items; nil: nothing was told
}

func (w *watch[T]) fail(err error) {
	w.yield(reflector.Batch[T]{}, fmt.Errorf("consul: watch: %w", err))
}

// next asks for the state after w.at.
func (w *watch[T]) next(ctx context.Context) (full[T], error) {
	q := w.store.reads(w.store.stale)
	q.Set("recurse", "")
	if w.at > 0 {
		q.Set("index", decimal(w.at))
		if w.every > 0 { // the server takes up to a 16th more
			q.Set("wait", (w.every * 15 / 16).String())
		}
	}
	return w.store.query(ctx, w.store.prefix, q)
}

// tell yields an answer, and says whether to go on.
func (w *watch[T]) tell(f full[T]) bool {
	items, was := f.items, w.at
	f.items = nil
	same := w.told != nil && w.told.index == f.index && w.told.sum == f.sum
	w.at, w.told = f.index, &f
	if same && f.index > 0 { // time is over, or it was woken for nothing
		return w.yield(reflector.Bookmark[T](f.cursor()), nil)
	}
	if f.index < was { // it went back: begin again without waiting
		w.at = 0
	}
	b := reflector.Batch[T]{Reset: true, Synced: true, Cursor: f.cursor()}
	for _, item := range items {
		b.Events = append(b.Events, reflector.Event[T]{Op: reflector.OpPut, Known: true, Item: item})
	}
	if !w.yield(b, nil) {
		return false
	}
	if f.index == 0 {
		w.fail(errZero)
		return false
	}
	return true
}

var errZero = errors.New("an answer with index 0, which cannot be waited for")
