package informer_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

func TestI14_I15_WaitForSyncSaysWhy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		forbidden := errors.New("forbidden")
		a, b := newSource(), newSource()
		b.fail = forbidden
		good := informer.New(a, &informer.Options{Name: "A"})
		bad := informer.New(b, &informer.Options{Name: "B", Backoff: retry.Backoff{Base: 400 * time.Millisecond, NoJitter: true}})
		run(t, good)
		run(t, bad)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := good.WaitForSync(ctx); err != nil || !good.Synced() {
			t.Error(err)
		}
		err := bad.WaitForSync(ctx)
		var we *informer.WaitError
		if !errors.As(err, &we) || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, forbidden) {
			t.Fatalf("got %v", err)
		}
		// Tried at 0 and 400 ms; the next time is 1.2 s.
		if we.Informer != "B" || we.Handler != "" || we.State != reflector.BackingOff || we.Failures != 2 ||
			time.Since(we.Since) != 600*time.Millisecond {
			t.Errorf("%+v", we)
		}
		for _, part := range []string{`"B"`, "the first list", "backing off", "2 failed attempts", "forbidden", "deadline exceeded",
			we.Since.Format(time.RFC3339)} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q lacks %q", err, part)
			}
		}
		if bad.Synced() || bad.Status().Synced {
			t.Error("synced")
		}
		if bad.Fresh(time.Hour) == nil {
			t.Error("fresh without a first list")
		}
		b.Fail(nil)
		if err := bad.WaitForSync(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestWaitForSync_Stopped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		src.fail = errors.New("down")
		inf := informer.New(src, nil)
		sub := inf.AddHandler(func(informer.Change[*obj]) {}, nil)
		errs := make(chan error, 2)
		go func() { errs <- inf.WaitForSync(t.Context()) }()
		go func() { errs <- sub.WaitForSync(t.Context()) }()
		stop := run(t, inf)
		settle()
		stop()
		for range 2 {
			if err := <-errs; !errors.Is(err, informer.ErrStopped) || !strings.Contains(err.Error(), "the first list") {
				t.Errorf("got %v", err)
			}
		}
		if err := inf.WaitForSync(t.Context()); !errors.Is(err, informer.ErrStopped) {
			t.Errorf("got %v", err)
		}

		inf = informer.New(newSource(), nil)
		stop = run(t, inf)
		settle()
		stop()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := inf.WaitForSync(ctx); err != nil {
			t.Errorf("once synced, always synced: %v", err)
		}
	})
}

func TestRun_Once(t *testing.T) {
	bubble(t, func(t *testing.T) {
		inf := informer.New(newSource(), &informer.Options{Name: "once"})
		stop := run(t, inf)
		settle()
		for _, when := range []string{"during", "after"} {
			err := inf.Run(t.Context())
			if !errors.Is(err, informer.ErrAlreadyRunning) || !strings.Contains(err.Error(), `"once"`) {
				t.Errorf("%s: %v", when, err)
			}
			stop()
		}
	})
}

func TestRun_InvalidOptions(t *testing.T) {
	named := indexer.By("group", func(o *obj) string { return o.Key })
	for name, c := range map[string]struct {
		src     reflector.ListWatcher[*obj]
		opts    *informer.Options
		indexes []indexer.Indexed[*obj]
		parts   []string
	}{
		"no source":   {parts: []string{"no source"}},
		"option":      {src: newSource(), opts: &informer.Options{Open: -1}, parts: []string{"Open"}},
		"index twice": {src: newSource(), indexes: []indexer.Indexed[*obj]{byGroup, named}, parts: []string{"another index"}},
		"all of them": {opts: &informer.Options{Open: -1, ResetAfter: -1}, indexes: []indexer.Indexed[*obj]{byGroup, named},
			parts: []string{"no source", "Open", "ResetAfter", "another index"}},
	} {
		t.Run(name, func(t *testing.T) {
			inf := informer.New(c.src, c.opts, c.indexes...)
			sub := inf.AddHandler(func(informer.Change[*obj]) {}, nil)
			err := inf.Run(t.Context())
			if !errors.Is(err, informer.ErrInvalidOptions) {
				t.Errorf("got %v", err)
			}
			for _, part := range c.parts {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q lacks %q", err, part)
				}
			}
			<-sub.Done()
			if err := inf.WaitForSync(t.Context()); !errors.Is(err, informer.ErrStopped) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOptionsReachTheReflector(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		src.powers.Paged = true
		asked := &paged{source: src}
		var log strings.Builder
		inf := informer.New(asked, &informer.Options{
			Name:     "named",
			PageSize: 7,
			Budget:   retry.NewBudget(0.1, 1), // a call each ten seconds
			Session:  30 * time.Second,
			Logger:   slog.New(slog.NewTextHandler(&log, nil)),
		})
		stop := run(t, inf)
		time.Sleep(5 * time.Second)
		if s := inf.Status().Source; s.Lists != 1 || s.Watches != 0 {
			t.Errorf("%d lists and %d watches within the budget", s.Lists, s.Watches)
		}
		time.Sleep(5 * time.Minute)
		s := inf.Status().Source
		if s.Name != "named" || asked.limit != 7 || s.Watches < 8 {
			t.Errorf("%+v, pages of %d", s, asked.limit)
		}
		src.Fail(errors.New("no longer"))
		time.Sleep(time.Minute)
		stop()
		if !strings.Contains(log.String(), "no longer") {
			t.Errorf("logged: %s", &log)
		}
	})
}

type paged struct {
	*source
	limit int
}

func (p *paged) List(ctx context.Context, o reflector.ListOptions) (reflector.Page[*obj], error) {
	p.limit = o.Limit
	return p.source.List(ctx, o)
}

func TestUntil(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		inf := informer.New(src, &informer.Options{Name: "things"})
		stop := run(t, inf)
		settle()
		objects := func(n int) func(*indexer.Snapshot[*obj]) bool {
			return func(s *indexer.Snapshot[*obj]) bool { return s.Len() == n }
		}
		done := make(chan error, 1)
		go func() { done <- inf.Until(t.Context(), objects(3)) }()
		fill(src, 2)
		settle()
		if len(done) != 0 {
			t.Fatal("returned too early")
		}
		fill(src, 3)
		if err := <-done; err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := inf.Until(ctx, objects(3)); err != nil {
			t.Errorf("what is so counts before the context: %v", err)
		}
		var we *informer.WaitError
		if err := inf.Until(ctx, objects(9)); !errors.As(err, &we) || !errors.Is(err, context.Canceled) || we.Informer != "things" {
			t.Errorf("got %v", err)
		}
		var pe *indexer.PanicError
		if err := inf.Until(ctx, func(*indexer.Snapshot[*obj]) bool { panic("ok") }); !errors.As(err, &pe) || errors.As(err, &we) {
			t.Errorf("got %v", err)
		}
		go func() { done <- inf.Until(t.Context(), objects(9)) }()
		settle()
		stop()
		if err := <-done; !errors.Is(err, informer.ErrStopped) {
			t.Errorf("got %v", err)
		}
		if err := inf.Until(t.Context(), objects(3)); err != nil {
			t.Error(err)
		}
	})
}

// The last state counts, however close behind it Run ends.
func TestUntil_LastState(t *testing.T) {
	for range 300 {
		bubble(t, func(t *testing.T) {
			src := newSource()
			inf := informer.New(src, nil)
			ctx, cancel := context.WithCancel(t.Context())
			inf.AddHandler(func(informer.Change[*obj]) { cancel() }, &informer.HandlerOptions{Inline: true})
			ended := make(chan error, 1)
			go func() { ended <- inf.Run(ctx) }()
			settle()
			go src.Put("a", "g")
			if err := inf.Until(t.Context(), func(s *indexer.Snapshot[*obj]) bool { return s.Len() == 1 }); err != nil {
				t.Error(err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// Having been synced counts, however close behind it Run ends.
func TestWaitForSync_LastMoment(t *testing.T) {
	for range 300 {
		bubble(t, func(t *testing.T) {
			src := newSource()
			src.Put("a", "g")
			inf := informer.New(src, nil)
			ctx, cancel := context.WithCancel(t.Context())
			sub := inf.AddHandler(func(informer.Change[*obj]) { cancel() }, &informer.HandlerOptions{Inline: true})
			errs := make(chan error, 3)
			go func() { errs <- inf.WaitForSync(t.Context()) }()
			go func() { errs <- sub.WaitForSync(t.Context()) }()
			go func() { errs <- inf.Run(ctx) }()
			for range 3 {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
		})
		if t.Failed() {
			return
		}
	}
}

func TestWaitErrorUnwrap(t *testing.T) {
	cause, last := errors.New("cause"), errors.New("last")
	if got := (&informer.WaitError{Cause: cause}).Unwrap(); len(got) != 1 || got[0] != cause {
		t.Errorf("got %v", got)
	}
	if got := (&informer.WaitError{Cause: cause, Err: last}).Unwrap(); len(got) != 2 || got[1] != last {
		t.Errorf("got %v", got)
	}
}

func TestX13_Fresh(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		inf := informer.New(src, &informer.Options{Name: "things"})
		var se *informer.StaleError
		if err := inf.Fresh(time.Hour); !errors.As(err, &se) || !se.Since.IsZero() || !strings.Contains(err.Error(), `"things": never synced`) {
			t.Errorf("got %v", err)
		}
		run(t, inf)
		settle()
		if err := inf.Fresh(time.Second); err != nil {
			t.Error(err)
		}
		down := errors.New("down")
		at := inf.Status().Source.Alive
		src.Fail(down)
		time.Sleep(10 * time.Minute)
		err := inf.Fresh(time.Minute)
		if !errors.As(err, &se) || !errors.Is(err, down) || !se.Since.Equal(at) || se.Age != time.Since(at) || se.Name != "things" {
			t.Errorf("got %v", err)
		}
		for _, part := range []string{`"things"`, se.Age.String(), "down"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q lacks %q", err, part)
			}
		}
		if err := inf.Fresh(time.Since(at)); err != nil {
			t.Error(err)
		}
		src.Fail(nil)
		time.Sleep(2 * time.Minute)
		if err := inf.Fresh(2 * time.Minute); err != nil {
			t.Error(err)
		}
	})
}

func TestStatusJSON(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := newSource()
		bad := indexer.By("bad", func(o *obj) string {
			if o.Group == "bad" {
				panic("unfit")
			}
			return ""
		})
		inf := informer.New(src, &informer.Options{Name: "things"}, bad)
		inf.AddHandler(func(informer.Change[*obj]) { panic("oops") }, nil)
		run(t, inf)
		src.Put("a", "good")
		src.Put("b", "bad")
		settle()
		go inf.WaitFor(t.Context(), "x", "none")
		synctest.Wait()
		text, err := json.Marshal(inf.Status())
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Source            struct{ Name, State string }
			Objects, Handlers int
			Waiting, Panics   int
			Synced            bool
			LastPanic         string
			Refused           map[string]string
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if got.Source.Name != "things" || got.Source.State != "watching" || got.Objects != 1 || got.Handlers != 1 ||
			got.Waiting != 1 || got.Panics != 1 || !got.Synced || !strings.Contains(got.LastPanic, "oops") ||
			len(got.Refused) != 1 || !strings.Contains(got.Refused["b"], "unfit") {
			t.Errorf("%s", text)
		}
		text, err = json.Marshal(informer.Status{})
		if err != nil || strings.Contains(string(text), "refused") || strings.Contains(string(text), "lastPanic") {
			t.Errorf("%s, %v", text, err)
		}
	})
}

func TestTypeText(t *testing.T) {
	for typ, want := range map[informer.Type]string{
		informer.Added: "added", informer.Updated: "updated", informer.Deleted: "deleted", 0: "Type(0)",
	} {
		text, err := typ.MarshalText()
		if err != nil || string(text) != want || typ.String() != want {
			t.Errorf("%d: %q, %v", typ, text, err)
		}
	}
}

func TestChangeObject(t *testing.T) {
	for typ, want := range map[informer.Type]string{informer.Added: "new", informer.Updated: "new", informer.Deleted: "old"} {
		if got := (informer.Change[string]{Type: typ, Old: "old", New: "new"}).Object(); got != want {
			t.Errorf("%v: %q", typ, got)
		}
	}
}

// The source alone writes the cache.
func TestCacheIsForReadingOnly(t *testing.T) {
	v := informer.New(newSource(), nil).Cache()
	if _, ok := v.(*indexer.Indexer[*obj]); ok {
		t.Errorf("%T can be written to", v)
	}
}
