package memory

import (
	"crypto/rand"

	"github.com/homeostat/homeostat/object"
)

// newName is what nobody else is called.
func newName() string { return rand.Text() }

// Restore sets the store back to snap, as a restore from a backup does; nil is a
// store that has lost everything. It was not a write: no watch tells it. All open
// watches end plainly, as if the store had been down, and page tokens expire.
//
// With a new epoch every cursor of before is expired, and revisions go on from the
// highest that there was, so that no version is given twice: nobody can take the
// state for one that it knows.
//
// Without, the store takes on the epoch and the revision that it had, as a backup
// does that nobody marked as one. Cursors up to there can be resumed if the history
// still holds what led to snap; those after it are reflector.ErrFutureCursor, until
// the revisions are given again, to other changes. Then they lead astray, and an
// object may have the version of another state of it: who has not looked in the
// meantime can't find out.
//
// Objects keep versions and IDs as they are in snap, which may be of another store:
// then this one is its copy.
func (s *Store[T]) Restore(snap *Snapshot[T], newEpoch bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if snap == nil {
		snap = &Snapshot[T]{epoch: s.epoch, make: func() runs[T] { return nil }}
	}
	s.life.Add(1)
	s.top = max(s.top, s.rev, snap.rev)
	intact := !newEpoch && snap.of == s.id && snap.epoch == s.epoch &&
		snap.rev <= s.rev && s.history.has(snap.rev, snap.serial)
	if intact {
		s.history.undo(snap.rev, s.rev)
		s.rev, s.serial = snap.rev, snap.serial
	} else {
		s.serials++
		s.rev, s.serial = snap.rev, s.serials
		if newEpoch {
			s.rev = s.top
		}
		s.history.forget(s.rev)
	}
	s.restoredLocked(snap, newEpoch)
}

func (s *Store[T]) restoredLocked(snap *Snapshot[T], newEpoch bool) {
	s.objects = make(map[string]*object.Item[T], snap.n)
	for item := range snap.from("") {
		s.objects[item.Key] = item
	}
	s.present.Store(nil)
	clear(s.states)
	s.states = s.states[:0]
	if newEpoch {
		s.epoch, s.suffix = newName(), ""
	} else {
		// A revision that is given again must not give an ID again.
		s.epoch, s.suffix = snap.epoch, "."+newName()
	}
	s.wakeLocked()
}
