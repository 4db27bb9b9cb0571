package reconcile_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reconcile"
)

// Nothing is left of a run's waits: neither their context, which would stay with
// the controller's for as long as that runs, nor a goroutine.
func TestG10_NothingIsLeftOfWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.Error(t, reconcile.ProvenRecord(t.Context()).Err())
		ended := false
		waits := reconcile.ReleasedRecord(t.Context(), func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended = true
			return ctx.Err()
		})
		require.Error(t, waits.Err())
		require.True(t, ended)
	})
}

// What is told to a run that has ended is not added to what its key waits for.
func TestWroteAfterTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := reconcile.NewClient[thing](lagging{Backend: store(t), lag: time.Hour, opaque: true}, nil)
		c := reconcile.New("c", informer.New(store(t, "p"), nil), func(ctx context.Context, req reconcile.Request[thing]) error {
			_, err := client.Create(ctx, "child", thing{})
			require.NoError(t, err)
			go func() {
				time.Sleep(time.Millisecond)
				reconcile.Wrote(context.WithoutCancel(ctx), client.Informer, "late", "77")
			}()
			return nil
		}, nil)
		c.Reads(client)
		launch(t, &reconcile.Group{}, c)
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		e := c.Explain("p")
		require.Equal(t, "barred", e.State)
		require.Len(t, e.Waiting, 1, e)
	})
}

// A run that wrote and met a conflict of which no version is known waits for the
// one and then by the backoff.
func TestConflictAfterAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := reconcile.NewClient[thing](lagging{Backend: store(t), lag: 2 * time.Second}, nil)
		var runs ran
		c := reconcile.New("c", informer.New(store(t, "p"), nil), runs.wrap(func(ctx context.Context, req reconcile.Request[thing]) error {
			if len(runs.of("p")) > 1 {
				return nil
			}
			_, err := client.Create(ctx, "child", thing{})
			require.NoError(t, err)
			return backend.ErrConflict
		}), &reconcile.Options{Backoff: exact})
		c.Reads(client)
		launch(t, &reconcile.Group{}, c)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []time.Duration{3 * time.Second}, gaps(runs.of("p")))
	})
}

// A conflict that tells no version is not waited for, only paused after.
func TestConflictWithoutAVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := reconcile.NewClient[thing](conflicting{store(t)}, nil)
		var runs ran
		c := reconcile.New("c", informer.New(store(t, "p"), nil), runs.wrap(func(ctx context.Context, req reconcile.Request[thing]) error {
			if len(runs.of("p")) > 1 {
				return nil
			}
			_, err := client.Create(ctx, "child", thing{})
			return err
		}), &reconcile.Options{Backoff: exact})
		c.Reads(client)
		launch(t, &reconcile.Group{}, c)
		require.Equal(t, "delayed", c.Explain("p").State)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []time.Duration{time.Second}, gaps(runs.of("p")))
	})
}

type conflicting struct{ backend.Backend[thing] }

func (conflicting) Create(context.Context, string, thing) (object.Item[thing], error) {
	return object.Item[thing]{}, &backend.Error{Op: "create", Err: backend.ErrConflict}
}

// Wrote knows of stale lists too.
func TestWroteOverStaleLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := informer.New[thing](versionless{lagging{Backend: store(t), lag: time.Hour, opaque: true}}, nil)
		c := reconcile.New("c", informer.New(store(t, "p"), nil), func(ctx context.Context, req reconcile.Request[thing]) error {
			reconcile.Wrote(ctx, in, "child", "")
			return nil
		}, nil)
		c.Reads(in)
		launch(t, &reconcile.Group{}, c)
		require.True(t, c.Explain("p").Waiting[0].StaleLists)
	})
}
