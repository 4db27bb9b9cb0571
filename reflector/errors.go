package reflector

import "errors"

// What a source answers, from any of its calls and in the stream.
var (
	// ErrExpired: the history after this cursor, or the state behind this page
	// token, is gone. The reflector takes a new full state.
	ErrExpired = errors.New("reflector: cursor expired")
	// ErrFutureCursor: the cursor lies ahead of the source, which lags or was
	// restored to an older state.
	ErrFutureCursor = errors.New("reflector: cursor ahead of the source")
	// ErrNotModified: a list finds everything as it was at the last call.
	ErrNotModified = errors.New("reflector: not modified")
	// ErrNotFound: Powers.Get has no object under this key. (backend.ErrNotFound
	// is the same value.)
	ErrNotFound = errors.New("not found")
)
