//go:build unix

package proc_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/homeostat/homeostat/examples/internal/proc"
	"github.com/homeostat/homeostat/examples/internal/proc/proctest"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// asProgram makes this test binary a program that starts groups, prints their
// numbers and waits, so that a test can end it in the ways that a test of its
// own process could not survive.
const asProgram = "PROC_TEST_PROGRAM"

func TestMain(m *testing.M) {
	proc.Main()
	if os.Getenv(asProgram) != "" {
		program()
		return
	}
	goleak.VerifyTestMain(m)
}

func program() {
	keeper, err := proc.NewKeeper()
	if err != nil {
		fmt.Println("error", err)
		return
	}
	for range 2 {
		g, err := keeper.Start(context.Background(), shell(family))
		if err != nil {
			fmt.Println("error", err)
			return
		}
		fmt.Println(g.PID())
	}
	fmt.Println("ready")
	if lines := bufio.NewScanner(os.Stdin); lines.Scan() && lines.Text() == "close" {
		keeper.Close()
		return
	}
	panic("told to crash")
}

// family is a shell with a child that ignores SIGTERM and one that does not.
const family = `trap "" TERM; sleep 1000 & (trap - TERM; exec sleep 1000) & wait; wait; wait`

func shell(script string) proc.Command {
	return proc.Command{Path: "sh", Args: []string{"-c", script}}
}

func newKeeper(t *testing.T) *proc.Keeper {
	k, err := proc.NewKeeper()
	require.NoError(t, err)
	t.Cleanup(k.Close)
	return k
}

func start(t *testing.T, k *proc.Keeper, c proc.Command) *proc.Group {
	g, err := k.Start(t.Context(), c)
	require.NoError(t, err)
	return g
}

// requireGone waits until nothing that runs is in the group.
func requireGone(t *testing.T, pgid int) {
	t.Helper()
	require.Eventually(t, func() bool { return len(members(pgid)) == 0 }, 10*time.Second, 10*time.Millisecond,
		"group %d still has %v", pgid, members(pgid))
}

// members lists the processes of a group that run.
func members(pgid int) (pids []int) {
	for _, p := range proctest.Running() {
		if p.PGID == pgid {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

func requireMembers(t *testing.T, pgid, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return len(members(pgid)) == n }, 10*time.Second, 10*time.Millisecond,
		"group %d has %v, wanted %d", pgid, members(pgid), n)
}

func TestCommandsEndAsTheyEnd(t *testing.T) {
	k := newKeeper(t)
	for _, c := range []struct {
		name, script string
		want         proc.Exit
		text         string
	}{
		{"well", "exit 0", proc.Exit{}, "exit status 0"},
		{"with a status", "exit 7", proc.Exit{Code: 7}, "exit status 7"},
		{"by a signal", "kill -KILL $$", proc.Exit{Code: 137, Signal: syscall.SIGKILL}, "killed by SIGKILL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := start(t, k, shell(c.script))
			require.Equal(t, c.want, g.Exit())
			require.Equal(t, c.text, g.Exit().String())
		})
	}
}

func TestCommandGetsItsEnvironmentAndNoMore(t *testing.T) {
	k := newKeeper(t)
	file := filepath.Join(t.TempDir(), "out")
	out, err := os.Create(file)
	require.NoError(t, err)
	defer out.Close()
	c := shell(`pwd; env | grep -v -e ^PWD= -e ^SHLVL= -e ^_= -e ^OLDPWD=; echo "$0"; ls /dev/fd | wc -l`)
	c.Env, c.Dir, c.Output = []string{"COLOUR=blue"}, "/", out
	require.Equal(t, 0, start(t, k, c).Exit().Code)
	got, err := os.ReadFile(file)
	require.NoError(t, err)

	// The same without us: nothing of ours is among the open files.
	plain := exec.Command(c.Path, c.Args...)
	plain.Env, plain.Dir = c.Env, c.Dir
	want, err := plain.Output()
	require.NoError(t, err)
	require.Equal(t, strings.Fields(string(want)), strings.Fields(string(got)))
	require.Equal(t, []string{"/", "COLOUR=blue", "sh"}, strings.Fields(string(got))[:3])
}

func TestACommandThatCannotRunIsAnError(t *testing.T) {
	k := newKeeper(t)
	noProgram := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(noProgram, []byte("\x00no program"), 0o755))
	for _, path := range []string{"no-such-command-anywhere", "/no/such/file", t.TempDir(), noProgram} {
		_, err := k.Start(t.Context(), proc.Command{Path: path})
		require.Error(t, err, path)
		require.Contains(t, err.Error(), path)
	}
}

func TestStopIsGentleFirst(t *testing.T) {
	k := newKeeper(t)
	g := start(t, k, shell(`trap "exit 3" TERM; sleep 1000 & wait`))
	requireMembers(t, g.PID(), 2)
	g.Stop(time.Minute)
	require.Equal(t, 3, g.Exit().Code)
	requireGone(t, g.PID())
}

func TestStopKillsWhatDoesNotListen(t *testing.T) {
	k := newKeeper(t)
	g := start(t, k, shell(family))
	requireMembers(t, g.PID(), 3)
	g.Stop(50 * time.Millisecond)
	g.Stop(time.Hour) // only the first counts
	require.Equal(t, syscall.SIGKILL, g.Exit().Signal)
	requireGone(t, g.PID())
}

// The usual wrapper dies of SIGTERM at once; what it started has its grace period.
func TestTheWholeGroupHasTheGracePeriod(t *testing.T) {
	k := newKeeper(t)
	dir := t.TempDir()
	ready, cleaned := filepath.Join(dir, "ready"), filepath.Join(dir, "cleaned")
	g := start(t, k, shell(`sh -c 'trap "sleep 0.3; echo > `+cleaned+`; exit" TERM; echo > `+ready+`; while :; do sleep 0.05; done' & wait`))
	require.Eventually(t, func() bool { _, err := os.Stat(ready); return err == nil }, 10*time.Second, time.Millisecond)
	g.Stop(time.Minute)
	require.Equal(t, syscall.SIGTERM, g.Exit().Signal)
	require.FileExists(t, cleaned)
	requireGone(t, g.PID())
}

func TestNothingIsStartedOnceTheContextHasEnded(t *testing.T) {
	k := newKeeper(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := k.Start(ctx, shell("sleep 1000"))
	require.ErrorIs(t, err, context.Canceled)
}

func TestTheGuardianEndsWhatItWasToldOfAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	run := func(name, script string) int {
		cmd := exec.Command("sh", "-c", script+"; echo > "+file(name)+"; while :; do sleep 0.05; done")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); cmd.Wait() })
		require.Eventually(t, func() bool { _, err := os.Stat(file(name)); return err == nil }, 10*time.Second, time.Millisecond)
		return cmd.Process.Pid
	}
	gentle := run("gentle", `trap "echo > `+file("asked")+`; exit" TERM`)
	deaf := run("deaf", `trap "" TERM`)
	stopped := run("stopped", "true")
	require.NoError(t, syscall.Kill(stopped, syscall.SIGSTOP))
	ended := run("ended", "true")
	unknown := run("unknown", "true")
	r, w, err := os.Pipe()
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	guardian := &exec.Cmd{Path: self, Args: []string{"homeostat-guardian"}, Stdin: r}
	require.NoError(t, guardian.Start())
	r.Close()
	fmt.Fprintf(w, "+%d\n+%d\n+%d\n+%d\n-%d\n\n+1\n+0\n+x\n", gentle, deaf, stopped, ended, ended)
	w.Close()
	require.NoError(t, guardian.Wait())
	for _, pgid := range []int{gentle, deaf, stopped} {
		requireGone(t, pgid)
	}
	require.FileExists(t, file("asked"))
	require.NotEmpty(t, members(ended), "its number may be somebody else's by now")
	require.NotEmpty(t, members(unknown))
}

func TestTheGuardianIsToldOfEachBeginningAndEnd(t *testing.T) {
	k := newKeeper(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	pipe := proc.Tap(k, w)
	g := start(t, k, shell("exit 0"))
	g.Exit()
	proc.Tap(k, pipe).Close()
	lines := bufio.NewScanner(r)
	require.True(t, lines.Scan())
	require.Equal(t, fmt.Sprintf("+%d", g.PID()), lines.Text())
	require.True(t, lines.Scan())
	require.Equal(t, fmt.Sprintf("-%d", g.PID()), lines.Text())
}

func TestAGuardianThatWasStoppedHoldsUpNobody(t *testing.T) {
	p := runProgram(t)
	require.NoError(t, syscall.Kill(p.guardian(t), syscall.SIGSTOP))
	fmt.Fprintln(p.stdin, "close")
	require.NoError(t, p.Wait())
	for _, pgid := range p.groups {
		requireGone(t, pgid)
	}
}

func TestStopReachesAStoppedProcess(t *testing.T) {
	k := newKeeper(t)
	g := start(t, k, proc.Command{Path: "sleep", Args: []string{"1000"}})
	require.NoError(t, syscall.Kill(g.PID(), syscall.SIGSTOP))
	g.Stop(time.Minute)
	require.Equal(t, syscall.SIGTERM, g.Exit().Signal)
}

func TestTheGroupEndsWithItsFirstProcess(t *testing.T) {
	k := newKeeper(t)
	g := start(t, k, shell(`(trap "" TERM; sleep 1000) & sleep 1000 & exit 0`))
	require.Equal(t, 0, g.Exit().Code)
	requireGone(t, g.PID())
}

func TestCloseEndsEverything(t *testing.T) {
	k := newKeeper(t)
	a, b := start(t, k, shell(family)), start(t, k, shell(family))
	k.Close()
	requireGone(t, a.PID())
	requireGone(t, b.PID())
	k.Close()
	_, err := k.Start(t.Context(), shell("exit 0"))
	require.ErrorIs(t, err, proc.ErrClosed)
}

func TestAGateWhoseProgramIsGoneGoes(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "ran")
	gate := &exec.Cmd{Path: self, Args: []string{"homeostat-gate", "/bin/sh", "sh", "-c", "echo > " + file}, ExtraFiles: []*os.File{r}}
	require.NoError(t, gate.Start())
	r.Close()
	w.Close()
	require.Error(t, gate.Wait())
	require.NoFileExists(t, file)
}

// running is a program with two groups, in a process of its own.
type running struct {
	*exec.Cmd
	groups []int
	stdin  io.WriteCloser
}

func runProgram(t *testing.T) *running {
	self, err := os.Executable()
	require.NoError(t, err)
	p := &running{Cmd: exec.Command(self)}
	p.Env = append(os.Environ(), asProgram+"=1")
	p.stdin, err = p.StdinPipe()
	require.NoError(t, err)
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	t.Cleanup(func() { p.Process.Kill(); p.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
		pgid, err := strconv.Atoi(lines.Text())
		require.NoError(t, err)
		requireMembers(t, pgid, 3)
		p.groups = append(p.groups, pgid)
	}
	require.Len(t, p.groups, 2)
	return p
}

// guardian finds the program's guardian among all processes.
func (p *running) guardian(t *testing.T) (pid int) {
	require.Eventually(t, func() bool {
		for _, other := range proctest.Running() {
			if other.PPID == p.Process.Pid && other.Args == "homeostat-guardian" {
				pid = other.PID
			}
		}
		return pid != 0
	}, 10*time.Second, 10*time.Millisecond)
	return pid
}

func TestNothingOutlivesTheProgram(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(t *testing.T, p *running)
	}{
		{"killed", func(t *testing.T, p *running) { p.Process.Kill() }},
		{"aborted", func(t *testing.T, p *running) { p.Process.Signal(syscall.SIGABRT) }},
		{"crashed by a panic", func(t *testing.T, p *running) { p.stdin.Close() }},
		{"killed after its guardian was", func(t *testing.T, p *running) {
			first := p.guardian(t)
			require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
			require.Eventually(t, func() bool { return p.guardian(t) != first }, 10*time.Second, 10*time.Millisecond)
			p.Process.Kill()
		}},
		{"killed after its guardian was asked to go", func(t *testing.T, p *running) {
			for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
				require.NoError(t, syscall.Kill(p.guardian(t), sig))
			}
			p.Process.Kill()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := runProgram(t)
			guardian := p.guardian(t)
			c.end(t, p)
			err := p.Wait()
			var exit *exec.ExitError
			require.True(t, errors.As(err, &exit), err)
			for _, pgid := range p.groups {
				requireGone(t, pgid)
			}
			requireGone(t, guardian) // its session leader is its own group
		})
	}
}
