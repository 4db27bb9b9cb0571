package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"

	"github.com/homeostat/homeostat/reflector"
)

// initialEnd is the annotation of the bookmark after which a streamed list is
// complete.
const initialEnd = "k8s.io/initial-events-end"

// Watch tells what comes after opts.After, one event a batch, or streams the full
// state first. A server that cannot stream it is errors.ErrUnsupported.
func (s *Store[T]) Watch(ctx context.Context, opts reflector.WatchOptions) iter.Seq2[reflector.Batch[T], error] {
	return func(yield func(reflector.Batch[T], error) bool) {
		w := watch[T]{store: s, yield: yield, initial: opts.Initial || opts.After == ""}
		err := w.run(ctx, opts.After)
		if errors.Is(err, errors.ErrUnsupported) && !opts.Initial {
			// It was not asked for by name: the present end is as good a beginning.
			w.initial = false
			if opts.After, err = s.head(ctx); err == nil {
				err = w.run(ctx, opts.After)
			}
		}
		// Whatever fails after the context ended fails because of it.
		if err != nil && ctx.Err() == nil && !w.done {
			yield(reflector.Batch[T]{}, fmt.Errorf("kube: watch %s: %w", s.resource, err))
		}
	}
}

// watch is one session.
type watch[T any] struct {
	store   *Store[T]
	yield   func(reflector.Batch[T], error) bool
	initial bool // the full state is not complete yet
	done    bool // nothing may be yielded any more
}

func (w *watch[T]) tell(b reflector.Batch[T]) bool {
	w.done = !w.yield(b, nil)
	return !w.done
}

// run follows one stream to its end.
func (w *watch[T]) run(ctx context.Context, after reflector.Cursor) error {
	resp, err := w.open(ctx, after)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	first := reflector.Batch[T]{Reset: true}
	if !w.initial {
		// From a resourceVersion that it has not come to, the server is silent until
		// it has. Only now, with the watch open, can it not be set back unnoticed.
		if head, err := w.store.head(ctx); err != nil {
			return err
		} else if compare(head, after) < 0 {
			return fmt.Errorf("at %s, not yet at %s: %w", head, after, reflector.ErrFutureCursor)
		}
		first = reflector.Bookmark[T](after)
	}
	if !w.tell(first) {
		return nil
	}
	lines := json.NewDecoder(resp.Body)
	for ctx.Err() == nil {
		var e event
		err := lines.Decode(&e)
		if err == io.EOF { // between two lines: the server has ended it
			return nil
		}
		if err != nil {
			return err
		}
		b, err := w.batch(e)
		if err != nil {
			return err
		}
		if !w.tell(b) {
			return nil
		}
	}
	return nil
}

func (w *watch[T]) open(ctx context.Context, after reflector.Cursor) (*http.Response, error) {
	q := w.store.query()
	q.Set("watch", "1")
	q.Set("allowWatchBookmarks", "true")
	if w.initial {
		q.Set("sendInitialEvents", "true")
		q.Set("resourceVersionMatch", "NotOlderThan")
	} else if number(string(after)) == 0 { // a server would begin anywhere
		return nil, fmt.Errorf("%q is no resourceVersion: %w", after, reflector.ErrExpired)
	} else {
		q.Set("resourceVersion", string(after))
	}
	resp, err := w.store.call(ctx, http.MethodGet, w.store.collection(w.store.ns), q, nil, nil)
	if s, ok := errors.AsType[*status](err); ok && w.initial && s.Code == http.StatusUnprocessableEntity {
		err = fmt.Errorf("%w: %w", errors.ErrUnsupported, s)
	}
	return resp, nowhere(err)
}

// event is one line of a watch.
type event struct {
	Type   string
	Object json.RawMessage
}

// batch makes a batch of an event. Of a streamed list only the end has a cursor.
func (w *watch[T]) batch(e event) (b reflector.Batch[T], err error) {
	if e.Type == "ERROR" {
		return b, streamed(e.Object)
	}
	item, m, err := w.store.item(e.Object, e.Type == "BOOKMARK")
	undecodable := errors.Is(err, errUndecodable)
	switch { // of what cannot be named, a list only knows what it changed
	case err != nil && !undecodable:
		return b, fmt.Errorf("%w: %w", reflector.ErrExpired, err)
	case number(m.ResourceVersion) == 0:
		return b, fmt.Errorf("%w: an event at resourceVersion %q", reflector.ErrExpired, m.ResourceVersion)
	}
	if !w.initial {
		b.Cursor = reflector.Cursor(m.ResourceVersion)
	}
	switch e.Type {
	case "ADDED", "MODIFIED":
		if undecodable {
			b.Faults = []reflector.Fault{fault(item, err)}
			break
		}
		b.Events = []reflector.Event[T]{{Op: reflector.OpPut, Known: true, Item: item}}
	case "DELETED": // under the version of the delete
		b.Events = []reflector.Event[T]{{Op: reflector.OpDelete, Known: !undecodable, Item: item}}
	case "BOOKMARK":
		if w.initial && m.Annotations[initialEnd] == "true" {
			w.initial = false
			b.Synced, b.Cursor = true, reflector.Cursor(m.ResourceVersion)
		}
	default:
		return b, fmt.Errorf("%w: an event of type %q", reflector.ErrExpired, e.Type)
	}
	return b, nil
}

// streamed is a failure in the middle of an answer that began well.
func streamed(text json.RawMessage) error {
	var s status
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	return s.verdict(http.MethodGet, nil)
}
