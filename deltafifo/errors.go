package deltafifo

import "errors"

var (
	// ErrClosed: Close was called. Pushes are refused, pops end.
	ErrClosed = errors.New("deltafifo: closed")
	// ErrInvalidDelta: a delta of no valid Type was pushed; a fault of the
	// caller. Nothing of that call was taken.
	ErrInvalidDelta = errors.New("deltafifo: invalid delta")
)
