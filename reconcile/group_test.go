package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/reflector"
)

// part is a runner of somebody's own.
type part struct {
	name  string
	needs []reconcile.Runner
	run   func(ctx context.Context) error
}

func (p *part) Name() string              { return p.name }
func (p *part) Needs() []reconcile.Runner { return p.needs }
func (p *part) Run(ctx context.Context) error {
	if p.run == nil {
		<-ctx.Done()
		return nil
	}
	return p.run(ctx)
}

// cache is a part that others can wait for.
type cache struct {
	part
	synced chan struct{}
}

func (c *cache) WaitForSync(ctx context.Context) error {
	select {
	case <-c.synced:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// diary notes what happened, in order.
type diary struct {
	mu     sync.Mutex
	lines  []string
	linger time.Duration // from the stop to the end of each
}

func (d *diary) note(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

// part notes its beginning and its end.
func (d *diary) part(name string, needs ...reconcile.Runner) *part {
	return &part{name: name, needs: needs, run: func(ctx context.Context) error {
		d.note("+" + name)
		<-ctx.Done()
		time.Sleep(d.linger)
		d.note("-" + name)
		return nil
	}}
}

func (d *diary) cache(name string, needs ...reconcile.Runner) *cache {
	c := &cache{part: *d.part(name, needs...), synced: make(chan struct{})}
	close(c.synced)
	return c
}

func (d *diary) index(line string) int { return slices.Index(d.lines, line) }

// Each informer that is needed is found and run once, however often it is named.
func TestRunFindsInformers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[thing](fake.Plan{})
		with(t, b, "a")
		client := reconcile.NewClient[thing](b, nil)
		var runs ran
		one := reconcile.New("one", client.Informer, runs.wrap(nil), nil)
		two := reconcile.New("two", informer.New(store(t), nil), runs.wrap(nil), nil)
		two.Reads(client, one)
		reconcile.Watch(two, client.Informer, owners)
		require.Len(t, two.Needs(), 4)
		stop := launch(t, &reconcile.Group{}, two, client, one, client.Informer)
		require.Equal(t, 1, b.Calls(fake.Watch))
		require.Len(t, runs.of("a"), 1)
		require.NoError(t, stop())
	})
}

// What is needed starts before, and ends after.
func TestGroupOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := diary{linger: time.Second}
		db := d.part("db")
		pods := d.cache("pods", db)
		lone := d.cache("lone")
		work := d.part("work", pods)
		above := d.part("above", work)
		stop := launch(t, &reconcile.Group{}, above, lone)
		require.NoError(t, stop())
		require.Len(t, d.lines, 10)
		for _, order := range [][2]string{{"-above", "-work"}, {"-work", "-pods"}, {"-pods", "-db"}, {"-above", "-lone"}} {
			require.Less(t, d.index(order[0]), d.index(order[1]), "%v in %v", order, d.lines)
		}
	})
}

// Two caches over helpers of their own do not wait for each other in a circle.
func TestGroupOrderHasNoCircle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		z, w := d.part("z"), d.part("w")
		stop := launch(t, &reconcile.Group{Grace: time.Second}, d.cache("one", w), d.cache("two", z))
		begin := time.Now()
		require.NoError(t, stop())
		require.Zero(t, time.Since(begin))
		require.Len(t, d.lines, 8)
	})
}

// A controller starts when its own informers are synced; one that never is holds
// up those who read it alone.
func TestI15_OneSourceDoesNotBlockOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		broken := fake.New[thing](fake.Plan{Faults: []fake.Fault{{On: fake.List | fake.Watch, Do: fake.Fail}}})
		with(t, broken, "b")
		in := informer.New(broken, named("broken"))
		var good, bad ran
		a := reconcile.New("a", informer.New(store(t, "a"), nil), good.wrap(nil), nil)
		b := reconcile.New("b", informer.New(store(t, "x"), nil), bad.wrap(nil), &reconcile.Options{Logger: log.logger(0)})
		b.Reads(in)
		stop := launch(t, &reconcile.Group{}, b, a)
		require.Len(t, good.of("a"), 1)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Empty(t, bad.of(""), "G9: no work on the word of an unsynced cache")
		broken.SetPlan(fake.Plan{})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Len(t, bad.of("x"), 1)
		require.NoError(t, stop())
	})
}

// Run of a controller alone waits by itself, and says for whom.
func TestG9_AControllerAloneWaitsForItsInformers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		broken := fake.New[thing](fake.Plan{Faults: []fake.Fault{{On: fake.List | fake.Watch, Do: fake.Fail}}})
		with(t, broken, "a")
		in := informer.New(broken, named("broken"))
		var runs ran
		c := reconcile.New("c", in, runs.wrap(nil), &reconcile.Options{Logger: log.logger(0)})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { require.NoError(t, in.Run(ctx)) })
		all.Go(func() { require.NoError(t, c.Run(ctx)) })
		time.Sleep(15 * time.Second)
		synctest.Wait()
		require.Equal(t, reconcile.Waiting, c.Status().State)
		require.Contains(t, log.String(), "still waiting")
		require.Contains(t, log.String(), "broken")
		require.Empty(t, runs.of(""))
		cancel()
		all.Wait()
	})
}

// An informer that ended unsynced ends a controller that is run alone.
func TestControllerAloneOfADeadInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		in := informer.New(fake.New[thing](fake.Plan{}), nil)
		require.NoError(t, in.Run(ctx))
		c := reconcile.New("c", in, script(), nil)
		err := c.Run(t.Context())
		require.ErrorIs(t, err, informer.ErrStopped)
		require.ErrorContains(t, err, `controller "c"`)
	})
}

// The first failure ends all, and is what Run returns; later ones are not.
func TestFirstFailureIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs ran
		c := reconcile.New("c", informer.New(store(t, "a"), nil), runs.wrap(nil), nil)
		failing := &part{name: "payroll", run: func(ctx context.Context) error {
			time.Sleep(time.Minute)
			return errRunner
		}}
		sore := &part{name: "sore", run: func(ctx context.Context) error {
			<-ctx.Done()
			return errBoom
		}}
		begin := time.Now()
		err := reconcile.Run(t.Context(), c, failing, sore)
		require.ErrorIs(t, err, errRunner)
		require.NotErrorIs(t, err, errBoom)
		require.ErrorContains(t, err, "payroll")
		require.Equal(t, time.Minute, time.Since(begin))
		require.Equal(t, reconcile.Stopped, c.Status().State)
	})
}

// What a runner says of its own stop is no failure; anything else is.
func TestWhatRunnersReturnWhenStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := func(err error) *part {
			return &part{name: "part", run: func(ctx context.Context) error {
				<-ctx.Done()
				return err
			}}
		}
		stop := launch(t, &reconcile.Group{}, answer(fmt.Errorf("stopped: %w", context.Canceled)), answer(context.DeadlineExceeded))
		require.NoError(t, stop())
		stop = launch(t, &reconcile.Group{}, answer(errRunner))
		require.ErrorIs(t, stop(), errRunner)
		// Not before it is stopped.
		err := reconcile.Run(t.Context(), &part{run: func(context.Context) error { return context.Canceled }})
		require.ErrorIs(t, err, context.Canceled)
	})
}

// A faulty option of an informer is told as such, not as somebody's failed wait.
func TestFaultsOfInformersComeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var none reflector.ListWatcher[thing]
		for range 20 {
			var runs ran
			c := reconcile.New("c", informer.New(none, named("sourceless")), runs.wrap(nil), nil)
			err := reconcile.Run(t.Context(), c)
			require.ErrorIs(t, err, informer.ErrInvalidOptions)
			require.NotErrorIs(t, err, informer.ErrStopped)
			require.Empty(t, runs.of(""))
		}
	})
}

// If who is waited for ends without a failure of its own, the wait's is told.
func TestANeedThatEndsUnsynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := informer.New(store(t), nil)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, in.Run(ended))
		quiet := &cacheOf{in}
		err := reconcile.Run(t.Context(), &part{name: "reader", needs: []reconcile.Runner{quiet}}, &part{name: "other"})
		require.ErrorIs(t, err, informer.ErrStopped)
		require.ErrorContains(t, err, "reader")
	})
}

// If it fails itself, even later, that is the cause.
func TestANeedThatFailsUnsynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := &never{part{name: "broken", run: func(context.Context) error {
			time.Sleep(time.Second)
			return errRunner
		}}}
		err := reconcile.Run(t.Context(), &part{name: "reader", needs: []reconcile.Runner{broken}})
		require.ErrorIs(t, err, errRunner)
		require.NotErrorIs(t, err, errBoom)
	})
}

// never will be synced.
type never struct{ part }

func (*never) WaitForSync(context.Context) error {
	time.Sleep(time.Millisecond) // until it has been started
	return errBoom
}

type cacheOf struct{ in *informer.Informer[thing] }

func (c *cacheOf) Run(context.Context) error             { return nil }
func (c *cacheOf) WaitForSync(ctx context.Context) error { return c.in.WaitForSync(ctx) }

func TestG10_ARunnersPanicIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, run := range map[string]func(context.Context) error{
			"panic":  func(context.Context) error { panic("loose wire") },
			"goexit": func(context.Context) error { goexit(); return nil },
		} {
			err := reconcile.Run(t.Context(), &part{name: "part " + name, run: run}, reconcile.New("c", informer.New(store(t), nil), script(), nil))
			var panicked *reconcile.PanicError
			require.ErrorAs(t, err, &panicked, name)
			require.ErrorContains(t, err, "part "+name)
		}
	})
}

// When all that was named has ended by itself, what it needed is stopped.
func TestGroupEndsWithItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		job := func(after time.Duration) *part {
			return &part{name: "job", needs: []reconcile.Runner{d.cache(fmt.Sprint(after))}, run: func(context.Context) error {
				time.Sleep(after)
				return nil
			}}
		}
		begin := time.Now()
		require.NoError(t, reconcile.Run(t.Context(), job(time.Second), job(time.Minute)))
		require.Equal(t, time.Minute, time.Since(begin))
		require.Len(t, d.lines, 4)
		require.NoError(t, reconcile.Run(t.Context()), "nothing to do")
	})
}

// A runner that does not return is named, without keys.
func TestStillRunningNamesRunners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		deaf := &part{name: "deaf", run: func(context.Context) error { <-gate; return nil }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := (&reconcile.Group{Grace: time.Second}).Run(ctx, deaf)
		var still *reconcile.StillRunning
		require.ErrorAs(t, err, &still)
		require.Contains(t, still.Keys, "deaf")
		require.EqualError(t, err, "reconcile: still running: deaf")

		// With a failure as the reason, both are told.
		err = (&reconcile.Group{Grace: time.Second}).Run(t.Context(), deaf, &part{run: func(context.Context) error {
			time.Sleep(time.Second)
			return errRunner
		}})
		require.ErrorIs(t, err, errRunner)
		require.ErrorAs(t, err, &still)
		close(gate)
	})
}

// The values of the context reach the runners, its end does not: they are stopped
// in their turn.
func TestRunnersGetTheValuesOfTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "value"), time.Second)
		defer cancel()
		var got any
		c := reconcile.New("c", informer.New(store(t, "a"), nil), func(ctx context.Context, _ reconcile.Request[thing]) error {
			got = ctx.Value(key{})
			_, has := ctx.Deadline()
			require.False(t, has)
			return nil
		}, nil)
		require.NoError(t, reconcile.Run(ctx, c))
		require.Equal(t, "value", got)
	})
}

func TestGroupRefusesWhatCannotBe(t *testing.T) {
	in := informer.New(store(t), nil)
	same := func() reconcile.Runner { return reconcile.New("same", in, script(), nil) }
	circle := &part{name: "circle"}
	circle.needs = []reconcile.Runner{&part{name: "half", needs: []reconcile.Runner{circle}}}
	var nobody *part
	for _, a := range []struct {
		name string
		all  []reconcile.Runner
		want string
	}{
		{"nil", []reconcile.Runner{nil}, "runner 0 is nil"},
		{"a nil pointer", []reconcile.Runner{&part{}, nobody}, "runner 1 is nil"},
		{"an empty client", []reconcile.Runner{reconcile.Client[thing]{}}, "runner 0 is nil"},
		{"a nil need", []reconcile.Runner{&part{name: "p", needs: []reconcile.Runner{nil}}}, "p needs nil"},
		{"two of one name", []reconcile.Runner{same(), same()}, `two controllers are called "same"`},
		{"a faulty controller", []reconcile.Runner{reconcile.New("", in, script(), nil)}, "a controller needs a name"},
		{"a circle", []reconcile.Runner{circle}, "circle needs itself"},
	} {
		t.Run(a.name, func(t *testing.T) {
			err := reconcile.Run(t.Context(), a.all...)
			require.ErrorIs(t, err, reconcile.ErrInvalidOptions)
			require.ErrorContains(t, err, a.want)
		})
	}
	require.NotErrorIs(t, errors.New(""), reconcile.ErrInvalidOptions)
}

// loose is a runner whose value cannot be compared.
type loose struct{ run []func() }

func (l loose) Run(context.Context) error { l.run[0](); return nil }

func TestRunnersNeedNotBeComparable(t *testing.T) {
	n := 0
	l := loose{[]func(){func() { n++ }}}
	require.NoError(t, reconcile.Run(t.Context(), l))
	require.Equal(t, 1, n)
	// Without a name it is called by its type.
	l.run[0] = func() { panic("loose wire") }
	require.ErrorContains(t, reconcile.Run(t.Context(), l), "reconcile_test.loose")
	require.ErrorContains(t, reconcile.Run(t.Context(), &part{run: func(context.Context) error { return errBoom }}), "*reconcile_test.part")
}
