//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/homeostat/homeostat/examples/internal/proc"
	"github.com/homeostat/homeostat/examples/internal/proc/proctest"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// These tests believe no word of the program's: they look at the operating
// system's processes.

// faultsIn makes this test binary the program, whose parts do what files in the
// named folder say: "panic-node" lets the node agent panic, "error-status" lets
// the status printer return an error, "crash-node" panics where nobody can catch it.
const faultsIn = "REPLICASET_TEST_FAULTS"

func TestMain(m *testing.M) {
	proc.Main()
	if dir := os.Getenv(faultsIn); dir != "" {
		os.Exit(commandAt(os.Args[1:], func(part string) error {
			exists := func(what string) bool {
				_, err := os.Stat(filepath.Join(dir, what+"-"+part))
				return err == nil
			}
			switch {
			case exists("panic"):
				panic("told to panic")
			case exists("crash"):
				go panic("told to crash")
				select {}
			case exists("error"):
				return errors.New("told to fail")
			}
			return nil
		}))
	}
	goleak.VerifyTestMain(m)
}

// binary builds the command as a user would, once.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "replicaset")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "replicaset")
	out, err := exec.Command("go", "build", "-o", file, ".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return file, err
})

// program is the command, running.
type program struct {
	*exec.Cmd
	t        *testing.T
	out, err *output
	done     chan struct{}
	groups   map[int]bool // every process group that a test has seen
	helpers  map[int]bool // the program's own processes beside it
	marker   string
	dir      string
}

type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

var markers struct {
	sync.Mutex
	n int
}

// start runs the command over a new folder.
func start(t *testing.T, args ...string) *program {
	t.Helper()
	file, err := binary()
	require.NoError(t, err)
	return launch(t, exec.Command(file), args...)
}

func launch(t *testing.T, cmd *exec.Cmd, args ...string) *program {
	t.Helper()
	markers.Lock()
	markers.n++
	marker := fmt.Sprintf("homeostat-e2e-%d-%d", os.Getpid(), markers.n)
	markers.Unlock()
	p := &program{Cmd: cmd, t: t, out: &output{}, err: &output{}, done: make(chan struct{}), groups: map[int]bool{}, helpers: map[int]bool{}, marker: marker, dir: t.TempDir()}
	p.Args = append(p.Args, append([]string{"-dir", p.dir}, args...)...)
	p.Stdout, p.Stderr = p.out, p.err
	// What still holds the streams must not hold up the test: it is looked for below.
	p.WaitDelay = 5 * time.Second
	require.NoError(t, p.Start())
	go func() { p.Wait(); close(p.done) }()
	t.Cleanup(func() {
		p.Process.Kill()
		<-p.done
		for pgid := range p.groups {
			syscall.Kill(-pgid, syscall.SIGKILL)
		}
		if t.Failed() {
			t.Logf("out:\n%s\nerr:\n%s", p.out, p.err)
		}
	})
	return p
}

// manifest is a set of shells, each with a child, that carry the test's marker.
func (p *program) manifest(name string, replicas int) string {
	return fmt.Sprintf(`
kind: ReplicaSet
name: %[1]s
replicas: %[2]d
selector: {app: %[1]s}
template:
  labels: {app: %[1]s}
  command: [sh, -c]
  args: ["sleep 100000 & wait", "%[3]s-%[1]s-"]
  gracePeriod: 1s
`, name, replicas, p.marker)
}

func (p *program) write(file, content string) {
	p.t.Helper()
	require.NoError(p.t, os.WriteFile(filepath.Join(p.dir, file), []byte(content), 0o644))
}

func (p *program) replace(file, content string) {
	p.t.Helper()
	p.write(".tmp", content)
	require.NoError(p.t, os.Rename(filepath.Join(p.dir, ".tmp"), filepath.Join(p.dir, file)))
}

// pids lists the shells of one set that have become what they shall be.
func (p *program) pids(set string) (pids []int) {
	for _, process := range proctest.Running() {
		// (The first of its group: between fork and exec a child looks like its parent.)
		if process.PID == process.PGID && strings.HasPrefix(process.Args, "sh -c") && strings.HasSuffix(process.Args, p.marker+"-"+set+"-") {
			pids = append(pids, process.PID)
			p.groups[process.PGID] = true
		}
		if process.PPID == p.Process.Pid && process.Args == "homeostat-guardian" {
			p.helpers[process.PID] = true
		}
	}
	slices.Sort(pids)
	return pids
}

const patience = 20 * time.Second

// becomes waits until a set has so many processes, and answers them.
func (p *program) becomes(set string, n int) (pids []int) {
	p.t.Helper()
	began := time.Now()
	require.Eventually(p.t, func() bool {
		pids = p.pids(set)
		return len(pids) == n
	}, patience, 10*time.Millisecond, "%s never had %d processes", set, n)
	p.t.Logf("%s has %d processes after %s", set, n, time.Since(began).Round(time.Millisecond))
	return pids
}

// stays checks that a set's processes are these for a while.
func (p *program) stays(set string, pids []int) {
	p.t.Helper()
	require.Never(p.t, func() bool { return !slices.Equal(p.pids(set), pids) }, 700*time.Millisecond, 50*time.Millisecond)
}

func (p *program) says(o *output, pattern string) {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	require.Eventually(p.t, func() bool { return re.MatchString(o.String()) }, patience, 5*time.Millisecond, "%s in\n%s", pattern, o)
}

// ends waits for the program's end and that nothing of it is left.
func (p *program) ends() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		require.Fail(p.t, "the program does not end", p.err.String())
	}
	p.leavesNothing()
	return p.ProcessState.ExitCode()
}

func (p *program) leavesNothing() {
	p.t.Helper()
	var left []proctest.Process
	require.Eventually(p.t, func() bool {
		left = nil
		for _, process := range proctest.Running() {
			helper := strings.HasPrefix(process.Args, "homeostat-") && p.helpers[process.PID]
			if p.groups[process.PGID] || strings.Contains(process.Args, p.marker) || helper {
				left = append(left, process)
			}
		}
		return len(left) == 0
	}, patience, 10*time.Millisecond, "left behind: %v", left)
}

func TestUntilConvergedOverTheManifestsBesideTheExample(t *testing.T) {
	t.Parallel()
	file, err := binary()
	require.NoError(t, err)
	cmd := exec.Command(file, "-until-converged", "-timeout", "1m")
	cmd.Dir = t.TempDir() // from anywhere
	out, err := cmd.Output()
	require.NoError(t, err, "%s", out)
	running := regexp.MustCompile(`(?m)^.* pod (\S+) Running pid=(\d+)`).FindAllStringSubmatch(string(out), -1)
	pods := map[string]bool{}
	for _, m := range running {
		pods[m[1]] = true
		pid, _ := strconv.Atoi(m[2])
		require.Greater(t, pid, 1)
	}
	require.Len(t, pods, 6, "%s", out)
	for name, n := range map[string]int{"web": 3, "ticker": 1, "worker": 2} {
		require.Contains(t, string(out), fmt.Sprintf("set %s: %d of %d run", name, n, n))
	}
}

func TestUntilConvergedWaitsForRealProcesses(t *testing.T) {
	t.Parallel()
	p := start(t, "-until-converged", "-timeout", "2s")
	p.write("a.yaml", strings.Replace(p.manifest("a", 1), "[sh, -c]", "[no-such-command]", 1))
	require.Equal(t, 1, p.ends())
	require.Contains(t, p.err.String(), "not as declared in time")
	require.Contains(t, p.out.String(), "BackOff")
	require.Contains(t, p.out.String(), "no-such-command")

	p = start(t, "-until-converged", "-timeout", "2s")
	p.write("a.yaml", "kind: [\n")
	require.Equal(t, 1, p.ends(), "a file at fault is not as declared")
}

func TestUntilConvergedIsNotTakenInByAMoment(t *testing.T) {
	t.Parallel()
	p := start(t, "-until-converged", "-timeout", "3s")
	p.write("a.yaml", strings.Replace(p.manifest("a", 1), "sleep 100000 & wait", "exit 0", 1))
	require.Equal(t, 1, p.ends(), "it ran, but only for a moment: %s", p.out)
}

func TestUntilConvergedThatIsStoppedBeforeIsAFailure(t *testing.T) {
	t.Parallel()
	p := start(t, "-until-converged")
	p.write("a.yaml", "kind: [\n")
	p.says(p.err, "a\\.yaml")
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 1, p.ends())
	require.Contains(t, p.err.String(), "stopped before")
}

func TestASecondSignalDoesNotWait(t *testing.T) {
	t.Parallel()
	p := start(t)
	deaf := strings.Replace(p.manifest("deaf", 1), "sleep 100000 &", "trap '' TERM INT; sleep 100000 & wait;", 1)
	p.write("deaf.yaml", strings.Replace(deaf, "gracePeriod: 1s", "gracePeriod: 10m", 1))
	p.becomes("deaf", 1)
	p.says(p.out, "Running")
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	// The first has been taken when the default action is back: the second ends the
	// program then, and the guardian what runs.
	require.Eventually(t, func() bool {
		p.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
			return true
		default:
			return false
		}
	}, patience, 20*time.Millisecond)
	require.NotEqual(t, 0, p.ends())
}

func TestFollowsTheFolder(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.write("a.yaml", p.manifest("a", 2))
	first := p.becomes("a", 2)
	p.says(p.out, `pod a-\S+ (Pending → )?Running pid=`+strconv.Itoa(first[0]))

	p.write("a.yaml", p.manifest("a", 4)) // in place
	four := p.becomes("a", 4)
	require.Subset(t, four, first, "what ran runs on")

	p.replace("a.yaml", p.manifest("a", 1)) // by rename
	one := p.becomes("a", 1)
	require.Subset(t, first, one, "the older stays")

	require.NoError(t, syscall.Kill(one[0], syscall.SIGKILL)) // by hand
	require.Eventually(t, func() bool {
		now := p.pids("a")
		return len(now) == 1 && now[0] != one[0]
	}, patience, 10*time.Millisecond)
	p.says(p.out, `pod a-\S+ .*Running pid=\d+ restarts=1 last="killed by SIGKILL"`)
	again := p.pids("a")

	p.write("b.json", fmt.Sprintf(`{"kind":"ReplicaSet","name":"b","replicas":2,"selector":{"app":"b"},
		"template":{"labels":{"app":"b"},"command":["sh","-c","sleep 100000 & wait","%s-b-"]}}`, p.marker))
	p.becomes("b", 2)

	half := p.manifest("a", 3)
	p.write("a.yaml", half[:strings.Index(half, "template")])
	p.says(p.err, `a\.yaml.*line=2.*template: command: missing`)
	p.stays("a", again)
	p.replace("a.yaml", "kind: ReplicaSet\nname: a\nreplicas: 3\n  selector: x\n")
	p.says(p.err, `a\.yaml.*line=4`)
	p.write("a.yaml", "")
	p.says(p.err, "empty file")
	p.stays("a", again)
	p.write("a.yaml", "\n")
	p.stays("a", again)
	require.Len(t, p.pids("b"), 2)
	p.write("a.yaml", p.manifest("a", 3))
	require.Subset(t, p.becomes("a", 3), again)
	p.says(p.out, `a\.yaml is good again`)

	p.write("twice.yaml", p.manifest("a", 9))
	p.says(p.err, `twice\.yaml.*line=2.*a\.yaml, line 2`)
	require.NoError(t, os.Remove(filepath.Join(p.dir, "twice.yaml")))

	require.NoError(t, os.Remove(filepath.Join(p.dir, "a.yaml")))
	p.becomes("a", 0)
	p.replace("b.json", "[]")
	p.says(p.err, `b\.json`)
	require.Len(t, p.pids("b"), 2)
	require.NoError(t, os.Remove(filepath.Join(p.dir, "b.json")))
	p.becomes("b", 0)

	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, p.ends())
}

func TestFollowsAMountedConfigMap(t *testing.T) {
	t.Parallel()
	p := start(t)
	for version, replicas := range []int{1, 3, 2} {
		folder := fmt.Sprintf("..v%d", version)
		require.NoError(t, os.Mkdir(filepath.Join(p.dir, folder), 0o755))
		p.write(filepath.Join(folder, "a.yaml"), p.manifest("a", replicas))
		require.NoError(t, os.Symlink(folder, filepath.Join(p.dir, "..tmp")))
		require.NoError(t, os.Rename(filepath.Join(p.dir, "..tmp"), filepath.Join(p.dir, "..data")))
		if version == 0 {
			require.NoError(t, os.Symlink("..data/a.yaml", filepath.Join(p.dir, "a.yaml")))
		}
		p.becomes("a", replicas)
	}
}

func TestAChangedTemplateIsForNewPodsOnly(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.write("a.yaml", p.manifest("a", 2))
	old := p.becomes("a", 2)
	p.write("a.yaml", strings.Replace(p.manifest("a", 3), p.marker+"-a-", p.marker+"-new-", 1))
	p.becomes("new", 1)
	require.Equal(t, old, p.pids("a"))
	require.NoError(t, syscall.Kill(old[0], syscall.SIGTERM))
	p.becomes("a", 2) // a restart is not a new Pod
}

func TestEverySignalLeavesNothing(t *testing.T) {
	t.Parallel()
	// Under nohup the program would inherit that SIGHUP is ignored, and keep to it.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(caught) })
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			p := start(t)
			p.write("a.yaml", p.manifest("a", 2))
			// One that does not listen has to be killed.
			p.write("deaf.yaml", strings.Replace(p.manifest("deaf", 1), "sleep 100000 &", "trap '' TERM INT HUP QUIT; sleep 100000 & wait;", 1))
			p.becomes("a", 2)
			p.becomes("deaf", 1)
			require.NoError(t, p.Process.Signal(sig))
			code := p.ends()
			if sig != syscall.SIGKILL {
				require.Equal(t, 0, code, p.err)
				require.Empty(t, p.err.String(), "a stop is not an error")
			}
		})
	}
}

func TestAPartThatBreaksBreaksNothingElse(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	withFaults := func(t *testing.T) (*program, func(name string, there bool)) {
		faults := t.TempDir()
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), faultsIn+"="+faults)
		return launch(t, cmd), func(name string, there bool) {
			file := filepath.Join(faults, name)
			if there {
				require.NoError(t, os.WriteFile(file, nil, 0o644))
			} else {
				require.NoError(t, os.Remove(file))
			}
		}
	}
	for _, part := range []string{"source", "controller", "node", "printer"} {
		t.Run(part+" panics", func(t *testing.T) {
			t.Parallel()
			p, fault := withFaults(t)
			p.write("a.yaml", p.manifest("a", 2))
			pids := p.becomes("a", 2)
			fault("panic-"+part, true)
			p.write("a.yaml", p.manifest("a", 3))
			p.says(p.err, "told to panic")
			require.Subset(t, p.pids("a"), pids, "what ran runs on")
			fault("panic-"+part, false)
			p.write("a.yaml", p.manifest("a", 4)) // and it goes on where it can
			p.becomes("a", 4)

			fault("panic-"+part, true)
			require.NoError(t, p.Process.Signal(syscall.SIGTERM))
			require.Equal(t, 0, p.ends())
		})
	}
	t.Run("an error is returned", func(t *testing.T) {
		t.Parallel()
		p, fault := withFaults(t)
		p.write("a.yaml", p.manifest("a", 2))
		p.becomes("a", 2)
		fault("error-status", true)
		require.Equal(t, 1, p.ends())
		require.Contains(t, p.err.String(), "told to fail")
	})
	t.Run("the status panics", func(t *testing.T) {
		t.Parallel()
		p, fault := withFaults(t)
		p.write("a.yaml", p.manifest("a", 2))
		p.becomes("a", 2)
		fault("panic-status", true)
		require.Equal(t, 1, p.ends())
		require.Contains(t, p.err.String(), "told to panic")
	})
	t.Run("a crash", func(t *testing.T) {
		t.Parallel()
		p, fault := withFaults(t)
		p.write("a.yaml", p.manifest("a", 2))
		p.becomes("a", 2)
		fault("crash-controller", true)
		p.write("a.yaml", p.manifest("a", 3))
		require.Equal(t, 2, p.ends())
	})
}

func TestAWrongFlagIsOneLineAndStatus2(t *testing.T) {
	t.Parallel()
	file, err := binary()
	require.NoError(t, err)
	noFolder := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(noFolder, nil, 0o644))
	for _, args := range [][]string{
		{"-no-such-flag"},
		{"-until-converged=perhaps"},
		{"-dir"},
		{"-dir", "/no/such/folder"},
		{"-dir", noFolder},
		{"-logs", "/no/such/folder"},
		{"-timeout", "soon", "-until-converged"},
		{"-timeout", "-1s", "-until-converged"},
		{"-timeout", "1s"},
		{"manifests"},
	} {
		var out, errs bytes.Buffer
		cmd := exec.Command(file, args...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, args)
		require.Equal(t, 2, exit.ExitCode(), args)
		require.Empty(t, out.String())
		require.Equal(t, 1, strings.Count(errs.String(), "\n"), errs.String())
		require.True(t, strings.HasPrefix(errs.String(), "replicaset: "), errs.String())
	}
	out, err := exec.Command(file, "-help").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "-until-converged")
}

func TestLogsGoWhereTheyAreWanted(t *testing.T) {
	t.Parallel()
	logs := t.TempDir()
	p := start(t, "-logs", logs)
	p.write("a.yaml", strings.Replace(p.manifest("a", 1), "sleep 100000", "echo hello $COLOUR; sleep 100000", 1)+"  env: {COLOUR: blue}\n")
	p.becomes("a", 1)
	require.Eventually(t, func() bool {
		files, _ := filepath.Glob(filepath.Join(logs, "a-*.log"))
		if len(files) != 1 {
			return false
		}
		f, err := os.Open(files[0])
		require.NoError(t, err)
		defer f.Close()
		text, _ := io.ReadAll(f)
		return string(text) == "hello blue\n"
	}, patience, 10*time.Millisecond)
}
