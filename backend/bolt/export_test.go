package bolt

import (
	"errors"

	"go.etcd.io/bbolt"
)

// NoSync leaves out the waiting for the disk, for tests in which nobody pulls the
// plug.
func NoSync[T any](s *Store[T]) { s.file.db.NoSync = true }

// MaxSize lets the file grow no further than this: a full disk.
func MaxSize[T any](s *Store[T], bytes int) { s.file.db.MaxSize = bytes }

// Unplug takes the file away: every write to it fails from now on.
func Unplug[T any](s *Store[T]) error { return s.file.os.Close() }

// AfterCommit calls fn after each commit, before anybody is told of it. Its error is
// taken for the commit's.
func AfterCommit[T any](s *Store[T], fn func() error) { s.file.afterCommit = fn }

// Queued is how many writes wait for the next commit.
func Queued[T any](s *Store[T]) int {
	s.file.mu.Lock()
	defer s.file.mu.Unlock()
	return len(s.file.queue)
}

// Commits is how many transactions were committed.
func Commits[T any](s *Store[T]) (n int) {
	s.file.view(func(st *state) error { n = st.root.Tx().ID(); return nil })
	return n
}

// Check has bbolt look at every page of the file.
func Check[T any](s *Store[T]) error {
	var err error
	return s.file.db.View(func(tx *bbolt.Tx) error {
		for e := range tx.Check() {
			err = errors.Join(err, e)
		}
		return err
	})
}
