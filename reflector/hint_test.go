package reflector_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

func none(context.Context) iter.Seq2[string, error] { return func(func(string, error) bool) {} }
func once(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { yield("", nil) }
}

// store is a small store with hints: it tells subscribers of writes, and nobody
// of those made while nobody listens.
type store struct {
	mu      sync.Mutex
	objects map[string]item
	rev     int
	subs    map[chan string]bool
	lists   int
	gets    []string

	onList func(before bool) // at the begin and the end of a list
	get    bool
	getErr error
	hints  func() error // before the subscription
}

func newStore() *store { return &store{objects: map[string]item{}, subs: map[chan string]bool{}} }

func (s *store) write(key, obj string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rev++
	if obj == "" {
		delete(s.objects, key)
	} else {
		s.objects[key] = item{Key: key, Version: object.Version(fmt.Sprint(s.rev)), Object: obj}
	}
	for sub := range s.subs {
		sub <- key
	}
}

// tell sends a hint without a write.
func (s *store) tell(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub := range s.subs {
		sub <- key
	}
}

func (s *store) subscribe(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		meet()
		if s.hints != nil {
			if err := s.hints(); err != nil {
				yield("", err)
				return
			}
		}
		sub := make(chan string, 1000)
		s.mu.Lock()
		s.subs[sub] = true
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.subs, sub)
		}()
		for key := ""; yield(key, nil); {
			var open bool
			select {
			case key, open = <-sub:
				if !open {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// cut ends all subscriptions.
func (s *store) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub := range s.subs {
		delete(s.subs, sub)
		close(sub)
	}
}

func (s *store) List(ctx context.Context, o reflector.ListOptions) (page, error) {
	meet()
	if s.onList != nil {
		s.onList(true)
		defer s.onList(false)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	var p page
	for _, it := range s.objects {
		p.Items = append(p.Items, it)
	}
	p.Cursor = cursor(fmt.Sprint(s.rev))
	return p, nil
}

func (s *store) Watch(context.Context, reflector.WatchOptions) iter.Seq2[batch, error] {
	panic("hints do not watch")
}

func (s *store) Powers() powers {
	p := powers{Progress: true, ResumeProven: true, Compare: compare, StaleLists: true, KeysOnly: true,
		Head:    func(context.Context) (cursor, error) { return "", nil },
		Reached: func(cursor, object.Version) bool { return true }}
	if s.get {
		p.Get = func(_ context.Context, key string) (item, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.gets = append(s.gets, key)
			if s.getErr != nil {
				return item{}, s.getErr
			}
			it, ok := s.objects[key]
			if !ok {
				return item{}, fmt.Errorf("%q: %w", key, reflector.ErrNotFound)
			}
			return it, nil
		}
	}
	return p
}

func TestHintPowers(t *testing.T) {
	st := newStore()
	st.get = true
	src := reflector.Hint(st, st.subscribe)
	p := src.Powers()
	if !p.Initial || p.Get == nil || !p.StaleLists || !p.KeysOnly {
		t.Errorf("missing: %+v", p)
	}
	if p.Progress || p.ResumeProven || p.Compare != nil || p.Reached != nil || p.Head != nil || p.Paged || p.SnapshotPages {
		t.Errorf("too much: %+v", p)
	}
	paged := reflector.Hint(&source{powers: powers{Paged: true, SnapshotPages: true}}, none).Powers()
	want(t, "paged", paged.Paged && paged.SnapshotPages, true)
	st.write("a", "1")
	got, err := src.List(t.Context(), reflector.ListOptions{})
	want(t, "error", err, nil)
	want(t, "cursor", got.Cursor, "")
	want(t, "items", len(got.Items), 1)
}

// R26: a write between subscription and list, and one between list and the first
// hint, are both seen without any further write, after a break too.
func TestR26_NoWriteIsLostAroundTheList(t *testing.T) {
	for _, get := range []bool{true, false} {
		t.Run(fmt.Sprintf("get %v", get), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				st := newStore()
				st.get = get
				n, limit := 0, 2
				st.onList = func(before bool) {
					if n < limit {
						n++
						st.write(fmt.Sprintf("k%d", n), fmt.Sprintf("before %v", before))
					}
				}
				s := newSink(t)
				start(t, reflector.Hint(st, st.subscribe), s, &reflector.Options{Backoff: exact})
				after(0)
				want(t, "holds", s.holds(), "k1=before true k2=before false")
				st.cut()
				st.write("lost", "while nobody listened")
				st.write("k1", "")
				limit = 4
				after(10 * time.Second)
				want(t, "holds", s.holds(), "k2=before false k3=before true k4=before false lost=while nobody listened")
			})
		})
	}
}

func TestHintFetches(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := newStore()
		st.get = true
		st.write("a", "1")
		st.write("b", "1")
		s := newSink(t)
		r := start(t, reflector.Hint(st, st.subscribe), s, nil)
		after(0)
		st.write("c", "1")
		st.write("a", "")
		after(0)
		st.tell("")
		after(0)
		wantAll(t, "shown", s.shown(), "commit a=1 b=1 @", "apply c=1", "apply -a", "commit b=1 c=1 @")
		wantAll(t, "fetched", st.gets, "c", "a")
		want(t, "lists", st.lists, 2)
		want(t, "watches", r.Status().Watches, 1)
		it := s.state["c"]
		want(t, "version", it.Version, "3")
	})
}

func TestHintListsWithoutGet(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := newStore()
		st.write("a", "1")
		s := newSink(t)
		start(t, reflector.Hint(st, st.subscribe), s, nil)
		after(0)
		st.write("b", "1")
		after(0)
		wantAll(t, "shown", s.shown(), "commit a=1 @", "commit a=1 b=1 @")
	})
}

// The first hint proves the subscription, whatever it says.
func TestHintFirstHintWithAKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := newStore()
		st.get = true
		st.write("a", "1")
		s := newSink(t)
		start(t, reflector.Hint(st, func(ctx context.Context) iter.Seq2[string, error] {
			return func(yield func(string, error) bool) {
				if yield("a", nil) {
					<-ctx.Done()
				}
			}
		}), s, nil)
		after(0)
		wantAll(t, "shown", s.shown(), "commit a=1 @")
		want(t, "fetched", len(st.gets), 0)
	})
}

// Nothing is listed before the subscription is confirmed; a refused one is shown.
func TestR26_RefusedSubscription(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := newStore()
		st.hints = func() error { return errBoom }
		s := newSink(t)
		r := start(t, reflector.Hint(st, st.subscribe), s, &reflector.Options{Backoff: exact})
		after(time.Second / 2)
		wantErr(t, "err", r.Status().Err, errBoom)
		want(t, "lists", st.lists, 0)
		st.hints = nil
		after(time.Second)
		want(t, "lists", st.lists, 1)
		want(t, "err", r.Status().Err, nil)
	})
}

func TestHintErrorsEndTheWatch(t *testing.T) {
	st := newStore()
	st.get = true
	st.write("a", "1")
	hints := func(hints ...any) func(context.Context) iter.Seq2[string, error] {
		return func(ctx context.Context) iter.Seq2[string, error] {
			return func(yield func(string, error) bool) {
				for i, h := range hints {
					if i > 0 { // each on its own
						nap(ctx, time.Second)
					}
					switch h := h.(type) {
					case error:
						if yield("", h) {
							t.Error("was not ended")
						}
						return
					case string:
						if !yield(h, nil) {
							return
						}
					}
				}
			}
		}
	}
	odd := st.Powers()
	odd.Get = func(context.Context, string) (item, error) { return item{Key: "other"}, nil }
	failing := func(when int) *source {
		return &source{list: func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
			if n == when {
				return page{}, errBoom
			}
			return pages(page{Items: items("a=1"), Cursor: "1"}, page{Items: items("b=1"), Cursor: "2"}, page{})(ctx, n, o)
		}}
	}
	notModified := &source{list: func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
		if n == 2 {
			return page{}, reflector.ErrNotModified
		}
		return page{Next: "1"}, nil
	}}
	for _, c := range []struct {
		name    string
		src     reflector.ListWatcher[string]
		hints   func(context.Context) iter.Seq2[string, error]
		opts    reflector.WatchOptions
		batches int
		err     error
	}{
		{"plain end", st, hints("", "a"), reflector.WatchOptions{}, 2, nil},
		{"error", st, hints("", errBoom), reflector.WatchOptions{}, 1, errBoom},
		{"error at once", st, hints(errBoom), reflector.WatchOptions{}, 0, errBoom},
		{"a list fails", failing(1), hints("", "a"), reflector.WatchOptions{}, 0, errBoom},
		{"a page fails", failing(2), hints("", "a"), reflector.WatchOptions{}, 1, errBoom},
		{"a page was not modified", notModified, hints("", "a"), reflector.WatchOptions{}, 1, reflector.ErrNotModified},
		{"a later list fails", failing(4), hints("", ""), reflector.WatchOptions{}, 3, errBoom},
		{"a page follows itself", &source{list: func(context.Context, int, reflector.ListOptions) (page, error) {
			return page{Next: "1"}, nil
		}}, hints(""), reflector.WatchOptions{}, 1, reflector.ErrContract},
		{"another object", get{st, odd}, hints("", "a"), reflector.WatchOptions{}, 1, reflector.ErrContract},
		{"a position", st, hints("", "a"), reflector.WatchOptions{After: "5"}, 0, reflector.ErrExpired},
		{"a position, but the full state first", st, hints(""), reflector.WatchOptions{After: "5", Initial: true}, 1, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				n := 0
				var last error
				for b, err := range reflector.Hint(c.src, c.hints).Watch(t.Context(), c.opts) {
					if last = err; err == nil {
						n++
					}
					want(t, "cursor", b.Cursor, "")
				}
				want(t, "batches", n, c.batches)
				wantErr(t, "error", last, c.err)
			})
		})
	}
	st.getErr = errBoom
	bubble(t, func(t *testing.T) {
		var last error
		for _, err := range reflector.Hint(st, hints("", "a", "a")).Watch(t.Context(), reflector.WatchOptions{}) {
			last = err
		}
		wantErr(t, "fetch", last, errBoom)
	})
	// What ends the watch ends the subscription's ctx.
	var ended context.Context
	for range reflector.Hint(st, func(ctx context.Context) iter.Seq2[string, error] {
		ended = ctx
		return once(ctx)
	}).Watch(t.Context(), reflector.WatchOptions{}) {
		break
	}
	wantErr(t, "ctx of the subscription", ended.Err(), context.Canceled)
}

type get struct {
	*store
	powers powers
}

func (g get) Powers() powers { return g.powers }

// All pages of a list make one full state.
func TestHintListsAllPages(t *testing.T) {
	src := &source{powers: powers{Paged: true}, list: pages(page{Items: items("a=1"), Cursor: "1"}, page{Cursor: "2"}, page{Items: items("b=1"), Cursor: "3"})}
	var got []string
	for b, err := range reflector.Hint(src, once).Watch(t.Context(), reflector.WatchOptions{Initial: true}) {
		got = append(got, fmt.Sprintf("%d %v %v %q %v", len(b.Events), b.Reset, b.Synced, b.Cursor, err))
	}
	wantAll(t, "batches", got, `1 true false "" <nil>`, `0 false false "" <nil>`, `1 false true "" <nil>`)
	want(t, "limit", src.lists[0].Limit, 500)
	want(t, "page", src.lists[2].Page, "2")
	src = &source{list: one("1", "a=1")}
	for range reflector.Hint(src, once).Watch(t.Context(), reflector.WatchOptions{Initial: true}) {
	}
	want(t, "limit", src.lists[0].Limit, 0)
}

func TestHintNotModified(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := &polled{items: items("a=1")}
		st := newStore()
		s := newSink(t)
		r := start(t, reflector.Hint(reflector.PollItems(p.list, nil), st.subscribe), s, &reflector.Options{Backoff: exact})
		after(0)
		p.err = reflector.ErrNotModified
		st.tell("")
		after(0)
		want(t, "lists", len(p.at), 2)
		st.cut()
		after(2 * time.Second)
		want(t, "lists", len(p.at), 3)
		want(t, "state", r.Status().State, reflector.Watching)
		wantAll(t, "shown", s.shown(), "commit a=1 @")
		want(t, "the sink heard that nothing changed", s.same, 2)
	})
}

// Lost hints are found by the next session.
func TestG8_LostHintsAreFound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := newStore()
		st.write("a", "1")
		st.write("b", "1")
		s := newSink(t)
		start(t, reflector.Hint(st, st.subscribe), s, nil)
		after(time.Minute)
		st.mu.Lock()
		delete(st.objects, "a")
		st.mu.Unlock()
		after(10 * time.Minute)
		want(t, "holds", s.holds(), "b=1")
		if strings.Contains(strings.Join(s.shown(), ";"), "apply") {
			t.Errorf("shown: %v", s.shown())
		}
	})
}
