package reflector

import "errors"

// What a source answers, from any of its calls and in the stream. Each is
// honoured wherever it can arrive: from a list, from a later page, while a watch
// is opened and inside the stream.
var (
	// ErrExpired: the history after this cursor, or the state behind this page
	// token, is gone. The reflector takes a new full state.
	ErrExpired = errors.New("reflector: cursor expired")
	// ErrFutureCursor: the cursor lies ahead of the source, which lags or was
	// restored to an older state. The reflector takes a new full state, and
	// believes one that is older only by rule 6 of the package documentation.
	ErrFutureCursor = errors.New("reflector: cursor ahead of the source")
	// ErrNotModified: a list finds everything as it was at the last call that
	// was answered with a list. It answers calls with ListOptions.IfModified (or,
	// within a list function of Poll, with [IfModified]) alone: who asks without it
	// does not have that list, and can do nothing but ask again.
	ErrNotModified = errors.New("reflector: not modified")
	// ErrNotFound: Powers.Get has no object under this key. (backend.ErrNotFound
	// is the same value.)
	ErrNotFound = errors.New("not found")
)

// What the adapters of this package answer about the lists given to them. They
// are retried like every failure: the next list may be better.
var (
	// ErrDuplicateKey: two objects of one list have the same key. The error's
	// text names it.
	ErrDuplicateKey = errors.New("reflector: two objects under one key")
	// ErrEmptyKey: an object has no key.
	ErrEmptyKey = errors.New("reflector: an object without a key")
)

// ErrContract: a source broke a rule of the source contract, which the error's
// text names. It is shown, and a new full state is taken after a backoff.
var ErrContract = errors.New("reflector: the source broke its contract")

// What Run answers.
var (
	// ErrInvalidOptions: something given to a constructor cannot work. Run
	// returns all such faults, joined.
	ErrInvalidOptions = errors.New("reflector: invalid options")
	// ErrAlreadyRunning: Run was called a second time; it is single-use. The error's
	// text names the reflector.
	ErrAlreadyRunning = errors.New("reflector: Run was called before; a Reflector runs once")
)
