package memory

import "errors"

// ErrInvalidOptions: what every call answers of a store made with faulty options.
var ErrInvalidOptions = errors.New("memory: invalid options")
