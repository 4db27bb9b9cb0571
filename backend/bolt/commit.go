package bolt

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"go.etcd.io/bbolt"
)

// The most that one commit writes: whoever comes later does not wait for all.
const (
	maxGroup      = 256
	maxGroupBytes = 16 << 20
)

// write is one revision to be. What goes with it is known before its turn comes:
// nobody's code runs within a commit.
type write struct {
	op, key string
	want    object.Version // precondition; not of a create
	id      string         // precondition, unless empty
	at      int64          // precondition, unless 0: the revision that was read
	data    []byte         // the object; not of a delete

	// The answer, once done is closed.
	done chan struct{}
	made record
	err  error
}

// errMoved: the object is not as it was read, at write.at.
var errMoved = errors.New("bolt: changed in the meantime")

// errUnchanged rolls back a commit with nothing in it.
var errUnchanged = errors.New("bolt: nothing to commit")

// submit waits until w is written or refused. Whoever comes while a commit is under
// way waits together with the others; the first of them to get the turn writes them
// all in one commit. There is no goroutine for it.
func (f *file) submit(ctx context.Context, w *write) error {
	if err := f.enter(); err != nil {
		return err
	}
	defer f.leave()
	w.done = make(chan struct{})
	f.mu.Lock()
	f.queue = append(f.queue, w)
	f.mu.Unlock()
	for {
		select {
		case <-w.done:
			return w.err
		case f.turn <- struct{}{}:
			f.commit(f.group())
			<-f.turn
		case <-ctx.Done():
			if f.withdrawn(w) {
				return ctx.Err()
			}
			<-w.done // it is being written: what becomes of it is known in a moment
			return w.err
		}
	}
}

// alone runs fn while no commit is under way, and none begins.
func (f *file) alone(ctx context.Context, fn func() error) error {
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-f.closing:
		return ErrClosed
	}
	defer func() { <-f.turn }()
	return fn()
}

// group takes from the queue what goes into the next commit.
func (f *file) group() []*write {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, size := 0, 0
	for n < min(len(f.queue), maxGroup) && (n == 0 || size+len(f.queue[n].data) <= maxGroupBytes) {
		size += len(f.queue[n].data)
		n++
	}
	taken := slices.Clone(f.queue[:n])
	f.queue = slices.Delete(f.queue, 0, n)
	return taken
}

func (f *file) withdrawn(w *write) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.queue, w)
	if i < 0 {
		return false
	}
	f.queue = slices.Delete(f.queue, i, i+1)
	return true
}

// commit writes what the preconditions let through, each as one revision, all in
// one transaction. Only who has the turn may call it, and has entered.
func (f *file) commit(group []*write) {
	if len(group) == 0 {
		return
	}
	defer func() {
		for _, w := range group {
			if w.done != nil {
				close(w.done)
			}
		}
	}()
	f.mu.Lock()
	failed := f.failed
	f.mu.Unlock()
	if failed != nil { // since these came
		for _, w := range group {
			w.err = failed
		}
		return
	}
	var rev int64
	err := f.update(func(st *state) error {
		before := st.rev
		for _, w := range group {
			if w.err = st.allows(w); w.err == nil {
				if err := st.write(w, f.epoch); err != nil {
					return err
				}
			}
		}
		if rev = st.rev; rev == before {
			return errUnchanged
		}
		return nil
	})
	switch {
	case err == nil:
		f.advance(rev)
		return
	case errors.Is(err, errUnchanged):
		return
	}
	err = f.outcome(err)
	for _, w := range group {
		if w.err == nil {
			w.err = fmt.Errorf("bolt: %w", err)
		}
	}
}

// update is one transaction and its commit.
func (f *file) update(fn func(*state) error) error {
	return guarded(func() error {
		err := f.db.Update(func(tx *bbolt.Tx) error {
			st, err := stateOf(tx)
			if err != nil {
				return err
			}
			st.history.FillPercent = 0.9 // grows at its end only
			if err := fn(st); err != nil {
				return err
			}
			return st.save(f.keep)
		})
		if err == nil && f.afterCommit != nil {
			err = f.afterCommit()
		}
		return err
	})
}

func (f *file) advance(rev int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rev = rev
	f.tellLocked()
}

// outcome looks what became of a commit that failed. Most fail before they have
// changed anything; then the store goes on. When the last page was written but
// possibly not onto the disk, nothing can be said, and nothing built on it.
func (f *file) outcome(err error) error {
	var rev int64
	look := guarded(func() error {
		return f.db.View(func(tx *bbolt.Tx) error {
			st, err := stateOf(tx)
			if err == nil {
				rev = st.rev
			}
			return err
		})
	})
	f.mu.Lock()
	same := rev == f.rev
	f.mu.Unlock()
	if look == nil && same {
		if wedged(err) {
			f.fail(err)
		}
		return err
	}
	f.fail(err)
	return fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, err)
}

// allows checks the preconditions of w.
func (st *state) allows(w *write) error {
	value := st.objects.Get([]byte(w.key))
	if value == nil {
		switch {
		case w.op == "create":
			return nil
		case w.at != 0:
			return errMoved
		}
		return &backend.Error{Op: w.op, Key: w.key, Want: w.want, Err: backend.ErrNotFound}
	}
	cur, err := readRecord(w.key, value)
	switch {
	case err != nil:
		return &backend.Error{Op: w.op, Key: w.key, Want: w.want, Err: err}
	case w.op == "create":
		return &backend.Error{Op: w.op, Key: w.key, Found: version(cur.rev), Err: backend.ErrExists}
	case w.at != 0 && w.at != cur.rev:
		return errMoved
	case w.at != 0:
		return nil
	}
	return meets(w.op, cur, w.want, w.id)
}

// meets checks the preconditions that a caller names.
func meets(op string, cur record, want object.Version, id string) error {
	found := version(cur.rev)
	if want != object.Any && want != found {
		return &backend.Error{Op: op, Key: cur.key, Want: want, Found: found, Err: backend.ErrConflict}
	}
	if id != "" && id != cur.id {
		err := fmt.Errorf("%w: deleted and created again in the meantime", backend.ErrConflict)
		return &backend.Error{Op: op, Key: cur.key, Want: want, Found: found, Err: err}
	}
	return nil
}

// write makes w, which is allowed, the next revision.
func (st *state) write(w *write, epoch string) error {
	key := []byte(w.key)
	before := st.objects.Get(key)
	st.rev++
	w.made = record{key: w.key, rev: st.rev}
	if before == nil {
		w.made.id = string(cursor(epoch, st.rev)) // two files never share an ID
	} else {
		cur, err := readRecord(w.key, before)
		if err != nil {
			return err
		}
		w.made.id = cur.id
	}
	if w.op == "delete" {
		value := changeValue(w.key, nil, before) // before the delete: before is bbolt's memory
		return errors.Join(st.objects.Delete(key), st.history.Put(revKey(st.rev), value))
	}
	stored := w.made
	stored.data = w.data
	after := stored.value()
	value := changeValue(w.key, after, before)
	return errors.Join(st.objects.Put(key, after), st.history.Put(revKey(st.rev), value))
}
