package reconcile_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/retry"
)

// handled is the model: which state of each key a run has dealt with.
type handled struct {
	mu   sync.Mutex
	rnd  *rand.Rand
	done map[string]object.Version
	calm bool
}

func (h *handled) choose(n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rnd.IntN(n)
}

// work takes its time, writes at times, and ends in every way there is.
func (h *handled) work(others reconcile.Client[thing]) reconcile.Func[thing] {
	return func(ctx context.Context, req reconcile.Request[thing]) error {
		if len(req.Causes) == 0 {
			panic("a run without a cause")
		}
		item, _ := req.Item()
		time.Sleep(time.Duration(h.choose(300)) * time.Millisecond)
		if h.choose(4) == 0 {
			if _, err := backend.Ensure(ctx, others, req.Key, func(o thing) (thing, error) {
				o.Spec++
				return o, nil
			}); err != nil {
				return err
			}
		}
		h.mu.Lock()
		calm := h.calm
		h.mu.Unlock()
		if !calm {
			switch h.choose(16) {
			case 0:
				return errBoom
			case 1:
				return retry.Later(time.Duration(h.choose(5000))*time.Millisecond, "")
			case 2:
				return retry.After(errBoom, time.Duration(h.choose(5000))*time.Millisecond)
			case 3:
				return retry.Permanent(errBoom)
			case 4:
				return backend.ErrConflict
			case 5:
				panic("loose wire")
			case 6:
				goexit()
			case 7:
				req.Trigger("once more")
			}
		}
		h.mu.Lock()
		h.done[req.Key] = item.Version // "" when it was gone
		h.mu.Unlock()
		return nil
	}
}

// TestG6_OneKeyOneWorker, with the scheduling invariant: at every moment of rest,
// each key with a change that nobody has dealt with is due, delayed, working,
// barred or parked, and never forgotten.
func TestG6_OneKeyOneWorker(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { oneKeyOneWorker(t, seed) })
		})
	}
}

func oneKeyOneWorker(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	h := &handled{rnd: rand.New(rand.NewPCG(seed, 2)), done: map[string]object.Version{}}
	b := fake.New[thing](fake.Plan{Seed: seed, Faults: []fake.Fault{
		{On: fake.Watch, Do: fake.Cut, OneIn: 30},
		{On: fake.Watch, Do: fake.Duplicate, OneIn: 10},
		{On: fake.Watch, Do: fake.Expire, OneIn: 8},
		{On: fake.List, Do: fake.Fail, OneIn: 8},
	}})
	others := reconcile.NewClient[thing](lagging{Backend: fake.New[thing](fake.Plan{Seed: seed, Faults: []fake.Fault{
		{On: fake.Writes, Do: fake.FailAfterCommit, OneIn: 10},
		{On: fake.Writes, Do: fake.Fail, OneIn: 10},
		{On: fake.Update | fake.Patch, Do: fake.Conflict, OneIn: 5},
	}}), lag: 400 * time.Millisecond}, nil)
	in := informer.New(b, &informer.Options{Backoff: retry.Backoff{Max: 2 * time.Second}})
	var runs ran
	c := reconcile.New("c", in, runs.wrap(h.work(others)), &reconcile.Options{Workers: 3})
	c.Reads(others)
	stop := launch(t, &reconcile.Group{}, c)

	key := func() string { return fmt.Sprint("k", rnd.IntN(10)) }
	for step := range 150 {
		switch rnd.IntN(10) {
		case 0, 1, 2:
			_, _ = b.Create(t.Context(), key(), thing{})
		case 3, 4, 5:
			_, _ = b.Update(t.Context(), object.Item[thing]{Key: key(), Version: object.Any, Object: thing{Spec: step}})
		case 6:
			_, _ = b.Delete(t.Context(), key(), object.Any)
		case 7:
			c.Trigger(key(), "by hand")
		case 8:
			b.Cut()
		default:
			time.Sleep(time.Duration(rnd.IntN(2000)) * time.Millisecond)
		}
		synctest.Wait()
		invariant(t, c, in, h, fmt.Sprintf("seed %d, step %d", seed, step))
	}

	h.mu.Lock()
	h.calm = true
	h.mu.Unlock()
	b.SetPlan(fake.Plan{})
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	for e := range c.Keys(0) { // what was parked comes back by hand alone
		require.Equal(t, "parked", e.State.String(), "seed %d: %v", seed, c.Explain(e.Key))
		c.Trigger(e.Key, "revived")
	}
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	for i := range 10 {
		key := fmt.Sprint("k", i)
		item, _ := in.Cache().Item(key)
		require.Equal(t, item.Version, h.done[key], "seed %d: %v", seed, c.Explain(key))
		require.Equal(t, "idle", c.Explain(key).State)
	}
	require.False(t, runs.overlapped(), "seed %d", seed)
	require.Zero(t, reconcile.Remembered(c), "seed %d", seed)
	require.NoError(t, stop())
}

func invariant(t *testing.T, c *reconcile.Controller[thing], in *informer.Informer[thing], h *handled, when string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range 10 {
		key := fmt.Sprint("k", i)
		item, _ := in.Cache().Item(key)
		if item.Version == h.done[key] {
			continue
		}
		e := c.Explain(key)
		require.Contains(t, []string{"due", "delayed", "working", "barred", "parked"}, e.State, "%s: %v", when, e)
	}
}

// A change during a run makes another run, however the first one ends.
func TestG6_AChangeDuringARunRunsAgain(t *testing.T) {
	for name, end := range map[string]func() error{
		"done":      func() error { return nil },
		"later":     func() error { return retry.Later(time.Hour, "") },
		"failed":    func() error { return errBoom },
		"permanent": func() error { return retry.Permanent(errBoom) },
		"conflict":  func() error { return backend.ErrConflict },
		"panic":     func() error { panic("loose wire") },
		"goexit":    func() error { goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := store(t, "a")
				var runs ran
				c := reconcile.New("c", informer.New(s, nil), runs.wrap(func(context.Context, reconcile.Request[thing]) error {
					if len(runs.of("a")) > 1 {
						return nil
					}
					put(t, s, "a", 1)
					time.Sleep(time.Second)
					return end()
				}), &reconcile.Options{Backoff: retry.Backoff{Base: time.Hour, Max: time.Hour}})
				launch(t, &reconcile.Group{}, c)
				time.Sleep(time.Minute)
				synctest.Wait()
				calls := runs.of("a")
				require.Len(t, calls, 2)
				require.Equal(t, []time.Duration{time.Second}, gaps(calls))
				obj, _ := calls[1].Object()
				require.Equal(t, 1, obj.Spec)
			})
		})
	}
}
