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
	e, err := s.read(ctx, key)
	var item object.Item[T]
	if err == nil {
		item, err = s.item(e)
	}
	if err != nil {
		return object.Item[T]{}, &backend.Error{Op: "get", Key: key, Found: item.Version, Err: err}
	}
	return item, nil
}

func (s *Store[T]) read(ctx context.Context, key string) (entry, error) {
	if key == "" {
		return entry{}, backend.ErrNotFound
	}
	a, err := s.query(ctx, s.prefix+key, consistent())
	if err == nil && len(a.entries) == 0 {
		err = backend.ErrNotFound
	}
	if err != nil {
		return entry{}, err
	}
	return a.entries[0], nil
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
	a, err := s.query(ctx, s.prefix, q)
	if err != nil {
		return page, fmt.Errorf("consul: list: %w", err)
	}
	page.Items, page.Faults = s.items(a.entries)
	page.Cursor = a.cursor()
	return page, nil
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
			a, err := w.next(ctx)
			if err != nil && ctx.Err() == nil {
				w.fail(err)
			}
			if err != nil || !w.tell(a) {
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
	at    uint64  // the index to wait for the end of; 0: do not wait
	told  *answer // without its entries; nil: nothing was told
}

func (w *watch[T]) fail(err error) {
	w.yield(reflector.Batch[T]{}, fmt.Errorf("consul: watch: %w", err))
}

// next asks for the state after w.at.
func (w *watch[T]) next(ctx context.Context) (answer, error) {
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
func (w *watch[T]) tell(a answer) bool {
	entries, was := a.entries, w.at
	a.entries = nil
	same := w.told != nil && w.told.index == a.index && w.told.sum == a.sum
	w.at, w.told = a.index, &a
	if same && a.index > 0 { // time is over, or it was woken for nothing
		return w.yield(reflector.Bookmark[T](a.cursor()), nil)
	}
	if a.index < was { // it went back: begin again without waiting
		w.at = 0
	}
	items, faults := w.store.items(entries)
	b := reflector.Batch[T]{Faults: faults, Reset: true, Synced: true, Cursor: a.cursor()}
	for _, item := range items {
		b.Events = append(b.Events, reflector.Event[T]{Op: reflector.OpPut, Known: true, Item: item})
	}
	if !w.yield(b, nil) {
		return false
	}
	if a.index == 0 {
		w.fail(errZero)
		return false
	}
	return true
}

var errZero = errors.New("an answer with index 0, which cannot be waited for")
