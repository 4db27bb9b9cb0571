package reflector

import (
	"context"
	"iter"
	"time"

	"github.com/homeostat/homeostat/object"
)

// PollOptions say how often a [Poll] lists.
type PollOptions struct {
	Every, Max time.Duration
}

type poll[T any] struct{}

func (p *poll[T]) List(ctx context.Context, opts ListOptions) (Page[T], error) { return Page[T]{}, nil }
func (p *poll[T]) Watch(ctx context.Context, opts WatchOptions) iter.Seq2[Batch[T], error] {
	return nil
}
func (p *poll[T]) Powers() Powers[T] { return Powers[T]{Initial: true} }

// Poll makes a source of any function that lists.
func Poll[T any](list func(context.Context) ([]T, error), key func(T) string, opts *PollOptions) ListWatcher[T] {
	return &poll[T]{}
}

// PollItems is Poll for lists with versions.
func PollItems[T any](list func(context.Context) ([]object.Item[T], error), opts *PollOptions) ListWatcher[T] {
	return &poll[T]{}
}

// Hint makes a source of one that lists and one that says what to look at.
func Hint[T any](lw ListWatcher[T], hints func(context.Context) iter.Seq2[string, error]) ListWatcher[T] {
	return &poll[T]{}
}

// Filter shows only what keep keeps.
func Filter[T any](lw ListWatcher[T], keep func(T) bool) ListWatcher[T] { return &poll[T]{} }

// Transform shows what f makes of each object.
func Transform[T any](lw ListWatcher[T], f func(T) T) ListWatcher[T] { return &poll[T]{} }
