package bolt

import (
	"errors"
	"fmt"
	"time"
)

// Options are the choices of [Open]. The zero value is right for most.
type Options struct {
	// History is how many changes are kept for watches that lag behind or resume,
	// and for lists that are read in pages. Each takes as much room in the file as
	// the object before and after it. Fewer than before are trimmed by Open.
	// Defaults to 10 000; less than 0 is invalid.
	History int
	// Timeout is how long Open waits for somebody else to close the file. Defaults
	// to 1 s; less than 0 is not at all.
	Timeout time.Duration
	// NewEpoch is for a file that was restored from a backup: what was told after
	// the backup was made is no longer true. All cursors of before expire, and
	// versions go on far above those that can have been given out. Set it for that
	// one Open.
	NewEpoch bool
}

const (
	defaultHistory = 10_000
	defaultTimeout = time.Second
)

// filled is o with its defaults.
func (o *Options) filled() (Options, error) {
	var all Options
	if o != nil {
		all = *o
	}
	var err error
	if all.History < 0 {
		err = errors.Join(err, fmt.Errorf("%w: History is %d, must not be negative", ErrInvalidOptions, all.History))
	}
	if all.History == 0 {
		all.History = defaultHistory
	}
	switch {
	case all.Timeout == 0:
		all.Timeout = defaultTimeout
	case all.Timeout < 0:
		all.Timeout = time.Nanosecond // bbolt waits for ever at 0
	}
	return all, err
}
