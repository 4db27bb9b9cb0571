package fake

import (
	"context"
	"iter"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/homeostat/homeostat/reflector"
)

// Op is a set of operations.
type Op uint16

// The operations.
const (
	List Op = 1 << iota
	Watch
	Get
	Create
	Update
	Patch
	Delete
	Writes = Create | Update | Patch | Delete
)

// Effect is what a fault does.
type Effect uint8

// The effects.
const (
	Fail Effect = iota + 1
	FailAfterCommit
	Delay
	Expire
	Silence
	Cut
	Duplicate
	Conflict
)

// Plan is a test's weather.
type Plan struct {
	Seed   uint64
	Faults []Fault
}

// Fault is one kind of bad day.
type Fault struct {
	On    Op
	Do    Effect
	OneIn int
	Call  int
	Err   error
	For   time.Duration
}

// Call is one entry of the log.
type Call struct {
	Op       Op
	N        int
	Key      string
	Fault    Effect
	Revision int64
	DryRun   bool
	Err      error
}

// Backend is a backend.Backend under a plan.
type Backend[T any] struct{}

var _ backend.Backend[int] = (*Backend[int])(nil)

// New makes one.
func New[T any](plan Plan, seed ...object.Item[T]) *Backend[T] { return &Backend[T]{} }

func (b *Backend[T]) SetPlan(p Plan)                                                 {}
func (b *Backend[T]) Intercept(op Op, f func(ctx context.Context, key string) error) {}
func (b *Backend[T]) OnWrite(f func(T) T)                                            {}
func (b *Backend[T]) Cut()                                                           {}
func (b *Backend[T]) Compact()                                                       {}
func (b *Backend[T]) Log() []Call                                                    { return nil }
func (b *Backend[T]) Calls(op Op) int                                                { return 0 }

func (s *Backend[T]) List(ctx context.Context, opts reflector.ListOptions) (p reflector.Page[T], err error) {
	return
}
func (s *Backend[T]) Watch(ctx context.Context, opts reflector.WatchOptions) iter.Seq2[reflector.Batch[T], error] {
	return nil
}
func (s *Backend[T]) Powers() (p reflector.Powers[T]) { return }
func (s *Backend[T]) Get(ctx context.Context, key string) (i object.Item[T], err error) {
	return
}
func (s *Backend[T]) Create(ctx context.Context, key string, obj T) (i object.Item[T], err error) {
	return
}
func (s *Backend[T]) Update(ctx context.Context, item object.Item[T]) (i object.Item[T], err error) {
	return
}
func (s *Backend[T]) Patch(ctx context.Context, key string, p patch.Patch, v object.Version) (i object.Item[T], err error) {
	return
}
func (s *Backend[T]) Delete(ctx context.Context, key string, v object.Version) (i object.Item[T], err error) {
	return
}
func (s *Backend[T]) DryRun() (b backend.Backend[T], err error) { return }
