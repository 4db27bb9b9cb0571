//go:build unix

package proc

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Command is what to run.
type Command struct {
	// Path is a path, or a name that is looked up in PATH.
	Path string
	Args []string // without the name of the command itself
	Env  []string // "KEY=value"; nil is this program's own environment
	Dir  string   // "" is this program's own
	// Output takes what the command writes; nil discards it.
	Output *os.File
}

// Group is a command that was started, with all that it started in its group.
type Group struct {
	k    *Keeper
	pid  int // of the command, and of its group
	cmd  *exec.Cmd
	done chan struct{}

	stopOnce sync.Once
	stop     chan time.Duration

	exit Exit // written before done is closed
}

// Exit is how a command ended.
type Exit struct {
	Code   int            // 0–255; 128 + the signal for one that was killed
	Signal syscall.Signal // 0 when it ended by itself
}

func (e Exit) String() string {
	if e.Signal != 0 {
		return "killed by " + unix.SignalName(e.Signal)
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// startTime is how long a command may take from fork to exec.
const startTime = 10 * time.Second

// Start runs a command in a group of its own and returns once it runs. A command
// that cannot be run (no such file, no permission), or not before ctx ends or 10 s
// have passed, is an error, and nothing of it is left. The command does not end with
// ctx.
func (k *Keeper) Start(ctx context.Context, c Command) (*Group, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("proc: %s: %w", c.Path, context.Cause(ctx))
	}
	path, err := exec.LookPath(c.Path)
	if err != nil {
		return nil, fmt.Errorf("proc: %w", err)
	}
	goR, goW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("proc: %w", err)
	}
	defer goW.Close()
	failedR, failedW, err := os.Pipe()
	if err != nil {
		goR.Close()
		return nil, fmt.Errorf("proc: %w", err)
	}
	defer failedR.Close()
	cmd := &exec.Cmd{
		Path:        k.self,
		Args:        append([]string{gateName, path, c.Path}, c.Args...),
		Env:         c.Env,
		Dir:         c.Dir,
		ExtraFiles:  []*os.File{goR, failedW}, // gateGo, gateFailed
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if c.Output != nil {
		cmd.Stdout, cmd.Stderr = c.Output, c.Output
	}
	g, err := k.startGate(cmd)
	goR.Close()
	failedW.Close()
	if err != nil {
		return nil, err
	}
	go g.watch()

	goW.Write([]byte{1})
	failedR.SetReadDeadline(time.Now().Add(startTime))
	defer context.AfterFunc(ctx, func() { failedR.SetReadDeadline(time.Unix(1, 0)) })()
	reason, err := io.ReadAll(failedR) // ends with the gate's exec
	if err != nil {
		err = fmt.Errorf("proc: %s does not start: %w", path, err)
	} else if len(reason) > 0 {
		err = fmt.Errorf("proc: %s: %s", path, reason)
	}
	if err != nil {
		g.Stop(0)
		<-g.done
		return nil, err
	}
	return g, nil
}

// startGate forks the gate and notes its group with the guardian. Under the
// lock, so that a guardian that is replaced just now misses no group.
func (k *Keeper) startGate(cmd *exec.Cmd) (*Group, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, ErrClosed
	}
	if k.notes == nil {
		return nil, errNoGuardian
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("proc: %w", err)
	}
	g := &Group{k: k, pid: cmd.Process.Pid, cmd: cmd, done: make(chan struct{}), stop: make(chan time.Duration, 1)}
	k.groups[g] = struct{}{}
	// A note that fails means that the guardian is dead or as good as dead. Its
	// successor is told of every group in k.groups.
	_ = k.noteLocked('+', g.pid)
	return g, nil
}

// PID is the process number of the command, and of its group.
func (g *Group) PID() int { return g.pid }

// Done is closed once the command and its whole group have ended.
func (g *Group) Done() <-chan struct{} { return g.done }

// Exit is how the command ended; to be asked after Done.
func (g *Group) Exit() Exit {
	<-g.done
	return g.exit
}

// Stop asks the group to end (SIGTERM) and, after grace, makes it (SIGKILL). It
// does not wait; see Done. Only the first call counts.
func (g *Group) Stop(grace time.Duration) {
	g.stopOnce.Do(func() { g.stop <- grace })
}

// watch sees the group to its end. When the command ends by itself, what is left
// of its group is killed; when it was asked to, what is left has the rest of the
// grace period.
func (g *Group) watch() {
	ended := make(chan struct{})
	go func() {
		awaitExit(g.pid) // leaves the number taken: nobody else can get it while we signal it
		close(ended)
	}()
	select {
	case <-ended:
	case grace := <-g.stop:
		if grace > 0 {
			syscall.Kill(-g.pid, syscall.SIGTERM)
			syscall.Kill(-g.pid, syscall.SIGCONT)
			g.leave(ended, time.After(grace))
		}
	}
	syscall.Kill(-g.pid, syscall.SIGKILL)
	<-ended

	g.k.mu.Lock()
	delete(g.k.groups, g)
	_ = g.k.noteLocked('-', g.pid) // without a guardian there is nobody to tell
	g.k.mu.Unlock()

	g.cmd.Wait() // frees the number
	g.exit = exitOf(g.cmd.ProcessState)
	close(g.done)
}

// leave gives the group until late to end.
func (g *Group) leave(ended <-chan struct{}, late <-chan time.Time) {
	select {
	case <-ended:
	case <-late:
		return
	}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for othersIn(g.pid) {
		select {
		case <-look.C:
		case <-late:
			return
		}
	}
}

func exitOf(s *os.ProcessState) Exit {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return Exit{Code: 128 + int(w.Signal()), Signal: w.Signal()}
	}
	return Exit{Code: s.ExitCode()}
}
