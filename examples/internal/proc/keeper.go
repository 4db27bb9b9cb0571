//go:build unix

package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// ErrClosed: the keeper was closed, nothing is started any more.
var ErrClosed = errors.New("proc: keeper closed")

var errNoGuardian = errors.New("proc: no guardian")

// Keeper starts process groups and sees to it that none outlives the program.
type Keeper struct {
	self string // this binary

	closing chan struct{} // closed by Close

	mu       sync.Mutex
	closed   bool
	groups   map[*Group]struct{}
	guardian *exec.Cmd
	notes    *os.File // to the guardian

	guarded sync.WaitGroup // those who watch the guardian
}

// NewKeeper starts the guardian. Main must have been called before.
func NewKeeper() (*Keeper, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("proc: this program's own binary: %w", err)
	}
	if runtime.GOOS == "linux" {
		self = "/proc/self/exe" // also when the file was replaced or deleted meanwhile
	}
	k := &Keeper{self: self, groups: map[*Group]struct{}{}, closing: make(chan struct{})}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.startGuardianLocked(); err != nil {
		return nil, err
	}
	return k, nil
}

func (k *Keeper) startGuardianLocked() error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("proc: guardian: %w", err)
	}
	defer r.Close()
	cmd := &exec.Cmd{
		Path:        k.self,
		Args:        []string{guardianName},
		Stdin:       r,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		w.Close()
		return fmt.Errorf("proc: guardian: %w", err)
	}
	k.guardian, k.notes = cmd, w
	for g := range k.groups {
		if err := k.noteLocked('+', g.pid); err != nil {
			return err
		}
	}
	k.guarded.Go(func() { k.watchGuardian(cmd) })
	return nil
}

// watchGuardian waits for the guardian's end. One that went before its time
// (somebody killed it) is replaced by one that is told of all groups.
func (k *Keeper) watchGuardian(cmd *exec.Cmd) {
	cmd.Wait()
	for {
		k.mu.Lock()
		if k.notes != nil {
			k.notes.Close()
			k.notes = nil // until there is another, Start starts nothing
		}
		done := k.closed || k.startGuardianLocked() == nil
		k.mu.Unlock()
		if done {
			return
		}
		select {
		case <-k.closing:
		case <-time.After(time.Second):
		}
	}
}

// patience is how long anybody may take who has nothing to do but to answer.
const patience = 2 * time.Second

// noteLocked tells the guardian of a group. One that does not read, since somebody
// stopped it, is of no use and makes room for the next.
func (k *Keeper) noteLocked(sign byte, pgid int) error {
	if k.notes == nil {
		return errNoGuardian
	}
	k.notes.SetWriteDeadline(time.Now().Add(patience))
	_, err := fmt.Fprintf(k.notes, "%c%d\n", sign, pgid)
	if err != nil {
		k.guardian.Process.Kill()
		return fmt.Errorf("proc: guardian: %w", err)
	}
	return nil
}

// Close ends every group at once (SIGKILL; call Stop before for a gentle end),
// waits until they and the guardian are gone, and starts nothing any more. It is
// idempotent.
func (k *Keeper) Close() {
	k.mu.Lock()
	var left []*Group
	if !k.closed {
		k.closed = true
		close(k.closing)
		for g := range k.groups {
			left = append(left, g)
		}
	}
	k.mu.Unlock()

	for _, g := range left {
		g.Stop(0)
	}
	for _, g := range left {
		<-g.Done()
	}
	k.mu.Lock()
	if k.notes != nil {
		k.notes.Close() // the guardian finds nothing to do and goes
		k.notes = nil
	}
	// One that does not, since somebody stopped it, is made to.
	made := time.AfterFunc(patience, func() { k.guardian.Process.Kill() })
	k.mu.Unlock()
	k.guarded.Wait()
	made.Stop()
}
