//go:build unix

package node_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/examples/internal/node"
	"github.com/homeostat/homeostat/examples/internal/proc"
	"github.com/homeostat/homeostat/examples/internal/workload"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	proc.Main()
	goleak.VerifyTestMain(m)
}

// world is one node agent over an embedded store.
type world struct {
	t     *testing.T
	store backend.Backend[*workload.Pod]
	raw   backend.Backend[*workload.Pod]
	end   func()
}

func newWorld(t *testing.T, opts *node.Options) *world {
	raw := memory.New[*workload.Pod](nil)
	w := &world{t: t, raw: raw, store: backend.WithFinalizers[*workload.Pod](raw)}
	keeper, err := proc.NewKeeper()
	require.NoError(t, err)
	if opts == nil {
		opts = &node.Options{}
	}
	if opts.Backoff.Base == 0 {
		opts.Backoff = retry.Backoff{Base: 5 * time.Millisecond, Max: 10 * time.Millisecond}
	}
	agent := node.New(reconcile.NewClient(w.store, nil), keeper, opts)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- reconcile.Run(ctx, agent.Controller()) }()
	w.end = func() {
		if ctx.Err() == nil {
			cancel()
			require.NoError(t, <-ended)
			agent.Close()
			keeper.Close()
		}
	}
	t.Cleanup(w.end)
	return w
}

func (w *world) create(key string, spec workload.PodSpec) {
	w.t.Helper()
	_, err := w.store.Create(w.t.Context(), key, &workload.Pod{Spec: spec})
	require.NoError(w.t, err)
}

func sh(script string) workload.PodSpec {
	return workload.PodSpec{Command: []string{"sh", "-c"}, Args: []string{script}}
}

// becomes waits until a Pod is as ok wants it.
func (w *world) becomes(key string, ok func(*workload.Pod) bool) *workload.Pod {
	w.t.Helper()
	var pod *workload.Pod
	require.Eventually(w.t, func() bool {
		item, err := w.store.Get(w.t.Context(), key)
		pod = item.Object
		return err == nil && ok(pod)
	}, 20*time.Second, time.Millisecond, "%s", w.show(key))
	return pod
}

func (w *world) show(key string) string {
	item, err := w.store.Get(w.t.Context(), key)
	return fmt.Sprintf("%+v %v", item.Object, err)
}

func (w *world) gone(key string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		_, err := w.store.Get(w.t.Context(), key)
		return err != nil
	}, 20*time.Second, time.Millisecond)
}

func running(p *workload.Pod) bool { return p.Status.Phase == workload.Running }

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestAPodIsAProcess(t *testing.T) {
	w := newWorld(t, nil)
	spec := sh("sleep 1000")
	spec.GracePeriod = "100ms"
	w.create("a", spec)
	pod := w.becomes("a", running)
	require.True(t, alive(pod.Status.PID))
	require.Nil(t, pod.Status.ExitCode)
	require.NotEmpty(t, pod.Finalizers)

	_, err := w.store.Delete(t.Context(), "a", object.Any)
	require.NoError(t, err)
	w.gone("a")
	require.False(t, alive(pod.Status.PID), "a Pod is gone after its process, not before")
}

func TestRestartPolicies(t *testing.T) {
	w := newWorld(t, nil)
	for _, c := range []struct {
		name     string
		policy   workload.RestartPolicy
		script   string
		phase    workload.Phase // where it ends up; "" is to be restarted
		exitCode int
	}{
		{"always-well", workload.Always, "exit 0", "", 0},
		{"default-badly", "", "exit 3", "", 3},
		{"onfailure-well", workload.OnFailure, "exit 0", workload.Succeeded, 0},
		{"onfailure-badly", workload.OnFailure, "exit 3", "", 3},
		{"never-well", workload.Never, "exit 0", workload.Succeeded, 0},
		{"never-badly", workload.Never, "exit 3", workload.Failed, 3},
		{"never-killed", workload.Never, "kill -KILL $$", workload.Failed, 137},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := sh(c.script)
			spec.RestartPolicy = c.policy
			w.create(c.name, spec)
			pod := w.becomes(c.name, func(p *workload.Pod) bool {
				if c.phase == "" {
					return p.Status.Restarts >= 3 && p.Status.ExitCode != nil
				}
				return p.Status.Phase == c.phase
			})
			require.Equal(t, c.exitCode, *pod.Status.ExitCode)
			if c.phase != "" {
				require.Zero(t, pod.Status.Restarts)
				require.Zero(t, pod.Status.PID)
				require.True(t, pod.Finished())
			}
		})
	}
}

func TestRestartsBackOff(t *testing.T) {
	w := newWorld(t, &node.Options{Backoff: retry.Backoff{Schedule: []time.Duration{time.Millisecond, time.Hour}}})
	w.create("a", sh("exit 1"))
	pod := w.becomes("a", func(p *workload.Pod) bool { return p.Status.Phase == workload.BackOff && p.Status.Restarts == 1 })
	require.Equal(t, "exit status 1", pod.Status.Message)
	require.Zero(t, pod.Status.PID)
	// Waiting to be started again holds up no end.
	_, err := w.store.Delete(t.Context(), "a", object.Any)
	require.NoError(t, err)
	w.gone("a")
}

func TestWhatCannotBeStarted(t *testing.T) {
	w := newWorld(t, nil)
	w.create("again", workload.PodSpec{Command: []string{"no-such-command"}})
	pod := w.becomes("again", func(p *workload.Pod) bool { return p.Status.Restarts >= 2 })
	require.Equal(t, 127, *pod.Status.ExitCode)
	require.Contains(t, pod.Status.Message, "no-such-command")

	w.create("once", workload.PodSpec{Command: []string{"no-such-command"}, RestartPolicy: workload.Never})
	w.becomes("once", func(p *workload.Pod) bool { return p.Status.Phase == workload.Failed })
}

func TestAProcessThatDoesNotListenIsKilledAfterItsGrace(t *testing.T) {
	w := newWorld(t, nil)
	deaf := filepath.Join(t.TempDir(), "deaf")
	spec := sh(`trap "" TERM; echo > ` + deaf + `; while :; do sleep 1; done`)
	spec.GracePeriod = "50ms"
	w.create("deaf", spec)
	pod := w.becomes("deaf", running)
	require.Eventually(t, func() bool { _, err := os.Stat(deaf); return err == nil }, 20*time.Second, time.Millisecond)
	_, err := w.store.Delete(t.Context(), "deaf", object.Any)
	require.NoError(t, err)
	w.gone("deaf")
	require.False(t, alive(pod.Status.PID))
}

func TestFailuresAreForgottenOnceItRanLongEnough(t *testing.T) {
	schedule := retry.Backoff{Schedule: []time.Duration{time.Millisecond, time.Hour}}
	w := newWorld(t, &node.Options{Backoff: schedule, Stable: time.Nanosecond})
	w.create("a", sh("exit 1"))
	w.becomes("a", func(p *workload.Pod) bool { return p.Status.Restarts >= 3 })
}

func TestAPodReplacedPastItsFinalizerIsAnotherProcess(t *testing.T) {
	w := newWorld(t, nil)
	spec := sh("sleep 1000")
	spec.GracePeriod = "50ms"
	w.create("a", spec)
	first := w.becomes("a", running)
	_, err := w.raw.Delete(t.Context(), "a", object.Any)
	require.NoError(t, err)
	w.create("a", spec)
	second := w.becomes("a", func(p *workload.Pod) bool { return running(p) && p.Status.PID != first.Status.PID })
	require.False(t, alive(first.Status.PID), "never two of one name")
	require.Zero(t, second.Status.Restarts)

	_, err = w.raw.Delete(t.Context(), "a", object.Any)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !alive(second.Status.PID) }, 20*time.Second, time.Millisecond)
}

func TestCloseEndsAllProcesses(t *testing.T) {
	w := newWorld(t, nil)
	file := filepath.Join(t.TempDir(), "ended")
	w.create("a", sh(`trap "echo > `+file+`; exit" TERM; sleep 1000 & wait`))
	pod := w.becomes("a", running)
	require.Eventually(t, func() bool { // the trap is set once the child runs; give the signal a listener
		out, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pod.Status.PID, pod.Status.PID))
		return len(out) > 0 || !hasProc()
	}, 20*time.Second, time.Millisecond)
	w.end()
	require.False(t, alive(pod.Status.PID))
	if hasProc() {
		require.FileExists(t, file, "it was asked first")
	}
}

func hasProc() bool {
	_, err := os.Stat("/proc/self/task")
	return err == nil
}
