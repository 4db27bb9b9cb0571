package backendtest_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/backend/backendtest"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/reflector"
)

// inBubble runs the kit in one.
func inBubble(t *testing.T, h backendtest.Harness[thing]) (r backendtest.Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { r = backendtest.Run(t.Context(), h) })
	return r
}

func TestAFaultyHarnessFailsEveryCheck(t *testing.T) {
	mine := errors.New("mine")
	for name, c := range map[string]struct {
		h    backendtest.Harness[thing]
		want error
	}{
		"nothing":       {backendtest.Harness[thing]{}, backendtest.ErrHarness},
		"no Object":     {backendtest.Harness[thing]{New: harness(overMemory).New}, backendtest.ErrHarness},
		"no fixture":    {harness(func() *fixture { return nil }), backendtest.ErrHarness},
		"no source":     {harness(func() *fixture { return &fixture{} }), backendtest.ErrHarness},
		"Close's error": {harness(func() *fixture { return &fixture{Source: memory.New[thing](nil), Close: func() error { return mine }} }), mine},
		"New's error": {backendtest.Harness[thing]{
			New:    func(context.Context) (*fixture, error) { return nil, mine },
			Object: things,
		}, mine},
	} {
		t.Run(name, func(t *testing.T) {
			r := inBubble(t, c.h)
			require.Len(t, r.Failed(), len(backendtest.Checks()))
			require.Len(t, r.Results, len(backendtest.Checks()))
			for _, res := range r.Results {
				require.ErrorIs(t, res.Err, c.want)
			}
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h, opened := harness(overMemory), 0
		inner := h.New
		h.New = func(ctx context.Context) (*fixture, error) {
			if opened++; opened == 4 {
				cancel()
			}
			return inner(ctx)
		}
		r := backendtest.Run(ctx, h)
		require.Len(t, r.Results, len(backendtest.Checks()))
		for i, res := range r.Results {
			require.Equal(t, i >= 3, errors.Is(res.Err, context.Canceled), "%s: %v", res.Name, res.Err)
		}
		require.ErrorIs(t, r.Err(), context.Canceled)
	})
}

// badly is a source of which one call goes wrong.
type badly struct {
	source
	list  func()
	watch func()
}

func (b badly) List(ctx context.Context, opts reflector.ListOptions) (reflector.Page[thing], error) {
	if b.list != nil {
		b.list()
	}
	return b.source.List(ctx, opts)
}

func (b badly) Watch(ctx context.Context, opts reflector.WatchOptions) iter.Seq2[batch, error] {
	if b.watch != nil {
		return func(func(batch, error) bool) { b.watch() }
	}
	return b.source.Watch(ctx, opts)
}

func TestWhatAnAdapterDoesToTheKitIsContained(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		with badly
		want string
	}{
		"List panics":         {badly{list: func() { panic(boom) }}, "boom"},
		"Watch panics":        {badly{watch: func() { panic(boom) }}, "boom"},
		"List ends itself":    {badly{list: runtime.Goexit}, "Goexit"},
		"Watch does":          {badly{watch: runtime.Goexit}, "Goexit"},
		"Watch tells nothing": {badly{watch: func() {}}, "did not come within"},
	} {
		t.Run(name, func(t *testing.T) {
			h := harness(func() *fixture {
				s := memory.New[thing](nil)
				c.with.source = s
				return &fixture{Source: c.with, Write: writeTo(s)}
			})
			h.Wait = time.Second
			r := inBubble(t, h)
			require.Contains(t, r.Err().Error(), c.want)
			require.Greater(t, len(r.Failed()), 10)
		})
	}
}

func TestAPanicOfTheHarnessIsContained(t *testing.T) {
	h := harness(overMemory)
	h.Object = func(int) thing { panic("no objects") }
	r := inBubble(t, h)
	require.Contains(t, r.Err().Error(), "no objects")
}

// An adapter that never returns costs the check, and not the run.
func TestACallThatNeverReturnsIsLeftAndSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := harness(func() *fixture {
			s := memory.New[thing](nil)
			return &fixture{Source: badly{source: s, list: func() { <-release }}, Write: writeTo(s)}
		})
		h.Wait = time.Second
		start := time.Now()
		r := backendtest.Run(t.Context(), h)
		require.Contains(t, r.Err().Error(), "left running")
		require.Less(t, time.Since(start), 10*time.Minute)
		close(release)
	})
}

func TestWhatCannotBeWrittenIsSkipped(t *testing.T) {
	r := inBubble(t, harness(func() *fixture {
		return &fixture{Source: struct{ source }{memory.New[thing](nil)}}
	}))
	require.NoError(t, r.Err())
	require.Contains(t, r.Lacks, "Harness.Write")
	require.Contains(t, r.Lacks, "Backend")
	for _, res := range r.Results {
		require.NotEmpty(t, res.Skipped, res.Name)
	}
}

func TestWhatTheHarnessFindsUnsupportedIsSkipped(t *testing.T) {
	cannot := func(context.Context) error { return errors.ErrUnsupported }
	with := overMemory
	none := func() *fixture {
		fx := with()
		fx.Compact, fx.Forget, fx.Cut = cannot, cannot, cannot
		fx.Restart = func(context.Context) (source, error) { return nil, errors.ErrUnsupported }
		fx.Down = func(context.Context) (func() error, error) { return nil, errors.ErrUnsupported }
		return fx
	}
	r := inBubble(t, harness(none))
	require.NoError(t, r.Err())
	require.Subset(t, r.Lacks, []string{"Harness.Compact", "Harness.Forget", "Harness.Cut", "Harness.Restart", "Harness.Down"})
}

func TestAReportNamesWhatFailed(t *testing.T) {
	mine := errors.New("mine")
	r := backendtest.Report{Results: []backendtest.Result{
		{Check: backendtest.Check{Name: "a"}},
		{Check: backendtest.Check{Name: "b"}, Err: mine},
		{Check: backendtest.Check{Name: "c"}, Skipped: "Head"},
	}}
	require.Len(t, r.Failed(), 1)
	require.ErrorIs(t, r.Err(), mine)
	require.EqualError(t, r.Err(), "b: mine")
	require.NoError(t, backendtest.Report{}.Err())
	require.True(t, strings.HasSuffix(r.String(), "3 checks, 1 failed, 1 skipped\n"))
}
