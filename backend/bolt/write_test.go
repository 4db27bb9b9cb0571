package bolt_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/bolt"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
)

// a is a store with "a" at version 2 and "b" at version 3.
func seeded(t *testing.T) (*bolt.Store[pod], item) {
	t.Helper()
	s := fresh(t, nil)
	first := must(s.Create(t.Context(), "a", pod{N: 1}))
	a := must(s.Update(t.Context(), item{Key: "a", Version: first.Version, Object: pod{N: 2}}))
	must(s.Create(t.Context(), "b", pod{N: 3}))
	return s, a
}

func TestWritesAnswerTheObjectAsStored(t *testing.T) {
	ctx := t.Context()
	s := fresh(t, nil)
	created, err := s.Create(ctx, "a", pod{N: 1})
	require.NoError(t, err)
	require.Equal(t, item{Key: "a", Version: "1", ID: created.ID, Object: pod{N: 1}}, created)
	require.NotEmpty(t, created.ID)
	require.Equal(t, created, must(s.Get(ctx, "a")))

	updated, err := s.Update(ctx, item{Key: "a", Version: "1", Object: pod{N: 2}})
	require.NoError(t, err)
	require.Equal(t, item{Key: "a", Version: "2", ID: created.ID, Object: pod{N: 2}}, updated, "an update keeps the ID")
	require.Equal(t, updated, must(s.Get(ctx, "a")))

	patched, err := s.Patch(ctx, "a", merge(`{"tags":{"x":"y"}}`), "2")
	require.NoError(t, err)
	require.Equal(t, item{Key: "a", Version: "3", ID: created.ID, Object: pod{N: 2, Tags: map[string]string{"x": "y"}}}, patched)
	require.Equal(t, patched, must(s.Get(ctx, "a")))

	gone, err := s.Delete(ctx, "a", "3")
	require.NoError(t, err)
	last := patched
	last.Version = "4"
	require.Equal(t, last, gone, "the last state, under the version of the delete")
	_, err = s.Get(ctx, "a")
	failed(t, err, backend.Error{Op: "get", Key: "a", Err: backend.ErrNotFound})

	again := must(s.Create(ctx, "a", pod{N: 1}))
	require.Equal(t, object.Version("5"), again.Version)
	require.NotEqual(t, created.ID, again.ID, "an object created anew is another one")
	other := must(fresh(t, nil).Create(ctx, "a", pod{N: 1}))
	require.NotEqual(t, created.ID, other.ID, "so is one in another store")
}

func TestRefusedWrites(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	type store = backend.Backend[pod]
	cases := []struct {
		name string
		do   func(ctx context.Context, s store, a item) error
		want backend.Error
	}{
		{"create of what is there", func(ctx context.Context, s store, a item) error {
			_, err := s.Create(ctx, "a", pod{})
			return err
		}, backend.Error{Op: "create", Key: "a", Found: "2", Err: backend.ErrExists}},
		{"update at an old version", func(ctx context.Context, s store, a item) error {
			_, err := s.Update(ctx, item{Key: "a", Version: "1"})
			return err
		}, backend.Error{Op: "update", Key: "a", Want: "1", Found: "2", Err: backend.ErrConflict}},
		{"update of another object under any version", func(ctx context.Context, s store, a item) error {
			_, err := s.Update(ctx, item{Key: "a", Version: object.Any, ID: "other"})
			return err
		}, backend.Error{Op: "update", Key: "a", Want: object.Any, Found: "2", Err: backend.ErrConflict}},
		{"update of nothing", func(ctx context.Context, s store, a item) error {
			_, err := s.Update(ctx, item{Key: "c", Version: object.Any})
			return err
		}, backend.Error{Op: "update", Key: "c", Want: object.Any, Err: backend.ErrNotFound}},
		{"update without a version", func(ctx context.Context, s store, a item) error {
			_, err := s.Update(ctx, item{Key: "c"})
			return err
		}, backend.Error{Op: "update", Key: "c", Err: backend.ErrNoVersion}},
		{"patch at an old version", func(ctx context.Context, s store, a item) error {
			_, err := s.Patch(ctx, "a", merge(`{"n":9}`), "1")
			return err
		}, backend.Error{Op: "patch", Key: "a", Want: "1", Found: "2", Err: backend.ErrConflict}},
		{"patch of nothing", func(ctx context.Context, s store, a item) error {
			_, err := s.Patch(ctx, "c", merge(`{}`), "7")
			return err
		}, backend.Error{Op: "patch", Key: "c", Want: "7", Err: backend.ErrNotFound}},
		{"patch without a version", func(ctx context.Context, s store, a item) error {
			_, err := s.Patch(ctx, "c", merge(`{}`), "")
			return err
		}, backend.Error{Op: "patch", Key: "c", Err: backend.ErrNoVersion}},
		{"patch that does not fit", func(ctx context.Context, s store, a item) error {
			_, err := s.Patch(ctx, "a", must(patch.JSON([]byte(`[{"op":"test","path":"/n","value":7}]`))), object.Any)
			return err
		}, backend.Error{Op: "patch", Key: "a", Want: object.Any, Found: "2", Err: patch.ErrTestFailed}},
		{"patch to another type", func(ctx context.Context, s store, a item) error {
			_, err := s.Patch(ctx, "a", merge(`{"n":"many"}`), object.Any)
			return err
		}, backend.Error{Op: "patch", Key: "a", Want: object.Any, Found: "2", Err: patch.ErrWrongType}},
		{"no patch", func(ctx context.Context, s store, a item) error {
			_, err := s.Patch(ctx, "a", nil, object.Any)
			return err
		}, backend.Error{Op: "patch", Key: "a", Want: object.Any, Found: "2", Err: patch.ErrBadPatch}},
		{"delete at an old version", func(ctx context.Context, s store, a item) error { // F09
			_, err := s.Delete(ctx, "a", "1")
			return err
		}, backend.Error{Op: "delete", Key: "a", Want: "1", Found: "2", Err: backend.ErrConflict}},
		{"delete of nothing", func(ctx context.Context, s store, a item) error {
			_, err := s.Delete(ctx, "c", object.Any)
			return err
		}, backend.Error{Op: "delete", Key: "c", Want: object.Any, Err: backend.ErrNotFound}},
		{"delete without a version", func(ctx context.Context, s store, a item) error {
			_, err := s.Delete(ctx, "c", "")
			return err
		}, backend.Error{Op: "delete", Key: "c", Err: backend.ErrNoVersion}},
		{"create too late", func(ctx context.Context, s store, a item) error {
			_, err := s.Create(ended, "c", pod{})
			return err
		}, backend.Error{Op: "create", Key: "c", Err: context.Canceled}},
		{"update too late", func(ctx context.Context, s store, a item) error {
			_, err := s.Update(ended, a)
			return err
		}, backend.Error{Op: "update", Key: "a", Want: "2", Err: context.Canceled}},
		{"patch too late", func(ctx context.Context, s store, a item) error {
			_, err := s.Patch(ended, "a", merge(`{"n":9}`), object.Any)
			return err
		}, backend.Error{Op: "patch", Key: "a", Want: object.Any, Err: context.Canceled}},
		{"delete too late", func(ctx context.Context, s store, a item) error {
			_, err := s.Delete(ended, "a", object.Any)
			return err
		}, backend.Error{Op: "delete", Key: "a", Want: object.Any, Err: context.Canceled}},
		{"no version, and too late", func(ctx context.Context, s store, a item) error {
			_, err := s.Delete(ended, "a", "")
			return err
		}, backend.Error{Op: "delete", Key: "a", Err: backend.ErrNoVersion}},
	}
	for _, dry := range []bool{false, true} {
		for _, c := range cases {
			t.Run(c.name+map[bool]string{true: ", tried"}[dry], func(t *testing.T) {
				s, a := seeded(t)
				before := list(t, s)
				var to store = s
				if dry {
					to = must(s.DryRun())
				}
				err := c.do(t.Context(), to, a)
				failed(t, err, c.want)
				require.Equal(t, c.want.Err == backend.ErrNoVersion, retry.IsPermanent(err))
				require.Equal(t, before, list(t, s), "a refused write changes nothing, no revision either")
			})
		}
	}
}

func TestAnyAndIDAsPreconditions(t *testing.T) {
	s, a := seeded(t)
	ctx := t.Context()
	up, err := s.Update(ctx, item{Key: "a", Version: object.Any, ID: a.ID, Object: pod{N: 5}})
	require.NoError(t, err)
	require.Equal(t, item{Key: "a", Version: "4", ID: a.ID, Object: pod{N: 5}}, up)
	_, err = s.Patch(ctx, "a", merge(`{"n":6}`), object.Any)
	require.NoError(t, err)
	_, err = s.Delete(ctx, "a", object.Any)
	require.NoError(t, err)

	again := must(s.Create(ctx, "a", pod{}))
	a.Version = again.Version
	_, err = s.Update(ctx, a)
	require.ErrorIs(t, err, backend.ErrConflict, "the version is right, the object is another one")
}

func TestDryRunAnswersAndDoesNothing(t *testing.T) {
	s, a := seeded(t)
	ctx := t.Context()
	before := list(t, s)
	dry := must(must(s.DryRun()).DryRun())

	got, err := dry.Create(ctx, "c", pod{N: 7})
	require.NoError(t, err)
	require.Equal(t, item{Key: "c", Object: pod{N: 7}}, got, "no version came about")
	got, err = dry.Update(ctx, item{Key: "a", Version: "2", Object: pod{N: 7}})
	require.NoError(t, err)
	require.Equal(t, item{Key: "a", Version: "2", ID: a.ID, Object: pod{N: 7}}, got)
	got, err = dry.Update(ctx, item{Key: "a", Version: object.Any, Object: pod{N: 7}})
	require.NoError(t, err)
	require.Equal(t, item{Key: "a", Version: "2", ID: a.ID, Object: pod{N: 7}}, got)
	got, err = dry.Patch(ctx, "a", merge(`{"n":8}`), object.Any)
	require.NoError(t, err)
	require.Equal(t, item{Key: "a", Version: "2", ID: a.ID, Object: pod{N: 8}}, got)
	got, err = dry.Delete(ctx, "a", object.Any)
	require.NoError(t, err)
	require.Equal(t, a, got)

	require.Equal(t, before, list(t, s))
	require.Equal(t, a, must(dry.Get(ctx, "a")), "reads are real")
}

func TestPatchThatChangesNothingIsNoRevision(t *testing.T) {
	for _, p := range []string{`{}`, `{"n":2}`, `{"tags":null}`, `{"unknown":1}`} {
		t.Run(p, func(t *testing.T) {
			s, a := seeded(t)
			before := cursorOf(t, s)
			got, err := s.Patch(t.Context(), "a", merge("%s", p), "2")
			require.NoError(t, err)
			require.Equal(t, a, got)
			require.Equal(t, before, cursorOf(t, s))
		})
	}
}

// meddling is a patch that does something while it is applied.
type meddling struct {
	patch.Patch
	once sync.Once
	do   func()
}

func (m *meddling) Apply(doc []byte) ([]byte, error) {
	m.once.Do(m.do)
	return m.Patch.Apply(doc)
}

func TestPatchIsOneStep(t *testing.T) {
	ctx := t.Context()
	cases := []struct {
		name    string
		version object.Version
		do      func(s *bolt.Store[pod])
		want    pod
		err     error
	}{
		{"a write in between is patched too", object.Any, func(s *bolt.Store[pod]) {
			must(s.Update(ctx, item{Key: "a", Version: object.Any, Object: pod{Tags: map[string]string{"k": "v"}}}))
		}, pod{N: 9, Tags: map[string]string{"k": "v"}}, nil},
		{"not under a version", "2", func(s *bolt.Store[pod]) {
			must(s.Update(ctx, item{Key: "a", Version: object.Any, Object: pod{N: 5}}))
		}, pod{N: 5}, backend.ErrConflict},
		{"a delete in between", object.Any, func(s *bolt.Store[pod]) {
			must(s.Delete(ctx, "a", object.Any))
		}, pod{}, backend.ErrNotFound},
		{"a re-creation in between", "2", func(s *bolt.Store[pod]) {
			must(s.Delete(ctx, "a", object.Any))
			must(s.Create(ctx, "a", pod{N: 2}))
		}, pod{N: 2}, backend.ErrConflict},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, _ := seeded(t)
			p := &meddling{Patch: merge(`{"n":9}`), do: func() { c.do(s) }}
			_, err := s.Patch(ctx, "a", p, c.version)
			require.ErrorIs(t, err, c.err)
			got, err := s.Get(ctx, "a")
			if c.err == backend.ErrNotFound {
				require.ErrorIs(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got.Object)
		})
	}
}

func TestConcurrentWritesUnderAnyAllHappen(t *testing.T) {
	s := fresh(t, nil)
	ctx := t.Context()
	must(s.Create(ctx, "a", pod{}))
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if _, err := s.Patch(ctx, "a", merge(`{"tags":{"t%d":"x"}}`, i), object.Any); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := must(s.Get(ctx, "a"))
	require.Len(t, got.Object.Tags, 50)
	require.Equal(t, object.Version(strconv.Itoa(51)), got.Version)
}

func TestKeysThatNoStoreCanHold(t *testing.T) {
	s, _ := seeded(t)
	before := list(t, s)
	for _, b := range []backend.Backend[pod]{s, must(s.DryRun())} {
		_, err := b.Create(t.Context(), "", pod{})
		require.ErrorIs(t, err, backend.ErrNoKey)
		require.True(t, retry.IsPermanent(err))
		long := strings.Repeat("k", 32769)
		_, err = b.Create(t.Context(), long, pod{})
		require.ErrorIs(t, err, bolt.ErrTooLarge)
		require.ErrorContains(t, err, "32769 bytes, at most 32768")
		require.True(t, retry.IsPermanent(err))
		for _, key := range []string{"", long} {
			_, err = b.Get(t.Context(), key)
			require.ErrorIs(t, err, backend.ErrNotFound)
			_, err = b.Update(t.Context(), item{Key: key, Version: object.Any})
			require.ErrorIs(t, err, backend.ErrNotFound)
			_, err = b.Delete(t.Context(), key, object.Any)
			require.ErrorIs(t, err, backend.ErrNotFound)
		}
	}
	require.Equal(t, before, list(t, s))
	must(s.Create(t.Context(), strings.Repeat("k", 32768), pod{}))
	require.Len(t, list(t, s).Items, 3)
}
