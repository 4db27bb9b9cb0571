package reflector

import (
	"context"
	"iter"
)

// faulty is what a constructor gives that was given something wrong: the error
// comes out of every call, and so of Run.
type faulty[T any] struct{ err error }

func (f faulty[T]) Powers() Powers[T] { return Powers[T]{} }

func (f faulty[T]) List(context.Context, ListOptions) (Page[T], error) { return Page[T]{}, f.err }

func (f faulty[T]) Watch(context.Context, WatchOptions) iter.Seq2[Batch[T], error] {
	return func(yield func(Batch[T], error) bool) { yield(Batch[T]{}, f.err) }
}
