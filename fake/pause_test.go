package fake_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

func TestPauseAfterHoldsWhatIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range calls {
			b := fake.New(fake.Plan{}, item{Key: "a", Object: pod{N: 1}})
			head := must(b.Powers().Head(t.Context()))
			p := b.PauseAfter(c.op)
			done := make(chan error, 2)
			go func() { done <- c.do(t.Context(), b) }()
			require.NoError(t, p.Wait(t.Context(), 1))
			synctest.Wait()
			require.Empty(t, done)
			require.Equal(t, c.op&fake.Writes != 0, head != must(b.Powers().Head(t.Context())), "a write is seen")
			if c.op != fake.Watch { // which is logged when it is opened
				require.Empty(t, b.Log())
			}
			go func() { done <- c.do(t.Context(), b.As("other")) }()
			require.NoError(t, p.Wait(t.Context(), 2))
			p.Release()
			p.Release()
			<-done
			<-done
			require.NoError(t, p.Wait(t.Context(), 2))
			require.Error(t, p.Wait(t.Context(), 3), "nobody comes any more")
			c.do(t.Context(), b) // is not held
		}
	})
}

func TestPauseBeforeHoldsWhatIsNotDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range calls {
			b := fake.New(plan(fake.Fault{Do: fake.Fail}), item{Key: "a", Object: pod{N: 1}})
			head := must(b.Powers().Head(t.Context()))
			intercepted := false
			b.Intercept(0, func(context.Context, string) error { intercepted = true; return nil })
			p := b.PauseBefore(0)
			done := make(chan error, 1)
			go func() { done <- c.do(t.Context(), b) }()
			require.NoError(t, p.Wait(t.Context(), 1))
			synctest.Wait()
			require.False(t, intercepted)
			require.Equal(t, 1, b.Calls(c.op))
			p.Release()
			require.ErrorIs(t, <-done, fake.ErrFault)
			require.True(t, intercepted)
			require.Equal(t, head, must(b.Powers().Head(t.Context())))
		}
	})
}

func TestPauseEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range calls {
			for _, before := range []bool{false, true} {
				b := fake.New(fake.Plan{}, item{Key: "a", Object: pod{N: 1}})
				p := b.PauseAfter(c.op)
				if before {
					p = b.PauseBefore(c.op)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				start := time.Now()
				err := c.do(ctx, b)
				require.Equal(t, time.Second, time.Since(start))
				cancel()
				switch {
				case c.op == fake.Watch:
					require.NoError(t, err, "a watch ends without a word")
				case c.op&fake.Writes != 0 && !before:
					require.ErrorIs(t, err, backend.ErrOutcomeUnknown)
					fallthrough
				default:
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
				if before {
					require.NotErrorIs(t, err, backend.ErrOutcomeUnknown, "nothing was done")
				}
				require.NoError(t, p.Wait(t.Context(), 1), "it had come")
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
				require.ErrorIs(t, p.Wait(ctx, 2), context.DeadlineExceeded)
				cancel()
			}
		}
	})
}

func TestPauseOfOneCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New(fake.Plan{}, item{Key: "a"})
		p := b.As("ann").PauseAfter(fake.Get)
		must(b.Get(t.Context(), "a"))
		must(b.As("bob").Get(t.Context(), "a"))
		must(b.As("ann").List(t.Context(), listAll))
		go b.As("ann").Get(t.Context(), "a")
		require.NoError(t, p.Wait(t.Context(), 1))
		must(b.Delete(t.Context(), "a", object.Any))
		p.Release()
		b.As("ann").PauseBefore(fake.Get).Release() // the one that is over is forgotten
	})
}

// A dry run that is given up wrote nothing, and says so.
func TestPauseOfADryRun(t *testing.T) {
	b := fake.New(fake.Plan{}, item{Key: "a"})
	b.PauseAfter(fake.Create)
	ctx, cancel := context.WithCancel(t.Context())
	b.Intercept(fake.Create, func(context.Context, string) error { cancel(); return nil })
	_, err := must(b.DryRun()).Create(ctx, "b", pod{})
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, backend.ErrOutcomeUnknown)
}

// A watch that is held stands already: what comes meanwhile is told afterwards.
func TestPauseAfterWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New(fake.Plan{}, item{Key: "a"})
		p := b.PauseAfter(fake.Watch)
		got := make(chan []reflector.Batch[pod])
		go func() {
			all, _ := told(t, b, reflector.WatchOptions{Initial: true})
			got <- all
		}()
		require.NoError(t, p.Wait(t.Context(), 1))
		feed(b, 1, 1)
		p.Release()
		all := <-got
		require.Len(t, all, 2)
		require.Len(t, all[0].Events, 1)
	})
}
