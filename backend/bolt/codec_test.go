package bolt_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/bolt"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

// plain keeps numbers as text, and misbehaves at will.
type plain struct {
	encode, decode func(n int, text string) error
}

func (p *plain) Encode(n int) ([]byte, error) {
	if p.encode != nil {
		if err := p.encode(n, ""); err != nil {
			return nil, err
		}
	}
	return []byte(strconv.Itoa(n)), nil
}

func (p *plain) Decode(data []byte) (int, error) {
	n, err := strconv.Atoi(string(data))
	if p.decode != nil {
		if err := p.decode(n, string(data)); err != nil {
			return 0, err
		}
	}
	return n, err
}

func numbers(t *testing.T, path string, codec object.Codec[int]) *bolt.Store[int] {
	t.Helper()
	s, err := bolt.Open(path, codec, nil)
	require.NoError(t, err)
	bolt.NoSync(s)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestCodec(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "numbers.db")
	s := numbers(t, path, &plain{})
	must(s.Create(ctx, "a", 7))
	got, err := s.Patch(ctx, "a", must(patch.JSON([]byte(`[{"op":"replace","path":"","value":8}]`))), object.Any)
	require.NoError(t, err)
	require.Equal(t, 8, got.Object)
	require.NoError(t, s.Close())
	s = numbers(t, path, &plain{})
	require.Equal(t, 8, must(s.Get(ctx, "a")).Object)
}

// TestCodecFails: an error or panic of the codec, or of a patch, undoes the write and
// leaves the store as it was.
func TestCodecFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		codec := &plain{}
		s := numbers(t, filepath.Join(t.TempDir(), "numbers.db"), codec)
		a := must(s.Create(ctx, "a", 1))
		before := must(s.List(ctx, reflector.ListOptions{}))
		errBad := errors.New("bad")
		fails := func(int, string) error { return errBad }
		panics := func(int, string) error { panic("bad") }
		decodes := func(f func(int, string) error) func(int, string) error {
			return func(n int, text string) error {
				if n == 2 { // what is written, not what is there
					return f(n, text)
				}
				return nil
			}
		}
		for name, c := range map[string]plain{
			"encode fails":  {encode: fails},
			"encode panics": {encode: panics},
			"decode fails":  {decode: decodes(fails)},
			"decode panics": {decode: decodes(panics)},
		} {
			for _, to := range []backend.Backend[int]{s, must(s.DryRun())} {
				*codec = c
				_, create := to.Create(ctx, "b", 2)
				_, update := to.Update(ctx, object.Item[int]{Key: "a", Version: a.Version, Object: 2})
				_, patched := to.Patch(ctx, "a", two(t), a.Version)
				*codec = plain{}
				for _, err := range []error{create, update, patched} {
					var e *backend.Error
					require.ErrorAs(t, err, &e, name)
					require.ErrorContains(t, err, "bad")
					require.Equal(t, c.decode != nil, errors.Is(err, bolt.ErrUndecodable))
					var p *reflector.PanicError
					require.Equal(t, errors.As(err, &p), !errors.Is(err, errBad), name)
				}
				require.Equal(t, before, must(s.List(ctx, reflector.ListOptions{})))
			}
		}
		bad := &meddling{Patch: two(t), do: func() { panic("bad") }}
		_, err := s.Patch(ctx, "a", bad, object.Any)
		var p *reflector.PanicError
		require.ErrorAs(t, err, &p)
		require.Equal(t, "a", p.Key)
		require.NotEmpty(t, p.Stack)
		require.Equal(t, before, must(s.List(ctx, reflector.ListOptions{})))
		must(s.Update(ctx, object.Item[int]{Key: "a", Version: a.Version, Object: 2}))
	})
}

func two(t *testing.T) patch.Patch {
	t.Helper()
	p, err := patch.JSON([]byte(`[{"op":"replace","path":"","value":2}]`))
	require.NoError(t, err)
	return p
}

// TestUndecodableObjects: one that the codec can't read is never left out in
// silence. Every answer that would have it names it, and Update puts it right.
func TestUndecodableObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		codec := &plain{}
		s := numbers(t, filepath.Join(t.TempDir(), "numbers.db"), codec)
		must(s.Create(ctx, "a", 1))
		start := must(s.Powers().Head(ctx))
		must(s.Create(ctx, "bad one", 666))
		at := must(s.Powers().Head(ctx))
		must(s.Create(ctx, "c", 3))
		codec.decode = func(n int, text string) error {
			if n == 666 {
				return fmt.Errorf("number of the beast")
			}
			return nil
		}
		named := func(err error) {
			t.Helper()
			require.ErrorIs(t, err, reflector.ErrUnreadable)
			require.ErrorIs(t, err, bolt.ErrUndecodable)
			require.ErrorContains(t, err, `"bad one"`)
			require.ErrorContains(t, err, "number of the beast")
		}
		_, err := s.Get(ctx, "bad one")
		named(err)
		faulty := func(faults []reflector.Fault) {
			t.Helper()
			require.Len(t, faults, 1)
			require.Equal(t, "bad one", faults[0].Key)
			require.Equal(t, object.Version("2"), faults[0].Version)
			named(faults[0].Err)
		}
		p := must(s.List(ctx, reflector.ListOptions{}))
		require.Len(t, p.Items, 2)
		faulty(p.Faults)
		p = must(s.List(ctx, reflector.ListOptions{Limit: 2}))
		require.Len(t, p.Items, 1)
		faulty(p.Faults)
		p = must(s.List(ctx, reflector.ListOptions{Limit: 2, Page: p.Next}))
		require.Len(t, p.Items, 1)
		require.Empty(t, p.Faults)
		require.Len(t, must(s.List(ctx, reflector.ListOptions{KeysOnly: true})).Items, 3)
		_, err = s.Patch(ctx, "bad one", two(t), object.Any)
		named(err)

		watched := func(opts reflector.WatchOptions) (b reflector.Batch[int]) {
			t.Helper()
			for b, err := range s.Watch(ctx, opts) {
				require.NoError(t, err)
				if len(b.Faults) > 0 {
					return b
				}
			}
			return b
		}
		b := watched(reflector.WatchOptions{After: start})
		require.Empty(t, b.Events)
		require.Equal(t, at, b.Cursor)
		require.Equal(t, start, b.Prev)
		faulty(b.Faults)
		b = watched(reflector.WatchOptions{Initial: true})
		require.Len(t, b.Events, 2)
		require.True(t, b.Synced)
		faulty(b.Faults)

		fixed := must(s.Update(ctx, object.Item[int]{Key: "bad one", Version: object.Any, Object: 2}))
		require.Equal(t, object.Version("4"), fixed.Version)
		require.Len(t, must(s.List(ctx, reflector.ListOptions{})).Items, 3)
		for b, err := range s.Watch(ctx, reflector.WatchOptions{After: at}) {
			require.NoError(t, err)
			if len(b.Events) > 0 && b.Events[0].Key == "bad one" {
				break
			}
		}

		codec.decode = nil
		must(s.Update(ctx, object.Item[int]{Key: "bad one", Version: object.Any, Object: 666}))
		here := must(s.Powers().Head(ctx))
		codec.decode = func(n int, text string) error { panic("cannot") }
		gone := must(s.Delete(ctx, "bad one", object.Any))
		require.Zero(t, gone.Object)
		require.Equal(t, object.Version("6"), gone.Version)
		for b, err := range s.Watch(ctx, reflector.WatchOptions{After: here}) {
			require.NoError(t, err, "a delete is told in any case")
			if len(b.Events) > 0 {
				require.Equal(t, reflector.Event[int]{Op: reflector.OpDelete, Item: object.Item[int]{
					Key: "bad one", Version: gone.Version, ID: gone.ID,
				}}, b.Events[0])
				break
			}
		}
	})
}
