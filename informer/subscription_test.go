package informer_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reflector"
)

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
		if n := inf.Status().Handlers; n != 0 {
			t.Errorf("%d handlers after Run", n)
		}
	})
}

// Run waits for calls of handlers that were cancelled meanwhile, too.
func TestG10_RunWaitsForCancelledCalls(t *testing.T) {
	for _, inline := range []bool{false, true} {
		t.Run(fmt.Sprintf("inline %v", inline), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				src := newSource()
				fill(src, 10)
				inf := informer.New(src, nil)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- inf.Run(ctx) }()
				settle()
				release, added := make(chan struct{}), make(chan struct{})
				var calls atomic.Int32
				go func() {
					defer close(added)
					inf.AddHandler(func(informer.Change[*obj]) { calls.Add(1); <-release }, &informer.HandlerOptions{Inline: inline})
				}()
				settle()
				informer.CancelAll(inf)
				cancel()
				settle()
				if len(done) != 0 {
					t.Error("Run returned during a call")
				}
				close(release)
				if err := <-done; err != nil {
					t.Error(err)
				}
				<-added
				if n := calls.Load(); n != 1 {
					t.Errorf("%d calls", n)
				}
			})
		})
	}
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
