package informer_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
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
		room := 0
		r := newReplay("r")
		release := make(chan struct{})
		inf.AddBatchHandler(func(cs []informer.Change[*obj]) {
			sizes, room = append(sizes, len(cs)), cap(cs)
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
		if len(sizes) != 20 || room > 64 {
			t.Errorf("calls of %v; after a burst, room for %d", sizes, room)
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
