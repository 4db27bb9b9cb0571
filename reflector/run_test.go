package reflector_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

// R25, G10: every phase ends when ctx does, and nothing is left behind.
func TestR25_G10_EveryPhaseHonoursCtx(t *testing.T) {
	hang := func(ctx context.Context, _ reflector.WatchOptions, _ yield) { <-ctx.Done() }
	for _, c := range []struct {
		name  string
		state reflector.State
		src   *source
		wait  time.Duration
	}{
		{"listing", reflector.Listing, &source{list: func(ctx context.Context, _ int, _ reflector.ListOptions) (page, error) {
			<-ctx.Done()
			return page{}, ctx.Err()
		}}, 0},
		{"opening", reflector.Opening, &source{list: one("5"), watch: script(hang)}, 0},
		{"idle", reflector.Watching, &source{list: one("5"), watch: idle}, 0},
		{"streaming", reflector.Streaming, &source{powers: powers{Initial: true}, watch: func(ctx context.Context, _ int, _ reflector.WatchOptions, yield yield) {
			if yield(batch{Reset: true, Events: events("a=1")}, nil) {
				<-ctx.Done()
			}
		}}, 0},
		{"yielding without end", reflector.Watching, &source{list: one("5"), watch: func(ctx context.Context, _ int, _ reflector.WatchOptions, yield yield) {
			for yield(batch{Cursor: "5"}, nil) { // ctx is not looked at
				time.Sleep(time.Millisecond)
			}
		}}, 0},
		{"backing off", reflector.BackingOff, &source{list: func(context.Context, int, reflector.ListOptions) (page, error) {
			return page{}, errBoom
		}}, 0},
		{"waiting as long as it was asked to", reflector.BackingOff, &source{list: func(context.Context, int, reflector.ListOptions) (page, error) {
			return page{}, retry.After(errBoom, time.Hour)
		}}, 0},
		{"waiting for the budget", reflector.Starting, &source{}, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				budget := retry.NewBudget(0, 0)
				budget.Pause(c.wait)
				s := newSink(t)
				r := reflector.New(c.src, s, &reflector.Options{Budget: budget})
				ctx, cancel := context.WithCancelCause(t.Context())
				done := make(chan error)
				go func() { done <- r.Run(ctx) }()
				after(10 * time.Millisecond)
				want(t, "state", r.Status().State, c.state)
				told := time.Now()
				cancel(errBoom)
				want(t, "Run", <-done, nil)
				if d := time.Since(told); d > 10*time.Millisecond {
					t.Errorf("it took %v", d)
				}
				want(t, "state", r.Status().State, reflector.Stopped)
				want(t, "open relists", s.open, 0)
			})
		})
	}
}

func TestRunWithACtxThatEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	src := &source{}
	r := reflector.New(src, newSink(t), nil)
	want(t, "Run", r.Run(ctx), nil)
	want(t, "lists", len(src.lists), 0)
	want(t, "state", r.Status().State, reflector.Stopped)
	wantErr(t, "second Run", r.Run(ctx), reflector.ErrAlreadyRunning)
}

func TestRunTwice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, &source{list: one("5"), watch: idle}, newSink(t), &reflector.Options{Name: "pods"})
		after(0)
		err := r.Run(t.Context())
		wantErr(t, "second Run", err, reflector.ErrAlreadyRunning)
		if !strings.Contains(err.Error(), `"pods"`) {
			t.Errorf("it does not say who: %v", err)
		}
		want(t, "state", r.Status().State, reflector.Watching)
	})
}

// The values of ctx reach the source.
func TestCtxReachesTheSource(t *testing.T) {
	type key struct{}
	bubble(t, func(t *testing.T) {
		seen := 0
		look := func(ctx context.Context) {
			if ctx.Value(key{}) == "here" {
				seen++
			}
		}
		src := &source{list: func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
			look(ctx)
			return one("5")(ctx, n, o)
		}, watch: func(ctx context.Context, n int, o reflector.WatchOptions, yield yield) {
			look(ctx)
			idle(ctx, n, o, yield)
		}}
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "here"), time.Second)
		defer cancel()
		want(t, "Run", reflector.New(src, newSink(t), nil).Run(ctx), nil)
		want(t, "calls that saw it", seen, 2)
	})
}

// Rule 8: a source that does not return is shown, and waited for.
func TestRule8_Stuck(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log bytes.Buffer
		gate := make(chan struct{})
		src := &source{powers: powers{ResumeProven: true}, list: one("5", "a=1")}
		src.watch = func(ctx context.Context, n int, o reflector.WatchOptions, yield yield) {
			if n == 1 {
				yield(batch{Cursor: "5"}, nil)
				<-gate
				return
			}
			idle(ctx, n, o, yield)
		}
		r := start(t, src, newSink(t), &reflector.Options{Logger: logger(&log)})
		after(time.Minute)
		told := time.Now()
		r.Relist("test")
		after(4 * time.Second)
		want(t, "state", r.Status().State, reflector.Watching)
		after(2 * time.Second)
		st := r.Status()
		want(t, "state", st.State, reflector.Stuck)
		want(t, "since", st.Since, told)
		if !strings.Contains(log.String(), "does not return") || !strings.Contains(log.String(), "call=Watch") {
			t.Errorf("log:\n%s", &log)
		}
		after(time.Hour)
		want(t, "calls", r.Status().Watches, 1)
		close(gate)
		after(0)
		want(t, "state", r.Status().State, reflector.Watching)
		want(t, "lists", r.Status().Lists, 2)
	})
}

// A sink that takes its time is not the source's fault; what comes after it is.
func TestRule8_SlowSinkIsNotStuck(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := make(chan struct{})
		defer close(gate)
		src := &source{list: one("5")}
		src.watch = func(_ context.Context, _ int, _ reflector.WatchOptions, yield yield) {
			yield(batch{Cursor: "5"}, nil)
			yield(live("6", "a=1"), nil)
			<-gate
		}
		s := newSink(t)
		s.onApply = func(batch) error { time.Sleep(time.Minute); return nil }
		r := start(t, src, s, nil)
		after(time.Second)
		r.Relist("test")
		after(58 * time.Second)
		want(t, "state", r.Status().State, reflector.Watching)
		after(12 * time.Second)
		want(t, "state", r.Status().State, reflector.Stuck)
		if d := time.Since(r.Status().Since); d > 15*time.Second {
			t.Errorf("stuck for %v", d)
		}
	})
}

func TestRule8_StuckAtTheEnd(t *testing.T) {
	for _, call := range []string{"List", "Watch"} {
		t.Run(call, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				gate := make(chan struct{})
				src := &source{list: func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
					if call == "List" {
						<-gate
					}
					return one("5")(ctx, n, o)
				}, watch: func(_ context.Context, _ int, _ reflector.WatchOptions, _ yield) { <-gate }}
				r := reflector.New(src, newSink(t), nil)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- r.Run(ctx) }()
				after(0)
				cancel()
				after(time.Hour)
				want(t, "state", r.Status().State, reflector.Stuck)
				want(t, "Run has returned", len(done), 0)
				close(gate)
				want(t, "Run", <-done, nil)
				want(t, "state", r.Status().State, reflector.Stopped)
			})
		})
	}
}

// R01, G10: a panic anywhere is an error that is shown, and tried again.
func TestR01_G10_PanicsAreContained(t *testing.T) {
	for _, c := range []struct {
		in    string
		wreck func(src *source, s *sink, boom func())
	}{
		{"source Powers", nil},
		{"source List", func(src *source, _ *sink, boom func()) {
			src.list = func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
				boom()
				return one("e/10", "a=1")(ctx, n, o)
			}
		}},
		{"source Watch", func(src *source, _ *sink, boom func()) {
			src.list = seq("e/10", "e/1")
			src.powers.Compare = nil
			src.watch = func(ctx context.Context, n int, o reflector.WatchOptions, yield yield) {
				yield(batch{Cursor: o.After}, nil)
				yield(live("e/11", "b=1"), nil) // what was called before is not named
				boom()
				<-ctx.Done()
			}
		}},
		{"source Compare", func(src *source, _ *sink, boom func()) {
			src.powers.Compare = func(a, b cursor) int {
				boom()
				return compare(a, b)
			}
		}},
		{"sink Begin", func(_ *source, s *sink, boom func()) { s.onBegin = func(object.Cause) { boom() } }},
		{"sink Stage", func(_ *source, s *sink, boom func()) { s.onStage = func([]item) error { boom(); return nil } }},
		{"sink Commit", func(_ *source, s *sink, boom func()) { s.onCommit = func(cursor) error { boom(); return nil } }},
		{"sink Apply", func(_ *source, s *sink, boom func()) { s.onApply = func(batch) error { boom(); return nil } }},
		{"sink Abort", func(src *source, s *sink, boom func()) {
			watch := src.watch
			src.watch = func(ctx context.Context, n int, o reflector.WatchOptions, yield yield) {
				if n > 1 {
					watch(ctx, n, o, yield)
				}
			}
			s.onAbort = func() {
				if len(src.watches) == 1 {
					boom()
				}
			}
		}},
	} {
		t.Run(c.in, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var log bytes.Buffer
				src := &source{powers: powers{ResumeProven: true, Compare: compare}, list: one("e/10", "a=1")}
				src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
					play(ctx, o, yield, live("e/11", "b=1"))
				}
				s := newSink(t)
				armed := true
				boom := func() {
					if armed {
						armed = false
						panic("kaboom")
					}
				}
				var lw reflector.ListWatcher[string] = src
				if c.wreck == nil {
					lw = powersPanic{src, boom}
				} else {
					c.wreck(src, s, boom)
				}
				r := reflector.New(lw, s, &reflector.Options{Backoff: exact, Logger: logger(&log)})
				begin(t, r, s)
				after(time.Second / 2)
				st := r.Status()
				p, ok := errors.AsType[*reflector.PanicError](st.Err)
				if !ok {
					t.Fatalf("err: %v", st.Err)
				}
				want(t, "in", p.In, c.in)
				want(t, "value", p.Value, any("kaboom"))
				want(t, "state", st.State, reflector.BackingOff)
				want(t, "failures", st.Failures, 1)
				if !bytes.Contains(p.Stack, []byte("run_test.go")) {
					t.Errorf("stack:\n%s", p.Stack)
				}
				if !strings.Contains(log.String(), "run_test.go") || !strings.Contains(log.String(), "panic in "+c.in+": kaboom") {
					t.Errorf("log:\n%s", &log)
				}
				before := len(src.lists)
				after(time.Second)
				want(t, "a full state follows", len(src.lists), before+1)
				want(t, "holds", s.holds(), "a=1 b=1")
				want(t, "err", r.Status().Err, nil)
			})
		})
	}
}

type powersPanic struct {
	*source
	boom func()
}

func (p powersPanic) Powers() powers {
	p.boom()
	return p.source.Powers()
}

// Unstage panics as visibly as the rest.
func TestR01_UnstagePanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{Initial: true}, watch: func(_ context.Context, _ int, _ reflector.WatchOptions, yield yield) {
			yield(whole("5", "a=1", "-a"), nil)
		}}
		s := newSink(t)
		r := reflector.New(src, unstagePanic{s}, &reflector.Options{Backoff: exact})
		begin(t, r, s)
		after(0)
		p, ok := errors.AsType[*reflector.PanicError](r.Status().Err)
		if !ok || p.In != "sink Unstage" {
			t.Errorf("err: %v", r.Status().Err)
		}
	})
}

type unstagePanic struct{ *sink }

func (u unstagePanic) Begin(why object.Cause) reflector.Relist[string] {
	return unstagePanicRelist{u.sink.Begin(why)}
}

type unstagePanicRelist struct{ reflector.Relist[string] }

func (unstagePanicRelist) Unstage(string) { panic("kaboom") }

// An error of the sink ends the session, is shown, and a full state follows.
func TestSinkErrorsForceAFullState(t *testing.T) {
	for _, c := range []struct {
		in  string
		set func(s *sink, f func() error)
	}{
		{"sink Stage", func(s *sink, f func() error) { s.onStage = func([]item) error { return f() } }},
		{"sink Commit", func(s *sink, f func() error) { s.onCommit = func(cursor) error { return f() } }},
		{"sink Apply", func(s *sink, f func() error) { s.onApply = func(batch) error { return f() } }},
	} {
		for _, initial := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/initial %v", c.in, initial), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					src := &source{powers: powers{ResumeProven: true, Initial: initial}, list: one("10", "a=1")}
					src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
						if o.Initial && !yield(whole("10", "a=1"), nil) {
							return
						}
						play(ctx, reflector.WatchOptions{After: "10"}, yield, live("11", "b=1"))
					}
					s := newSink(t)
					refuse := true
					c.set(s, func() error {
						if refuse {
							refuse = false
							return errBoom
						}
						return nil
					})
					r := start(t, src, s, &reflector.Options{Backoff: exact})
					after(time.Second / 2)
					wantErr(t, "err", r.Status().Err, errBoom)
					if !strings.Contains(r.Status().Err.Error(), c.in) {
						t.Errorf("err %v does not name %s", r.Status().Err, c.in)
					}
					after(time.Second)
					if lists, watches := src.calls(); initial && (watches != 2 || !src.watches[1].Initial) || !initial && lists != 2 {
						t.Errorf("%d lists, %d watches", lists, watches)
					}
					want(t, "holds", s.holds(), "a=1 b=1")
				})
			})
		}
	}
}

// A source that yields after it was told to stop is contained as well.
func TestYieldAfterFalse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{list: one("10"), watch: script(func(_ context.Context, _ reflector.WatchOptions, yield yield) {
			for range 3 {
				yield(batch{}, errBoom)
			}
		}, stay)}
		r := start(t, src, newSink(t), &reflector.Options{Backoff: exact})
		after(time.Second / 2)
		if p, ok := errors.AsType[*reflector.PanicError](r.Status().Err); !ok || p.In != "source Watch" {
			t.Errorf("err: %v", r.Status().Err)
		}
		after(time.Second)
		want(t, "state", r.Status().State, reflector.Watching)
	})
}

func TestInvalidOptions(t *testing.T) {
	for _, c := range []struct {
		name string
		r    *reflector.Reflector[string]
		say  []string
	}{
		{"all at once", reflector.New[string](nil, nil, &reflector.Options{Open: -1, ResetAfter: -1, Backoff: retry.Backoff{Base: -1}}),
			[]string{"no source", "no sink", "Open", "ResetAfter", "Backoff", "Base"}},
		{"the source's", reflector.New(reflector.Poll[string](nil, nil, nil), newSink(t), nil), []string{"Poll"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.r.Run(t.Context())
			wantErr(t, "Run", err, reflector.ErrInvalidOptions)
			for _, s := range c.say {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%v does not say %q", err, s)
				}
			}
			want(t, "state", c.r.Status().State, reflector.Stopped)
			wantErr(t, "status", c.r.Status().Err, reflector.ErrInvalidOptions)
			if joined, ok := err.(interface{ Unwrap() []error }); ok {
				for _, e := range joined.Unwrap() {
					wantErr(t, "each", e, reflector.ErrInvalidOptions)
				}
			}
		})
	}
}

// Status is coarse only while batches follow each other closely.
func TestStatusTimes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		src := &source{powers: powers{ResumeProven: true}, list: one("10", "a=1")}
		src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
			yield(batch{Cursor: "10"}, nil)
			nap(ctx, 5*time.Minute)
			yield(live("11", "b=1"), nil)
			for range 8 {
				nap(ctx, 300*time.Millisecond)
				yield(batch{}, nil)
			}
			<-ctx.Done()
		}
		r := start(t, src, newSink(t), &reflector.Options{Name: "pods"})
		begun := time.Now()
		after(time.Minute)
		st := r.Status()
		want(t, "name", st.Name, "pods")
		want(t, "alive", st.Alive, begun)
		want(t, "last event", st.LastEvent, begun)
		want(t, "since", st.Since, begun)
		after(6 * time.Minute)
		st = r.Status()
		want(t, "last event", st.LastEvent, begun.Add(5*time.Minute))
		if late := begun.Add(5*time.Minute + 2400*time.Millisecond).Sub(st.Alive); late <= 0 || late > time.Second {
			t.Errorf("alive is %v late", late) // none would be a look at the clock per batch
		}
	})
}

func TestStatusJSON(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	st := reflector.Status{
		Name: "pods", State: reflector.BackingOff, Since: at, Next: at, Cursor: "e/1", Synced: true, Failures: 2,
		Err: errBoom, LastEvent: at, Alive: at, Lists: 1, Watches: 2, Resets: 3, Replays: 4, Gaps: 6, Missed: 5, Torn: true,
		Fallback: errors.ErrUnsupported,
	}
	const when = `"2026-01-02T03:04:05Z"`
	for _, c := range []struct {
		st   reflector.Status
		want string
	}{
		{st, `{"name":"pods","state":"backing off","since":` + when + `,"next":` + when + `,"cursor":"e/1","synced":true,"failures":2,` +
			`"err":"boom","lastEvent":` + when + `,"alive":` + when + `,"lists":1,"watches":2,"resets":3,"replays":4,"gaps":6,"missed":5,"torn":true,"audits":0,"corrections":0,` +
			`"fallback":"unsupported operation"}`},
		{reflector.Status{}, `{"state":"starting","synced":false,"failures":0,"lists":0,"watches":0,"resets":0,"replays":0,"gaps":0,"missed":0,"audits":0,"corrections":0}`},
	} {
		got, err := json.Marshal(c.st)
		want(t, "error", err, nil)
		want(t, "json", string(got), c.want)
	}
}

func TestStateText(t *testing.T) {
	for s := reflector.Starting; s <= reflector.Stopped; s++ {
		text, err := s.MarshalText()
		want(t, "error", err, nil)
		var back reflector.State
		want(t, "error", back.UnmarshalText(text), nil)
		want(t, "state", back, s)
	}
	want(t, "unknown", reflector.State(99).String(), "State(99)")
	var s reflector.State
	if err := s.UnmarshalText([]byte("dancing")); err == nil {
		t.Error("no error")
	}
}

func logger(b *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, nil))
}

// The log tells of changes, and of equal errors ever more rarely.
func TestLogIsFolded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log bytes.Buffer
		src := &source{watch: idle}
		src.list = func(ctx context.Context, n int, o reflector.ListOptions) (page, error) {
			switch {
			case n == 51:
				return page{}, errors.New("another")
			case n <= 100:
				return page{}, errBoom
			}
			return one("5", "secret=1")(ctx, n, o)
		}
		r := start(t, src, newSink(t), &reflector.Options{Name: "pods", Backoff: exact, Logger: logger(&log)})
		after(3 * time.Hour)
		want(t, "failing", strings.Count(log.String(), "failing"), 6+1+6) // 1 2 4 8 16 32, another, 1 2 4 8 16 32
		want(t, "warn", strings.Count(log.String(), "level=WARN"), 13)
		want(t, "synced", strings.Count(log.String(), "msg=synced"), 1)
		want(t, "recovered", strings.Count(log.String(), "msg=recovered"), 1)
		want(t, "secret", strings.Count(log.String(), "secret"), 0)
		want(t, "named", strings.Count(log.String(), "reflector=pods"), strings.Count(log.String(), "\n"))
		if !strings.Contains(log.String(), "retry_in=1m0s") || !strings.Contains(log.String(), "failures=49") && !strings.Contains(log.String(), "failures=32") {
			t.Errorf("log:\n%s", &log)
		}
		log.Reset()
		r.Relist("because")
		after(time.Hour)
		want(t, "relist", strings.Count(log.String(), "reason=because"), 1)
		want(t, "the rest", strings.Count(log.String(), "\n"), strings.Count(log.String(), "full state")) // sessions come and go
	})
}

// What failed before a session that lived is history.
func TestLogBeginsAnewAfterALongSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log bytes.Buffer
		src := &source{powers: powers{ResumeProven: true}, list: one("5")}
		src.watch = script(fails(errBoom), fails(errBoom), func(ctx context.Context, o reflector.WatchOptions, yield yield) {
			yield(batch{Cursor: o.After}, nil)
			nap(ctx, 2*time.Minute)
			yield(batch{}, errBoom)
		}, stay)
		start(t, src, newSink(t), &reflector.Options{Backoff: exact, Logger: logger(&log)})
		after(4 * time.Minute)
		want(t, "failing", strings.Count(log.String(), "failing"), 3)
		want(t, "recovered", strings.Count(log.String(), "recovered"), 2)
	})
}

func TestLogOfWhatIsAmiss(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log bytes.Buffer
		src := &source{powers: powers{Paged: true, Compare: compare}, watch: idle}
		src.list = seq("e/5", "f/1")
		r := start(t, src, newSink(t), &reflector.Options{Logger: logger(&log)})
		after(0)
		r.Relist("test")
		after(0)
		want(t, "reset", strings.Count(log.String(), "set back"), 1)
		src.powers.Compare = nil
		src.list = pages(page{Cursor: "1"}, page{Cursor: "2"})
		for range 3 {
			r.Relist("test")
			after(0)
		}
		want(t, "torn", strings.Count(log.String(), "may show different states"), 1)
		synctest.Wait()
	})
}
