package retry

import "errors"

// ErrInvalidOptions is what every error of [Backoff.Validate] matches.
var ErrInvalidOptions = errors.New("retry: invalid options")
