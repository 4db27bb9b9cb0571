package reconcile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/retry"
)

func TestG11_ExplainPrintsAsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store(t, "a")
		client := reconcile.NewClient[thing](lagging{Backend: store(t), lag: 10 * time.Second}, named("children"))
		c := reconcile.New("c", informer.New(s, named("things")), func(ctx context.Context, req reconcile.Request[thing]) error {
			switch req.Attempt {
			case 1, 2:
				time.Sleep(time.Millisecond)
				return errBoom
			}
			_, err := client.Create(ctx, "child", thing{})
			if err != nil {
				return err
			}
			return retry.Later(time.Hour, "the child starts")
		}, &reconcile.Options{Backoff: exact})
		c.Reads(client)
		launch(t, &reconcile.Group{}, c)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, strings.TrimPrefix(`
c "a": delayed since 00:00:00.000, next at 00:00:01.001, 1 failures
  last error: boom
  object: at version 1
  will run because of c failed (a)
  ran 00:00:00.000 took 1ms: failed: boom; because of things added (initial) (a)`, "\n"), c.Explain("a").String())

		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Equal(t, strings.TrimPrefix(`
c "a": barred since 00:00:03.000, 2 failures
  last error: boom
  object: at version 1
  waiting for children "child" at version 1 since 00:00:03.002
  ran 00:00:03.002 took 0s: later: the child starts (in 1h0m0s); because of c failed (a)
  ran 00:00:01.001 took 1ms: failed: boom; because of c failed (a)
  ran 00:00:00.000 took 1ms: failed: boom; because of things added (initial) (a)`, "\n"), c.Explain("a").String())
		require.Equal(t, "c \"none\": idle\n  object: none", c.Explain("none").String())
	})
}

func TestG11_ExplainMarshals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := reconcile.NewClient[thing](lagging{Backend: store(t), lag: time.Hour}, named("children"))
		c := reconcile.New("c", informer.New(store(t, "a"), named("things")), func(ctx context.Context, req reconcile.Request[thing]) error {
			if req.Attempt == 1 {
				panic("loose wire")
			}
			_, err := client.Create(ctx, "child", thing{})
			return err
		}, &reconcile.Options{Backoff: exact})
		c.Reads(client)
		launch(t, &reconcile.Group{}, c)
		time.Sleep(time.Second)
		synctest.Wait()
		text, err := json.Marshal(c.Explain("a"))
		require.NoError(t, err)
		var got struct {
			Controller, Key, State string
			Exists                 bool
			Version                string
			Entry                  struct {
				State    string
				Attempts int
				Error    string
			}
			Waiting []struct{ Kind, Key, Version string }
			Runs    []struct {
				Outcome, Err, Stack, Took string
				Attempt                   int
				Causes                    []struct{ Source, Reason string }
			}
		}
		require.NoError(t, json.Unmarshal(text, &got), string(text))
		require.Equal(t, "barred", got.State)
		require.Equal(t, "working", got.Entry.State)
		require.Equal(t, 1, got.Entry.Attempts)
		require.Contains(t, got.Entry.Error, "loose wire")
		require.Equal(t, "child", got.Waiting[0].Key)
		require.Len(t, got.Runs, 2)
		require.Equal(t, "done", got.Runs[0].Outcome)
		require.Equal(t, 2, got.Runs[0].Attempt)
		require.Equal(t, "panicked", got.Runs[0].Causes[0].Reason)
		require.Equal(t, "panicked", got.Runs[1].Outcome)
		require.Contains(t, got.Runs[1].Err, "loose wire")
		require.Contains(t, got.Runs[1].Stack, "TestG11_ExplainMarshals")

		text, err = json.Marshal(c.Explain("none"))
		require.NoError(t, err)
		require.JSONEq(t, `{"controller":"c","key":"none","exists":false,"state":"idle"}`, string(text))

		text, err = json.Marshal(c.Status())
		require.NoError(t, err)
		require.Contains(t, string(text), `"state":"running"`)
		require.Contains(t, string(text), `"watches":[{"source":"things"}]`)
		require.Contains(t, string(text), `"panicked":1`)
		require.Contains(t, string(text), `"barred":1`)
		text, err = json.Marshal(reconcile.WatchStatus{Source: "s", Failures: 1, Key: "k", Err: errBoom})
		require.NoError(t, err)
		require.JSONEq(t, `{"source":"s","failures":1,"key":"k","err":"boom"}`, string(text))
		text, err = json.Marshal(reconcile.Barrier{Kind: "k", Err: errBoom})
		require.NoError(t, err)
		require.Contains(t, string(text), `"err":"boom"`)
		require.Contains(t, reconcile.Barrier{Kind: "k", Key: "x", Err: errBoom}.String(), "(boom)")
	})
}

// The history is a constant: five runs of a key, of the 1024 keys that ran last.
func TestG4_HistoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store(t, "often")
		var runs ran
		c := reconcile.New("c", informer.New(s, nil), runs.wrap(nil), nil)
		launch(t, &reconcile.Group{}, c)
		for i := range 7 {
			c.Trigger("often", fmt.Sprint("reason ", i))
			synctest.Wait()
		}
		e := c.Explain("often")
		require.Len(t, e.Runs, 5)
		require.Equal(t, "reason 6", e.Runs[0].Causes[0].Reason, "the last one first")
		require.Equal(t, "reason 2", e.Runs[4].Causes[0].Reason)

		c.Trigger("early", "")
		synctest.Wait()
		for i := range 1022 {
			c.Trigger(fmt.Sprint("key ", i), "")
		}
		synctest.Wait()
		c.Trigger("often", "once more")
		synctest.Wait()
		require.NotEmpty(t, c.Explain("early").Runs)
		c.Trigger("one too many", "")
		synctest.Wait()
		require.Empty(t, c.Explain("early").Runs)
		require.NotEmpty(t, c.Explain("often").Runs)
		require.NotEmpty(t, c.Explain("key 0").Runs)
	})
}

// Nothing is kept of a key that is gone and done with.
func TestG4_NothingStaysOfAKeyThatIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store(t)
		client := reconcile.NewClient[thing](s, nil)
		c := reconcile.New("c", client.Informer, func(ctx context.Context, req reconcile.Request[thing]) error {
			if _, exists := req.Object(); exists && req.Attempt == 1 {
				return errBoom
			}
			return nil
		}, &reconcile.Options{Every: time.Minute})
		stop := launch(t, &reconcile.Group{}, c)
		for i := range 100 {
			with(t, s, fmt.Sprint(i))
		}
		time.Sleep(10 * time.Minute)
		for i := range 100 {
			remove(t, s, fmt.Sprint(i))
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Zero(t, reconcile.Remembered(c))
		c.Trigger("a", "")
		require.NoError(t, stop())
		c.Trigger("b", "")
		require.Zero(t, reconcile.Remembered(c))
	})
}

// The levels of the log: single runs quietly, failures loudly, each with its key.
func TestLogLevels(t *testing.T) {
	for level, want := range map[slog.Level]map[string]bool{
		slog.LevelDebug: {"good": true, "bad": true, "parked": true, "awful": true},
		slog.LevelWarn:  {"good": false, "bad": true, "parked": true, "awful": true},
		slog.LevelError: {"good": false, "bad": false, "parked": false, "awful": true},
	} {
		t.Run(level.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log lines
				c := reconcile.New("c", informer.New(store(t, "good", "bad", "parked", "awful"), nil), func(_ context.Context, req reconcile.Request[thing]) error {
					req.Log().Debug("by the function")
					if req.Key == "awful" {
						panic("loose wire")
					}
					return map[string]error{"bad": errBoom, "parked": retry.Permanent(errBoom)}[req.Key]
				}, &reconcile.Options{Logger: log.logger(level)})
				stop := launch(t, &reconcile.Group{}, c)
				require.NoError(t, stop())
				for key, logged := range want {
					require.Equal(t, logged, strings.Contains(log.String(), "controller=c key="+key+" attempt=1"), "%s\n%s", key, log.String())
				}
				require.Equal(t, level == slog.LevelDebug, strings.Contains(log.String(), "by the function"))
				require.NotContains(t, log.String(), "stack=\"\"")
			})
		})
	}
}
