package backend_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
)

func TestPatchByUpdate(t *testing.T) {
	ctx := t.Context()
	touch := func(s *memory.Store[pod]) { must(s.Patch(ctx, "a", merge(`{"name":"y"}`), object.Any)) }
	cases := []struct {
		name    string
		key     string
		p       patch.Patch
		v       object.Version
		between func(s *memory.Store[pod])
		want    pod
		writes  int
		err     *backend.Error
	}{
		{"under its version", "a", merge(`{"n":9}`), "1", nil, pod{N: 9}, 1, nil},
		{"under any", "a", merge(`{"n":9}`), object.Any, nil, pod{N: 9}, 1, nil},
		{"no change", "a", merge(`{"n":1}`), "1", nil, pod{N: 1}, 0, nil},
		{"an empty patch", "a", merge(`{}`), object.Any, nil, pod{N: 1}, 0, nil},
		{"another writer, under any", "a", merge(`{"n":9}`), object.Any, touch, pod{N: 9, Name: "y"}, 2, nil},
		{"another writer, under a version", "a", merge(`{"n":9}`), "1", touch, pod{N: 1, Name: "y"}, 1,
			&backend.Error{Op: "patch", Key: "a", Want: "1", Found: "2", Err: backend.ErrConflict}},
		{"an old version", "a", merge(`{"n":9}`), "0", nil, pod{N: 1}, 0,
			&backend.Error{Op: "patch", Key: "a", Want: "0", Found: "1", Err: backend.ErrConflict}},
		{"an old version and no change", "a", merge(`{}`), "0", nil, pod{N: 1}, 0,
			&backend.Error{Op: "patch", Key: "a", Want: "0", Found: "1", Err: backend.ErrConflict}},
		{"no version", "b", merge(`{"n":9}`), "", nil, pod{}, 0,
			&backend.Error{Op: "patch", Key: "b", Err: backend.ErrNoVersion}},
		{"nothing", "b", merge(`{"n":9}`), object.Any, nil, pod{}, 0,
			&backend.Error{Op: "patch", Key: "b", Want: object.Any, Err: backend.ErrNotFound}},
		{"no patch", "a", nil, object.Any, nil, pod{N: 1}, 0,
			&backend.Error{Op: "patch", Key: "a", Want: object.Any, Err: patch.ErrBadPatch}},
		{"a patch that does not fit", "a", merge(`{"n":"x"}`), object.Any, nil, pod{N: 1}, 0,
			&backend.Error{Op: "patch", Key: "a", Want: object.Any, Err: patch.ErrWrongType}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, b := seeded(t, pod{N: 1})
			if c.between != nil {
				b.before = once(func() { c.between(s) })
			}
			got, err := backend.PatchByUpdate(ctx, b, c.key, c.p, c.v)
			require.Len(t, b.log, c.writes)
			if c.err != nil {
				failed(t, err, *c.err)
				require.Empty(t, got)
				require.Equal(t, c.err.Err == backend.ErrNoVersion, retry.IsPermanent(err))
			} else {
				require.NoError(t, err)
				require.Equal(t, got, must(s.Get(ctx, c.key)))
			}
			if c.key == "a" {
				require.Equal(t, c.want, must(s.Get(ctx, "a")).Object)
			}
		})
	}
}

func TestPatchByUpdateIsForOneObject(t *testing.T) {
	s, b := seeded(t, pod{N: 1})
	b.before = once(func() {
		must(s.Delete(t.Context(), "a", object.Any))
		must(s.Create(t.Context(), "a", pod{Name: "new"}))
	})
	got, err := backend.PatchByUpdate(t.Context(), b, "a", merge(`{"n":9}`), object.Any)
	require.NoError(t, err)
	require.Equal(t, pod{N: 9, Name: "new"}, got.Object, "nothing of the old one comes back")
}

// F03, for stores that patch by update.
func TestF03_UnconditionalPatchesAreSerialised(t *testing.T) {
	s, _ := seeded(t, pod{Extra: map[string]any{}})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if _, err := backend.PatchByUpdate(t.Context(), s, "a", merge(`{"extra":{"k%d":1}}`, i), object.Any); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Len(t, must(s.Get(t.Context(), "a")).Object.Extra, 50)
}

func TestPatchByUpdateEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New(fake.Plan{Faults: []fake.Fault{{Do: fake.Conflict}}}, item{Key: "a"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := backend.PatchByUpdate(ctx, b, "a", merge(`{"n":9}`), object.Any)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, backend.ErrConflict)
	})
}

func TestPatchByUpdateWithoutVersions(t *testing.T) {
	s := memory.New[pod](nil)
	must(s.Create(t.Context(), "a", pod{N: 1}))
	got, err := backend.PatchByUpdate(t.Context(), backend.Backend[pod](bare[pod]{s}), "a", merge(`{"n":9}`), object.Any)
	require.NoError(t, err)
	require.Equal(t, item{Key: "a", Object: pod{N: 9}}, got)
}

func TestPatchByUpdateKnowsNoOutcome(t *testing.T) {
	b := fake.New(fake.Plan{Faults: []fake.Fault{{Do: fake.FailAfterCommit}}}, item{Key: "a"})
	_, err := backend.PatchByUpdate(t.Context(), b, "a", merge(`{"n":9}`), object.Any)
	failed(t, err, backend.Error{Op: "patch", Key: "a", Want: object.Any, Err: backend.ErrOutcomeUnknown})
	require.Equal(t, 1, b.Calls(fake.Writes))
}

func TestPatched(t *testing.T) {
	obj := &pod{N: 1}
	got, changed, err := backend.Patched(merge(`{"n":2}`), obj)
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, &pod{N: 2}, got)
	require.Equal(t, &pod{N: 1}, obj)

	_, changed, err = backend.Patched(merge(`{"n":1}`), obj)
	require.NoError(t, err)
	require.False(t, changed)

	_, _, err = backend.Patched(merge(`{"n":1}`), make(chan int))
	require.Error(t, err)
}

func TestConflictUnderAVersionIsFinal(t *testing.T) {
	b := fake.New(fake.Plan{}, item{Key: "a"})
	b.Intercept(fake.Update, func(context.Context, string) error { return backend.ErrConflict })
	_, err := backend.PatchByUpdate(t.Context(), b, "a", merge(`{"n":9}`), "1")
	require.ErrorIs(t, err, backend.ErrConflict)
	require.Equal(t, 1, b.Calls(fake.Update))
	_, err = backend.WithFinalizers[pod](b).Update(t.Context(), item{Key: "a", Version: "1"})
	require.ErrorIs(t, err, backend.ErrConflict)
	require.Equal(t, 2, b.Calls(fake.Update))
}

// unversioned is a store with IDs alone.
type unversioned struct{ backend.Backend[pod] }

func (b unversioned) Get(ctx context.Context, key string) (item, error) {
	it, err := b.Backend.Get(ctx, key)
	it.Version = ""
	return it, err
}

func TestPatchByUpdateMakesUseOfIDs(t *testing.T) {
	s, b := seeded(t, pod{N: 1, Name: "old"})
	b.before = once(func() {
		must(s.Delete(t.Context(), "a", object.Any))
		must(s.Create(t.Context(), "a", pod{Name: "new"}))
	})
	got, err := backend.PatchByUpdate(t.Context(), backend.Backend[pod](unversioned{b}), "a", merge(`{"n":9}`), object.Any)
	require.NoError(t, err)
	require.Equal(t, pod{N: 9, Name: "new"}, got.Object)
}
