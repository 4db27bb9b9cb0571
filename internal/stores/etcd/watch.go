package etcd

import (
	"context"
	"fmt"
	"iter"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/homeostat/homeostat/reflector"
)

// Watch tells what comes after opts.After, each revision in one batch.
func (s *Store[T]) Watch(ctx context.Context, opts reflector.WatchOptions) iter.Seq2[reflector.Batch[T], error] {
	return func(yield func(reflector.Batch[T], error) bool) {
		if err := s.watch(ctx, opts, yield); err != nil && ctx.Err() == nil {
			yield(reflector.Batch[T]{}, fmt.Errorf("etcd: watch %q: %w", s.prefix, translate(err)))
		}
	}
}

// watch is one session. It answers nil after yield was false.
func (s *Store[T]) watch(ctx context.Context, opts reflector.WatchOptions, yield func(reflector.Batch[T], error) bool) error {
	after := opts.After
	if after == "" { // the client would resume a watch without a revision at an event that it told before
		var err error
		if after, err = s.head(ctx); err != nil {
			return err
		}
	}
	_, at, err := position(after)
	if err != nil {
		return err
	}
	// Without a leader this member would be silent, not wrong: have it say so.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	changes := s.client.Watch(ctx, s.first(), clientv3.WithRange(s.end()), clientv3.WithRev(at+1),
		clientv3.WithPrevKV(), clientv3.WithCreatedNotify())

	var tick <-chan time.Time
	if opts.ProgressEvery > 0 {
		ticker := time.NewTicker(max(opts.ProgressEvery/2, time.Millisecond)) // half for the answer's way
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
			if err := s.client.RequestProgress(ctx); err != nil {
				return err
			}
		case resp, open := <-changes:
			if !open {
				return nil
			}
			if err := resp.Err(); err != nil {
				return err
			}
			// The client resumes by itself, also with a cluster that is another one
			// by now or was set back; there it would wait for ever.
			if err := within(after, resp.Header.ClusterId, resp.Header.Revision); err != nil {
				return err
			}
			more, err := s.tell(resp, &after, yield)
			if err != nil || !more {
				return err
			}
		}
	}
}

// tell yields what one response has, and moves after behind it. A response holds
// any number of revisions, each of them whole.
func (s *Store[T]) tell(resp clientv3.WatchResponse, after *reflector.Cursor, yield func(reflector.Batch[T], error) bool) (more bool, err error) {
	if len(resp.Events) == 0 {
		if !resp.Created { // progress: all up to here was told
			*after = cursor(resp.Header.ClusterId, resp.Header.Revision)
		}
		return yield(reflector.Bookmark[T](*after), nil), nil
	}
	for rest := resp.Events; len(rest) > 0; {
		rev, n := rest[0].Kv.ModRevision, 1
		for n < len(rest) && rest[n].Kv.ModRevision == rev {
			n++
		}
		events := make([]reflector.Event[T], n)
		for i, e := range rest[:n] {
			if events[i], err = s.event(e); err != nil {
				return false, fmt.Errorf("%w: %w", reflector.ErrExpired, err)
			}
		}
		*after = cursor(resp.Header.ClusterId, rev)
		if !yield(reflector.Batch[T]{Events: events, Cursor: *after}, nil) {
			return false, nil
		}
		rest = rest[n:]
	}
	return true, nil
}

// event is one change. A delete has the final state, under its own version, unless
// that was compacted or can't be read.
func (s *Store[T]) event(e *clientv3.Event) (reflector.Event[T], error) {
	if e.Type != clientv3.EventTypeDelete {
		item, err := s.item(e.Kv, false)
		return reflector.Event[T]{Op: reflector.OpPut, Known: true, Item: item}, err
	}
	gone := reflector.Delete[T](string(e.Kv.Key[len(s.prefix):]), "").Events[0]
	if e.PrevKv != nil {
		item, err := s.item(e.PrevKv, false)
		gone.Item, gone.Known = item, err == nil
	}
	gone.Version = version(e.Kv.ModRevision)
	return gone, nil
}
