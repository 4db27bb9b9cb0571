package informer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

func fill(src *source, n int) {
	src.tx(func() {
		for k := range n {
			src.put(fmt.Sprintf("k%04d", k), "g")
		}
	})
}

// settle lets everything come to rest.
func settle() {
	time.Sleep(time.Millisecond)
	synctest.Wait()
}

// reopen gives a new session the time that it takes after one that broke.
func reopen() {
	time.Sleep(5 * time.Second)
	synctest.Wait()
}

func TestI01_I19_G4_BlockedHandler(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const keys, updates = 100, 100_000
		src := newSource()
		fill(src, keys)
		inf := informer.New(src, nil)
		release := make(chan struct{})
		blocked, fast, many := newReplay("blocked"), newReplay("fast"), newReplay("batches")
		sub := inf.AddHandler(func(c informer.Change[*obj]) { <-release; blocked.on(c) }, nil)
		other := inf.AddHandler(fast.on, nil)
		batches := inf.AddBatchHandler(func(cs []informer.Change[*obj]) { <-release; many.batch(cs) }, nil)
		run(t, inf)
		settle()
		for n := range updates {
			switch key := fmt.Sprintf("k%04d", n%keys); n % 7 {
			case 3:
				src.Del(key)
			case 5:
				src.tx(func() { src.del(key); src.put(key, "again") })
			default:
				src.Put(key, "g")
			}
			if n%1000 == 0 {
				src.mu.Lock()
				src.log = src.log[max(0, len(src.log)-2000):]
				src.mu.Unlock()
				settle()
			}
		}
		settle()
		for name, s := range map[string]*informer.Subscription{"one by one": sub, "in batches": batches} {
			if st := informer.Queued(s); st.Keys > keys || st.Deltas > 2*keys || st.Keys < keys/2 {
				t.Errorf("%s: pending %+v for %d keys", name, st, keys)
			}
			if n, age := s.Lag(); n > keys || age < 50*time.Millisecond {
				t.Errorf("%s: lags by %d keys, %v", name, n, age)
			}
		}
		if n, age := other.Lag(); n != 0 || age != 0 {
			t.Errorf("the fast handler lags by %d, %v", n, age)
		}
		fast.verify(t, src.state())
		close(release)
		settle()
		blocked.verify(t, src.state())
		many.verify(t, src.state())
		if n := len(blocked.all()); n > 4*keys {
			t.Errorf("%d calls for %d keys", n, keys)
		}
	})
}

func TestI02_IdleHandlersAreSmall(t *testing.T) {
	const n = 10_000
	inf := informer.New[*obj](nil, nil)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range n {
		inf.AddHandler(func(informer.Change[*obj]) {}, nil)
	}
	if each := (int64(heap()) - int64(before)) / n; each > 2048 {
		t.Errorf("%d bytes for each handler", each)
	}
	runtime.KeepAlive(inf)
}

func TestI03_HandlerSyncsAfterItsLastObject(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		fill(src, 50)
		inf := informer.New(src, &informer.Options{Name: "things"})
		var returned atomic.Int32
		slow := func(informer.Change[*obj]) { time.Sleep(20 * time.Millisecond); returned.Add(1) }
		sub := inf.AddHandler(slow, &informer.HandlerOptions{Name: "slow"})
		run(t, inf)
		if err := inf.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := returned.Load(); n != 0 {
			t.Errorf("the cache was synced after %d calls", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond+time.Millisecond)
		defer cancel()
		err := sub.WaitForSync(ctx)
		var we *informer.WaitError
		if !errors.As(err, &we) || !errors.Is(err, context.DeadlineExceeded) || we.Handler != "slow" {
			t.Fatalf("got %v", err)
		}
		for _, part := range []string{`"things"`, `"slow"`, "25 keys left", "watching", "deadline exceeded"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q lacks %q", err, part)
			}
		}
		if err := sub.WaitForSync(t.Context()); err != nil || returned.Load() != 50 {
			t.Errorf("synced with %v after %d calls", err, returned.Load())
		}
	})
}

// A stream that never pauses must not keep a handler from being synced, nor may
// objects that vanish before the handler has seen them.
func TestI03_SyncsUnderChurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		fill(src, 20)
		inf := informer.New(src, nil)
		var calls atomic.Int32
		sub := inf.AddHandler(func(c informer.Change[*obj]) {
			time.Sleep(10 * time.Millisecond)
			calls.Add(1)
		}, nil)
		run(t, inf)
		settle()
		for k := range 5 {
			src.Del(fmt.Sprintf("k%04d", 10+k))
		}
		go func() {
			for n := range 2000 {
				src.Put(fmt.Sprintf("new%d", n), "g")
				time.Sleep(time.Millisecond)
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 201*time.Millisecond)
		defer cancel()
		if err := sub.WaitForSync(ctx); err != nil {
			t.Error(err)
		}
		if n := calls.Load(); n < 15 {
			t.Errorf("synced after %d calls", n)
		}
		time.Sleep(time.Minute)
	})
}

func TestHandlerSync(t *testing.T) {
	kinds := map[string]func(*informer.Informer[*obj], func()) *informer.Subscription{
		"one": func(i *informer.Informer[*obj], f func()) *informer.Subscription {
			return i.AddHandler(func(informer.Change[*obj]) { f() }, nil)
		},
		"many": func(i *informer.Informer[*obj], f func()) *informer.Subscription {
			return i.AddBatchHandler(func([]informer.Change[*obj]) { f() }, nil)
		},
		"inline": func(i *informer.Informer[*obj], f func()) *informer.Subscription {
			return i.AddHandler(func(informer.Change[*obj]) { f() }, &informer.HandlerOptions{Inline: true})
		},
		"inline many": func(i *informer.Informer[*obj], f func()) *informer.Subscription {
			return i.AddBatchHandler(func([]informer.Change[*obj]) { f() }, &informer.HandlerOptions{Inline: true})
		},
	}
	for kind, add := range kinds {
		for _, objects := range []int{0, 3} {
			for _, late := range []bool{false, true} {
				for _, panics := range []bool{false, true} {
					name := fmt.Sprintf("%s, %d objects, late %v, panics %v", kind, objects, late, panics)
					t.Run(name, func(t *testing.T) {
						bubble(t, func(t *testing.T) {
							src := newSource()
							fill(src, objects)
							inf := informer.New(src, nil)
							f := func() {
								if panics {
									panic("handler")
								}
							}
							var sub *informer.Subscription
							if !late {
								sub = add(inf, f)
							}
							run(t, inf)
							settle()
							if late {
								sub = add(inf, f)
								settle()
							}
							ctx, cancel := context.WithCancel(t.Context())
							cancel() // synced beats an ended context
							if err := sub.WaitForSync(ctx); err != nil {
								t.Error(err)
							}
							if got := inf.Status().Panics > 0; got != (panics && objects > 0) {
								t.Errorf("%d panics", inf.Status().Panics)
							}
						})
					})
				}
			}
		}
	}
}

func TestI04_I05_G10_PanickingHandler(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		for _, k := range []string{"a", "b", "c"} {
			src.Put(k, "g")
		}
		var logged strings.Builder
		var mu sync.Mutex
		log := slog.New(slog.NewTextHandler(lockedWriter{&mu, &logged}, nil))
		inf := informer.New(src, &informer.Options{Name: "things"})
		good, bad := newReplay("good"), newReplay("bad")
		fault := errors.New("broken")
		sub := inf.AddHandler(func(c informer.Change[*obj]) {
			bad.on(c)
			if c.Key == "b" {
				panic(fault)
			}
		}, &informer.HandlerOptions{Name: "bad", Logger: log})
		inf.AddHandler(func(c informer.Change[*obj]) {
			good.on(c)
			if c.Key == "c" && c.Type == informer.Updated {
				panic("inline")
			}
		}, &informer.HandlerOptions{Name: "inline", Inline: true})
		run(t, inf)
		if err := sub.WaitForSync(t.Context()); err != nil {
			t.Error(err)
		}
		settle()
		src.Put("b", "h")
		src.Put("c", "h")
		src.Put("d", "h")
		settle()
		good.verify(t, src.state())
		bad.verify(t, src.state())
		s := inf.Status()
		var pe *informer.PanicError
		if s.Panics != 3 || !errors.As(s.LastPanic, &pe) {
			t.Fatalf("%d panics, the last %v", s.Panics, s.LastPanic)
		}
		if pe.Informer != "things" || pe.Key == "" || !strings.Contains(string(pe.Stack), "TestI04") {
			t.Errorf("%+v", pe)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, part := range []string{"handler=bad", "key=b", "broken", "TestI04", "level=ERROR"} {
			if !strings.Contains(logged.String(), part) {
				t.Errorf("the log lacks %q: %s", part, &logged)
			}
		}
		if n := strings.Count(logged.String(), "\n"); n != 2 || strings.Contains(logged.String(), "handler=inline") {
			t.Errorf("%d lines for 2 panics: %s", n, &logged)
		}
	})
}

type lockedWriter struct {
	mu *sync.Mutex
	w  *strings.Builder
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func TestPanicError(t *testing.T) {
	cause := errors.New("cause")
	for _, c := range []struct {
		err  informer.PanicError
		want string
	}{
		{informer.PanicError{Informer: "i", What: `handler "h"`, Key: "k", Value: cause}, `informer "i": handler "h" panicked on key "k": cause`},
		{informer.PanicError{Informer: "i", What: "source Reached", Value: cause}, `informer "i": source Reached panicked: cause`},
	} {
		if c.err.Error() != c.want || !errors.Is(&c.err, cause) {
			t.Errorf("got %q", c.err.Error())
		}
	}
}

// A batch handler's panic names the key when there is only one.
func TestPanickingBatchHandler(t *testing.T) {
	h := byHand(t)
	h.inf.AddBatchHandler(func([]informer.Change[string]) { panic("batch") }, &informer.HandlerOptions{Inline: true})
	key := func() string {
		var pe *informer.PanicError
		if !errors.As(h.inf.Status().LastPanic, &pe) {
			t.Fatal("no panic")
		}
		return pe.Key
	}
	h.list(object.Initial, "a - 1 a")
	if key() != "a" {
		t.Errorf("key %q, want a", key())
	}
	h.apply(put("a - 2 a"), put("b - 2 b"))
	if key() != "" || h.inf.Status().Panics != 2 {
		t.Errorf("key %q of %d panics", key(), h.inf.Status().Panics)
	}
}

// A handler that ends its goroutine is ended, visibly, and nobody else.
func TestG10_HandlerEndsItsGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		fill(src, 3)
		inf := informer.New(src, nil)
		sub := inf.AddHandler(func(informer.Change[*obj]) { runtime.Goexit() }, nil)
		good := newReplay("good")
		inf.AddHandler(good.on, nil)
		stop := run(t, inf)
		<-sub.Done()
		settle()
		good.verify(t, src.state())
		if err := sub.WaitForSync(t.Context()); !errors.Is(err, informer.ErrCanceled) {
			t.Errorf("got %v", err)
		}
		if n := inf.Status().Handlers; n != 1 {
			t.Errorf("%d handlers", n)
		}
		stop()
	})
}

// An inline handler that ends its goroutine ends Run's. Nobody is left waiting.
func TestG10_InlineHandlerEndsRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		fill(src, 3)
		inf := informer.New(src, nil)
		inf.AddHandler(func(c informer.Change[*obj]) {
			if c.Type == informer.Updated {
				runtime.Goexit()
			}
		}, &informer.HandlerOptions{Inline: true})
		other := inf.AddHandler(func(informer.Change[*obj]) {}, nil)
		go inf.Run(t.Context())
		settle()
		go src.Put("k0000", "h")
		if err := inf.WaitFor(t.Context(), "a", "none"); !errors.Is(err, informer.ErrStopped) {
			t.Errorf("got %v", err)
		}
		<-other.Done()
	})
}

func TestI06_I07_JoinAndLeave(t *testing.T) {
	for _, inline := range []bool{false, true} {
		t.Run(fmt.Sprintf("inline %v", inline), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := newSource()
				fill(src, 20)
				inf := informer.New(src, nil)
				stop := run(t, inf)
				settle()
				base := runtime.NumGoroutine()
				writing := make(chan struct{})
				go func() {
					defer close(writing)
					for n := range 3000 {
						key := fmt.Sprintf("k%04d", n%30)
						if n%5 == 0 {
							src.Del(key)
						} else {
							src.Put(key, "g")
						}
						runtime.Gosched()
					}
				}()
				var stayed []*replay
				var subs []*informer.Subscription
				for n := range 10_000 {
					r := newReplay(fmt.Sprint(n))
					sub := inf.AddHandler(r.on, &informer.HandlerOptions{Inline: inline})
					if n%1000 == 0 {
						stayed, subs = append(stayed, r), append(subs, sub)
						continue
					}
					sub.Cancel()
					<-sub.Done()
					r.verify(t, nil)
				}
				<-writing
				settle()
				for _, r := range stayed {
					r.verify(t, src.state())
				}
				if n := inf.Status().Handlers; n != len(stayed) {
					t.Errorf("%d handlers, want %d", n, len(stayed))
				}
				for _, s := range subs {
					s.Cancel()
					s.Cancel()
				}
				settle()
				// A few come and go beside us; ten thousand would not.
				if n := runtime.NumGoroutine(); n > base+5 {
					t.Errorf("%d goroutines, were %d", n, base)
				}
				if n := inf.Status().Handlers; n != 0 {
					t.Errorf("%d handlers", n)
				}
				stop()
			})
		})
	}
}

func TestI08_CallsFromInsideHandlers(t *testing.T) {
	for _, inline := range []bool{false, true} {
		t.Run(fmt.Sprintf("inline %v", inline), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := newSource()
				fill(src, 3)
				inf := informer.New(src, nil)
				o := &informer.HandlerOptions{Inline: inline}
				inner := newReplay("inner")
				calls := 0
				var sub, other *informer.Subscription
				ready := make(chan struct{})
				sub = inf.AddHandler(func(c informer.Change[*obj]) {
					<-ready
					calls++
					sub.Cancel()
					other.Cancel()
					inf.AddHandler(inner.on, o)
					if _, ok := inf.Cache().Get(c.Key); !ok {
						t.Error("the cache lacks the key")
					}
					_, _ = inf.Status(), inf.Fresh(time.Second)
					sub.Lag()
					inf.Relist("inside")
				}, o)
				other = inf.AddHandler(func(informer.Change[*obj]) {}, o)
				close(ready)
				run(t, inf)
				<-sub.Done()
				<-other.Done()
				settle()
				src.Put("k0001", "g")
				settle()
				inner.verify(t, src.state())
				if calls != 1 {
					t.Errorf("%d calls after Cancel in the first", calls)
				}
			})
		})
	}
}

func TestI09_AddWhileStarting(t *testing.T) {
	for n := range 1000 {
		bubble(t, func(t *testing.T) {
			src := newSource()
			fill(src, 2)
			inf := informer.New(src, nil)
			replays := make([]*replay, 5)
			subs := make([]*informer.Subscription, 5)
			var wg sync.WaitGroup
			for k := range subs {
				replays[k] = newReplay(fmt.Sprint(k))
				wg.Go(func() {
					if n%2 == 0 {
						runtime.Gosched()
					}
					subs[k] = inf.AddHandler(replays[k].on, &informer.HandlerOptions{Inline: k == 0})
				})
			}
			run(t, inf)
			wg.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			for k := range subs {
				if err := subs[k].WaitForSync(ctx); err != nil {
					t.Error(err)
				}
				replays[k].verify(t, src.state())
			}
		})
		if t.Failed() {
			return
		}
	}
}

func TestI12_NoCallAfterCancel(t *testing.T) {
	for _, inline := range []bool{false, true} {
		t.Run(fmt.Sprintf("inline %v", inline), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := newSource()
				inf := informer.New(src, nil)
				started, release := make(chan struct{}), make(chan struct{})
				var calls atomic.Int32
				sub := inf.AddHandler(func(informer.Change[*obj]) {
					if calls.Add(1) == 3 {
						close(started)
						<-release
					}
				}, &informer.HandlerOptions{Inline: inline})
				run(t, inf)
				settle()
				fill(src, 10)
				<-started
				sub.Cancel() // does not wait
				select {
				case <-sub.Done():
					t.Error("done during a call")
				default:
				}
				settle()
				close(release)
				<-sub.Done()
				fill(src, 20)
				settle()
				if n := calls.Load(); n != 3 {
					t.Errorf("%d calls, want 3", n)
				}
				if err := sub.WaitForSync(t.Context()); err != nil {
					t.Error("it was synced before:", err)
				}
			})
		})
	}
}

func TestI13_G10_RunWaitsForCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		fill(src, 10)
		inf := informer.New(src, nil)
		release := make(chan struct{})
		var calls atomic.Int32
		sub := inf.AddHandler(func(informer.Change[*obj]) { calls.Add(1); <-release }, &informer.HandlerOptions{Name: "h"})
		idle := inf.AddHandler(func(informer.Change[*obj]) {}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- inf.Run(ctx) }()
		settle()
		cancel()
		settle()
		<-idle.Done()
		select {
		case <-done:
			t.Error("Run returned during a call")
		case <-sub.Done():
			t.Error("done during a call")
		default:
		}
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
		<-sub.Done()
		if n := calls.Load(); n != 1 {
			t.Errorf("%d calls, want the one that had started", n)
		}
		if err := sub.WaitForSync(t.Context()); !errors.Is(err, informer.ErrStopped) || errors.Is(err, informer.ErrCanceled) {
			t.Errorf("got %v", err)
		}
		sub.Cancel()
		if err := sub.WaitForSync(t.Context()); !errors.Is(err, informer.ErrStopped) {
			t.Errorf("after a late Cancel: %v", err)
		}
	})
}

// An inline handler that is joining on somebody else's goroutine is waited for as
// well, and told nothing more.
func TestG10_RunWaitsForJoiner(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		fill(src, 200)
		inf := informer.New(src, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- inf.Run(ctx) }()
		settle()
		release := make(chan struct{})
		calls := 0
		joined := make(chan *informer.Subscription)
		go func() {
			joined <- inf.AddHandler(func(informer.Change[*obj]) { calls++; <-release }, &informer.HandlerOptions{Inline: true})
		}()
		settle()
		cancel()
		settle()
		select {
		case <-done:
			t.Error("Run returned during a call")
		default:
		}
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
		<-(<-joined).Done()
		if calls != 1 {
			t.Errorf("%d calls", calls)
		}
	})
}

// While an inline handler joins, changes go on; it is told of them in order, by
// one goroutine at a time, and none of them waits for it.
func TestI06_InlineJoinUnderWrites(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		fill(src, 100)
		inf := informer.New(src, nil)
		run(t, inf)
		settle()
		r := newReplay("joiner")
		var inside atomic.Int32
		step := make(chan struct{})
		joined := make(chan struct{})
		go func() {
			defer close(joined)
			inf.AddHandler(func(c informer.Change[*obj]) {
				if inside.Add(1) != 1 {
					t.Error("two calls at once")
				}
				if len(r.all()) < 50 {
					<-step
				}
				r.on(c)
				inside.Add(-1)
			}, &informer.HandlerOptions{Inline: true})
		}()
		for n := range 50 {
			src.Put(fmt.Sprintf("k%04d", n*2), "h")
			src.Del(fmt.Sprintf("k%04d", n*2+1))
			src.Put(fmt.Sprintf("n%04d", n), "h")
			settle()
			if inf.Cache().Len() != 100 {
				t.Fatal("the writer waits for a joiner")
			}
			step <- struct{}{}
		}
		<-joined
		r.verify(t, src.state())
		src.Put("last", "g")
		settle()
		r.verify(t, src.state())
	})
}

func TestJoinIsInitial(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		src.Put("a", "g")
		inf := informer.New(src, nil)
		early := newReplay("early")
		inf.AddHandler(early.on, nil)
		run(t, inf)
		settle()
		src.Put("b", "g")
		settle()
		late := newReplay("late")
		inf.AddHandler(late.on, nil)
		settle()
		src.Unseen(func() { src.put("c", "g") })
		reopen()
		causes := func(r *replay) string {
			s := ""
			for _, c := range r.all() {
				s += fmt.Sprint(c.Key, " ", c.Cause, ",")
			}
			return s
		}
		if s := causes(early); s != "a initial,b watched,c relist," {
			t.Error(s)
		}
		if s := causes(late); !strings.Contains(s, "a initial") || !strings.Contains(s, "b initial") || len(late.all()) != 3 {
			t.Error(s)
		}
	})
}

func TestI10_AddAfterRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		fill(src, 3)
		inf := informer.New(src, nil)
		stop := run(t, inf)
		settle()
		stop()
		for _, inline := range []bool{false, true} {
			sub := inf.AddHandler(func(informer.Change[*obj]) { t.Error("called") }, &informer.HandlerOptions{Inline: inline})
			<-sub.Done()
			if err := sub.WaitForSync(t.Context()); !errors.Is(err, informer.ErrStopped) {
				t.Errorf("got %v", err)
			}
			sub.Cancel()
			if n, age := sub.Lag(); n != 0 || age != 0 {
				t.Errorf("lags by %d, %v", n, age)
			}
		}
		if n := inf.Cache().Len(); n != 3 {
			t.Errorf("the cache has %d objects, want 3", n)
		}
		if s := inf.Status(); s.Handlers != 0 || s.Source.State != reflector.Stopped {
			t.Errorf("%+v", s)
		}
	})
}

func TestI17_DeleteCarriesItsObject(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		src.Put("a", "g")
		inf := informer.New(src, nil)
		r := newReplay("r")
		inf.AddHandler(r.on, nil)
		run(t, inf)
		settle()
		last := src.state()["a"]
		src.Unseen(func() { src.del("a") })
		reopen()
		cs := r.all()
		c := cs[len(cs)-1]
		if c.Type != informer.Deleted || !c.Inferred || c.Object() != last || c.Last != last || c.Cause != object.Relist {
			t.Errorf("%+v", c)
		}
		r.verify(t, src.state())
	})
}

// What a busy handler missed is in Last, and not in Old.
func TestG3_DeletedLastIsNewerThanOld(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		src.Put("a", "first")
		inf := informer.New(src, nil)
		release := make(chan struct{})
		r := newReplay("r")
		inf.AddHandler(func(c informer.Change[*obj]) { r.on(c); <-release }, nil)
		run(t, inf)
		settle()
		src.Put("a", "second")
		settle()
		src.Del("a")
		settle()
		close(release)
		settle()
		cs := r.all()
		if len(cs) != 2 || cs[1].Old.Group != "first" || cs[1].Last.Group != "second" || cs[1].Version != "200" || cs[1].Inferred {
			t.Errorf("%+v", cs)
		}
		r.verify(t, nil)
	})
}

func TestI20_ForcedSessionsTellNothing(t *testing.T) {
	for _, bare := range []bool{false, true} {
		t.Run(fmt.Sprintf("bare %v", bare), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := newSource()
				src.bare, src.powers.Initial = bare, bare
				fill(src, 10)
				inf := informer.New(src, nil)
				r := newReplay("r")
				inf.AddHandler(r.on, nil)
				run(t, inf)
				settle()
				before := inf.Status().Source
				for range 5 {
					src.Hide()
					inf.Relist("test")
					time.Sleep(10 * time.Second)
					// Equal objects that are others in memory.
					src.mu.Lock()
					for key, it := range src.live {
						o := *it.Object
						it.Object = &o
						src.live[key] = it
					}
					src.mu.Unlock()
				}
				settle()
				after := inf.Status().Source
				if after.Lists+after.Watches < before.Lists+before.Watches+5 {
					t.Errorf("%d lists and %d watches", after.Lists, after.Watches)
				}
				if n := len(r.all()); n != 10 {
					t.Errorf("told of %d changes, want 10", n)
				}
			})
		})
	}
}

func TestBatchHandlerGetsWhatIsPending(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		inf := informer.New(src, nil)
		var sizes []int
		r := newReplay("r")
		release := make(chan struct{})
		inf.AddBatchHandler(func(cs []informer.Change[*obj]) {
			sizes = append(sizes, len(cs))
			r.batch(cs)
			<-release
		}, nil)
		run(t, inf)
		settle()
		fill(src, 5000)
		settle()
		close(release)
		settle()
		r.verify(t, src.state())
		largest := 0
		for _, n := range sizes {
			largest = max(largest, n)
		}
		if len(sizes) > 20 || largest > 1024 || largest < 512 {
			t.Errorf("calls of %v", sizes)
		}
		sizes = nil
		for n := range 20 {
			src.Put(fmt.Sprint(n), "g")
			settle()
		}
		if len(sizes) != 20 {
			t.Errorf("calls of %v", sizes)
		}
		r.verify(t, src.state())
	})
}

func TestLag(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		inf := informer.New(src, nil)
		release := make(chan struct{})
		sub := inf.AddHandler(func(informer.Change[*obj]) { <-release }, nil)
		run(t, inf)
		settle()
		lag := func(keys int, age time.Duration) {
			t.Helper()
			if n, a := sub.Lag(); n != keys || a != age {
				t.Errorf("lags by %d keys, %v; want %d, %v", n, a, keys, age)
			}
		}
		lag(0, 0)
		src.Put("a", "g")
		synctest.Wait()
		time.Sleep(time.Second)
		lag(0, time.Second) // it works on it
		src.Put("b", "g")
		src.Put("b", "h")
		src.Put("c", "h")
		synctest.Wait()
		time.Sleep(time.Second)
		lag(2, 2*time.Second)
		release <- struct{}{}
		synctest.Wait()
		lag(1, time.Second) // c has waited for so long
		time.Sleep(time.Second)
		release <- struct{}{}
		synctest.Wait()
		lag(0, 0)
		close(release)
		settle()
		lag(0, 0)
	})
}

// What a handler has not begun with goes on being compacted: it takes one key at a
// time, also after a key of two deltas.
func TestG4_OneKeyAtATime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		src.Put("a", "g")
		inf := informer.New(src, nil)
		release := make(chan struct{})
		r := newReplay("r")
		sub := inf.AddHandler(func(c informer.Change[*obj]) { r.on(c); <-release }, nil)
		run(t, inf)
		settle()
		src.tx(func() { src.del("a"); src.put("a", "again") })
		for _, key := range []string{"b", "c", "d"} {
			src.Put(key, "g")
		}
		settle()
		var pending []int
		for range 6 {
			n, _ := sub.Lag()
			pending = append(pending, n)
			release <- struct{}{}
			settle()
		}
		// The first, then a's two, then b, c, d.
		if got := fmt.Sprint(pending); got != "[4 3 3 2 1 0]" {
			t.Errorf("pending: %s", got)
		}
		r.verify(t, src.state())
	})
}

func TestDefaultNames(t *testing.T) {
	bubble(t, func(t *testing.T) {
		inf := informer.New(newSource(), nil)
		if inf.Name() != "*informer_test.obj" {
			t.Error(inf.Name())
		}
		inf.AddHandler(func(informer.Change[*obj]) {}, nil)
		sub := inf.AddHandler(func(informer.Change[*obj]) {}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := sub.WaitForSync(ctx)
		for _, part := range []string{`"*informer_test.obj"`, `"handler-2"`, "the first list", "starting", "context canceled"} {
			if !strings.Contains(fmt.Sprint(err), part) {
				t.Errorf("%v lacks %q", err, part)
			}
		}
	})
}

func TestNilHandlers(t *testing.T) {
	for name, add := range map[string]func(*informer.Informer[*obj]){
		"AddHandler(nil)":      func(i *informer.Informer[*obj]) { i.AddHandler(nil, nil) },
		"AddBatchHandler(nil)": func(i *informer.Informer[*obj]) { i.AddBatchHandler(nil, nil) },
	} {
		func() {
			defer func() {
				if v := recover(); !strings.Contains(fmt.Sprint(v), name) {
					t.Errorf("%s: got %v", name, v)
				}
			}()
			add(informer.New[*obj](nil, nil))
		}()
	}
}
