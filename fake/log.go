package fake

import (
	"fmt"
	"strings"
)

// Call is one line of the log: a call, or a fault that struck within a watch.
type Call struct {
	// Caller is who called; "" when it has no name. See [Backend.As].
	Caller string
	// Op and N: the caller's N-th call of Op, counted from 1.
	Op Op
	N  int
	// Key names the object; empty for List and Watch.
	Key string
	// Fault is what struck, the last of them if several did; 0 for none.
	Fault Effect
	// Revision is where in the store's history: what a list showed, what a watch
	// began after, or had told when it was struck, what a write made. 0 for none. It is the
	// number in cursors and versions, without the epoch, which is another in every run.
	Revision int64
	// DryRun says that a write was only tried.
	DryRun bool
	// Err is what was answered.
	Err error
}

// String is the call in a line: `watch #3 at 42: cut`, and for a caller with a name
// `ann: watch #3 at 42: cut`.
func (c Call) String() string {
	var b strings.Builder
	if c.Caller != "" {
		b.WriteString(c.Caller + ": ")
	}
	fmt.Fprintf(&b, "%v #%d", c.Op, c.N)
	if c.Key != "" {
		fmt.Fprintf(&b, " %q", c.Key)
	}
	if c.DryRun {
		b.WriteString(" (dry run)")
	}
	if c.Revision != 0 {
		fmt.Fprintf(&b, " at %d", c.Revision)
	}
	if c.Fault != 0 {
		fmt.Fprintf(&b, ": %v", c.Fault)
	}
	if c.Err != nil {
		fmt.Fprintf(&b, ": %v", c.Err)
	}
	return b.String()
}

// line is a place in the log, taken when a call begins.
type line struct {
	Call
	done bool
}

// Log is what was called so far, in the order in which the calls began; those that
// are still on their way are left out. A watch is there as it opens, and again with
// each fault that strikes it and with the error that ends it. The log grows without
// bound. Of a caller with a name it has that one's calls.
func (b *Backend[T]) Log() []Call {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]Call, 0, len(b.log))
	for _, l := range b.log {
		if l.done && b.about(l.Caller) {
			all = append(all, l.Call)
		}
	}
	return all
}

// Calls counts the calls of the operations in op (zero is every one) since the
// Backend was made, those that are not done yet included; of a caller with a name,
// that one's.
func (b *Backend[T]) Calls(op Op) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, who := range b.callers {
		if !b.about(who.name) {
			continue
		}
		for i, calls := range who.calls {
			if op == 0 || op&(1<<i) != 0 {
				n += calls
			}
		}
	}
	return n
}
