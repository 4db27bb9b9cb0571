package bolt

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// The file has one bucket at its root, with these in it. What a newer version
// cannot leave as it is gets a higher format number.
var (
	rootName     = []byte("homeostat")
	objectsName  = []byte("objects")   // bucket: key to record
	historyName  = []byte("history")   // bucket: revision to change
	formatKey    = []byte("format")    // number, as text
	epochKey     = []byte("epoch")     // text
	revisionKey  = []byte("revision")  // of the last write
	forgottenKey = []byte("forgotten") // the last revision that the history no longer has
)

const format = "1"

// leap is what a new epoch adds to the revision: more than can have been written
// since a backup was made (10 000 a second for three years), so that no version is
// given out twice.
const leap = 1 << 40

func open(path string, opts Options) (*file, error) {
	f := &file{
		keep:    int64(opts.History),
		turn:    make(chan struct{}, 1),
		closing: make(chan struct{}),
		idle:    make(chan struct{}),
		closed:  make(chan struct{}),
		changed: make(chan struct{}),
	}
	err := guarded(func() (err error) {
		f.db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout:      opts.Timeout,
			FreelistType: bbolt.FreelistMapType, // the default gets slow as the file gets holes
			NoStatistics: true,
			OpenFile: func(name string, flag int, mode os.FileMode) (file *os.File, err error) {
				file, err = os.OpenFile(name, flag, mode)
				f.os = file
				return file, err
			},
		})
		return err
	})
	if err == nil {
		err = f.begin(path, opts.NewEpoch)
	}
	if err != nil {
		f.release(err)
		return nil, openError(err)
	}
	return f, nil
}

func openError(err error) error {
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return ErrLocked
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

// begin finds the store in the file, or makes it. It commits in any case: what a
// process wrote that was killed before its last sync can be read, and would be
// served here, but is not safe on disk yet.
func (f *file) begin(path string, newEpoch bool) error {
	made := false
	err := guarded(func() error {
		info, err := f.os.Stat()
		if err != nil {
			return err
		}
		return f.db.Update(func(tx *bbolt.Tx) error {
			if info.Size() < tx.Size() {
				return fmt.Errorf("%w: %d bytes of %d", ErrCorrupt, info.Size(), tx.Size())
			}
			root := tx.Bucket(rootName)
			if made = root == nil; made {
				if root, err = create(tx); err != nil {
					return err
				}
			}
			if err := known(root); err != nil {
				return err
			}
			st, err := stateOf(tx)
			if err != nil {
				return err
			}
			if err := st.check(); err != nil {
				return err
			}
			if newEpoch && !made {
				if err := st.leap(); err != nil {
					return err
				}
			}
			if err := st.save(f.keep); err != nil {
				return err
			}
			f.rev, f.epoch = st.rev, string(root.Get(epochKey))
			return nil
		})
	})
	if err != nil || !made {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// create makes an empty store in a file that has nothing else.
func create(tx *bbolt.Tx) (*bbolt.Bucket, error) {
	if name, _ := tx.Cursor().First(); name != nil {
		return nil, fmt.Errorf("%w: a bolt file of something else, with a bucket %q", ErrFormat, name)
	}
	root, err := tx.CreateBucket(rootName)
	if err != nil {
		return nil, err
	}
	for _, name := range [][]byte{objectsName, historyName} {
		if _, err := root.CreateBucket(name); err != nil {
			return nil, err
		}
	}
	for _, kv := range [][2][]byte{
		{formatKey, []byte(format)}, {epochKey, []byte(rand.Text())}, {revisionKey, revKey(0)}, {forgottenKey, revKey(0)},
	} {
		if err := root.Put(kv[0], kv[1]); err != nil {
			return nil, err
		}
	}
	return root, nil
}

// known says that root is of a format that we can read.
func known(root *bbolt.Bucket) error {
	switch got := string(root.Get(formatKey)); {
	case got == "":
		return fmt.Errorf("%w: it has none", ErrFormat)
	case got != format:
		return fmt.Errorf("%w: format %q, this version knows %q", ErrFormat, got, format)
	}
	if len(root.Get(epochKey)) == 0 {
		return fmt.Errorf("%w: no epoch", ErrCorrupt)
	}
	return nil
}

// syncDir makes the name of a new file as durable as its content. Windows has no
// such call, and needs none.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// wedged says that bbolt panicked: locks of it may be held for ever.
func wedged(err error) bool {
	var p *panicked
	return errors.As(err, &p)
}

// state is what a transaction sees.
type state struct {
	root, objects, history *bbolt.Bucket
	rev, forgotten         int64
}

func stateOf(tx *bbolt.Tx) (*state, error) {
	root := tx.Bucket(rootName)
	if root == nil {
		return nil, fmt.Errorf("%w: no bucket %q", ErrCorrupt, rootName)
	}
	st := &state{root: root, objects: root.Bucket(objectsName), history: root.Bucket(historyName)}
	var ok, okf bool
	st.rev, ok = readRev(root.Get(revisionKey))
	st.forgotten, okf = readRev(root.Get(forgottenKey))
	if !ok || !okf || st.objects == nil || st.history == nil || st.forgotten > st.rev {
		return nil, fmt.Errorf("%w: the bucket %q is incomplete", ErrCorrupt, rootName)
	}
	return st, nil
}

// check compares the history's ends with what is said about it.
func (st *state) check() error {
	first, _ := st.history.Cursor().First()
	last, _ := st.history.Cursor().Last()
	empty := st.forgotten == st.rev
	if empty && first == nil {
		return nil
	}
	if empty || !slices.Equal(first, revKey(st.forgotten+1)) || !slices.Equal(last, revKey(st.rev)) {
		return fmt.Errorf("%w: the history is from %x to %x, not from %d to %d", ErrCorrupt, first, last, st.forgotten+1, st.rev)
	}
	return nil
}

// save trims the history and writes where the store stands.
func (st *state) save(keep int64) error {
	for ; st.forgotten < st.rev-keep; st.forgotten++ {
		if err := st.history.Delete(revKey(st.forgotten + 1)); err != nil {
			return err
		}
	}
	return errors.Join(st.root.Put(revisionKey, revKey(st.rev)), st.root.Put(forgottenKey, revKey(st.forgotten)))
}

// forget drops the whole history.
func (st *state) forget() (err error) {
	st.forgotten = st.rev
	if err := st.root.DeleteBucket(historyName); err != nil {
		return err
	}
	st.history, err = st.root.CreateBucket(historyName)
	return err
}

// leap begins a new epoch.
func (st *state) leap() error {
	st.rev += leap
	if st.rev < 0 {
		return fmt.Errorf("%w: revision %d leaves no room for a new epoch", ErrCorrupt, st.rev-leap)
	}
	return errors.Join(st.forget(), st.root.Put(epochKey, []byte(rand.Text())))
}
