package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/homeostat/homeostat/backend/backendtest"
	"github.com/homeostat/homeostat/backend/bolt"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

// marked can be deleted softly, by the wrapper that the kit puts around the store.
type marked struct {
	object.Meta
	N int
}

// harness is for stores in files that begin as begin leaves them.
func harness[T any](
	t *testing.T, sample func(n int) T, begin func(ctx context.Context, path string) error,
) backendtest.Harness[T] {
	dir := t.TempDir()
	return backendtest.Harness[T]{
		Object: sample,
		New: func(ctx context.Context) (*backendtest.Fixture[T], error) {
			sub, err := os.MkdirTemp(dir, "")
			if err != nil {
				return nil, err
			}
			path := filepath.Join(sub, "pods.db")
			if err := begin(ctx, path); err != nil {
				return nil, err
			}
			var s *bolt.Store[T]
			codec := &choosy[T]{}
			open := func() (err error) {
				if s, err = bolt.Open[T](path, codec, nil); err == nil {
					bolt.NoSync(s)
				}
				return err
			}
			if err := open(); err != nil {
				return nil, err
			}
			compact := func(ctx context.Context) error { return s.Compact(ctx) }
			return &backendtest.Fixture[T]{
				Source: s,
				Restart: func(context.Context) (reflector.ListWatcher[T], error) {
					if err := s.Close(); err != nil {
						return nil, err
					}
					if err := open(); err != nil {
						return nil, err
					}
					return s, nil
				},
				Compact: compact,
				Forget:  compact, // only the history knows of what was deleted
				Spoil: func(ctx context.Context, key string) error {
					return codec.spoil(sample(-1), func(rotten T) error {
						_, err := s.Update(ctx, object.Item[T]{Key: key, Version: object.Any, Object: rotten})
						return err
					})
				},
				Close: func() error { return s.Close() },
			}, nil
		},
	}
}

// choosy is a JSON codec that can't read one object any more, once that is written:
// what a store refuses to write it can't be made to have.
type choosy[T any] struct {
	object.JSON[T]
	mu     sync.Mutex
	rotten []byte
	left   int // how often it can still be read
}

func (c *choosy[T]) spoil(obj T, write func(T) error) error {
	data, err := c.Encode(obj)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.rotten, c.left = data, 1
	c.mu.Unlock()
	return write(obj)
}

func (c *choosy[T]) Decode(data []byte) (obj T, err error) {
	c.mu.Lock()
	rotten := c.rotten != nil && bytes.Equal(data, c.rotten)
	if rotten {
		c.left--
	}
	left := c.left
	c.mu.Unlock()
	if rotten && left < 0 {
		return obj, errors.New("rotten")
	}
	return c.JSON.Decode(data)
}

// emptied deletes everything from the store in a file, if there is one.
func emptied(ctx context.Context, path string) error {
	s, err := bolt.Open[pod](path, nil, &bolt.Options{History: childHistory})
	if err != nil {
		return err
	}
	bolt.NoSync(s)
	p, err := s.List(ctx, reflector.ListOptions{KeysOnly: true})
	for _, it := range p.Items {
		if err == nil {
			_, err = s.Delete(ctx, it.Key, object.Any)
		}
	}
	if err != nil {
		s.Close()
		return err
	}
	return s.Close()
}

func TestConformance(t *testing.T) {
	pods := func(n int) pod { return pod{N: n} }
	t.Run("new", func(t *testing.T) {
		backendtest.Test(t, harness(t, func(n int) marked { return marked{N: n} }, func(context.Context, string) error { return nil }))
	})
	t.Run("after a restart", func(t *testing.T) {
		backendtest.Test(t, harness(t, pods, func(ctx context.Context, path string) error {
			s, err := bolt.Open[pod](path, nil, nil)
			if err != nil {
				return err
			}
			for _, key := range []string{"a", "key-0000", "key-0001"} {
				if _, err = s.Create(ctx, key, pod{N: 99}); err != nil {
					break
				}
			}
			if err != nil {
				s.Close()
				return err
			}
			if err := s.Close(); err != nil {
				return err
			}
			return emptied(ctx, path)
		}))
	})
	t.Run("after a kill", func(t *testing.T) {
		left := filepath.Join(t.TempDir(), "pods.db")
		killed(t, left, 7, 8, 500)
		data, err := os.ReadFile(left)
		require.NoError(t, err)
		backendtest.Test(t, harness(t, pods, func(ctx context.Context, path string) error {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				return err
			}
			return emptied(ctx, path)
		}))
	})
}
