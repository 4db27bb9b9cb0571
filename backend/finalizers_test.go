package backend_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
)

func with(n int, deleting time.Time, finalizers ...string) pod {
	return pod{N: n, Meta: object.Meta{Finalizers: finalizers, Deleting: deleting}}
}

var then = time.Date(2020, 1, 2, 3, 4, 5, 6, time.UTC)

// soft is a soft-deleting store over one that holds obj as "a", and a look at what
// reaches that.
func soft(t *testing.T, obj pod) (backend.Backend[pod], *memory.Store[pod], *spy[pod]) {
	s, b := seeded(t, obj)
	return backend.WithFinalizers[pod](b), s, b
}

// events are what happened to a store after its first revision.
func events(t *testing.T, s *memory.Store[pod]) []reflector.Event[pod] {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	head := must(s.Powers().Head(ctx))
	epoch := string(head)[:27]
	var all []reflector.Event[pod]
	for b, err := range s.Watch(ctx, reflector.WatchOptions{After: reflector.Cursor(epoch + "1")}) {
		require.NoError(t, err)
		all = append(all, b.Events...)
	}
	return all
}

func TestF04_DeleteWaitsForFinalizers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s, _ := soft(t, with(1, time.Time{}, "x", "y"))
		ctx := t.Context()
		now := time.Now()
		marked, err := b.Delete(ctx, "a", "1")
		require.NoError(t, err)
		require.Equal(t, item{Key: "a", Version: "2", ID: marked.ID, Object: with(1, now.UTC(), "x", "y")}, marked)
		require.Equal(t, marked, must(b.Get(ctx, "a")))

		time.Sleep(time.Hour)
		again, err := b.Delete(ctx, "a", object.Any)
		require.NoError(t, err)
		require.Equal(t, marked, again, "a second delete changes nothing, the time neither")
		_, err = b.Delete(ctx, "a", "1")
		failed(t, err, backend.Error{Op: "delete", Key: "a", Want: "1", Found: "2", Err: backend.ErrConflict})

		marked.Object.Finalizers = []string{"y"}
		one, err := b.Update(ctx, marked)
		require.NoError(t, err)
		require.Equal(t, with(1, now.UTC(), "y"), one.Object)

		gone, err := b.Patch(ctx, "a", merge(`{"meta":{"finalizers":null},"n":5}`), object.Any)
		require.NoError(t, err)
		require.Equal(t, item{Key: "a", Version: "4", ID: marked.ID, Object: with(5, now.UTC())}, gone)
		_, err = b.Get(ctx, "a")
		require.ErrorIs(t, err, backend.ErrNotFound)
		_, err = b.Delete(ctx, "a", object.Any)
		failed(t, err, backend.Error{Op: "delete", Key: "a", Want: object.Any, Err: backend.ErrNotFound})

		all := events(t, s)
		require.Len(t, all, 3)
		require.Equal(t, reflector.OpPut, all[0].Op)
		require.True(t, all[0].Object.IsDeleting())
		require.Equal(t, reflector.OpPut, all[1].Op)
		require.Equal(t, reflector.OpDelete, all[2].Op)
		require.Equal(t, []string{"y"}, all[2].Object.Finalizers, "nobody sees it without finalizers")
	})
}

func TestWritesUnderFinalizers(t *testing.T) {
	alive, x := time.Time{}, "x"
	cases := []struct {
		name   string
		stored pod
		do     func(ctx context.Context, b backend.Backend[pod]) (item, error)
		want   pod
		log    []string // what reaches the store, with versions
		gone   bool
		err    *backend.Error
	}{
		{"a delete without finalizers is one", with(1, alive), del("a", object.Any), with(1, alive),
			[]string{"delete at 1"}, true, nil},
		{"of what is being deleted but has none left", with(1, then), del("a", object.Any), with(1, then),
			[]string{"delete at 1"}, true, nil},
		{"an update keeps an object that lives", with(1, alive, x), update("1", with(2, alive)), with(2, alive),
			[]string{"update at 1"}, false, nil},
		{"an update is no delete", with(1, alive, x), update(object.Any, with(2, then, x)), with(2, alive, x),
			[]string{"update at 1"}, false, nil},
		{"an update does not bring back to life", with(1, then, x), update(object.Any, with(2, alive, x)), with(2, then, x),
			[]string{"update at 1"}, false, nil},
		{"an update does not change the time", with(1, then, x), update("1", with(2, then.Add(1), x)), with(2, then, x),
			[]string{"update at 1"}, false, nil},
		{"an update that takes the last finalizer", with(1, then, x), update("1", with(2, alive)), with(2, then),
			[]string{"delete at 1"}, true, nil},
		{"an update that takes one of two", with(1, then, x, "y"), update("1", with(2, alive, x)), with(2, then, x),
			[]string{"update at 1"}, false, nil},
		{"an update in another order", with(1, then, x, "y"), update("1", with(1, then, "y", x)), with(1, then, "y", x),
			[]string{"update at 1"}, false, nil},
		{"an update that adds one too late", with(1, then, x), update("1", with(2, then, x, "y")), pod{}, nil, false,
			&backend.Error{Op: "update", Key: "a", Want: "1", Err: backend.ErrDeleting}},
		{"an update that swaps one too late", with(1, then, x), update(object.Any, with(2, then, "y")), pod{}, nil, false,
			&backend.Error{Op: "update", Key: "a", Want: object.Any, Err: backend.ErrDeleting}},
		{"an update at an old version", with(1, alive), update("0", with(2, alive)), pod{}, nil, false,
			&backend.Error{Op: "update", Key: "a", Want: "0", Found: "1", Err: backend.ErrConflict}},
		{"an update without a version", with(1, alive), update("", with(2, alive)), pod{}, nil, false,
			&backend.Error{Op: "update", Key: "a", Err: backend.ErrNoVersion}},
		{"a patch stays a patch", with(1, alive, x), patched("1", `{"n":2}`), with(2, alive, x),
			[]string{"patch at 1"}, false, nil},
		{"of what is being deleted too", with(1, then, x), patched(object.Any, `{"n":2}`), with(2, then, x),
			[]string{"patch at 1"}, false, nil},
		{"a patch that changes nothing", with(1, alive, x), patched(object.Any, `{"n":1}`), with(1, alive, x), nil, false, nil},
		{"a patch is no delete", with(1, alive, x), patched("1", `{"n":2,"meta":{"deleting":"2020-01-02T03:04:05Z"}}`), with(2, alive, x),
			[]string{"update at 1"}, false, nil},
		{"a patch does not bring back to life", with(1, then, x), patched("1", `{"n":2,"meta":{"deleting":null}}`), with(2, then, x),
			[]string{"update at 1"}, false, nil},
		{"a patch that takes the last finalizer", with(1, then, x), patched("1", `{"n":2,"meta":{"finalizers":[]}}`), pod{N: 2, Meta: object.Meta{Deleting: then, Finalizers: []string{}}},
			[]string{"delete at 1"}, true, nil},
		{"a patch that takes everything", with(1, then, x), patched("1", `{"meta":null}`), with(1, then),
			[]string{"delete at 1"}, true, nil},
		{"a patch that adds one", with(1, alive), patched("1", `{"meta":{"finalizers":["x"]}}`), with(1, alive, x),
			[]string{"patch at 1"}, false, nil},
		{"a patch that adds one too late", with(1, then, x), patched("1", `{"meta":{"finalizers":["x","y"]}}`), pod{}, nil, false,
			&backend.Error{Op: "patch", Key: "a", Want: "1", Err: backend.ErrDeleting}},
		{"a patch at an old version", with(1, alive), patched("0", `{"n":2}`), pod{}, nil, false,
			&backend.Error{Op: "patch", Key: "a", Want: "0", Found: "1", Err: backend.ErrConflict}},
		{"a patch without a version", with(1, alive), patched("", `{"n":2}`), pod{}, nil, false,
			&backend.Error{Op: "patch", Key: "a", Err: backend.ErrNoVersion}},
		{"a delete without a version", with(1, alive), del("a", ""), pod{}, nil, false,
			&backend.Error{Op: "delete", Key: "a", Err: backend.ErrNoVersion}},
		{"a create takes no deletion over", with(1, alive), create("b", with(7, then, x)), with(7, alive, x),
			[]string{"create at "}, false, nil},
		{"a create of what is there", with(1, alive), create("a", with(7, then, x)), pod{},
			[]string{"create at "}, false,
			&backend.Error{Op: "create", Key: "a", Found: "1", Err: backend.ErrExists}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b, s, spy := soft(t, c.stored)
			before := must(s.List(t.Context(), reflector.ListOptions{})).Items

			dry, err := c.do(t.Context(), must(b.DryRun()))
			require.Equal(t, before, must(s.List(t.Context(), reflector.ListOptions{})).Items)
			if c.err != nil {
				failed(t, err, *c.err)
			} else {
				require.NoError(t, err)
				require.Equal(t, c.want, dry.Object)
			}

			got, err := c.do(t.Context(), b)
			var log []string
			for _, line := range spy.log {
				verb, _, _ := cutAt(line)
				log = append(log, verb)
			}
			require.Equal(t, c.log, log)
			if c.err != nil {
				failed(t, err, *c.err)
				require.Equal(t, retry.IsPermanent(c.err.Err), retry.IsPermanent(err))
				require.Empty(t, got)
				require.Equal(t, before, must(s.List(t.Context(), reflector.ListOptions{})).Items)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got.Object)
			require.NotEmpty(t, got.Version)
			require.NotEmpty(t, got.ID)
			stored, err := s.Get(t.Context(), got.Key)
			if c.gone {
				require.ErrorIs(t, err, backend.ErrNotFound)
				require.Equal(t, object.Version("2"), got.Version, "the delete's own")
				return
			}
			require.NoError(t, err)
			require.Equal(t, stored, got)
		})
	}
}

func create(key string, obj pod) func(context.Context, backend.Backend[pod]) (item, error) {
	return func(ctx context.Context, b backend.Backend[pod]) (item, error) { return b.Create(ctx, key, obj) }
}

func update(v object.Version, obj pod) func(context.Context, backend.Backend[pod]) (item, error) {
	return func(ctx context.Context, b backend.Backend[pod]) (item, error) {
		return b.Update(ctx, item{Key: "a", Version: v, Object: obj})
	}
}

func patched(v object.Version, doc string) func(context.Context, backend.Backend[pod]) (item, error) {
	return func(ctx context.Context, b backend.Backend[pod]) (item, error) {
		return b.Patch(ctx, "a", merge("%s", doc), v)
	}
}

func del(key string, v object.Version) func(context.Context, backend.Backend[pod]) (item, error) {
	return func(ctx context.Context, b backend.Backend[pod]) (item, error) { return b.Delete(ctx, key, v) }
}

func TestFinalizersMeetOtherWriters(t *testing.T) {
	ctx := t.Context()
	softly := func(s *memory.Store[pod]) backend.Backend[pod] { return backend.WithFinalizers[pod](s) }
	addX := func(s *memory.Store[pod]) {
		must(s.Patch(ctx, "a", merge(`{"meta":{"finalizers":["x"]}}`), object.Any))
	}
	remove := func(s *memory.Store[pod]) { must(softly(s).Delete(ctx, "a", object.Any)) }
	cases := []struct {
		name    string
		stored  pod
		do      func(context.Context, backend.Backend[pod]) (item, error)
		between func(*memory.Store[pod])
		check   func(pod) bool // nil: gone
		err     error
	}{
		{"a finalizer added before the delete is honoured", with(1, time.Time{}), del("a", object.Any), addX,
			func(p pod) bool { return p.IsDeleting() && slices.Equal(p.Finalizers, []string{"x"}) }, nil},
		{"a delete at a version misses it", with(1, time.Time{}), del("a", "1"), addX,
			func(p pod) bool { return !p.IsDeleting() }, backend.ErrConflict},
		{"a mark is not undone by an update under any", with(1, time.Time{}, "x"), update(object.Any, with(2, time.Time{}, "x")), remove,
			func(p pod) bool { return p.IsDeleting() && p.N == 2 }, nil},
		{"nor by a patch", with(1, time.Time{}, "x"), patched(object.Any, `{"n":2}`), remove,
			func(p pod) bool { return p.IsDeleting() && p.N == 2 }, nil},
		{"the last finalizer is taken while it is deleted", with(1, time.Time{}, "x"), patched(object.Any, `{"meta":{"finalizers":null}}`), remove,
			nil, nil},
		{"an update at a version misses the mark", with(1, time.Time{}, "x"), update("1", with(2, time.Time{}, "x")), remove,
			func(p pod) bool { return p.IsDeleting() && p.N == 1 }, backend.ErrConflict},
		{"two delete at once", with(1, time.Time{}, "x"), del("a", object.Any), remove,
			func(p pod) bool { return p.IsDeleting() }, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b, s, spy := soft(t, c.stored)
			spy.before = once(func() { c.between(s) })
			_, err := c.do(ctx, b)
			require.ErrorIs(t, err, c.err)
			got, err := s.Get(ctx, "a")
			if c.check == nil {
				require.ErrorIs(t, err, backend.ErrNotFound)
				return
			}
			require.NoError(t, err)
			require.True(t, c.check(got.Object), "%+v", got)
		})
	}
}

func TestFinalizersHonourIDs(t *testing.T) {
	b, s, _ := soft(t, with(1, time.Time{}))
	old := must(b.Get(t.Context(), "a"))
	must(b.Delete(t.Context(), "a", object.Any))
	must(b.Create(t.Context(), "a", with(9, time.Time{})))
	old.Version = object.Any
	_, err := b.Update(t.Context(), old)
	failed(t, err, backend.Error{Op: "update", Key: "a", Want: object.Any, Found: "3", Err: backend.ErrConflict})
	require.Equal(t, 9, must(s.Get(t.Context(), "a")).Object.N)
}

func TestFinalizersOfPointers(t *testing.T) {
	ctx := t.Context()
	s := memory.New[*pod](nil)
	b := backend.WithFinalizers[*pod](s)
	first := ptr(with(1, then, "x"))
	item1 := must(b.Create(ctx, "a", first))
	require.Equal(t, with(1, then, "x"), *first, "the caller's object is left alone")
	require.Equal(t, with(1, time.Time{}, "x"), *item1.Object)

	marked := must(b.Delete(ctx, "a", item1.Version))
	require.True(t, marked.Object.IsDeleting())
	require.False(t, item1.Object.IsDeleting(), "readers of the old state have it unchanged")

	mine := ptr(with(2, time.Time{}, "x"))
	kept := must(b.Update(ctx, object.Item[*pod]{Key: "a", Version: marked.Version, Object: mine}))
	require.True(t, kept.Object.IsDeleting())
	require.False(t, mine.IsDeleting())

	_, err := b.Create(ctx, "b", nil)
	failed(t, err, backend.Error{Op: "create", Key: "b", Err: backend.ErrNoMeta})
	_, err = b.Update(ctx, object.Item[*pod]{Key: "a", Version: object.Any})
	failed(t, err, backend.Error{Op: "update", Key: "a", Want: object.Any, Err: backend.ErrNoMeta})
	must(s.Create(ctx, "nil", nil)) // past the wrapper
	_, err = b.Delete(ctx, "nil", object.Any)
	require.NoError(t, err)
	must(s.Create(ctx, "nil", nil))
	_, err = b.Update(ctx, object.Item[*pod]{Key: "nil", Version: object.Any, Object: mine})
	require.NoError(t, err)
}

func ptr[T any](v T) *T { return &v }

type (
	plain   struct{ N int }
	inside  struct{ object.Meta }
	through struct{ *inside }      // Meta behind a nil pointer
	shared  struct{ *object.Meta } // Meta that may be nil
)

func TestFinalizersNeedMeta(t *testing.T) {
	refuses[plain](t)
	refuses[*plain](t)
	refuses[int](t)
	refuses[any](t)
	refuses[through](t)
	refuses[*through](t)
	refuses[shared](t)
	refuses[map[string]int](t)
}

func refuses[T any](t *testing.T) {
	t.Helper()
	ctx := t.Context()
	var obj T
	s := memory.New[T](nil)
	must(s.Create(ctx, "a", obj))
	real := backend.WithFinalizers[T](s)
	for _, b := range []backend.Backend[T]{real, must(real.DryRun())} {
		_, create := b.Create(ctx, "b", obj)
		_, update := b.Update(ctx, object.Item[T]{Key: "a", Version: "1", Object: obj})
		_, patch := b.Patch(ctx, "a", merge(`{}`), "1")
		_, remove := b.Delete(ctx, "a", "1")
		for _, err := range []error{create, update, patch, remove} {
			require.ErrorIs(t, err, backend.ErrNoMeta, "%T", obj)
			require.True(t, retry.IsPermanent(err))
			require.ErrorContains(t, err, "object.Meta")
		}
		_, err := b.Get(ctx, "a")
		require.NoError(t, err, "it can still be read")
	}
}

func TestFinalizersKeepWhatTheyWrap(t *testing.T) {
	b, s, _ := soft(t, with(1, time.Time{}))
	p := b.Powers()
	require.True(t, p.Initial && p.Progress && p.ResumeProven && p.KeysOnly)
	c := must(p.Head(t.Context()))
	require.True(t, p.Reached(c, "1"))
	require.Zero(t, p.Compare(c, c))
	require.Equal(t, must(s.Get(t.Context(), "a")), must(p.Get(t.Context(), "a")))
	require.Equal(t, must(s.List(t.Context(), reflector.ListOptions{})), must(b.List(t.Context(), reflector.ListOptions{})))

	_, err := backend.WithFinalizers[pod](bare[pod]{s}).DryRun()
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

func TestFinalizersWithoutVersions(t *testing.T) {
	ctx := t.Context()
	s := memory.New[pod](nil)
	must(s.Create(ctx, "a", with(1, time.Time{}, "x")))
	b := backend.WithFinalizers[pod](bare[pod]{s})
	marked := must(b.Delete(ctx, "a", object.Any))
	require.True(t, marked.Object.IsDeleting())
	_, err := b.Update(ctx, item{Key: "a", Version: object.Any, ID: "of another store", Object: with(1, time.Time{})})
	require.NoError(t, err, "a store without IDs ignores them")
	_, err = b.Get(ctx, "a")
	require.ErrorIs(t, err, backend.ErrNotFound)
}

func TestFinalizersKnowNoOutcome(t *testing.T) {
	ctx := t.Context()
	lost := fake.Plan{Faults: []fake.Fault{{Do: fake.FailAfterCommit}}}
	inner := fake.New(lost, item{Key: "a", Object: with(1, time.Time{}, "x")})
	b := backend.WithFinalizers[pod](inner)

	_, err := b.Delete(ctx, "a", object.Any)
	failed(t, err, backend.Error{Op: "delete", Key: "a", Want: object.Any, Err: backend.ErrOutcomeUnknown})
	require.Equal(t, 1, inner.Calls(fake.Writes), "not done again")
	require.True(t, must(b.Get(ctx, "a")).Object.IsDeleting())
	_, err = b.Delete(ctx, "a", object.Any)
	require.NoError(t, err, "asked again, it finds its mark")

	_, err = b.Patch(ctx, "a", merge(`{"meta":{"finalizers":null}}`), object.Any)
	failed(t, err, backend.Error{Op: "patch", Key: "a", Want: object.Any, Err: backend.ErrOutcomeUnknown})
	_, err = b.Get(ctx, "a")
	require.ErrorIs(t, err, backend.ErrNotFound)
}

func TestFinalizersEndWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := fake.New(fake.Plan{Faults: []fake.Fault{{Do: fake.Conflict}}}, item{Key: "a", Object: with(1, time.Time{}, "x")})
		b := backend.WithFinalizers[pod](inner)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := b.Delete(ctx, "a", object.Any)
		failed(t, err, backend.Error{Op: "delete", Key: "a", Want: object.Any, Err: backend.ErrConflict})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// Whatever is done at once, an object that was marked goes exactly when its last
// finalizer went, and none goes that has one.
func TestFinalizersUnderConcurrency(t *testing.T) {
	s := memory.New[pod](nil)
	b := backend.WithFinalizers[pod](s)
	ctx := t.Context()
	names := []string{"w", "x", "y", "z"}
	for round := range 30 {
		key := fmt.Sprint(round)
		must(b.Create(ctx, key, with(0, time.Time{}, names...)))
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := b.Delete(ctx, key, object.Any); err != nil && !errors.Is(err, backend.ErrNotFound) {
				t.Error(err)
			}
		})
		for i, name := range names {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(round), uint64(i)))
				for range r.IntN(3) {
					b.Patch(ctx, key, merge(`{"n":%d}`, r.IntN(9)), object.Any)
				}
				_, err := backend.Modify(ctx, b, key, func(p pod) (pod, error) {
					p.Finalizers = slices.DeleteFunc(p.Finalizers, func(f string) bool { return f == name })
					return p, nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		_, err := s.Get(ctx, key)
		require.ErrorIs(t, err, backend.ErrNotFound)
	}
	last := map[string]pod{}
	watched, cancel := context.WithCancel(ctx)
	defer cancel()
	head := must(s.Powers().Head(ctx))
	for batch, err := range s.Watch(watched, reflector.WatchOptions{After: head[:27] + "0"}) {
		require.NoError(t, err)
		for _, e := range batch.Events {
			if e.Op == reflector.OpDelete {
				was := last[e.Key]
				require.True(t, !was.IsDeleting() && len(was.Finalizers) == 0 || was.IsDeleting() && len(was.Finalizers) == 1, "%+v", was)
			}
			last[e.Key] = e.Object
		}
		if batch.Cursor == head {
			break
		}
	}
}
