package reconcile_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reconcile"
)

// hollow is an error type of somebody's; a nil pointer to it is an error that
// can't be asked anything.
type hollow struct{ inner error }

func (e *hollow) Error() string { return "hollow: " + e.inner.Error() }
func (e *hollow) Unwrap() error { return e.inner }

// mute is the same, but has only a text.
type mute struct{ text string }

func (e *mute) Error() string { return e.text }

// hollows are what a function returns that forgot to return a plain nil.
var hollows = map[string]error{"unwrap": (*hollow)(nil), "text": (*mute)(nil)}

func TestG10_AnErrorOfAFuncThatPanics(t *testing.T) {
	for name, bad := range hollows {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log lines
				var runs ran
				c := reconcile.New("c", informer.New(store(t, "a", "b"), nil), runs.wrap(byKey(map[string]error{"a": bad})),
					&reconcile.Options{Backoff: exact, Logger: log.logger(0)})
				launch(t, &reconcile.Group{}, c)
				require.Len(t, runs.of("a"), 1)
				require.Len(t, runs.of("b"), 1)
				require.EqualValues(t, 1, c.Status().Counts.Panicked)
				e := c.Explain("a")
				require.Equal(t, reconcile.Panicked, e.Runs[0].Outcome)
				var panicked *reconcile.PanicError
				require.ErrorAs(t, e.Runs[0].Err, &panicked)
				require.Contains(t, e.String(), "nil pointer")
				_, err := json.Marshal(e)
				require.NoError(t, err)
				time.Sleep(time.Second)
				synctest.Wait()
				require.Len(t, runs.of("a"), 2, "by backoff, as after any panic")
			})
		})
	}
}

func TestG10_AnErrorOfAWatchFuncThatPanics(t *testing.T) {
	for name, bad := range hollows {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := reconcile.New("c", informer.New(store(t), nil), script(), nil)
				reconcile.WatchFunc(c, informer.New(store(t, "x"), nil), func(context.Context, informer.Change[thing]) ([]string, error) {
					return nil, bad
				})
				launch(t, &reconcile.Group{}, c)
				status := c.Status().Watches[1]
				require.EqualValues(t, 1, status.Failures)
				var panicked *reconcile.PanicError
				require.ErrorAs(t, status.Err, &panicked)
				_, err := json.Marshal(status)
				require.NoError(t, err)
			})
		})
	}
}

// rough is a cache whose WaitForSync does as it likes.
type rough struct {
	part
	sync func(context.Context) error
}

func (r *rough) WaitForSync(ctx context.Context) error { return r.sync(ctx) }

func TestG10_AnErrorOfARunnerThatPanics(t *testing.T) {
	for name, bad := range hollows {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var panicked *reconcile.PanicError
				err := reconcile.Run(t.Context(), &part{name: "payroll", run: func(context.Context) error { return bad }})
				require.ErrorAs(t, err, &panicked)
				require.Equal(t, "payroll", panicked.Where)

				need := &rough{part{name: "db"}, func(context.Context) error { return bad }}
				err = reconcile.Run(t.Context(), &part{name: "reader", needs: []reconcile.Runner{need}})
				require.ErrorAs(t, err, &panicked)
				require.Equal(t, "WaitForSync of db", panicked.Where)
			})
		})
	}
}

// A WaitForSync that panics, or ends its goroutine, fails the group and no more.
func TestG10_AWaitForSyncThatPanics(t *testing.T) {
	for name, sync := range map[string]func(context.Context) error{
		"panic":  func(context.Context) error { panic("loose wire") },
		"goexit": func(context.Context) error { goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d diary
				reader := d.part("reader", &rough{part{name: "db"}, sync})
				err := reconcile.Run(t.Context(), reader)
				var panicked *reconcile.PanicError
				require.ErrorAs(t, err, &panicked)
				require.Equal(t, "WaitForSync of db", panicked.Where)
				require.Empty(t, d.lines, "it was not started")
			})
		})
	}
}

// Who was never started does not run; the wait that it is in does.
func TestStillRunningNamesAWaitThatIsDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		deaf := &rough{part{name: "deaf"}, func(context.Context) error { <-gate; return nil }}
		c := reconcile.New("c", informer.New(store(t), named("things")), script(), nil)
		c.Reads(deaf)
		stop := launch(t, &reconcile.Group{Grace: time.Second}, c)
		err := stop()
		require.EqualError(t, err, "reconcile: still running: deaf")
		close(gate)
	})
}
