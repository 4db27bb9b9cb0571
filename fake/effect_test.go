package fake_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

var listAll = reflector.ListOptions{}

// calls are one call of each operation on "a".
var calls = []struct {
	op fake.Op
	do func(ctx context.Context, b backend.Backend[pod]) error
}{
	{fake.List, func(ctx context.Context, b backend.Backend[pod]) error {
		_, err := b.List(ctx, listAll)
		return err
	}},
	{fake.Watch, func(ctx context.Context, b backend.Backend[pod]) (err error) {
		for _, err = range b.Watch(ctx, reflector.WatchOptions{}) {
			break
		}
		return err
	}},
	{fake.Get, func(ctx context.Context, b backend.Backend[pod]) error {
		_, err := b.Get(ctx, "a")
		return err
	}},
	{fake.Create, func(ctx context.Context, b backend.Backend[pod]) error {
		_, err := b.Create(ctx, "new", pod{N: 5})
		return err
	}},
	{fake.Update, func(ctx context.Context, b backend.Backend[pod]) error {
		_, err := b.Update(ctx, item{Key: "a", Version: "1", Object: pod{N: 5}})
		return err
	}},
	{fake.Patch, func(ctx context.Context, b backend.Backend[pod]) error {
		_, err := b.Patch(ctx, "a", merge(`{"n":5}`), "1")
		return err
	}},
	{fake.Delete, func(ctx context.Context, b backend.Backend[pod]) error {
		_, err := b.Delete(ctx, "a", "1")
		return err
	}},
}

func TestFail(t *testing.T) {
	mine := errors.New("mine")
	for _, c := range calls {
		for _, want := range []error{nil, mine} {
			b := fake.New(plan(fake.Fault{On: c.op, Do: fake.Fail, Err: want, Call: 1}), item{Key: "a", Object: pod{N: 1}})
			if want == nil {
				want = fake.ErrFault
			}
			before := b.Powers()
			head := must(before.Head(t.Context()))
			err := c.do(t.Context(), b)
			require.ErrorIs(t, err, want)
			require.Equal(t, head, must(before.Head(t.Context())), "nothing is done")
			var e *backend.Error
			require.Equal(t, c.op&(fake.List|fake.Watch) == 0, errors.As(err, &e))
			if e != nil {
				require.Equal(t, c.op.String(), e.Op)
				require.NotEmpty(t, e.Key)
			}
			require.Equal(t, fake.Fail, b.Log()[0].Fault)
			require.NoError(t, c.do(t.Context(), b))
		}
	}
}

func TestFailAfterCommit(t *testing.T) {
	for _, c := range calls {
		b := fake.New(plan(fake.Fault{Do: fake.FailAfterCommit}), item{Key: "a", Object: pod{N: 1}})
		err := c.do(t.Context(), b)
		if c.op&fake.Writes == 0 {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, backend.ErrOutcomeUnknown)
		var e *backend.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, c.op.String(), e.Op)
		require.Equal(t, c.op != fake.Create, e.Want == "1")
		require.EqualValues(t, 2, b.Log()[0].Revision, "it was done")
		items := must(b.List(t.Context(), listAll)).Items
		require.Equal(t, c.op == fake.Delete, len(items) == 0)
		if c.op == fake.Update || c.op == fake.Patch {
			require.Equal(t, 5, items[0].Object.N)
		}

		err = c.do(t.Context(), b) // refused, by a conflict or what is there; nobody can tell
		require.ErrorIs(t, err, backend.ErrOutcomeUnknown)
		require.NotErrorIs(t, err, backend.ErrConflict)
		require.Zero(t, b.Log()[2].Revision)
	}
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range calls {
			b := fake.New(plan(fake.Fault{Do: fake.Delay, For: time.Minute}), item{Key: "a"})
			start := time.Now()
			require.NoError(t, c.do(t.Context(), b))
			require.Equal(t, time.Minute, time.Since(start))

			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := c.do(ctx, b)
			if c.op == fake.Watch {
				require.NoError(t, err, "a watch ends without a word")
			} else {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			require.Equal(t, time.Minute+time.Second, time.Since(start))
			cancel()

			start = time.Now()
			go func() {
				time.Sleep(time.Second)
				b.SetPlan(fake.Plan{})
			}()
			c.do(t.Context(), b)
			require.Equal(t, time.Second, time.Since(start), "the next plan ends it")
		}
	})
}

func TestExpire(t *testing.T) {
	for _, c := range calls {
		b := fake.New(plan(fake.Fault{Do: fake.Expire}), item{Key: "a"})
		err := c.do(t.Context(), b)
		require.Equal(t, c.op&(fake.List|fake.Watch) != 0, errors.Is(err, reflector.ErrExpired))
	}
}

func TestConflict(t *testing.T) {
	for _, c := range calls {
		b := fake.New(plan(fake.Fault{Do: fake.Conflict}), item{Key: "a", Object: pod{N: 1}})
		err := c.do(t.Context(), b)
		if c.op&(fake.Update|fake.Patch|fake.Delete) == 0 {
			require.NoError(t, err)
			continue
		}
		failed(t, err, backend.Error{Op: c.op.String(), Key: "a", Want: "1", Found: "2", Err: backend.ErrConflict})
		got := must(b.Get(t.Context(), "a"))
		require.Equal(t, pod{N: 1}, got.Object, "somebody wrote the same again")
		require.Equal(t, object.Version("2"), got.Version)
	}
	b := fake.New(plan(fake.Fault{Do: fake.Conflict}), item{Key: "a", Object: pod{N: 1}})
	got, err := b.Patch(t.Context(), "a", merge(`{"n":2}`), object.Any)
	require.NoError(t, err, "what names no version has no conflict")
	require.Equal(t, object.Version("3"), got.Version)
	_, err = b.Delete(t.Context(), "none", object.Any)
	require.ErrorIs(t, err, backend.ErrNotFound)
}

// feed writes n objects to b; keys k1, k2, …
func feed(b *fake.Backend[pod], from, to int) {
	for i := from; i <= to; i++ {
		must(b.Create(context.Background(), string(rune('a'+i)), pod{N: i}))
	}
}

func TestCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[pod](plan(fake.Fault{Do: fake.Cut, Call: 2}))
		start := must(b.List(t.Context(), listAll)).Cursor
		feed(b, 1, 3)
		got, err := told(t, b, reflector.WatchOptions{After: start})
		require.NoError(t, err)
		require.Len(t, got, 4)
		got, err = told(t, b, reflector.WatchOptions{After: start})
		require.NoError(t, err)
		require.Equal(t, []reflector.Batch[pod]{{Cursor: start}}, got, "cut after the first batch")
		require.Equal(t, "watch #2: cut", lines(b)[len(lines(b))-1])

		b.SetPlan(plan(fake.Fault{Do: fake.Cut, Err: reflector.ErrExpired}))
		got, err = told(t, b, reflector.WatchOptions{After: at(start, 1)})
		require.ErrorIs(t, err, reflector.ErrExpired)
		require.Len(t, got, 1)
		last := b.Log()[len(b.Log())-1]
		require.ErrorIs(t, last.Err, reflector.ErrExpired)
		require.EqualValues(t, 1, last.Revision)

		// By chance, in some batch or other.
		lengths := map[int]bool{}
		b.SetPlan(plan(fake.Fault{Do: fake.Cut, OneIn: 3}))
		for range 50 {
			got, _ := told(t, b, reflector.WatchOptions{After: start})
			lengths[len(got)] = true
		}
		require.Len(t, lengths, 4)
	})
}

func TestCutAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[pod](plan(fake.Fault{Do: fake.Silence, Call: 1}, fake.Fault{On: fake.Watch, Do: fake.Delay, Call: 2, For: time.Hour}))
		ended := make(chan error, 3)
		for range 3 { // one silent, one on its way, one idle
			go func() {
				var last error
				for _, last = range b.Watch(t.Context(), reflector.WatchOptions{}) {
				}
				ended <- last
			}()
			synctest.Wait()
		}
		b.Cut()
		for range 3 {
			require.NoError(t, <-ended)
		}
		b.Cut()
		got, err := told(t, b, reflector.WatchOptions{})
		require.NoError(t, err)
		require.Len(t, got, 1, "later ones are not cut")
	})
}

func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[pod](plan(fake.Fault{Do: fake.Silence, Call: 1, For: time.Hour}))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		start := time.Now()
		go func() {
			time.Sleep(time.Minute)
			feed(b, 1, 3)
		}()
		var when []time.Duration
		for batch, err := range b.Watch(ctx, reflector.WatchOptions{ProgressEvery: 40 * time.Minute}) {
			require.NoError(t, err)
			when = append(when, time.Since(start))
			if len(when) > 1 && len(when) < 5 {
				require.Equal(t, len(when)-1, batch.Events[0].Object.N)
			}
		}
		require.Equal(t, []time.Duration{0, time.Hour, time.Hour, time.Hour, 100 * time.Minute}, when, "nothing is lost, no bookmark told")
	})
}

func TestSilenceEnds(t *testing.T) {
	for _, d := range []time.Duration{0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			b := fake.New[pod](plan(fake.Fault{Do: fake.Silence, For: d}))
			ctx, cancel := context.WithCancel(t.Context())
			n := 0
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range b.Watch(ctx, reflector.WatchOptions{}) {
					n++
				}
			}()
			synctest.Wait()
			feed(b, 1, 3)
			synctest.Wait()
			time.Sleep(59 * time.Minute)
			synctest.Wait()
			require.Equal(t, 1, n)
			b.SetPlan(fake.Plan{})
			synctest.Wait()
			require.Equal(t, 4, n, "the sun comes out")

			b.SetPlan(plan(fake.Fault{Do: fake.Silence, For: d, OneIn: 1})) // for open watches too
			feed(b, 4, 5)
			synctest.Wait()
			require.Equal(t, 5, n)
			cancel()
			<-done
			require.Equal(t, 5, n)
		})
	}
}

func TestDuplicate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[pod](plan(fake.Fault{Do: fake.Duplicate}))
		feed(b, 1, 2)
		cursor := must(b.List(t.Context(), listAll)).Cursor
		got, err := told(t, b, reflector.WatchOptions{After: at(cursor, 0)})
		require.NoError(t, err)
		require.Len(t, got, 5)
		require.Equal(t, got[1], got[2])
		require.Equal(t, got[3], got[4])
		require.NotEqual(t, got[1], got[3])
		got, err = told(t, b, reflector.WatchOptions{Initial: true})
		require.NoError(t, err)
		require.Len(t, got, 1, "a list is told once")
		require.True(t, got[0].Reset && got[0].Synced)
	})
}

func TestDuplicateOfAStreamedList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[pod](plan(fake.Fault{Do: fake.Duplicate}))
		for i := range 1200 {
			must(b.Create(t.Context(), string(rune(i+256)), pod{}))
		}
		got, err := told(t, b, reflector.WatchOptions{Initial: true})
		require.NoError(t, err)
		require.Len(t, got, 3)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		n := 0
		for range b.Watch(ctx, reflector.WatchOptions{Initial: true}) {
			if n++; n == 3 {
				feed(b, 1, 1)
			}
		}
		require.Equal(t, 5, n, "what follows is told twice")
	})
}

func TestFaultsStopWithTheContext(t *testing.T) {
	b := fake.New[pod](plan(fake.Fault{Do: fake.Duplicate}))
	feed(b, 1, 3)
	start := at(must(b.List(t.Context(), listAll)).Cursor, 0)
	for stop := 1; stop < 6; stop++ {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		for range b.Watch(ctx, reflector.WatchOptions{After: start}) {
			if n++; n == stop {
				cancel()
			}
		}
		cancel()
		require.Equal(t, stop, n)
	}
	require.Zero(t, b.OpenWatches())
}

// A fault with Call is for the n-th call under its own plan.
func TestPlanThatChangesUnderAnOpeningWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := plan(fake.Fault{Do: fake.Cut, Call: 1})
		b := fake.New[pod](cut)
		feed(b, 1, 3)
		start := at(must(b.List(t.Context(), listAll)).Cursor, 0)
		b.Intercept(fake.Watch, func(context.Context, string) error {
			b.SetPlan(cut)
			b.Intercept(fake.Watch, nil)
			return nil
		})
		for i, want := range []int{4, 1, 4} {
			got, err := told(t, b, reflector.WatchOptions{After: start})
			require.NoError(t, err)
			require.Len(t, got, want, i)
		}
	})
}

func TestLogOfAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[pod](plan(
			fake.Fault{On: fake.Watch, Do: fake.Delay, For: time.Second / 2, Call: 1},
			fake.Fault{Do: fake.Cut, Call: 2}))
		for i := range 600 {
			must(b.Create(t.Context(), string(rune(i+256)), pod{}))
		}
		head := must(b.List(t.Context(), listAll)).Cursor
		b.Compact()
		_, err := told(t, b, reflector.WatchOptions{After: at(head, 5)})
		require.ErrorIs(t, err, reflector.ErrExpired)
		got, err := told(t, b, reflector.WatchOptions{After: at(head, 7), Initial: true})
		require.NoError(t, err)
		require.Len(t, got, 1, "cut in the middle of a list")
		log := b.Log()[601:]
		require.Len(t, log, 4)
		log[1].Err = nil
		require.Equal(t, []fake.Call{
			{Op: fake.Watch, N: 1, Revision: 5, Fault: fake.Delay},
			{Op: fake.Watch, N: 1, Revision: 5}, // expired
			{Op: fake.Watch, N: 2, Revision: 7},
			{Op: fake.Watch, N: 2, Revision: 7, Fault: fake.Cut},
		}, log)
	})
}

func TestFaultsStopWithTheConsumer(t *testing.T) {
	b := fake.New[pod](plan(fake.Fault{Do: fake.Duplicate}, fake.Fault{Do: fake.Cut, Err: fake.ErrFault, OneIn: 2}))
	feed(b, 1, 9)
	cursor := must(b.List(t.Context(), listAll)).Cursor
	for stop := 1; stop < 12; stop++ {
		n := 0
		for range b.Watch(t.Context(), reflector.WatchOptions{After: at(cursor, 0)}) { // a yield after false panics
			if n++; n == stop {
				break
			}
		}
	}
}
