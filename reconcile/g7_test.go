package reconcile_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
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

// Each kind of write is waited for, of whatever type.
func TestG7_EveryWriteIsWaitedFor(t *testing.T) {
	for name, write := range map[string]func(ctx context.Context, c reconcile.Client[thing]) error{
		"create": func(ctx context.Context, c reconcile.Client[thing]) error {
			_, err := c.Create(ctx, "new", thing{})
			return err
		},
		"update": func(ctx context.Context, c reconcile.Client[thing]) error {
			_, err := c.Update(ctx, object.Item[thing]{Key: "x", Version: object.Any, Object: thing{Spec: 2}})
			return err
		},
		"patch": func(ctx context.Context, c reconcile.Client[thing]) error {
			_, err := backend.Modify(ctx, c, "x", func(o thing) (thing, error) {
				o.Spec = 2
				return o, nil
			})
			return err
		},
		"delete": func(ctx context.Context, c reconcile.Client[thing]) error {
			_, err := c.Delete(ctx, "x", object.Any)
			return err
		},
		"last finalizer": func(ctx context.Context, c reconcile.Client[thing]) error {
			_, err := backend.Modify(ctx, c, "y", func(o thing) (thing, error) {
				o.Finalizers = nil
				return o, nil
			})
			return err
		},
		"derived context": func(ctx context.Context, c reconcile.Client[thing]) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			_, err := c.Create(ctx, "new", thing{})
			return err
		},
		"goroutine": func(ctx context.Context, c reconcile.Client[thing]) error {
			done := make(chan error)
			go func() {
				_, err := c.Create(ctx, "new", thing{})
				done <- err
			}()
			return <-done
		},
		"wrote": func(ctx context.Context, c reconcile.Client[thing]) error {
			item, err := c.Create(context.Background(), "new", thing{})
			reconcile.Wrote(ctx, c.Informer, "new", item.Version)
			return err
		},
	} {
		for _, opaque := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, opaque %v", name, opaque), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					inner := backend.WithFinalizers[thing](store(t, "x"))
					_, err := inner.Create(t.Context(), "y", thing{Meta: object.Meta{Finalizers: []string{"f"}}})
					require.NoError(t, err)
					remove(t, inner, "y")
					client := reconcile.NewClient[thing](lagging{Backend: inner, lag: 700 * time.Millisecond, opaque: opaque}, nil)
					var states []map[string]int
					c := reconcile.New("c", informer.New(store(t, "p"), nil), func(ctx context.Context, req reconcile.Request[thing]) error {
						state := map[string]int{}
						for key, obj := range client.Cache().All() {
							state[key] = obj.Spec
						}
						states = append(states, state)
						if len(states) > 1 {
							return nil
						}
						require.NoError(t, write(ctx, client))
						return retry.Later(0, "look again at once")
					}, nil)
					c.Reads(client)
					launch(t, &reconcile.Group{}, c)
					require.Equal(t, "barred", c.Explain("p").State)
					time.Sleep(700 * time.Millisecond)
					synctest.Wait()
					want := map[string]int{}
					page, err := inner.List(t.Context(), reflector.ListOptions{})
					require.NoError(t, err)
					for _, item := range page.Items {
						want[item.Key] = item.Object.Spec
					}
					require.Len(t, states, 2)
					require.NotEqual(t, want, states[0])
					require.Equal(t, want, states[1])
				})
			})
		}
	}
}

// What is not the run's is not waited for.
func TestOnlyTheRunsOwnWritesAreWaitedFor(t *testing.T) {
	for name, write := range map[string]func(ctx context.Context, c reconcile.Client[thing]) error{
		"another context": func(_ context.Context, c reconcile.Client[thing]) error {
			_, err := c.Create(context.Background(), "new", thing{})
			return err
		},
		"not done": func(ctx context.Context, c reconcile.Client[thing]) error {
			_, err := c.Create(ctx, "x", thing{})
			require.ErrorIs(t, err, backend.ErrExists)
			_, err = c.Update(ctx, object.Item[thing]{Key: "x", Version: "77"})
			require.ErrorIs(t, err, backend.ErrConflict)
			_, err = c.Update(ctx, object.Item[thing]{Key: "x"})
			require.ErrorIs(t, err, backend.ErrNoVersion)
			_, err = c.Delete(ctx, "none", object.Any)
			require.ErrorIs(t, err, backend.ErrNotFound)
			return nil
		},
		"read": func(ctx context.Context, c reconcile.Client[thing]) error {
			_, err := c.Get(ctx, "x")
			return err
		},
		"dry run": func(ctx context.Context, c reconcile.Client[thing]) error {
			dry, err := c.DryRun()
			require.NoError(t, err)
			_, err = dry.Create(ctx, "new", thing{})
			return err
		},
		"after the run": func(ctx context.Context, c reconcile.Client[thing]) error {
			go func() {
				time.Sleep(time.Millisecond)
				_, err := c.Create(context.WithoutCancel(ctx), "new", thing{})
				require.NoError(t, err)
			}()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := reconcile.NewClient[thing](lagging{Backend: store(t, "x"), lag: time.Hour}, nil)
				c := reconcile.New("c", informer.New(store(t, "p"), nil), func(ctx context.Context, req reconcile.Request[thing]) error {
					return write(ctx, client)
				}, nil)
				c.Reads(client)
				launch(t, &reconcile.Group{}, c)
				time.Sleep(time.Millisecond)
				synctest.Wait()
				require.Equal(t, "idle", c.Explain("p").State, c.Explain("p"))
			})
		})
	}
}

// A write that is under way when the run ends is waited for, and so is what it
// made.
func TestAWriteThatOutlivesItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[thing](fake.Plan{Faults: []fake.Fault{{On: fake.Create, Do: fake.Delay, For: 10 * time.Second}}})
		client := reconcile.NewClient[thing](lagging{Backend: b, lag: time.Second}, nil)
		var runs ran
		c := reconcile.New("c", informer.New(store(t, "p"), nil), runs.wrap(func(ctx context.Context, req reconcile.Request[thing]) error {
			if len(runs.of("p")) == 1 {
				go client.Create(context.WithoutCancel(ctx), "late", thing{})
				time.Sleep(time.Second)
				return retry.Later(0, "")
			}
			_, there := client.Cache().Get("late")
			require.True(t, there)
			return nil
		}), nil)
		c.Reads(client)
		launch(t, &reconcile.Group{}, c)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []time.Duration{11 * time.Second}, gaps(runs.of("p")))
	})
}

// A write that is still under way at the deadline does no harm later.
func TestAWriteThatOutlivesTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[thing](fake.Plan{Faults: []fake.Fault{{On: fake.Create, Do: fake.Delay, For: time.Hour}}})
		client := reconcile.NewClient[thing](b, nil)
		c := reconcile.New("c", informer.New(store(t, "p"), nil), func(ctx context.Context, req reconcile.Request[thing]) error {
			go client.Create(context.WithoutCancel(ctx), "late", thing{})
			time.Sleep(time.Second)
			return nil
		}, nil)
		c.Reads(client)
		launch(t, &reconcile.Group{}, c)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		require.Equal(t, "idle", c.Explain("p").State)
		require.EqualValues(t, 1, c.Status().Counts.Unproven)
		time.Sleep(time.Hour)
		synctest.Wait()
	})
}

// What a lost answer, a panic, or the end of the context leaves unknown is waited
// for by a list.
func TestG7_UnknownOutcomes(t *testing.T) {
	for _, a := range []struct {
		name string
		end  func(ctx context.Context) error // in place of the answer
	}{
		{"answer lost", func(context.Context) error { return fmt.Errorf("create: %w", backend.ErrOutcomeUnknown) }},
		{"context ended", func(ctx context.Context) error { <-ctx.Done(); return errBoom }},
		{"deadline", func(context.Context) error { return context.DeadlineExceeded }},
		{"panic", func(context.Context) error { panic("after the write") }},
	} {
		t.Run(a.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := store(t)
				client := reconcile.NewClient[thing](answering{lagging{Backend: inner, lag: time.Hour}, a.end}, nil)
				var runs ran
				c := reconcile.New("c", informer.New(store(t, "p"), nil), runs.wrap(func(ctx context.Context, req reconcile.Request[thing]) error {
					if _, there := client.Cache().Get("child"); there {
						return nil
					}
					_, err := client.Create(ctx, "child", thing{})
					return err
				}), &reconcile.Options{Timeout: time.Second, Backoff: retry.Backoff{Base: time.Millisecond, Max: time.Millisecond}})
				c.Reads(client)
				launch(t, &reconcile.Group{}, c)
				time.Sleep(20 * time.Second)
				synctest.Wait()
				require.Len(t, runs.of("p"), 2, "the second run saw the child")
				require.Zero(t, c.Status().Counts.Unproven)
			})
		})
	}
}

type answering struct {
	backend.Backend[thing]
	end func(context.Context) error
}

func (a answering) Create(ctx context.Context, key string, obj thing) (object.Item[thing], error) {
	if _, err := a.Backend.Create(ctx, key, obj); err != nil {
		return object.Item[thing]{}, err
	}
	return object.Item[thing]{}, a.end(ctx)
}

// An error is certain by what it says, also when the context has ended.
func TestCertainErrorsAreNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := reconcile.NewClient[thing](lagging{Backend: store(t, "x"), lag: time.Hour}, nil)
		c := reconcile.New("c", informer.New(store(t, "p"), nil), func(ctx context.Context, req reconcile.Request[thing]) error {
			client := reconcile.Client[thing]{Informer: client.Informer, Backend: reconcile.Tracked[thing](client.Informer, refusing{client.Backend})}
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			_, err := client.Create(ctx, "x", thing{})
			require.ErrorIs(t, err, backend.ErrExists)
			return nil
		}, nil)
		c.Reads(client)
		launch(t, &reconcile.Group{}, c)
		require.Equal(t, "idle", c.Explain("p").State)
	})
}

type refusing struct{ backend.Backend[thing] }

func (refusing) Create(context.Context, string, thing) (object.Item[thing], error) {
	return object.Item[thing]{}, &backend.Error{Op: "create", Err: backend.ErrExists}
}

// A store without versions is waited for by lists.
func TestG7_WithoutVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := store(t)
		client := reconcile.NewClient[thing](versionless{lagging{Backend: inner, lag: time.Hour, opaque: true}}, nil)
		var runs ran
		c := reconcile.New("c", informer.New(store(t, "p"), nil), runs.wrap(func(ctx context.Context, req reconcile.Request[thing]) error {
			if _, there := client.Cache().Get("child"); !there {
				_, err := client.Create(ctx, "child", thing{})
				require.NoError(t, err)
				return retry.Later(0, "")
			}
			return nil
		}), nil)
		c.Reads(client)
		launch(t, &reconcile.Group{}, c)
		require.Empty(t, c.Explain("p").Waiting[0].Version)
		require.True(t, c.Explain("p").Waiting[0].StaleLists)
		require.Contains(t, c.Explain("p").String(), "in a new list")
		require.Contains(t, c.Explain("p").String(), "may be stale")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Len(t, runs.of("p"), 2)
	})
}

type versionless struct{ backend.Backend[thing] }

func (v versionless) Powers() reflector.Powers[thing] {
	p := v.Backend.Powers()
	p.StaleLists = true
	return p
}

func (v versionless) Create(ctx context.Context, key string, obj thing) (object.Item[thing], error) {
	item, err := v.Backend.Create(ctx, key, obj)
	item.Version = ""
	return item, err
}

// In a run nothing is written on the word of a cache that has seen nothing.
func TestG9_ARunDoesNotWriteOverAnUnsyncedCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[thing](fake.Plan{Faults: []fake.Fault{{On: fake.List | fake.Watch, Do: fake.Fail}}})
		children := reconcile.NewClient[thing](b, named("children"))
		outside := make(chan error, 1)
		c := reconcile.New("c", informer.New(store(t, "p"), nil), func(ctx context.Context, req reconcile.Request[thing]) error {
			dry, err := children.DryRun()
			require.NoError(t, err)
			_, err = dry.Create(ctx, "child", thing{})
			require.ErrorIs(t, err, reconcile.ErrNotSynced)
			go func() {
				time.Sleep(time.Millisecond)
				_, err := children.Create(context.WithoutCancel(ctx), "after the run", thing{})
				outside <- err
			}()
			_, err = children.Create(ctx, "child", thing{})
			return err
		}, &reconcile.Options{Backoff: exact})
		launch(t, &reconcile.Group{}, c) // the children are not named, so nobody waits for them
		err := c.Explain("p").Runs[0].Err
		require.ErrorIs(t, err, reconcile.ErrNotSynced)
		require.ErrorContains(t, err, "children")
		var refused *backend.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "child", refused.Key)
		require.NoError(t, <-outside)
		_, err = children.Create(t.Context(), "outside", thing{})
		require.NoError(t, err)
		require.Equal(t, 2, b.Calls(fake.Create))
	})
}

// Wrote outside a run, and with nobody to ask, does nothing.
func TestWroteOutsideARun(t *testing.T) {
	reconcile.Wrote(t.Context(), informer.New(store(t), nil), "a", "1")
	reconcile.Wrote[thing](t.Context(), nil, "a", "1")
}

func TestTrackedNeedsBoth(t *testing.T) {
	require.Panics(t, func() { reconcile.Tracked[thing](nil, store(t)) })
	require.Panics(t, func() { reconcile.Tracked[thing](informer.New(store(t), nil), nil) })
}

// Tracked keeps the powers of what it wraps.
func TestTrackedKeepsPowers(t *testing.T) {
	client := reconcile.NewClient[thing](store(t), nil)
	p := client.Powers()
	require.True(t, p.Initial && p.ResumeProven)
	require.NotNil(t, p.Reached)
	var all []string
	page, err := client.List(t.Context(), reflector.ListOptions{})
	require.NoError(t, err)
	for _, item := range page.Items {
		all = append(all, item.Key)
	}
	require.Empty(t, slices.Compact(all))
}
