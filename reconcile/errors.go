package reconcile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What Run answers before anything has started.
var (
	// ErrInvalidOptions: a constructor was given something that cannot work. Run
	// returns all that is wrong at once, joined.
	ErrInvalidOptions = errors.New("reconcile: invalid options")
	// ErrAlreadyRunning: Run is for once; a restart is a new Controller.
	ErrAlreadyRunning = errors.New("reconcile: was run before; it runs once")
)

// What a run meets.
var (
	// ErrNotSynced: a tracked backend refused a write, because in a run nothing is
	// written on the word of a cache that has not seen its source yet.
	ErrNotSynced = errors.New("reconcile: cache not synced")
	// ErrTimeout is the cause of a run's context that Options.Timeout ended.
	ErrTimeout = errors.New("reconcile: run timed out")
	// ErrStopping is the cause of a run's context that ended because the grace
	// period after a stop had passed.
	ErrStopping = errors.New("reconcile: stopping")
)

// PanicError is a panic of the caller's code, caught where it was called, or of the
// methods of an error that it returned (a nil pointer in an error, say). Where
// says whose, and for which key. It wraps nothing: an error that was panicked with
// decides nothing, whatever it wraps.
type PanicError struct {
	Where string
	Value any
	Stack []byte
}

// Error names what panicked and with what, in one line without the stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("reconcile: panic in %s: %v", e.Where, e.Value)
}

// StillRunning names what had not ended when Run gave up on it: work that went
// on after the grace period and after its context was cancelled. Its goroutines
// are the only ones that are left. A runner that was waited for, and whose
// WaitForSync has not returned, is named and not the one that waits for it.
type StillRunning struct {
	// Keys are the keys still at work, sorted, by the name of their controller. A
	// runner of another kind that did not return has its name and no keys.
	Keys map[string][]string
}

// Error lists all names and keys.
func (e *StillRunning) Error() string {
	var b strings.Builder
	b.WriteString("reconcile: still running:")
	sep := " "
	for _, name := range slices.Sorted(maps.Keys(e.Keys)) {
		b.WriteString(sep + name)
		sep = "; "
		for i, key := range e.Keys[name] {
			if i > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, " %q", key)
		}
	}
	return b.String()
}
