package bolt_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/bolt"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

type pod struct {
	N    int               `json:"n,omitempty"`
	Tags map[string]string `json:"tags,omitempty"`
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

// fresh is a store in a file of its own.
func fresh(t testing.TB, opts *bolt.Options) *bolt.Store[pod] {
	return opened(t, filepath.Join(t.TempDir(), "pods.db"), opts)
}

// opened is the store in a file, closed at the end of the test unless it was.
func opened(t testing.TB, path string, opts *bolt.Options) *bolt.Store[pod] {
	t.Helper()
	s, err := bolt.Open[pod](path, nil, opts)
	require.NoError(t, err)
	bolt.NoSync(s)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func cursorOf(t testing.TB, s *bolt.Store[pod]) reflector.Cursor {
	t.Helper()
	c, err := s.Powers().Head(t.Context())
	require.NoError(t, err)
	return c
}

func list(t testing.TB, s *bolt.Store[pod]) reflector.Page[pod] {
	t.Helper()
	p, err := s.List(t.Context(), reflector.ListOptions{})
	require.NoError(t, err)
	return p
}

// told is what a watch tells until nothing more comes. In a synctest bubble: the
// deadline passes as soon as everybody waits.
func told(t testing.TB, s *bolt.Store[pod], opts reflector.WatchOptions) ([]reflector.Batch[pod], error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var all []reflector.Batch[pod]
	for b, err := range s.Watch(ctx, opts) {
		if err != nil {
			return all, err
		}
		b.Events = append([]reflector.Event[pod](nil), b.Events...)
		all = append(all, b)
	}
	return all, nil
}

// failed checks that err is a *backend.Error with these fields.
func failed(t *testing.T, err error, want backend.Error) {
	t.Helper()
	var e *backend.Error
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, want.Err)
	got := *e
	got.Err = want.Err
	require.Equal(t, want, got)
}
