package reflector_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/homeostat/homeostat/reflector"
)

// A list may be answered by "not modified" only while the sink has the last one.
func TestIfModified_OfLists(t *testing.T) {
	bubble(t, func(t *testing.T) {
		tell := make(chan batch)
		src := &source{powers: resumable, list: one("e/10", "a=1")}
		src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
			for b := live(o.After); yield(b, nil); {
				select {
				case b = <-tell:
				case <-ctx.Done():
					return
				}
			}
		}
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		after(0)
		r.Relist("it has just that")
		after(0)
		tell <- live("e/11", "b=11")
		after(0)
		src.list = one("e/12", "a=1", "b=11")
		r.Relist("it has more")
		after(0)
		failed := false
		s.onCommit = func(cursor) error {
			if failed = !failed; failed {
				return errBoom
			}
			return nil
		}
		r.Relist("it will not have it")
		after(time.Minute)
		var asked []bool
		for _, o := range src.lists {
			asked = append(asked, o.IfModified)
		}
		want(t, "asked", fmt.Sprint(asked), "[false true false true false]")
	})
}

func TestIfModified_OfPoll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var asked, own []bool
		src := reflector.PollItems(func(ctx context.Context) ([]item, error) {
			meet()
			asked = append(asked, reflector.IfModified(ctx))
			return items("a=1"), nil
		}, &reflector.PollOptions{Every: time.Second})
		s := newSink(t)
		s.onStage = func([]item) error {
			if len(asked) == 3 {
				return errBoom
			}
			return nil
		}
		start(t, src, s, &reflector.Options{Backoff: exact, Session: 10 * time.Second})
		after(6 * time.Second) // the third did not reach the sink
		want(t, "asked", fmt.Sprint(asked[:6]), "[false true true false true true]")
		after(20 * time.Second) // sessions end
		for n, will := range asked[6:] {
			if !will {
				t.Errorf("list %d was asked for whole", 6+n)
			}
		}
		src = reflector.PollItems(func(ctx context.Context) ([]item, error) {
			own = append(own, reflector.IfModified(ctx))
			return nil, nil
		}, nil)
		src.List(t.Context(), reflector.ListOptions{})
		src.List(t.Context(), reflector.ListOptions{IfModified: true})
		want(t, "asked by List", fmt.Sprint(own), "[false true]")
	})
}

// lazy is a store whose list remembers what it gave last.
type lazy struct {
	*store
	given map[string]item
}

func (l *lazy) List(ctx context.Context, o reflector.ListOptions) (page, error) {
	p, err := l.store.List(ctx, o)
	same := len(p.Items) == len(l.given)
	now := map[string]item{}
	for _, it := range p.Items {
		same = same && l.given[it.Key] == it
		now[it.Key] = it
	}
	if same && o.IfModified && l.given != nil {
		return page{}, reflector.ErrNotModified
	}
	l.given = now
	return p, err
}

// What was fetched since is more than the last list: after a break, that alone
// would never do.
func TestIfModified_OfHint(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := newStore()
		st.get = true
		l := &lazy{store: st}
		s := newSink(t)
		r := start(t, reflector.Hint(l, st.subscribe), s, &reflector.Options{Backoff: exact})
		after(0)
		st.write("a", "1")
		after(0)
		st.tell("") // the list has it, too
		after(0)
		st.tell("") // unchanged
		after(0)
		want(t, "same", s.same, 1)
		st.tell("a") // fetched, and nothing new
		after(0)
		st.cut()
		after(time.Minute)
		want(t, "state", r.Status().State, reflector.Watching)
		want(t, "err", r.Status().Err, nil)
		want(t, "holds", s.holds(), "a=1")
	})
}

// Who answers "not modified" to one who did not ask for that is told so, until it
// does better.
func TestIfModified_Unasked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := 0
		src := reflector.PollItems(func(context.Context) ([]item, error) {
			if n++; n < 3 {
				return nil, reflector.ErrNotModified
			}
			return items("a=1"), nil
		}, nil)
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		after(0)
		want(t, "synced", r.Status().Synced, false)
		after(5 * time.Minute)
		want(t, "holds", s.holds(), "a=1")
	})
}

// A source that once said "ahead of me" before it was ever listed was not reset.
func TestNoResetBeforeTheFirstState(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{watch: idle}
		src.list = func(_ context.Context, n int, _ reflector.ListOptions) (page, error) {
			if n == 1 {
				return page{}, reflector.ErrFutureCursor
			}
			return page{Items: items("a=1"), Cursor: "e/1"}, nil
		}
		r := start(t, src, newSink(t), &reflector.Options{Backoff: exact})
		after(5 * time.Second)
		want(t, "synced", r.Status().Synced, true)
		want(t, "resets", r.Status().Resets, 0)
	})
}

// Once keys and versions have proven that something was lost, it is put right even
// if the objects can't be listed at first.
func TestAuditByKeys_ThenTheListFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		keysOnly := resumable
		keysOnly.KeysOnly = true
		src := newAuditable(keysOnly)
		list := src.list
		fail := true
		src.list = func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
			if n > 1 && !o.KeysOnly && fail {
				fail = false
				return page{}, errBoom
			}
			p, err := list(ctx, n, o)
			for i := range p.Items {
				if o.KeysOnly {
					p.Items[i].Object = ""
				}
			}
			return p, err
		}
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Audit: hourly, Session: -1, Backoff: exact})
		after(0)
		src.state = []string{"a=1"}
		src.toAudit(t)
		want(t, "holds", s.holds(), "a=1 b=1 c=1")
		wantErr(t, "why", r.Status().AuditErr, errBoom)
		want(t, "state", r.Status().State, reflector.Watching) // and it is not given up
		after(time.Minute + 2*time.Second)
		want(t, "holds", s.holds(), "a=1")
		want(t, "failures", r.Status().Failures, 0)
	})
}

// After a history that is gone the whole list is needed: "not modified" would lead to
// the same place again.
func TestIfModified_AfterExpiry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		at := cursor("e/10")
		src := &source{powers: resumable}
		src.list = func(_ context.Context, _ int, o reflector.ListOptions) (page, error) {
			if o.IfModified {
				return page{}, reflector.ErrNotModified
			}
			return page{Items: items("a=1"), Cursor: at}, nil
		}
		src.watch = func(ctx context.Context, n int, o reflector.WatchOptions, yield yield) {
			if n == 1 || o.After != at {
				yield(batch{}, reflector.ErrExpired)
				return
			}
			idle(ctx, n, o, yield)
		}
		s := newSink(t)
		r := start(t, src, s, &reflector.Options{Backoff: exact})
		at = "e/20"
		after(time.Minute)
		want(t, "state", r.Status().State, reflector.Watching)
		want(t, "cursor", r.Status().Cursor, "e/20")
	})
}
