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
	"github.com/homeostat/homeostat/retry"
)

// What a run writes triggers its key, before the delay that it asked for; it comes
// to rest when it writes only what differs.
func TestOwnWritesTrigger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := reconcile.NewClient[thing](store(t, "a"), named("things"))
		var runs ran
		c := reconcile.New("c", client.Informer, runs.wrap(func(ctx context.Context, req reconcile.Request[thing]) error {
			if item, _ := req.Item(); item.Object.Status != "ready" {
				item.Object.Status = "ready"
				_, err := client.Update(ctx, item)
				require.NoError(t, err)
			}
			return retry.Later(time.Hour, "look again")
		}), nil)
		launch(t, &reconcile.Group{}, c)
		time.Sleep(time.Minute)
		synctest.Wait()
		calls := runs.of("a")
		require.Len(t, calls, 2)
		require.Contains(t, reasons(calls[1]), "things updated ×1")
		written, _ := calls[1].Object()
		require.Equal(t, "ready", written.Status)
	})
}

// One that writes each time is kept from triggering itself by Only.
func TestOnlyLetsAHeartbeatRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := reconcile.NewClient[thing](store(t, "a"), nil)
		var runs ran
		c := reconcile.New("c", client.Informer, runs.wrap(func(ctx context.Context, req reconcile.Request[thing]) error {
			item, _ := req.Item()
			item.Object.Status = time.Now().String()
			_, err := client.Update(ctx, item)
			require.NoError(t, err)
			return retry.Later(time.Minute, "heartbeat")
		}), nil)
		c.Only(func(ch informer.Change[thing]) bool {
			return ch.Type != informer.Updated || ch.Old.Spec != ch.New.Spec
		})
		launch(t, &reconcile.Group{}, c)
		time.Sleep(10*time.Minute + time.Second)
		synctest.Wait()
		require.Len(t, runs.of("a"), 11)
		put(t, client.Backend, "a", 1)
		synctest.Wait()
		require.Len(t, runs.of("a"), 12, "what others change still triggers")
	})
}

// hollowing writes, and answers with an error that panics when it is asked.
type hollowing struct{ backend.Backend[thing] }

func (h hollowing) Update(ctx context.Context, item object.Item[thing]) (object.Item[thing], error) {
	_, err := h.Backend.Update(ctx, item)
	if err == nil {
		err = (*hollow)(nil)
	}
	return object.Item[thing]{}, err
}

// A write whose error tells nothing may have been made: a list tells.
func TestG7_AWriteWhoseErrorPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := reconcile.NewClient[thing](lagging{hollowing{store(t, "a")}, 10 * time.Minute, false}, nil)
		begin := time.Now()
		var runs ran
		c := reconcile.New("c", client.Informer, runs.wrap(func(ctx context.Context, req reconcile.Request[thing]) error {
			item, _ := req.Item()
			if item.Object.Spec == 0 {
				item.Object.Spec = 1
				_, err := client.Update(ctx, item)
				return err
			}
			return nil
		}), &reconcile.Options{Backoff: exact})
		launch(t, &reconcile.Group{}, c)
		require.Equal(t, "barred", c.Explain("a").State)
		require.Equal(t, reconcile.Panicked, c.Explain("a").Runs[0].Outcome)
		time.Sleep(time.Minute)
		synctest.Wait()
		calls := runs.of("a")
		require.Len(t, calls, 2)
		require.Less(t, calls[1].at.Sub(begin), 30*time.Second, "proven, and not by the deadline")
		seen, _ := calls[1].Object()
		require.Equal(t, 1, seen.Spec)
		require.Zero(t, c.Status().Counts.Unproven)
	})
}
