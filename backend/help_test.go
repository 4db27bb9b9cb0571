package backend_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/stretchr/testify/require"
)

type pod struct {
	object.Meta `json:"meta,omitzero"`
	N           int            `json:"n,omitempty"`
	Name        string         `json:"name,omitempty"`
	Extra       map[string]any `json:"extra,omitempty"`
}

type item = object.Item[pod]

func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

func merge(format string, args ...any) patch.Patch {
	return must(patch.Merge(fmt.Appendf(nil, format, args...)))
}

// spy is a store that tells a test what is written, and lets it do something first.
type spy[T any] struct {
	backend.Backend[T]
	before func(op string) // before a write
	log    []string        // the writes, with what they ask for
}

func (s *spy[T]) note(op string, v object.Version, what any) {
	if s.before != nil {
		s.before(op)
	}
	doc := must(json.Marshal(what))
	s.log = append(s.log, fmt.Sprintf("%s at %s: %s", op, v, doc))
}

func (s *spy[T]) Create(ctx context.Context, key string, obj T) (object.Item[T], error) {
	s.note("create", "", obj)
	return s.Backend.Create(ctx, key, obj)
}

func (s *spy[T]) Update(ctx context.Context, it object.Item[T]) (object.Item[T], error) {
	s.note("update", it.Version, it.Object)
	return s.Backend.Update(ctx, it)
}

func (s *spy[T]) Patch(ctx context.Context, key string, p patch.Patch, v object.Version) (object.Item[T], error) {
	s.note("patch", v, p)
	return s.Backend.Patch(ctx, key, p, v)
}

func (s *spy[T]) Delete(ctx context.Context, key string, v object.Version) (object.Item[T], error) {
	s.note("delete", v, key)
	return s.Backend.Delete(ctx, key, v)
}

// once does f before the first write alone.
func once(f func()) func(string) {
	done := false
	return func(string) {
		if !done {
			done = true
			f()
		}
	}
}

// bare is a store without versions, IDs and patches.
type bare[T any] struct{ backend.Backend[T] }

func strip[T any](it object.Item[T], err error) (object.Item[T], error) {
	it.Version, it.ID = "", ""
	return it, err
}

func (b bare[T]) Get(ctx context.Context, key string) (object.Item[T], error) {
	return strip(b.Backend.Get(ctx, key))
}

func (b bare[T]) Update(ctx context.Context, it object.Item[T]) (object.Item[T], error) {
	return strip(b.Backend.Update(ctx, it))
}

func (b bare[T]) Patch(ctx context.Context, key string, p patch.Patch, v object.Version) (object.Item[T], error) {
	return object.Item[T]{}, &backend.Error{Op: "patch", Key: key, Err: errors.ErrUnsupported}
}

func (b bare[T]) Delete(ctx context.Context, key string, v object.Version) (object.Item[T], error) {
	return strip(b.Backend.Delete(ctx, key, v))
}

func (b bare[T]) DryRun() (backend.Backend[T], error) { return nil, errors.ErrUnsupported }

// seeded is a store with "a" at version 1, and a look at what is written to it.
func seeded(t *testing.T, obj pod) (*memory.Store[pod], *spy[pod]) {
	t.Helper()
	s := memory.New[pod](nil)
	must(s.Create(t.Context(), "a", obj))
	return s, &spy[pod]{Backend: s}
}

func failed(t *testing.T, err error, want backend.Error) {
	t.Helper()
	var e *backend.Error
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, want.Err)
	got := *e
	got.Err = want.Err
	require.Equal(t, want, got)
}
