package fake_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

func TestSeed(t *testing.T) {
	b := fake.New(plan(fake.Fault{On: fake.Writes, Do: fake.Fail}),
		item{Key: "b", Version: "77", ID: "mine", Object: pod{N: 1}},
		item{Key: "a", Object: pod{N: 2}},
		item{Key: "b", Version: "1", ID: "mine", Object: pod{N: 3}})
	got := must(b.List(t.Context(), listAll)).Items
	require.Len(t, got, 2)
	require.Equal(t, item{Key: "a", Version: "2", ID: got[0].ID, Object: pod{N: 2}}, got[0])
	require.Equal(t, item{Key: "b", Version: "3", ID: got[1].ID, Object: pod{N: 3}}, got[1])
	require.NotEqual(t, "mine", got[1].ID)
	require.Zero(t, b.Calls(fake.Writes), "seeding is no call")
}

func TestPowersAreMemorys(t *testing.T) {
	b := fake.New(fake.Plan{}, item{Key: "a"})
	want := memory.New[pod](nil).Powers()
	got := b.Powers()
	require.Equal(t, [4]bool{want.Initial, want.Progress, want.ResumeProven, want.KeysOnly}, [4]bool{got.Initial, got.Progress, got.ResumeProven, got.KeysOnly})
	head := must(got.Head(t.Context()))
	require.True(t, got.Reached(head, "1"))
	require.Negative(t, got.Compare(at(head, 0), head))
	must(got.Get(t.Context(), "a"))
	require.Equal(t, 1, b.Calls(fake.Get), "its Get is a call")
}

func TestIntercept(t *testing.T) {
	b := fake.New(fake.Plan{}, item{Key: "a"})
	mine := errors.New("mine")
	var seen []string
	b.Intercept(fake.Update|fake.Watch, func(ctx context.Context, key string) error {
		seen = append(seen, key)
		b.Get(ctx, "a") // no lock is held
		return mine
	})
	head := must(b.Powers().Head(t.Context()))
	for _, c := range calls[:5] {
		err := c.do(t.Context(), b)
		require.Equal(t, c.op&(fake.Update|fake.Watch) != 0, err == mine, "as it is")
	}
	require.Equal(t, []string{"", "a"}, seen)
	require.True(t, must(b.Powers().Head(t.Context())) == at(head, 2), "only the create was done")
	require.Equal(t, []string{"list #1 at 1", "watch #1: mine", "get #1 \"a\" at 1", "get #2 \"a\" at 1",
		"create #1 \"new\" at 2", "update #1 \"a\": mine", "get #3 \"a\" at 1"}, lines(b), "in the order in which they begin")
	require.Equal(t, 7, b.Calls(fake.List|fake.Watch|fake.Get|fake.Writes))
	require.Equal(t, 7, b.Calls(0), "every operation")

	b.Intercept(fake.Watch, nil)
	require.NoError(t, calls[1].do(t.Context(), b))
	require.ErrorIs(t, calls[4].do(t.Context(), b), mine, "the other stays")
	n := 0
	b.Intercept(0, func(context.Context, string) error { n++; return nil })
	for _, c := range calls {
		c.do(t.Context(), b)
	}
	require.Equal(t, len(calls), n, "none means all")
}

func TestInterceptComesBeforeFaults(t *testing.T) {
	b := fake.New[pod](plan(fake.Fault{Do: fake.Fail}))
	n := 0
	b.Intercept(fake.Get, func(context.Context, string) error { n++; return nil })
	_, err := b.Get(t.Context(), "a")
	require.ErrorIs(t, err, fake.ErrFault)
	require.Equal(t, 1, n)
}

func TestLogLeavesOutWhatIsOnItsWay(t *testing.T) {
	b := fake.New(fake.Plan{}, item{Key: "a"})
	must(b.Get(t.Context(), "a"))
	b.Intercept(fake.Delete, func(context.Context, string) error {
		require.Equal(t, []string{`get #1 "a" at 1`}, lines(b))
		require.Equal(t, 1, b.Calls(fake.Delete), "though it is counted")
		return nil
	})
	must(b.Delete(t.Context(), "a", object.Any))
	require.Len(t, b.Log(), 2)
}

// F10: fields that the server sets are in what is answered and stored.
func TestF10_OnWrite(t *testing.T) {
	b := fake.New(fake.Plan{}, item{Key: "a", Object: pod{N: 1}})
	b.OnWrite(func(p pod) pod {
		p.By = fmt.Sprintf("server%d", p.N)
		return p
	})
	ctx := t.Context()
	require.Empty(t, must(b.Get(ctx, "a")).Object.By)
	check := func(got item, err error) {
		t.Helper()
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("server%d", got.Object.N), got.Object.By)
		require.NotEmpty(t, got.Version)
		require.Equal(t, got, must(b.Get(ctx, got.Key)))
	}
	check(b.Create(ctx, "b", pod{N: 1}))
	check(b.Update(ctx, item{Key: "a", Version: "1", Object: pod{N: 2}}))
	check(b.Patch(ctx, "a", merge(`{"n":3}`), object.Any))
	check(b.Patch(ctx, "a", merge(`{"by":"me"}`), object.Any))
	dry := must(must(b.DryRun()).Patch(ctx, "a", merge(`{"n":4}`), object.Any))
	require.Equal(t, "server4", dry.Object.By)
	_, err := b.Patch(ctx, "a", merge(`{"n":"x"}`), object.Any)
	require.Error(t, err)
	_, err = b.Patch(ctx, "a", nil, object.Any)
	require.ErrorIs(t, err, patch.ErrBadPatch)
	_, err = b.Patch(ctx, "a", must(patch.JSON([]byte(`[{"op":"test","path":"/n","value":99}]`))), object.Any)
	require.ErrorIs(t, err, patch.ErrTestFailed)

	b.OnWrite(nil)
	require.Empty(t, must(b.Update(ctx, item{Key: "a", Version: object.Any})).Object.By)
}

func TestDryRun(t *testing.T) {
	b := fake.New(plan(fake.Fault{On: fake.Create, Do: fake.Fail, Call: 2}), item{Key: "a", Object: pod{N: 1}})
	dry := must(must(b.DryRun()).DryRun())
	head := must(b.Powers().Head(t.Context()))
	for _, c := range calls {
		require.NoError(t, c.do(t.Context(), dry))
	}
	require.Equal(t, head, must(b.Powers().Head(t.Context())))
	require.Equal(t, len(calls), b.Calls(fake.List|fake.Watch|fake.Get|fake.Writes), "counted together")
	_, err := b.Create(t.Context(), "b", pod{})
	require.ErrorIs(t, err, fake.ErrFault)
	log := b.Log()
	require.True(t, log[3].DryRun)
	require.False(t, log[len(log)-1].DryRun)
}

func TestCompact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[pod](fake.Plan{})
		start := must(b.List(t.Context(), listAll)).Cursor
		feed(b, 1, 2)
		b.Compact()
		_, err := told(t, b, reflector.WatchOptions{After: at(start, 1)})
		require.ErrorIs(t, err, reflector.ErrExpired)
		_, err = told(t, b, reflector.WatchOptions{After: at(start, 2)})
		require.NoError(t, err)
		log := lines(b)
		require.Equal(t, []string{"list #1", `create #1 "b" at 1`, `create #2 "c" at 2`, "watch #1 at 1"}, log[:4])
		require.Contains(t, log[4], "watch #1 at 1: memory: watch: after revision 1, history begins at 3", "what ended it")
		require.Contains(t, log[4], reflector.ErrExpired.Error())
		require.Equal(t, "watch #2 at 2", log[5])
	})
}

// The same plan and the same calls give the same log, in every run.
func TestSameSeedSameLog(t *testing.T) {
	day := func(seed uint64) []string {
		var log []string
		synctest.Test(t, func(t *testing.T) {
			b := fake.New(weather(seed), item{Key: "a"})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			// What two goroutines do at one instant has no order, so they don't.
			m := &mirror{src: b, pause: 1000_070_000}
			var wg sync.WaitGroup
			wg.Go(func() { m.run(ctx) })
			write(ctx, b, seed, 60, synctest.Wait)
			cancel()
			wg.Wait()
			log = lines(b)
		})
		return log
	}
	for seed := range uint64(10) {
		one := day(seed)
		require.Greater(t, len(one), 60)
		require.Equal(t, one, day(seed), "seed %d", seed)
		require.NotEqual(t, one, day(seed+100))
	}
}

// write does n random writes, one a second, and lets each settle.
func write(ctx context.Context, b *fake.Backend[pod], seed uint64, n int, settle func()) {
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range n {
		settle()
		key := string(rune('a' + r.IntN(8)))
		switch r.IntN(4) {
		case 0:
			b.Create(ctx, key, pod{N: i})
		case 1:
			b.Patch(ctx, key, merge(`{"n":%d}`, i), object.Any)
		case 2:
			it, err := b.Get(ctx, key)
			if settle(); err == nil {
				it.Object.N = i
				b.Update(ctx, it)
			}
		default:
			b.Delete(ctx, key, object.Any)
		}
		settle()
		if r.IntN(12) == 0 {
			b.Compact()
		}
		if r.IntN(30) == 0 {
			b.Cut()
		}
		wait(ctx, time.Second)
	}
}

// weather is a plan of everything, by chance.
func weather(seed uint64) fake.Plan {
	r := rand.New(rand.NewPCG(seed, 2))
	p := fake.Plan{Seed: seed}
	for _, f := range []fake.Fault{
		{Do: fake.Fail, OneIn: 3 + r.IntN(20)},
		{Do: fake.FailAfterCommit, OneIn: 3 + r.IntN(20)},
		{Do: fake.Delay, OneIn: 3 + r.IntN(20), For: time.Duration(1+r.IntN(5000)) * time.Millisecond},
		{Do: fake.Expire, OneIn: 3 + r.IntN(20)},
		{Do: fake.Silence, OneIn: 3 + r.IntN(20), For: time.Duration(1+r.IntN(60)) * time.Second},
		{Do: fake.Cut, OneIn: 3 + r.IntN(20)},
		{Do: fake.Cut, OneIn: 10 + r.IntN(20), Err: reflector.ErrExpired},
		{Do: fake.Cut, OneIn: 10 + r.IntN(20), Err: fake.ErrFault},
		{Do: fake.Duplicate, OneIn: 3 + r.IntN(20)},
		{Do: fake.Conflict, OneIn: 3 + r.IntN(20)},
	} {
		if r.IntN(3) > 0 {
			p.Faults = append(p.Faults, f)
		}
	}
	return p
}

// Under every plan, whoever lists, watches and resumes as told ends equal to the
// store once the sun comes out, and never sees a key go back.
func TestG1_MirrorsConvergeUnderEveryPlan(t *testing.T) {
	for seed := range uint64(150) {
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			b := fake.New(weather(seed), item{Key: "a"}, item{Key: "b"})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			mirrors := []*mirror{{src: b, pause: time.Second}, {src: b, pause: time.Second, initial: true}}
			var wg sync.WaitGroup
			for _, m := range mirrors {
				wg.Go(func() { m.run(ctx) })
			}
			write(ctx, b, seed, 80, func() {})
			b.SetPlan(fake.Plan{})
			time.Sleep(time.Minute)
			synctest.Wait()
			want := must(b.List(ctx, listAll)).Items
			cancel()
			wg.Wait()
			for _, m := range mirrors {
				m.equals(t, want)
			}
		})
	}
}

// F01: what happens exactly between a list and its watch is not lost, by 200
// watchers at once and with a history that is too short for it.
func TestF01_NothingIsLostBetweenListAndWatch(t *testing.T) {
	for _, short := range []bool{false, true} {
		t.Run(fmt.Sprint(short), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := &memory.Options{}
				if short {
					opts.History = 2
				}
				b := fake.Over(fake.Plan{}, memory.New[pod](opts))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				gone := must(b.Create(ctx, "gone", pod{}))
				must(b.Create(ctx, "old", pod{N: 1}))
				gate := make(chan struct{})
				b.Intercept(fake.Watch, func(ctx context.Context, _ string) error {
					<-gate
					return nil
				})
				mirrors := make([]*mirror, 200)
				var wg sync.WaitGroup
				for i := range mirrors {
					mirrors[i] = &mirror{src: b, pause: time.Second}
					wg.Go(func() { mirrors[i].run(ctx) })
				}
				synctest.Wait() // all have listed, none watches
				require.Equal(t, 200, b.Calls(fake.List))
				must(b.Create(ctx, "new", pod{N: 1}))
				must(b.Update(ctx, item{Key: "old", Version: object.Any, Object: pod{N: 2}}))
				must(b.Delete(ctx, "gone", gone.Version))
				close(gate)
				time.Sleep(time.Minute)
				synctest.Wait()
				want := must(b.List(ctx, listAll)).Items
				cancel()
				wg.Wait()
				for _, m := range mirrors {
					m.equals(t, want)
					require.Equal(t, map[bool]int{false: 1, true: 2}[short], m.lists)
				}
			})
		})
	}
}

func TestF02_StaleVersionIsConflict(t *testing.T) {
	b := fake.New(fake.Plan{}, item{Key: "a", Object: pod{N: 1}})
	one, two := must(b.Get(t.Context(), "a")), must(b.Get(t.Context(), "a"))
	must(b.Update(t.Context(), one))
	_, err := b.Update(t.Context(), two)
	failed(t, err, backend.Error{Op: "update", Key: "a", Want: "1", Found: "2", Err: backend.ErrConflict})
}

func TestF03_UnconditionalPatchesAreSerialised(t *testing.T) {
	b := fake.New(fake.Plan{}, item{Key: "a"})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if _, err := b.Patch(t.Context(), "a", merge(`{"tags":{"t%d":"x"}}`, i), object.Any); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Len(t, must(b.Get(t.Context(), "a")).Object.Tags, 50)
}

// F07: watches end at any time, by their context, by their consumer and by Cut,
// while others write.
func TestF07_StopsAndWritesAtOnce(t *testing.T) {
	b := fake.New[pod](fake.Plan{})
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			n := 0
			for _, err := range b.Watch(ctx, reflector.WatchOptions{}) {
				if err != nil {
					t.Error(err)
				}
				switch n++; {
				case i%3 == 0:
					cancel()
				case i%3 == 1:
					b.Cut()
				case n > 1:
					return
				}
			}
		})
		wg.Go(func() {
			if _, err := b.Create(t.Context(), fmt.Sprint(i), pod{N: i}); err != nil {
				t.Error(err)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	for i := 1000; ; i++ { // those that wait for one more batch get it
		select {
		case <-done:
			require.GreaterOrEqual(t, len(must(b.List(t.Context(), listAll)).Items), 1000)
			return
		default:
			must(b.Create(t.Context(), fmt.Sprint(i), pod{}))
		}
	}
}

func TestF09_DeleteHonoursItsPrecondition(t *testing.T) {
	b := fake.New(fake.Plan{}, item{Key: "a"})
	must(b.Update(t.Context(), item{Key: "a", Version: "1"}))
	_, err := b.Delete(t.Context(), "a", "1")
	failed(t, err, backend.Error{Op: "delete", Key: "a", Want: "1", Found: "2", Err: backend.ErrConflict})
	require.NoError(t, calls[2].do(t.Context(), b))
}

// F04, through the fake.
func TestF04_FinalizersOverTheFake(t *testing.T) {
	type tagged struct{ object.Meta }
	b := backend.WithFinalizers[tagged](fake.New(fake.Plan{}, object.Item[tagged]{Key: "a", Object: tagged{object.Meta{Finalizers: []string{"x"}}}}))
	marked := must(b.Delete(t.Context(), "a", object.Any))
	require.True(t, marked.Object.IsDeleting())
	marked.Object.Finalizers = nil
	must(b.Update(t.Context(), marked))
	_, err := b.Get(t.Context(), "a")
	require.ErrorIs(t, err, backend.ErrNotFound)
}

// R31: a cursor of another fake means nothing, of the same seed neither.
func TestR31_CursorsOfAnotherFakeAreExpired(t *testing.T) {
	a, b := fake.New(plan(), item{Key: "a"}), fake.New(plan(), item{Key: "a"})
	c := must(a.List(t.Context(), listAll)).Cursor
	for _, err := range b.Watch(t.Context(), reflector.WatchOptions{After: c}) {
		require.ErrorIs(t, err, reflector.ErrExpired)
	}
}

func TestErrorsNameNoEpoch(t *testing.T) {
	// Logs of two runs must be equal, and epochs are not.
	a, b := fake.New(plan(), item{Key: "a"}), fake.New(plan(), item{Key: "a"})
	c := must(a.List(t.Context(), listAll)).Cursor
	epoch, _, _ := strings.Cut(string(c), ".")
	for _, b := range []*fake.Backend[pod]{a, b} {
		b.Compact()
		for _, after := range []reflector.Cursor{c, at(c, 0), at(c, 9)} {
			for _, err := range b.Watch(t.Context(), reflector.WatchOptions{After: after}) {
				if err == nil {
					break
				}
				require.NotContains(t, err.Error(), epoch)
			}
			_, err := b.List(t.Context(), reflector.ListOptions{NotBefore: after})
			if err != nil {
				require.NotContains(t, err.Error(), epoch)
			}
		}
	}
}
