package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

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

// What a run has written is shown while it still runs; it is barred afterwards.
func TestExplainShowsWritesOfARunningRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := reconcile.NewClient[thing](lagging{Backend: store(t), lag: time.Minute}, nil)
		c := reconcile.New("c", informer.New(store(t, "p"), nil), func(ctx context.Context, req reconcile.Request[thing]) error {
			_, err := client.Create(ctx, "child", thing{})
			time.Sleep(time.Second)
			return err
		}, nil)
		c.Reads(client)
		launch(t, &reconcile.Group{}, c)
		e := c.Explain("p")
		require.Equal(t, "working", e.State)
		require.Len(t, e.Waiting, 1)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, "barred", c.Explain("p").State)
	})
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
		require.ErrorContains(t, err, "not running; name it")
		var refused *backend.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "child", refused.Key)
		require.NoError(t, <-outside)
		_, err = children.Create(t.Context(), "outside", thing{})
		require.NoError(t, err)
		require.Equal(t, 2, b.Calls(fake.Create))
	})
}

// Of an informer that runs, and is not synced, it is not said that it doesn't run.
func TestG9_ARefusalSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[thing](fake.Plan{Faults: []fake.Fault{{On: fake.List | fake.Watch, Do: fake.Fail}}})
		children := reconcile.NewClient[thing](b, named("children"))
		c := reconcile.New("c", informer.New(store(t, "p"), nil), func(ctx context.Context, _ reconcile.Request[thing]) error {
			time.Sleep(time.Second)
			_, err := children.Create(ctx, "child", thing{})
			return err
		}, &reconcile.Options{Backoff: exact})
		launch(t, &reconcile.Group{}, c, children)
		time.Sleep(time.Second)
		synctest.Wait()
		err := c.Explain("p").Runs[0].Err
		require.ErrorIs(t, err, reconcile.ErrNotSynced)
		require.ErrorContains(t, err, "word of an empty cache")
		require.NotContains(t, err.Error(), "not running")
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
