package backend

import (
	"context"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/homeostat/homeostat/reflector"
)

// Backend is a source that can be written to. The package documentation has the
// rules; in short: every write answers the object as stored, and every write but
// Create names its precondition, object.Any for none.
type Backend[T any] interface {
	reflector.ListWatcher[T]

	// Get reads one object as it is now; ErrNotFound when there is none.
	Get(ctx context.Context, key string) (object.Item[T], error)
	// Create stores a new object; ErrExists when there is one under this key.
	Create(ctx context.Context, key string, obj T) (object.Item[T], error)
	// Update replaces the object under item.Key. item.Version is the
	// precondition, and so is item.ID unless it is empty.
	Update(ctx context.Context, item object.Item[T]) (object.Item[T], error)
	// Patch changes the object where it is, without reading it first.
	Patch(ctx context.Context, key string, p patch.Patch, v object.Version) (object.Item[T], error)
	// Delete answers the last state, or, where deletion is soft, the object
	// marked as being deleted.
	Delete(ctx context.Context, key string, v object.Version) (object.Item[T], error)
	// DryRun is the same backend, whose writes are checked and answered but not
	// done. Wrappers wrap it again. errors.ErrUnsupported when the store can't.
	DryRun() (Backend[T], error)
}
