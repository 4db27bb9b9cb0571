package reconcile_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

var byOwner = indexer.ByEach("owner", owners)

// atMostOne is a store of children that looks after each write whether some
// parent has two.
type atMostOne struct {
	backend.Backend[thing]
	mu      sync.Mutex
	creates int
	twins   []string
}

func (a *atMostOne) Create(ctx context.Context, key string, obj thing) (object.Item[thing], error) {
	item, err := a.Backend.Create(ctx, key, obj)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.creates++
	for owner, n := range a.byParent() {
		if n > 1 {
			a.twins = append(a.twins, fmt.Sprintf("%s has %d after %s", owner, n, key))
		}
	}
	return item, err
}

// byParent counts the children in the store itself.
func (a *atMostOne) byParent() map[string]int {
	count := map[string]int{}
	for batch, err := range a.Backend.Watch(context.Background(), reflector.WatchOptions{Initial: true}) {
		if err != nil {
			panic(err)
		}
		for _, e := range batch.Events {
			count[e.Object.Owner]++
		}
		if batch.Synced {
			break
		}
	}
	return count
}

// oneChild creates a child if the cache has none.
func oneChild(children reconcile.Client[thing]) reconcile.Func[thing] {
	var n atomic.Int64
	return func(ctx context.Context, req reconcile.Request[thing]) error {
		if _, exists := req.Object(); !exists || byOwner.Count(children.Cache(), req.Key) > 0 {
			return nil
		}
		_, err := children.Create(ctx, fmt.Sprintf("%s-%d", req.Key, n.Add(1)), thing{Owner: req.Key})
		return err
	}
}

// TestG7_NeverADuplicate: 50 parents, 3 s of watch lag, create a child if the
// cache has none; across cuts, relists and deletes, and writes whose answer is
// lost.
func TestG7_NeverADuplicate(t *testing.T) {
	for _, opaque := range []bool{false, true} {
		for _, lost := range []bool{false, true} {
			for seed := range uint64(2) {
				t.Run(fmt.Sprintf("opaque %v, lost answers %v, seed %d", opaque, lost, seed), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { neverADuplicate(t, opaque, lost, seed) })
				})
			}
		}
	}
}

func neverADuplicate(t *testing.T, opaque, lost bool, seed uint64) {
	plan := fake.Plan{Seed: seed, Faults: []fake.Fault{
		{On: fake.Watch, Do: fake.Cut, OneIn: 40},
		{On: fake.Watch, Do: fake.Expire, OneIn: 5},
		{On: fake.List, Do: fake.Fail, OneIn: 5},
		{On: fake.Watch, Do: fake.Duplicate, OneIn: 20},
	}}
	if lost {
		plan.Faults = append(plan.Faults, fake.Fault{On: fake.Create, Do: fake.FailAfterCommit, OneIn: 5})
	}
	rnd := rand.New(rand.NewPCG(seed, 7))
	b := fake.New[thing](plan)
	watched := &atMostOne{Backend: lagging{Backend: b, lag: 3 * time.Second, opaque: opaque}}
	// By default a failing source may rest for longer than a barrier's deadline.
	children := reconcile.NewClient[thing](watched, &informer.Options{Backoff: retry.Backoff{Max: 2 * time.Second}}, byOwner)
	parents := store(t)
	const n = 50
	for i := range n {
		with(t, parents, fmt.Sprint("p", i))
	}
	c := reconcile.New("c", informer.New(parents, nil), oneChild(children), nil)
	reconcile.Watch(c, children.Informer, owners)
	stop := launch(t, &reconcile.Group{}, c)

	for range 60 {
		time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
		parent := fmt.Sprint("p", rnd.IntN(n))
		switch rnd.IntN(6) {
		case 0:
			children.Relist("for the test")
		case 1:
			b.Cut()
		case 2, 3:
			for key := range byOwner.Lookup(children.Cache(), parent) {
				_, _ = b.Delete(t.Context(), key, object.Any)
			}
		case 4:
			b.Compact()
			b.Cut()
		case 5:
			c.Trigger(parent, "for the test")
		}
	}
	b.SetPlan(fake.Plan{})
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	require.Empty(t, watched.twins, "seed %d", seed)
	count := watched.byParent()
	for i := range n {
		key := fmt.Sprint("p", i)
		require.Equal(t, 1, count[key], "seed %d: %v", seed, c.Explain(key))
		require.Empty(t, c.Explain(key).Waiting)
	}
	require.Zero(t, c.Status().Counts.Unproven)
	require.Zero(t, c.Status().Barred)
	require.GreaterOrEqual(t, watched.creates, n)
	require.NoError(t, stop())
}

// Without the record of writes the same loop makes twins: the property is not
// true by chance.
func TestG7_TheTestCanFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[thing](fake.Plan{})
		watched := &atMostOne{Backend: lagging{Backend: b, lag: 3 * time.Second}}
		in := informer.New[thing](watched, nil, byOwner)
		untracked := reconcile.Client[thing]{Informer: in, Backend: watched}
		c := reconcile.New("c", informer.New(store(t, "p"), nil), oneChild(untracked), nil)
		c.Reads(in)
		launch(t, &reconcile.Group{}, c)
		c.Trigger("p", "again")
		synctest.Wait()
		require.NotEmpty(t, watched.twins)
	})
}

func TestC01_OtherKeysGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watched := &atMostOne{Backend: lagging{Backend: store(t), lag: 2 * time.Second}}
		children := reconcile.NewClient[thing](watched, named("children"), byOwner)
		parents := store(t, "p")
		var runs ran
		c := reconcile.New("c", informer.New(parents, nil), runs.wrap(oneChild(children)), &reconcile.Options{Workers: 1})
		reconcile.Watch(c, children.Informer, owners)
		launch(t, &reconcile.Group{}, c)
		begin := time.Now()

		e := c.Explain("p")
		require.Equal(t, "barred", e.State)
		require.Len(t, e.Waiting, 1)
		require.Equal(t, "children", e.Waiting[0].Kind)
		require.Equal(t, "p-1", e.Waiting[0].Key)
		require.NotEmpty(t, e.Waiting[0].Version)
		require.Equal(t, begin, e.Waiting[0].Since)
		require.Equal(t, 1, c.Status().Barred)
		require.EqualValues(t, 1, c.Status().Counts.Done, "the run itself has ended")

		c.Trigger("p", "now")
		with(t, parents, "q")
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, runs.of("q"), 1)
		require.Len(t, runs.of("p"), 1)
		time.Sleep(9 * time.Second)
		synctest.Wait()
		require.Empty(t, watched.twins)
		require.Equal(t, 2, watched.creates)
		require.Equal(t, 2*time.Second, runs.of("p")[1].at.Sub(begin))
		require.Zero(t, c.Status().Barred)
		require.NotEqual(t, "barred", c.Explain("p").State)
	})
}

// A barrier is met by a state that comes after the write, absence included, and
// leaves nothing behind when the owner goes.
func TestC02_AnyLaterStateOpensTheBarrier(t *testing.T) {
	for _, opaque := range []bool{false, true} {
		t.Run(fmt.Sprint("opaque ", opaque), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := fake.New[thing](fake.Plan{})
				children := reconcile.NewClient[thing](lagging{Backend: b, lag: time.Hour, opaque: opaque}, nil)
				parents := store(t, "p")
				var runs ran
				c := reconcile.New("c", informer.New(parents, nil), runs.wrap(func(ctx context.Context, req reconcile.Request[thing]) error {
					if len(runs.of("p")) > 1 {
						return nil
					}
					_, err := children.Create(ctx, "child", thing{Owner: "p"})
					return err
				}), nil)
				c.Reads(children)
				launch(t, &reconcile.Group{}, c)
				remove(t, b, "child") // both are hidden by the lag
				remove(t, parents, "p")
				time.Sleep(10 * time.Second)
				synctest.Wait()
				// The informer asked for a list by itself, which has neither.
				require.Len(t, runs.of("p"), 2)
				require.Zero(t, c.Status().Counts.Unproven)
				require.Equal(t, "idle", c.Explain("p").State)
			})
		})
	}
}

// A write that is never proven releases its key aloud.
func TestG7_TheDeadlineIsAloud(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		b := fake.New[thing](fake.Plan{})
		children := reconcile.NewClient[thing](b, named("children"))
		var runs ran
		c := reconcile.New("c", informer.New(store(t, "p"), nil), runs.wrap(func(ctx context.Context, req reconcile.Request[thing]) error {
			if len(runs.of("p")) > 1 {
				return nil
			}
			time.Sleep(time.Minute) // the deadline counts from the end of the run
			b.SetPlan(fake.Plan{Faults: []fake.Fault{{On: fake.Watch, Do: fake.Fail}, {On: fake.List, Do: fake.Fail}}})
			b.Cut()
			_, err := children.Create(ctx, "child", thing{Owner: "p"})
			require.NoError(t, err)
			return retry.Later(0, "")
		}), &reconcile.Options{Logger: log.logger(0)})
		c.Reads(children)
		stop := launch(t, &reconcile.Group{}, c)
		time.Sleep(89 * time.Second)
		synctest.Wait()
		require.Len(t, runs.of("p"), 1)
		require.Equal(t, "barred", c.Explain("p").State)
		require.NotContains(t, log.String(), "WARN")
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, runs.of("p"), 2)
		require.Equal(t, 90*time.Second, gaps(runs.of("p"))[0])
		require.EqualValues(t, 1, c.Status().Counts.Unproven)
		require.Contains(t, log.String(), "level=WARN")
		require.Contains(t, log.String(), "written=child")
		first := c.Explain("p").Runs[1]
		require.Len(t, first.Unproven, 1)
		require.Equal(t, "child", first.Unproven[0].Key)
		require.Contains(t, c.Explain("p").String(), "unproven: children")
		require.Zero(t, c.Status().Barred)
		require.NoError(t, stop())
	})
}

// If the informer has ended, only the deadline opens: no proof will come.
func TestG7_ADeadInformerProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := store(t)
		in := informer.New(inner, named("children"))
		inCtx, kill := context.WithCancel(t.Context())
		go in.Run(inCtx)
		synctest.Wait()
		children := reconcile.Client[thing]{Informer: in, Backend: reconcile.Tracked[thing](in, inner)}
		var runs ran
		c := reconcile.New("c", informer.New(store(t, "p"), nil), runs.wrap(func(ctx context.Context, req reconcile.Request[thing]) error {
			if len(runs.of("p")) > 1 {
				return nil
			}
			kill()
			time.Sleep(time.Millisecond)
			_, err := children.Create(ctx, "child", thing{})
			require.NoError(t, err)
			return retry.Later(0, "")
		}), nil)
		stop := launch(t, &reconcile.Group{}, c)
		time.Sleep(29 * time.Second)
		synctest.Wait()
		require.Len(t, runs.of("p"), 1)
		require.Len(t, c.Explain("p").Waiting, 1)
		require.ErrorIs(t, c.Explain("p").Waiting[0].Err, informer.ErrStopped)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Len(t, runs.of("p"), 2)
		require.NoError(t, stop())
	})
}
