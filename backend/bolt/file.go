package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"

	"github.com/homeostat/homeostat/reflector"
	"go.etcd.io/bbolt"
)

// file is the store without its type: bytes under keys.
type file struct {
	db    *bbolt.DB
	os    *os.File // db's
	keep  int64    // the most changes in the history
	epoch string

	turn    chan struct{} // holds one value: that of who may write
	closing chan struct{} // closed as Close begins
	idle    chan struct{} // closed when no call is under way after that
	closed  chan struct{} // closed when Close is done

	mu       sync.Mutex    // guards what follows; never held while waiting
	rev      int64         // of the last write that is safe on disk
	changed  chan struct{} // closed, and replaced, when rev grows or failed is set
	queue    []*write      // what waits to be written
	calls    int           // under way
	ending   bool
	failed   error
	closeErr error // final once closed is closed

	// What tests put between a commit and its answer; nil otherwise.
	afterCommit func() error
}

// enter begins a call that uses db; leave ends it.
func (f *file) enter() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ending {
		return ErrClosed
	}
	if f.failed != nil {
		return f.failed
	}
	f.calls++
	return nil
}

func (f *file) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls--; f.calls == 0 && f.ending {
		close(f.idle)
	}
}

func (f *file) close() error {
	f.mu.Lock()
	if f.ending {
		f.mu.Unlock()
		<-f.closed
		return f.closeErr
	}
	f.ending = true
	close(f.closing)
	if f.calls == 0 {
		close(f.idle)
	}
	f.mu.Unlock()
	<-f.idle
	f.closeErr = f.release(f.failed)
	close(f.closed)
	return f.closeErr
}

// release closes the file. After a panic in bbolt its locks may be held for ever;
// then the file is closed without it.
func (f *file) release(failed error) error {
	switch {
	case wedged(failed) && f.os != nil:
		return errors.Join(unlock(f.os), f.os.Close())
	case f.db != nil:
		return f.db.Close()
	}
	return nil
}

// fail makes every later call answer ErrFailed.
func (f *file) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = fmt.Errorf("%w: %w", ErrFailed, err)
		f.tellLocked()
	}
}

func (f *file) tellLocked() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// head is the last revision that is safe on disk, and what is closed when there is
// another one.
func (f *file) head() (rev int64, changed <-chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.ending:
		return 0, nil, ErrClosed
	case f.failed != nil:
		return 0, nil, f.failed
	}
	return f.rev, f.changed, nil
}

// view reads one state. fn copies what it wants to keep, and runs nobody's code:
// a transaction that is open for long holds up the file.
func (f *file) view(fn func(*state) error) error {
	if err := f.enter(); err != nil {
		return err
	}
	defer f.leave()
	return guarded(func() error {
		return f.db.View(func(tx *bbolt.Tx) error {
			st, err := stateOf(tx)
			if err != nil {
				return err
			}
			return fn(st)
		})
	})
}

// settled waits until rev is safe on disk. A transaction can see a commit that is
// still on its way there; who is told of it must not learn later that it never was.
func (f *file) settled(ctx context.Context, rev int64) error {
	for {
		f.mu.Lock()
		now, changed, failed := f.rev, f.changed, f.failed
		f.mu.Unlock()
		if now >= rev {
			return nil
		}
		if failed != nil {
			return failed
		}
		select {
		case <-changed: // the writer is under way, Close waits for it too
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// guarded turns what bbolt does on a damaged file, a panic or a fault in mapped
// memory, into ErrCorrupt.
func guarded(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{value: v}
		}
	}()
	return fn()
}

type panicked struct{ value any }

func (p *panicked) Error() string { return fmt.Sprintf("%v: %v", ErrCorrupt, p.value) }
func (p *panicked) Unwrap() error { return ErrCorrupt }

// caught turns a panic of a user's code into an error. It is deferred.
func caught(in, key string, err *error) {
	if v := recover(); v != nil {
		*err = &reflector.PanicError{In: in, Key: key, Value: v, Stack: debug.Stack()}
	}
}
