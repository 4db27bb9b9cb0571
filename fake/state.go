package fake

import (
	"context"
	"strconv"
	"strings"

	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/reflector"
)

// Snapshot is the store's present state, to Restore it later.
func (b *Backend[T]) Snapshot() *memory.Snapshot[T] { return b.store.Snapshot() }

// Restore sets the store back to snap, as memory.Store.Restore does: all watches
// end, whoever's they are.
func (b *Backend[T]) Restore(snap *memory.Snapshot[T], newEpoch bool) {
	b.store.Restore(snap, newEpoch)
}

// ago is the state of n revisions before now, or the oldest that the history
// reaches.
func (b *Backend[T]) ago(n int) *memory.Snapshot[T] {
	now := b.store.Snapshot()
	head := revision(now.Cursor())
	for rev := max(0, head-int64(n)); rev < head; rev++ {
		if snap, err := b.store.SnapshotAt(place(now.Cursor(), rev)); err == nil {
			return snap
		}
	}
	return now
}

// head is the revision of now.
func (b *Backend[T]) head() int64 {
	c, _ := b.store.Powers().Head(context.Background()) // the store never waits
	return revision(c)
}

// back does what a fault with Restore says.
func (b *Backend[T]) back(f Fault, under *weather) {
	snap, _ := under.origin.(*memory.Snapshot[T])
	if f.Back > 0 {
		snap = b.ago(f.Back)
	}
	b.store.Restore(snap, f.NewEpoch)
}

// revision is the number in a cursor or a version of backend/memory.
func revision[S ~string](s S) int64 {
	digits := string(s)
	if i := strings.LastIndexByte(digits, '.'); i >= 0 {
		digits = digits[i+1:]
	}
	n, _ := strconv.ParseInt(digits, 10, 64) // of nothing, or of somebody else's: 0
	return n
}

// place is the cursor of another revision of the same epoch.
func place(c reflector.Cursor, rev int64) reflector.Cursor {
	epoch := c[:strings.LastIndexByte(string(c), '.')+1]
	return epoch + reflector.Cursor(strconv.FormatInt(rev, 10))
}
