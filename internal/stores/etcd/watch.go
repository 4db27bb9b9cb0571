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

// session is one watch.
type session[T any] struct {
	store   *Store[T]
	yield   func(reflector.Batch[T], error) bool
	cluster uint64
	at      int64 // all up to this revision was told
}

// watch is one session from its beginning. It answers nil after yield was false.
func (s *Store[T]) watch(ctx context.Context, opts reflector.WatchOptions, yield func(reflector.Batch[T], error) bool) (err error) {
	after := opts.After
	if after == "" { // the client would resume a watch without a revision at an event that it told before
		if after, err = s.head(ctx); err != nil {
			return err
		}
	}
	w := &session[T]{store: s, yield: yield}
	if w.cluster, w.at, err = position(after); err != nil {
		return err
	}
	// Without a leader this member would be silent, not wrong: have it say so.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	// From the revision that we have, for etcd reports no progress of a watch that
	// begins at one to come. So no delete is missed at the very revision of a
	// compaction, which servers before 3.5.18 lose.
	return w.follow(ctx, opts.ProgressEvery, s.client.Watch(ctx, s.first(), clientv3.WithRange(s.end()),
		clientv3.WithRev(w.at), clientv3.WithPrevKV(), clientv3.WithCreatedNotify()))
}

// follow tells everything until the session ends.
func (w *session[T]) follow(ctx context.Context, every time.Duration, changes clientv3.WatchChan) error {
	var tick <-chan time.Time
	if every > 0 {
		ticker := time.NewTicker(max(every/2, time.Millisecond)) // half for the answer's way
		defer ticker.Stop()
		tick = ticker.C
	}
	for asked := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
			// After an outage the client resumes at a revision to come, for which there
			// is no progress (see watch): a new session has some.
			if asked == 2 {
				return nil
			}
			asked++
			if err := w.store.client.RequestProgress(ctx); err != nil {
				return err
			}
		case resp, open := <-changes:
			if !open {
				return nil
			}
			asked = 0
			if more, err := w.tell(resp); err != nil || !more {
				return err
			}
		}
	}
}

// tell yields what one response has: any number of revisions, each of them whole.
func (w *session[T]) tell(resp clientv3.WatchResponse) (more bool, err error) {
	if err := resp.Err(); err != nil {
		return false, err
	}
	// The client resumes by itself, also with a cluster that is another one by now or
	// was set back; there it would wait for ever.
	if err := within(w.cursor(), resp.Header.ClusterId, resp.Header.Revision); err != nil {
		return false, err
	}
	if len(resp.Events) == 0 {
		if !resp.Created { // progress: all up to here was told
			w.at = resp.Header.Revision
		}
		return w.yield(reflector.Bookmark[T](w.cursor()), nil), nil
	}
	for rest := resp.Events; len(rest) > 0; {
		rev, n := rest[0].Kv.ModRevision, 1
		for n < len(rest) && rest[n].Kv.ModRevision == rev {
			n++
		}
		if rev > w.at && !w.change(rev, rest[:n]) {
			return false, nil
		}
		rest = rest[n:]
	}
	return true, nil
}

// change yields one revision, and says whether to go on.
func (w *session[T]) change(rev int64, changed []*clientv3.Event) bool {
	w.at = rev
	b := reflector.Batch[T]{Events: make([]reflector.Event[T], 0, len(changed)), Cursor: w.cursor()}
	for _, c := range changed {
		if e, err := w.store.event(c); err != nil {
			b.Faults = append(b.Faults, fault(e.Item, err))
		} else {
			b.Events = append(b.Events, e)
		}
	}
	return w.yield(b, nil)
}

func (w *session[T]) cursor() reflector.Cursor { return cursor(w.cluster, w.at) }

// event is one change; the error is that of a put that can't be read. A delete has
// the final state, under its own version, unless that was compacted or can't be read.
func (s *Store[T]) event(e *clientv3.Event) (reflector.Event[T], error) {
	if e.Type != clientv3.EventTypeDelete {
		item, err := s.item(e.Kv, false)
		return reflector.Event[T]{Op: reflector.OpPut, Known: true, Item: item}, err
	}
	gone := reflector.Delete[T](s.key(e.Kv), "").Events[0]
	if e.PrevKv != nil {
		item, err := s.item(e.PrevKv, false)
		gone.Item, gone.Known = item, err == nil
	}
	gone.Version = version(e.Kv.ModRevision)
	return gone, nil
}
