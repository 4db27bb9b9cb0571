package fake

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Op is a set of operations.
type Op uint16

// The operations, to be joined by "|".
const (
	List Op = 1 << iota
	Watch
	Get
	Create
	Update
	Patch
	Delete

	Writes = Create | Update | Patch | Delete
)

const ops = 7 // how many there are

var opNames = [ops]string{"list", "watch", "get", "create", "update", "patch", "delete"}

// String names the operations of the set: "create|update"; "none" for none.
func (o Op) String() string {
	var names []string
	for i, name := range opNames {
		if o&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, "|")
}

// Effect is what a fault does.
type Effect uint8

// The effects. Each says which operations it can strike.
const (
	// Fail: nothing is done and Fault.Err is answered. Any operation; a watch
	// fails as it opens (see Cut for later).
	Fail Effect = iota + 1
	// FailAfterCommit: the write is done, or refused, and the answer is lost:
	// backend.ErrOutcomeUnknown. Writes.
	FailAfterCommit
	// Delay: the call waits for Fault.For before anything is done. Any operation.
	Delay
	// Expire: the cursor or page asked for is gone: reflector.ErrExpired. List and
	// Watch.
	Expire
	// Silence: a watch says nothing for Fault.For, no bookmarks either; what
	// happens in the meantime is told afterwards. With For 0 it lasts until the
	// watch is cut or the plan changes. Watch.
	Silence
	// Cut: a watch ends, with Fault.Err or, without one, as if closed. Watch.
	Cut
	// Duplicate: a watch tells the last batch again. A batch without events and
	// the parts of a streamed list are not repeated. Watch.
	Duplicate
	// Conflict: somebody else writes the object first, unchanged but under a new
	// version. A write that names a version then meets backend.ErrConflict.
	// Update, Patch and Delete.
	Conflict
)

var effects = [...]struct {
	name string
	on   Op
}{
	{"", 0},
	{"fail", List | Watch | Get | Writes},
	{"fail after commit", Writes},
	{"delay", List | Watch | Get | Writes},
	{"expire", List | Watch},
	{"silence", Watch},
	{"cut", Watch},
	{"duplicate", Watch},
	{"conflict", Update | Patch | Delete},
}

// String names the effect: "fail", "fail after commit", "delay"; "" for none.
func (e Effect) String() string {
	if int(e) < len(effects) {
		return effects[e].name
	}
	return fmt.Sprintf("Effect(%d)", uint8(e))
}

// ErrFault is what Fail answers unless the fault has an error of its own.
var ErrFault = errors.New("fake: a fault, as planned")

// Plan is a test's weather. Its zero value is calm.
type Plan struct {
	// Seed is what chance is made of. Any is as good as another.
	Seed uint64
	// Faults all strike where they can, in this order.
	Faults []Fault
}

// Fault is one thing that goes wrong, and when.
type Fault struct {
	// On is where it strikes. Defaults to every operation that Do can strike; of
	// a larger set, those that it can.
	On Op
	// Do is what happens.
	Do Effect
	// OneIn is by what chance: one in so many, on average. Defaults to always.
	OneIn int
	// Call strikes only one call: the n-th of all those in On, counted from 1
	// since the plan was set. Not together with OneIn.
	Call int
	// Err is what Fail answers (defaults to ErrFault) and Cut ends with (defaults
	// to a plain end).
	Err error
	// For is how long Delay and Silence last.
	For time.Duration
}

// check says what is wrong with a fault.
func (f Fault) check() error {
	if f.Do == 0 || int(f.Do) >= len(effects) {
		return fmt.Errorf("there is no effect %d", uint8(f.Do))
	}
	switch {
	case f.on() == 0:
		return fmt.Errorf("%v can't strike %v, only %v", f.Do, f.On, effects[f.Do].on)
	case f.OneIn < 0 || f.Call < 0 || f.For < 0:
		return fmt.Errorf("%v with a negative number", f.Do)
	case f.OneIn > 0 && f.Call > 0:
		return fmt.Errorf("%v with both OneIn and Call", f.Do)
	case f.Do == Delay && f.For == 0:
		return fmt.Errorf("%v without For", f.Do)
	case f.For != 0 && f.Do != Delay && f.Do != Silence:
		return fmt.Errorf("%v with For", f.Do)
	case f.Err != nil && f.Do != Fail && f.Do != Cut:
		return fmt.Errorf("%v with Err", f.Do)
	}
	return nil
}

// on is where the fault really strikes.
func (f Fault) on() Op {
	if f.On == 0 {
		return effects[f.Do].on
	}
	return f.On & effects[f.Do].on
}

// inStream: strikes within a watch, not as it opens.
func (f Fault) inStream() bool { return f.Do == Silence || f.Do == Cut || f.Do == Duplicate }
