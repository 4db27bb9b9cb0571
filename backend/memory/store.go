package memory

import (
	"context"
	"iter"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/homeostat/homeostat/reflector"
)

// Options are the choices of New.
type Options struct {
	// History is how many changes are kept for watches. Defaults to 10 000.
	History int
}

// Store is a backend.Backend in memory.
type Store[T any] struct{}

var _ backend.Backend[int] = (*Store[int])(nil)

// New makes an empty store; nil opts are the defaults.
func New[T any](opts *Options) *Store[T] { return &Store[T]{} }

func (s *Store[T]) List(ctx context.Context, opts reflector.ListOptions) (p reflector.Page[T], err error) {
	return
}
func (s *Store[T]) Watch(ctx context.Context, opts reflector.WatchOptions) iter.Seq2[reflector.Batch[T], error] {
	return nil
}
func (s *Store[T]) Powers() (p reflector.Powers[T]) { return }
func (s *Store[T]) Get(ctx context.Context, key string) (i object.Item[T], err error) {
	return
}
func (s *Store[T]) Create(ctx context.Context, key string, obj T) (i object.Item[T], err error) {
	return
}
func (s *Store[T]) Update(ctx context.Context, item object.Item[T]) (i object.Item[T], err error) {
	return
}
func (s *Store[T]) Patch(ctx context.Context, key string, p patch.Patch, v object.Version) (i object.Item[T], err error) {
	return
}
func (s *Store[T]) Delete(ctx context.Context, key string, v object.Version) (i object.Item[T], err error) {
	return
}

// Compact forgets the history.
func (s *Store[T]) Compact()                                  {}
func (s *Store[T]) DryRun() (b backend.Backend[T], err error) { return }
