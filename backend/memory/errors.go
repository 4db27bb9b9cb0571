package memory

import (
	"fmt"

	"github.com/homeostat/homeostat/reflector"
)

// ErrInvalidOptions: what every call answers of a store made with faulty options.
// It wraps reflector.ErrInvalidOptions, so that a reflector over the store does not
// try again but ends, and Run says why.
var ErrInvalidOptions = fmt.Errorf("memory: %w", reflector.ErrInvalidOptions)
