package fake

import (
	"errors"
	"fmt"
	"slices"
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

const (
	all = List | Watch | Get | Writes
	ops = 7 // how many there are
)

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
	// Delay: the call waits for Fault.For before anything is done. A watch waits as
	// it opens and, unless the fault names one Call, before a batch, which is then
	// told together with all else that had happened when the wait began: struck
	// always, a watch lags behind by Fault.For to twice that. Parts of a streamed
	// list do not wait. Any operation.
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
	// Duplicate: a watch tells the last batch again. Watch; see the package
	// documentation.
	Duplicate
	// Reorder: a batch is told after the one that follows it. When that is no
	// change but a bookmark, the batch is told late, before it. Watch; see the
	// package documentation.
	Reorder
	// Drop: a batch is not told. Watch; see the package documentation.
	Drop
	// PartialPage: the second half of the answer is missing (of one object, that
	// one), and nothing says so: a page has no Next. Of a list that a watch
	// streams, half of each part. List and Watch.
	PartialPage
	// StaleRead: the answer is a state of Fault.Back revisions ago, or the oldest
	// that the history reaches, with the cursor of that state. One that lies
	// before ListOptions.NotBefore is reflector.ErrFutureCursor; later pages are
	// as old as the first and are not struck. List and Get.
	StaleRead
	// Conflict: somebody else writes the object first, unchanged but under a new
	// version. A write that names a version then meets backend.ErrConflict.
	// Update, Patch and Delete.
	Conflict
	// Restore: the store is first set back to what it was when the plan was set or,
	// with Fault.Back, to Back revisions ago (at most as far as the history
	// reaches), as memory.Store.Restore does it: all watches end. Any operation.
	Restore
)

var effects = [...]struct {
	name string
	on   Op
}{
	{"", 0},
	{"fail", all},
	{"fail after commit", Writes},
	{"delay", all},
	{"expire", List | Watch},
	{"silence", Watch},
	{"cut", Watch},
	{"duplicate", Watch},
	{"reorder", Watch},
	{"drop", Watch},
	{"partial page", List | Watch},
	{"stale read", List | Get},
	{"conflict", Update | Patch | Delete},
	{"restore", all},
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
	// Call strikes only one call of each caller: its n-th of all those in On,
	// counted from 1 since the plan was set. Not together with OneIn.
	Call int
	// Err is what Fail answers (defaults to ErrFault) and Cut ends with (defaults
	// to a plain end).
	Err error
	// For is how long Delay and Silence last.
	For time.Duration
	// Back is how many revisions StaleRead and Restore go back. Defaults to 1 for
	// StaleRead; for Restore, to the state of when the plan was set.
	Back int
	// NewEpoch has Restore begin a new epoch: every cursor of before is expired.
	NewEpoch bool
	// Unseen has the source not know that it dropped or reordered: what it says of
	// the batch before (Batch.Prev) then shows no gap.
	Unseen bool
}

// check says what is wrong with a fault.
func (f Fault) check() error {
	if f.Do == 0 || int(f.Do) >= len(effects) {
		return fmt.Errorf("there is no effect %d", uint8(f.Do))
	}
	switch {
	case f.on() == 0:
		return fmt.Errorf("%v can't strike %v, only %v", f.Do, f.On, effects[f.Do].on)
	case f.OneIn < 0 || f.Call < 0 || f.For < 0 || f.Back < 0:
		return fmt.Errorf("%v with a negative number", f.Do)
	case f.OneIn > 0 && f.Call > 0:
		return fmt.Errorf("%v with both OneIn and Call", f.Do)
	case f.Do == Delay && f.For == 0:
		return fmt.Errorf("%v without For", f.Do)
	case f.For != 0 && !f.does(Delay, Silence):
		return fmt.Errorf("%v with For", f.Do)
	case f.Err != nil && !f.does(Fail, Cut):
		return fmt.Errorf("%v with Err", f.Do)
	case f.Back != 0 && !f.does(StaleRead, Restore):
		return fmt.Errorf("%v with Back", f.Do)
	case f.NewEpoch && !f.does(Restore):
		return fmt.Errorf("%v with NewEpoch", f.Do)
	case f.Unseen && !f.does(Drop, Reorder):
		return fmt.Errorf("%v with Unseen", f.Do)
	}
	return nil
}

func (f Fault) does(some ...Effect) bool { return slices.Contains(some, f.Do) }

// on is where the fault really strikes.
func (f Fault) on() Op {
	if f.On == 0 {
		return effects[f.Do].on
	}
	return f.On & effects[f.Do].on
}

// inStream: strikes within a watch, not as it opens.
func (f Fault) inStream() bool { return f.does(Silence, Cut, Duplicate, Reorder, Drop) }
