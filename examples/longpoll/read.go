package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// List answers everything in one page, and where in the log that is.
func (s *Store[T]) List(ctx context.Context, opts reflector.ListOptions) (reflector.Page[T], error) {
	page, err := s.list(ctx, opts)
	if err != nil {
		return reflector.Page[T]{}, fmt.Errorf("longpoll: list: %w", err)
	}
	return page, nil
}

func (s *Store[T]) list(ctx context.Context, opts reflector.ListOptions) (page reflector.Page[T], err error) {
	if opts.Page != "" {
		return page, fmt.Errorf("there is one page, and none at %q: %w", opts.Page, reflector.ErrExpired)
	}
	var all listing
	if err := s.ask(ctx, request{method: http.MethodGet, path: "/objects"}, &all); err != nil {
		return page, err
	}
	// "{}" is good JSON, and no list. Taken for an empty one it deletes everything.
	if all.Epoch == "" || all.Objects == nil {
		return page, errors.New("the answer is no list")
	}
	at := position{all.Epoch, all.Seq}
	if err := at.notBefore(opts.NotBefore); err != nil {
		return page, err
	}
	page.Cursor = at.cursor()
	for _, rec := range all.Objects {
		item, err := s.item(rec)
		if err != nil {
			// It is there, and nobody can say in what state. Left out, it would be deleted.
			page.Faults = append(page.Faults, fault(rec, err))
			continue
		}
		page.Items = append(page.Items, item)
	}
	return page, nil
}

func fault(rec record, err error) reflector.Fault {
	return reflector.Fault{Key: rec.Key, Version: object.Version(rec.Version), Err: err}
}

// notBefore checks what a list was asked not to lie before.
func (p position) notBefore(c reflector.Cursor) error {
	if c == "" {
		return nil
	}
	least, err := place(c)
	switch {
	case err != nil:
		return err
	case least.epoch != p.epoch:
		return fmt.Errorf("%q is of another epoch: %w", c, reflector.ErrExpired)
	case least.seq > p.seq:
		return fmt.Errorf("the service is at %q, not yet at %q: %w", p.cursor(), c, reflector.ErrFutureCursor)
	}
	return nil
}

// Watch asks for changes, again and again, on the goroutine that ranges over it.
func (s *Store[T]) Watch(ctx context.Context, opts reflector.WatchOptions) iter.Seq2[reflector.Batch[T], error] {
	return func(yield func(reflector.Batch[T], error) bool) {
		err := s.watch(ctx, opts, func(b reflector.Batch[T]) bool { return yield(b, nil) && ctx.Err() == nil })
		// An end that was asked for is no error.
		if err != nil && ctx.Err() == nil {
			yield(reflector.Batch[T]{}, fmt.Errorf("longpoll: watch: %w", err))
		}
	}
}

// longest is how long a long poll waits when nobody asks for signs of life.
const longest = 30 * time.Second

// watch tells everything after opts.After until tell does not want more.
func (s *Store[T]) watch(ctx context.Context, opts reflector.WatchOptions, tell func(reflector.Batch[T]) bool) error {
	if opts.Initial {
		return fmt.Errorf("the service streams no lists: %w", errors.ErrUnsupported)
	}
	at, err := s.begin(ctx, opts.After)
	if err != nil {
		return err
	}
	wait := time.Duration(0) // the first answer proves that the place is known: it comes at once
	for first := true; ; first = false {
		got, err := s.changes(ctx, at, wait)
		if err != nil {
			return err
		}
		// Open, or still alive.
		if (first || len(got) == 0) && !tell(reflector.Bookmark[T](at.cursor())) {
			return nil
		}
		for _, c := range got {
			if !tell(s.batch(at.epoch, c)) {
				return nil
			}
			at.seq = c.Seq
		}
		if wait = opts.ProgressEvery; wait <= 0 {
			wait = longest
		}
	}
}

// begin is where a watch begins. The service tells its present end only with a
// list.
func (s *Store[T]) begin(ctx context.Context, after reflector.Cursor) (position, error) {
	if after == "" {
		page, err := s.list(ctx, reflector.ListOptions{})
		if err != nil {
			return position{}, err
		}
		after = page.Cursor
	}
	return place(after)
}

// changes is one long poll.
func (s *Store[T]) changes(ctx context.Context, after position, wait time.Duration) ([]change, error) {
	var got changes
	err := s.ask(ctx, request{
		method: http.MethodGet,
		path:   "/changes",
		query:  url.Values{"epoch": {after.epoch}, "after": {strconv.FormatInt(after.seq, 10)}, "wait": {wait.String()}},
		wait:   wait,
	}, &got)
	if err == nil && got.Epoch != after.epoch {
		err = fmt.Errorf("asked for changes of epoch %q, answered from %q: %w", after.epoch, got.Epoch, reflector.ErrExpired)
	}
	return got.Changes, err
}

// batch is one change. Numbers have no gaps, so what came before it is known, and
// the reflector finds out by Prev if the service skipped one.
func (s *Store[T]) batch(epoch string, c change) reflector.Batch[T] {
	b := reflector.Batch[T]{
		Prev:   position{epoch, c.Seq - 1}.cursor(),
		Cursor: position{epoch, c.Seq}.cursor(),
	}
	switch item, err := s.item(c.record); {
	case c.Deleted: // gone it is, also when nobody can read what it was
		b.Events = []reflector.Event[T]{{Op: reflector.OpDelete, Known: err == nil, Item: item}}
	case err != nil:
		b.Faults = []reflector.Fault{fault(c.record, err)}
	default:
		b.Events = []reflector.Event[T]{{Op: reflector.OpPut, Known: true, Item: item}}
	}
	return b
}
