package informer_test

import (
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
)

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
