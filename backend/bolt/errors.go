package bolt

import (
	"errors"
	"fmt"

	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

// What Open answers, besides errors of the file system. Each comes with the path.
var (
	// ErrInvalidOptions: the options make no sense.
	ErrInvalidOptions = fmt.Errorf("bolt: %w", reflector.ErrInvalidOptions)
	// ErrLocked: somebody has the file open, in this process or in another one,
	// and did not close it within Options.Timeout.
	ErrLocked = errors.New("bolt: the file is in use")
	// ErrFormat: the file is of a newer version of this package, or it is whole
	// but was made by something else.
	ErrFormat = errors.New("bolt: not a format that this version knows")
	// ErrCorrupt: the file is damaged, or not a bolt file at all. Every call may
	// answer it, since damage shows where it is read.
	ErrCorrupt = errors.New("bolt: the file is damaged")
)

// What calls answer, besides the errors of packages backend and reflector.
var (
	// ErrClosed: Close was called. It is permanent (see package retry).
	ErrClosed = retry.Permanent(errors.New("bolt: closed"))
	// ErrFailed: the disk failed in the middle of a commit, so that nobody knows
	// what it has. Every call answers it until the file is closed and opened again.
	// Permanent, too.
	ErrFailed = retry.Permanent(errors.New("bolt: a commit failed half way; close the file and open it again"))
	// ErrUndecodable: the codec can't read what is stored. The error names the
	// object, and wraps the codec's. It is a reflector.ErrUnreadable.
	ErrUndecodable = fmt.Errorf("bolt: undecodable object: %w", reflector.ErrUnreadable)
	// ErrTooLarge: a key of more than 32 768 bytes, or an object of more than
	// 512 MiB once encoded. Permanent.
	ErrTooLarge = retry.Permanent(errors.New("bolt: too large"))
)
