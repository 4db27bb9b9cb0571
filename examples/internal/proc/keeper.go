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
)

// ErrClosed: the keeper was closed, nothing is started any more.
var ErrClosed = errors.New("proc: keeper closed")

// Keeper starts process groups and sees to it that none outlives the program.
type Keeper struct {
	self string // this binary

	mu       sync.Mutex
	closed   bool
	groups   map[*Group]struct{}
	guardian *exec.Cmd
	notes    *os.File // to the guardian

	guarded sync.WaitGroup // the goroutine that replaces a guardian that died
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
	k := &Keeper{self: self, groups: map[*Group]struct{}{}}
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
	k.guarded.Go(func() { k.replaceGuardian(cmd) })
	return nil
}

// replaceGuardian waits for the guardian's end. One that went before its time
// (somebody killed it) is replaced, and told of all groups.
func (k *Keeper) replaceGuardian(cmd *exec.Cmd) {
	cmd.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	k.notes.Close()
	k.notes = nil
	// Should this fail, Start finds no guardian and starts nothing; the groups
	// that run are ended by Close.
	_ = k.startGuardianLocked()
}

func (k *Keeper) noteLocked(sign byte, pgid int) error {
	if k.notes == nil {
		return errors.New("proc: no guardian")
	}
	if _, err := fmt.Fprintf(k.notes, "%c%d\n", sign, pgid); err != nil {
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
	k.mu.Unlock()
	k.guarded.Wait()
}
