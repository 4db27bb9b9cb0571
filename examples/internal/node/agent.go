//go:build unix

package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/examples/internal/proc"
	"github.com/homeostat/homeostat/examples/internal/workload"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/retry"
)

const finalizer = "node/process"

// Options are choices; the zero value is right for most.
type Options struct {
	// Logs is a folder for what the processes write, a file a Pod; "" discards it.
	Logs string
	// Backoff says how long a process that ended waits for its next start.
	// Defaults to 100 ms, doubled up to 30 s.
	Backoff retry.Backoff
	// Stable is how long a process must run for its failures to be forgotten.
	// Defaults to 10 s.
	Stable time.Duration
	// Logger defaults to none.
	Logger *slog.Logger
	// Looked, if set, is called when the agent has looked at a Pod, by its key.
	Looked func(key string)
}

// Agent runs the Pods of one backend. Close it when its controller has returned.
type Agent struct {
	pods   reconcile.Client[*workload.Pod]
	keeper *proc.Keeper
	opts   Options
	log    *slog.Logger

	watchers sync.WaitGroup

	mu        sync.Mutex
	processes map[string]*process // by the Pod's key
}

// process is the record of one Pod's process. It belongs to whoever reconciles
// the key.
type process struct {
	id    string // of the Pod: another Pod of the same name is another process
	group *proc.Group
	began time.Time

	ended    bool      // it ran before (or could not be started)
	code     int       // how it ended last
	why      string    // the same for people
	failures int       // in a row
	next     time.Time // not started before
	restarts int
}

// New makes an agent for the Pods of a client.
func New(pods reconcile.Client[*workload.Pod], keeper *proc.Keeper, opts *Options) *Agent {
	a := &Agent{pods: pods, keeper: keeper, processes: map[string]*process{}}
	if opts != nil {
		a.opts = *opts
	}
	if a.opts.Backoff.Max == 0 && a.opts.Backoff.Schedule == nil {
		a.opts.Backoff.Max = 30 * time.Second
	}
	if a.opts.Stable == 0 {
		a.opts.Stable = 10 * time.Second
	}
	if a.log = a.opts.Logger; a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	return a
}

// Controller is the agent's loop.
func (a *Agent) Controller() *reconcile.Controller[*workload.Pod] {
	return reconcile.New("node", a.pods.Informer, reconcile.Finalize(a.pods, finalizer, a.end, a.run),
		&reconcile.Options{Logger: a.opts.Logger})
}

// Close ends all processes, each with its Pod's grace period, and returns when
// they are gone.
func (a *Agent) Close() {
	a.mu.Lock()
	for key, p := range a.processes {
		if p.group != nil {
			pod, _ := a.pods.Cache().Get(key)
			p.group.Stop(grace(pod))
		}
	}
	a.mu.Unlock()
	a.watchers.Wait()
}

func grace(pod *workload.Pod) time.Duration {
	if pod == nil {
		return workload.PodSpec{}.Grace()
	}
	return pod.Spec.Grace()
}

func (a *Agent) record(key string) *process {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.processes[key]
}

func (a *Agent) setRecord(key string, p *process) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p == nil {
		delete(a.processes, key)
	} else {
		a.processes[key] = p
	}
}

// run makes the process what the Pod wants, one step at a time, and says in the
// Pod's status what it is.
func (a *Agent) run(ctx context.Context, req reconcile.Request[*workload.Pod]) error {
	item, exists := req.Item()
	p := a.record(req.Key)
	if p != nil && (!exists || item.ID != p.id) { // the Pod went past its finalizer
		if err := a.end(ctx, req); err != nil {
			return err
		}
		p = nil
	}
	if !exists || item.Object.Finished() && p == nil {
		return nil
	}
	if p == nil {
		p = &process{id: item.ID}
		a.setRecord(req.Key, p)
	}
	a.look(p)
	if a.opts.Looked != nil {
		a.opts.Looked(req.Key)
	}

	status := workload.PodStatus{Phase: workload.Running, Restarts: p.restarts}
	var wait time.Duration
	switch pod := item.Object; {
	case p.group != nil:
	case p.ended && !pod.Spec.Restarts(p.code):
		status.Phase = workload.Failed
		if p.code == 0 {
			status.Phase = workload.Succeeded
		}
	case time.Until(p.next) > 0:
		status.Phase, wait = workload.BackOff, time.Until(p.next)
	default:
		if !a.start(ctx, p, req, pod) {
			status.Phase, wait = workload.BackOff, time.Until(p.next)
			if !pod.Spec.Restarts(p.code) {
				status.Phase, wait = workload.Failed, 0
			}
		}
		status.Restarts = p.restarts
	}
	if p.group != nil {
		status.PID = p.group.PID()
	}
	if p.ended {
		status.ExitCode, status.Message = &p.code, p.why
	}
	_, err := backend.Modify(ctx, a.pods, req.Key, func(pod *workload.Pod) (*workload.Pod, error) {
		pod.Status = status
		return pod, nil
	})
	if err == nil && wait > 0 {
		return retry.Later(wait, "the process ended, and is started again later")
	}
	return err
}

// look takes note of an end.
func (a *Agent) look(p *process) {
	if p.group == nil {
		return
	}
	select {
	case <-p.group.Done():
		if time.Since(p.began) >= a.opts.Stable {
			p.failures = 0
		}
		exit := p.group.Exit()
		p.group = nil
		a.note(p, exit.Code, exit.String())
	default:
	}
}

func (a *Agent) note(p *process, code int, why string) {
	p.ended, p.code, p.why = true, code, why
	p.failures++
	p.next = time.Now().Add(a.opts.Backoff.Delay(p.failures))
}

// start starts the process and has the key looked at again when it ends. A
// process that cannot be started has ended, like a shell's, with code 127.
func (a *Agent) start(ctx context.Context, p *process, req reconcile.Request[*workload.Pod], pod *workload.Pod) bool {
	if p.ended {
		p.restarts++
	}
	group, err := a.fork(ctx, req.Key, pod)
	if err != nil {
		a.note(p, 127, err.Error())
		return false
	}
	a.mu.Lock()
	p.group, p.began = group, time.Now()
	a.mu.Unlock()
	a.log.Info("started", "pod", req.Key, "pid", group.PID(), "restarts", p.restarts)
	a.watchers.Go(func() {
		<-group.Done()
		req.Trigger("process ended")
	})
	return true
}

func (a *Agent) fork(ctx context.Context, key string, pod *workload.Pod) (*proc.Group, error) {
	c := proc.Command{
		Path: pod.Spec.Command[0],
		Args: append(pod.Spec.Command[1:len(pod.Spec.Command):len(pod.Spec.Command)], pod.Spec.Args...),
		Env:  os.Environ(),
	}
	for name, value := range pod.Spec.Env {
		c.Env = append(c.Env, name+"="+value)
	}
	if a.opts.Logs != "" {
		name := strings.ReplaceAll(key, "/", "_") + ".log"
		file, err := os.OpenFile(filepath.Join(a.opts.Logs, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, fmt.Errorf("node: %w", err)
		}
		defer file.Close() // the process has its own
		c.Output = file
	}
	return a.keeper.Start(ctx, c)
}

// end ends the process, and says when it is gone by returning nil.
func (a *Agent) end(_ context.Context, req reconcile.Request[*workload.Pod]) error {
	p := a.record(req.Key)
	if p == nil {
		return nil
	}
	if p.group != nil {
		pod, exists := req.Object()
		if !exists {
			pod, _ = req.Last()
		}
		p.group.Stop(grace(pod))
	}
	if a.look(p); p.group != nil {
		// The watcher of its end comes first; this is for the log and for Explain.
		return retry.Later(time.Minute, "waiting for the process to end")
	}
	a.setRecord(req.Key, nil)
	a.log.Info("ended", "pod", req.Key, "how", p.why)
	return nil
}
