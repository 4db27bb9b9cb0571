package file

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// ErrInvalidOptions: the options given to New make no sense.
var ErrInvalidOptions = errors.New("file: invalid options")

// Options are choices; nil and the zero value are the defaults.
type Options struct {
	// Poll is how often the folder is looked at without any sign of a change.
	// Defaults to 5 s; the least is 10 ms.
	Poll time.Duration
	// Settle is how long the folder must be quiet before a change is read, so that
	// a file written in several steps is read when it is whole. A folder that is
	// never quiet is read after ten times as long. Defaults to 50 ms; the least is 1 ms.
	Settle time.Duration
	// MaxSize is the largest file that is read, in bytes; a larger one is at fault.
	// Defaults to 16 MiB.
	MaxSize int64
	// Logger is told of faults (Warn) and that they are over (Info). nil logs nothing.
	Logger *slog.Logger
}

func resolve(opts *Options) (o Options, err error) {
	if opts != nil {
		o = *opts
	}
	var errs []error
	least := func(field string, value *time.Duration, least, otherwise time.Duration) {
		if *value == 0 {
			*value = otherwise
		} else if *value < least {
			errs = append(errs, fmt.Errorf("%w: %s is %s, the least is %s", ErrInvalidOptions, field, *value, least))
		}
	}
	least("Poll", &o.Poll, 10*time.Millisecond, 5*time.Second)
	least("Settle", &o.Settle, time.Millisecond, 50*time.Millisecond)
	if o.MaxSize == 0 {
		o.MaxSize = 16 << 20
	} else if o.MaxSize < 0 {
		errs = append(errs, fmt.Errorf("%w: MaxSize is %d", ErrInvalidOptions, o.MaxSize))
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, errors.Join(errs...)
}
