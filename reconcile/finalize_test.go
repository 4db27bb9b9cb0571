package reconcile_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/retry"
)

// finalized is a controller of one object "a", with what its two functions saw.
type finalized struct {
	store  backend.Backend[thing]
	client reconcile.Client[thing]
	c      *reconcile.Controller[thing]
	next   []call
	clean  []call
}

func newFinalized(t *testing.T, inner backend.Backend[thing], cleanup reconcile.Func[thing]) *finalized {
	t.Helper()
	f := &finalized{store: backend.WithFinalizers(inner)}
	f.client = reconcile.NewClient[thing](lagging{Backend: f.store, lag: 100 * time.Millisecond}, nil)
	f.c = reconcile.New("c", f.client.Informer, reconcile.Finalize(f.client, "test/clean",
		func(ctx context.Context, req reconcile.Request[thing]) error {
			f.clean = append(f.clean, call{req, time.Now()})
			if cleanup == nil {
				return nil
			}
			return cleanup(ctx, req)
		},
		func(ctx context.Context, req reconcile.Request[thing]) error {
			f.next = append(f.next, call{req, time.Now()})
			return nil
		}), &reconcile.Options{Workers: 1, Backoff: exact})
	launch(t, &reconcile.Group{}, f.c)
	return f
}

func (f *finalized) settle() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

func TestFinalize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := store(t)
		outcomes := []error{errBoom, retry.Later(5*time.Second, "not gone yet")}
		f := newFinalized(t, inner, func(context.Context, reconcile.Request[thing]) error {
			if len(outcomes) == 0 {
				return nil
			}
			err := outcomes[0]
			outcomes = outcomes[1:]
			return err
		})
		with(t, f.store, "a")
		f.settle()

		// The finalizer is there before next runs for the first time.
		require.NotEmpty(t, f.next)
		for _, call := range f.next {
			item, ok := call.Item()
			require.True(t, ok)
			require.Equal(t, []string{"test/clean"}, item.Object.Finalizers)
			require.NotEmpty(t, item.Version)
		}
		require.Empty(t, f.clean)
		stored, err := inner.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, []string{"test/clean"}, stored.Object.Finalizers)

		// It is taken off after cleanup returned nil, and not before.
		before := len(f.next)
		remove(t, f.store, "a")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		_, err = inner.Get(t.Context(), "a")
		require.NoError(t, err, "it waits for cleanup")
		f.settle()
		require.Len(t, f.clean, 3)
		for _, call := range f.clean {
			obj, _ := call.Object()
			require.True(t, obj.IsDeleting())
		}
		_, err = inner.Get(t.Context(), "a")
		require.ErrorIs(t, err, backend.ErrNotFound)
		require.Len(t, f.next, before+1, "once more, for the key that is gone")
		_, exists := f.next[before].Object()
		require.False(t, exists)
	})
}

// What is not there, is going without this finalizer, or has others.
func TestFinalizeLeavesOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := store(t)
		f := newFinalized(t, inner, nil)
		_, err := f.store.Create(t.Context(), "a", thing{Meta: object.Meta{Finalizers: []string{"other"}}})
		require.NoError(t, err)
		f.settle()
		remove(t, f.store, "a")
		f.settle()
		require.Len(t, f.clean, 1)
		stored, err := inner.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, []string{"other"}, stored.Object.Finalizers, "only its own is taken off")
		before := len(f.next)
		f.c.Trigger("a", "look again")
		f.settle()
		require.Len(t, f.clean, 1, "its part is done")
		require.Len(t, f.next, before, "and nothing is begun for what is going")
	})
}

// An object that is deleted before the finalizer is on it is not finalized.
func TestFinalizeOfWhatIsGoing(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, b backend.Backend[thing]){
		"gone": func(t *testing.T, b backend.Backend[thing]) { remove(t, b, "a") },
		"deleting": func(t *testing.T, b backend.Backend[thing]) {
			_, err := backend.Modify(t.Context(), b, "a", func(o thing) (thing, error) {
				o.Finalizers = []string{"other"}
				return o, nil
			})
			require.NoError(t, err)
			remove(t, b, "a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := fake.New[thing](fake.Plan{})
				f := newFinalized(t, b, nil)
				first := true
				b.Intercept(fake.Get, func(context.Context, string) error {
					if first { // by the time that the run reads the object
						first = false
						spoil(t, f.store)
					}
					return nil
				})
				with(t, f.store, "a")
				f.settle()
				require.Empty(t, f.clean)
				for _, call := range f.next {
					_, exists := call.Object()
					require.False(t, exists)
				}
				require.Zero(t, f.c.Status().Counts.Failures)
			})
		})
	}
}

// A finalizer that the cache has not seen yet is not put there twice.
func TestFinalizeOfWhatHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[thing](fake.Plan{})
		f := newFinalized(t, b, nil)
		first := true
		b.Intercept(fake.Get, func(context.Context, string) error {
			if first {
				first = false
				_, err := backend.Modify(t.Context(), f.store, "a", func(o thing) (thing, error) {
					o.Finalizers = []string{"test/clean"}
					return o, nil
				})
				require.NoError(t, err)
			}
			return nil
		})
		with(t, f.store, "a")
		f.settle()
		require.False(t, first)
		stored, err := b.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, []string{"test/clean"}, stored.Object.Finalizers)
		require.NotEmpty(t, f.next)
	})
}

// The finalizer comes off the object that was cleaned up, and not off the next one
// under its key.
func TestFinalizeKnowsTheObjectItCleanedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := store(t)
		var f *finalized
		again := true
		f = newFinalized(t, inner, func(context.Context, reconcile.Request[thing]) error {
			if again {
				again = false
				// Somebody forces it, and another one comes and is deleted.
				remove(t, inner, "a")
				time.Sleep(time.Millisecond)
				_, err := f.store.Create(t.Context(), "a", thing{Meta: object.Meta{Finalizers: []string{"test/clean"}}, Spec: 2})
				require.NoError(t, err)
				remove(t, f.store, "a")
			}
			return nil
		})
		with(t, f.store, "a")
		f.settle()
		remove(t, f.store, "a")
		f.settle()
		require.Len(t, f.clean, 2)
		obj, _ := f.clean[1].Object()
		require.Equal(t, 2, obj.Spec)
		_, err := inner.Get(t.Context(), "a")
		require.ErrorIs(t, err, backend.ErrNotFound)
	})
}

// What goes by itself after the clean-up needs no finalizer taken off.
func TestFinalizeOfWhatWentMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := store(t)
		f := newFinalized(t, inner, func(context.Context, reconcile.Request[thing]) error {
			remove(t, inner, "a")
			return nil
		})
		with(t, f.store, "a")
		f.settle()
		remove(t, f.store, "a")
		f.settle()
		require.Len(t, f.clean, 1)
		require.Zero(t, f.c.Status().Counts.Failures)
	})
}

// Errors of the store come back as the run's.
func TestFinalizeReturnsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[thing](fake.Plan{Faults: []fake.Fault{{On: fake.Get, Do: fake.Fail, Call: 1}, {On: fake.Get, Do: fake.Fail, Call: 2}}})
		with(t, b, "a")
		in := informer.New(b, nil)
		c := reconcile.New("c", in, reconcile.Finalize(backend.WithFinalizers[thing](b), "f", script(), script()), &reconcile.Options{Backoff: exact})
		launch(t, &reconcile.Group{}, c)
		require.ErrorIs(t, c.Explain("a").Runs[0].Err, fake.ErrFault)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.EqualValues(t, 2, c.Status().Counts.Failed)

		b.SetPlan(fake.Plan{Faults: []fake.Fault{{On: fake.Get, Do: fake.Fail, Call: 2}}})
		_, err := backend.WithFinalizers[thing](b).Delete(t.Context(), "a", object.Any)
		require.NoError(t, err)
		synctest.Wait()
		require.ErrorIs(t, c.Explain("a").Runs[0].Err, fake.ErrFault)
		time.Sleep(time.Minute)
		synctest.Wait()
		_, err = b.Get(t.Context(), "a")
		require.ErrorIs(t, err, backend.ErrNotFound)
	})
}

// A type without a Meta is a fault of the program: its keys are parked.
func TestFinalizeNeedsMeta(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New(fake.Plan{}, object.Item[string]{Key: "a", Object: "x"})
		none := func(context.Context, reconcile.Request[string]) error { return errors.New("not called") }
		c := reconcile.New("c", informer.New(b, nil), reconcile.Finalize(b, "f", none, none), nil)
		launch(t, &reconcile.Group{}, c)
		require.ErrorIs(t, c.Explain("a").Runs[0].Err, backend.ErrNoMeta)
		require.Equal(t, "parked", c.Explain("a").State)
	})
}

func TestFinalizeNeedsAllOfIt(t *testing.T) {
	b := store(t)
	f := script()
	require.Panics(t, func() { reconcile.Finalize[thing](nil, "f", f, f) })
	require.Panics(t, func() { reconcile.Finalize(b, "", f, f) })
	require.Panics(t, func() { reconcile.Finalize(b, "f", nil, f) })
	require.Panics(t, func() { reconcile.Finalize(b, "f", f, nil) })
}

func TestFinalize_OverAStoreThatDeletesAtOnceIsSaidAloud(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		plain := memory.New[*thing](nil) // not wrapped
		in := informer.New(plain, nil)
		nothing := func(context.Context, reconcile.Request[*thing]) error { return nil }
		c := reconcile.New("docs", in, reconcile.Finalize(plain, "docs/cleanup", nothing, nothing), &reconcile.Options{Logger: logger})
		ctx, cancel := context.WithCancel(t.Context())
		defer func() { cancel(); synctest.Wait() }()
		go reconcile.Run(ctx, c)
		_, err := plain.Create(ctx, "a", &thing{})
		require.NoError(t, err)
		synctest.Wait()
		_, err = plain.Delete(ctx, "a", object.Any)
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"), log.String())
		require.Contains(t, log.String(), "backend.WithFinalizers")
		require.Contains(t, log.String(), "key=a")
	})
}
