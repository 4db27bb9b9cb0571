package memory

import "fmt"

// Options are the choices of [New]. The zero value is right for most.
type Options struct {
	// History is how many changes are kept, for watches that lag behind or resume
	// and for later pages of a list. The objects that were put by them, and those
	// that they replaced, are held in memory as long. Defaults to 10 000; less
	// than 0 is invalid.
	History int
}

const defaultHistory = 10_000

// history is the number to keep.
func (o *Options) history() (int, error) {
	switch {
	case o == nil || o.History == 0:
		return defaultHistory, nil
	case o.History < 0:
		return 1, fmt.Errorf("%w: History is %d, must not be negative", ErrInvalidOptions, o.History)
	}
	return o.History, nil
}
