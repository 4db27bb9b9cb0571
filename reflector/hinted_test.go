package reflector_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/homeostat/homeostat/reflector"
)

// slow is a store whose fetches and lists take a second.
func slow() *store {
	st := newStore()
	st.get = true
	st.onList = func(before bool) {
		if before {
			time.Sleep(time.Second)
		}
	}
	return st
}

func (s *store) slowGet() reflector.ListWatcher[string] {
	p := s.Powers()
	fetch := p.Get
	p.Get = func(ctx context.Context, key string) (item, error) {
		time.Sleep(time.Second)
		return fetch(ctx, key)
	}
	return get{s, p}
}

// Hints that come while something is looked at are kept, each key once, and
// looked at after it.
func TestHintPutsTogetherWhatIsHintedMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := slow()
		st.write("a", "0")
		s := newSink(t)
		start(t, reflector.Hint(st.slowGet(), st.subscribe), s, nil)
		after(time.Second / 2) // within the list
		for n := range 100 {
			st.write("a", fmt.Sprint(n))
			st.write("b", fmt.Sprint(n))
		}
		after(time.Second) // within the fetch of a
		for n := range 100 {
			st.write("b", fmt.Sprint(100+n))
			st.write("a", fmt.Sprint(100+n))
		}
		after(time.Minute)
		wantAll(t, "fetched", st.gets, "a", "b", "a")
		want(t, "lists", st.lists, 1)
		wantAll(t, "shown", s.shown(), "commit a=99 b=99 @", "apply a=199", "apply b=199", "apply a=199")
	})
}

// A key that is hinted again while it is fetched is fetched again: the answer on
// its way may be older.
func TestHintFetchesAgainWhatIsHintedDuringItsFetch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := newStore()
		st.get = true
		p := st.Powers()
		fetch := p.Get
		p.Get = func(ctx context.Context, key string) (item, error) {
			it, err := fetch(ctx, key)
			time.Sleep(time.Second) // on its way back
			return it, err
		}
		s := newSink(t)
		start(t, reflector.Hint(get{st, p}, st.subscribe), s, nil)
		after(0)
		st.write("a", "1")
		after(time.Second / 2)
		st.write("a", "2")
		after(time.Minute)
		wantAll(t, "shown", s.shown(), "commit @", "apply a=1", "apply a=2")
	})
}

// Many keys are one list, and no more is kept of them than that.
func TestHintListsForManyKeys(t *testing.T) {
	for _, c := range []struct{ keys, lists, gets int }{{500, 1, 501}, {501, 2, 1}} {
		t.Run(fmt.Sprint(c.keys), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				st := slow()
				s := newSink(t)
				start(t, reflector.Hint(st.slowGet(), st.subscribe), s, &reflector.Options{Session: time.Hour})
				after(2 * time.Second)
				st.write("first", "x")
				after(time.Second / 2) // within its fetch
				for n := range c.keys {
					st.write(fmt.Sprintf("k%03d", n), "x")
				}
				after(20 * time.Minute)
				want(t, "lists", st.lists, c.lists)
				want(t, "gets", len(st.gets), c.gets)
				st.mu.Lock()
				defer st.mu.Unlock()
				want(t, "objects", len(s.held()), len(st.objects))
			})
		})
	}
}

// Anything that is hinted besides keys makes the keys needless.
func TestHintOfAnythingTakesThePlaceOfKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := slow()
		start(t, reflector.Hint(st.slowGet(), st.subscribe), newSink(t), nil)
		after(time.Second / 2)
		for _, key := range []string{"a", "", "b", "", "c"} {
			st.tell(key)
		}
		after(time.Minute)
		want(t, "lists", st.lists, 2)
		want(t, "gets", len(st.gets), 0)
	})
}

// What was hinted before an end is looked at; before an error it is left to the
// full state that follows.
func TestHintLooksAtWhatWasLeft(t *testing.T) {
	for _, c := range []struct {
		name string
		last error
		gets []string
	}{{"end", nil, []string{"a", "b"}}, {"error", errBoom, nil}} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				st := slow()
				var told error
				hints := func(context.Context) iter.Seq2[string, error] {
					return func(yield func(string, error) bool) {
						yield("", nil)
						time.Sleep(time.Second / 2)
						_ = yield("a", nil) && yield("b", nil) && c.last != nil && yield("", c.last)
					}
				}
				for _, err := range reflector.Hint(st, hints).Watch(t.Context(), reflector.WatchOptions{}) {
					told = err
				}
				want(t, "error", told, c.last)
				wantAll(t, "gets", st.gets, c.gets...)
			})
		})
	}
}

// G10: hints that panic do it on a goroutine of ours, and are caught there.
func TestG10_HintsThatPanic(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := newStore()
		n := 0
		r := start(t, reflector.Hint(st, func(ctx context.Context) iter.Seq2[string, error] {
			if n++; n > 2 {
				return st.subscribe(ctx)
			}
			return func(yield func(string, error) bool) {
				if n == 2 {
					yield("", nil)
				}
				panic("no hints today")
			}
		}), newSink(t), &reflector.Options{Backoff: exact})
		after(0)
		p, ok := errors.AsType[*reflector.PanicError](r.Status().Err)
		if !ok || p.In != "hints" || p.Value != "no hints today" || len(p.Stack) == 0 {
			t.Fatalf("shown was %v", r.Status().Err)
		}
		after(time.Minute)
		want(t, "err", r.Status().Err, nil)
		want(t, "state", r.Status().State, reflector.Watching)
	})
}

// Rule 8: hints that do not return hold the watch, and are shown.
func TestR14_HintsThatDoNotReturn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := newStore()
		release := make(chan struct{})
		r := reflector.New(reflector.Hint(st, func(context.Context) iter.Seq2[string, error] {
			return func(yield func(string, error) bool) {
				yield("", nil)
				<-release
			}
		}), newSink(t), nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		after(time.Second)
		cancel()
		after(time.Minute)
		want(t, "state", r.Status().State, reflector.Stuck)
		close(release)
		want(t, "error", <-done, nil)
	})
}

// A consumer that panics ends the subscription.
func TestHintEndsWithAPanicOfItsConsumer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := newStore()
		func() {
			defer func() { want(t, "recovered", recover(), any("enough")) }()
			for range reflector.Hint(st, st.subscribe).Watch(t.Context(), reflector.WatchOptions{}) {
				panic("enough")
			}
		}()
		after(0)
		want(t, "subscriptions", len(st.subs), 0)
	})
}

// held lists what the sink has, as "a=1".
func (s *sink) held() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for key, it := range s.state {
		all = append(all, key+"="+it.Object)
	}
	slices.Sort(all)
	return all
}

// dice gives numbers below n, to any goroutine.
func dice(seed uint64) func(n int) int {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 0))
	return func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return rng.IntN(n)
	}
}

// No write is lost, whatever is hinted, cut and fetched in whatever time.
func TestG1_HintsConverge(t *testing.T) {
	for seed := range uint64(50) {
		bubble(t, func(t *testing.T) {
			rnd := dice(seed)
			st := newStore()
			st.get = seed%2 == 0
			st.onList = func(bool) { time.Sleep(time.Duration(rnd(50)) * time.Millisecond) }
			p := st.Powers()
			if fetch := p.Get; fetch != nil {
				p.Get = func(ctx context.Context, key string) (item, error) {
					it, err := fetch(ctx, key)
					time.Sleep(time.Duration(rnd(20)) * time.Millisecond)
					return it, err
				}
			}
			s := newSink(t)
			start(t, reflector.Hint(get{st, p}, st.subscribe), s, nil)
			for n := range 200 {
				st.write(keys[rnd(len(keys))], []string{"", fmt.Sprint(n)}[min(1, rnd(4))])
				if rnd(20) == 0 {
					st.cut()
				}
				time.Sleep(time.Duration(rnd(30)) * time.Millisecond)
			}
			after(5 * time.Minute) // less than a session: nothing is found by a new one
			var want []string
			for _, it := range st.objects {
				want = append(want, it.Key+"="+it.Object)
			}
			slices.Sort(want)
			if got := s.held(); !slices.Equal(got, want) {
				t.Errorf("seed %d: got %v, want %v", seed, got, want)
			}
		})
	}
}

// Rule 10: what a list names and cannot decode is not deleted, and a hint of it ends
// nothing.
func TestR02_HintsOfWhatCannotBeDecoded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := newStore()
		st.get = true
		st.write("a", "1")
		bad := false
		p := st.Powers()
		fetch := p.Get
		p.Get = func(ctx context.Context, key string) (item, error) {
			if bad && key == "a" {
				return item{}, fmt.Errorf("%q: %w: %w", key, reflector.ErrUnreadable, errBoom)
			}
			return fetch(ctx, key)
		}
		src := &source{powers: p, list: func(ctx context.Context, _ int, o reflector.ListOptions) (page, error) {
			all, err := st.List(ctx, o)
			if bad {
				all.Items = slices.DeleteFunc(all.Items, func(it item) bool { return it.Key == "a" })
				all.Faults = []reflector.Fault{fault("a")}
			}
			return all, err
		}}
		s := newSink(t)
		r := start(t, reflector.Hint(src, st.subscribe), s, nil)
		after(0)
		bad = true
		st.tell("a")
		st.write("b", "2")
		after(0)
		want(t, "holds", s.holds(), "a=1 b=2")
		want(t, "unreadable", unreadable(r), "[a]")
		st.tell("")
		after(0)
		want(t, "holds", s.holds(), "a=1 b=2")
		want(t, "unreadable", unreadable(r), "[a]")
		want(t, "failures", r.Status().Failures, 0)
		bad = false
		st.tell("a")
		after(0)
		want(t, "unreadable", unreadable(r), "[]")
	})
}
