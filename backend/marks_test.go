package backend_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/object"
	"github.com/stretchr/testify/require"
)

// job has marks of its own, without object.Meta.
type job struct {
	N     int
	Holds []string
	Dying time.Time
}

var jobMarks = backend.Marks[*job]{
	Finalizers:   func(j *job) []string { return j.Holds },
	Deleting:     func(j *job) time.Time { return j.Dying },
	WithDeleting: func(j *job, at time.Time) *job { c := *j; c.Dying = at; return &c },
}

func TestF04_MarksOfAnotherKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		store := memory.New[*job](nil)
		b := backend.WithFinalizersBy[*job](store, jobMarks)
		given := &job{N: 1, Holds: []string{"x"}, Dying: then}
		made, err := b.Create(ctx, "a", given)
		require.NoError(t, err)
		require.Equal(t, &job{N: 1, Holds: []string{"x"}}, made.Object, "the mark is the store's")
		require.Equal(t, then, given.Dying, "what was given is not changed")

		marked, err := b.Delete(ctx, "a", made.Version)
		require.NoError(t, err)
		require.Equal(t, &job{N: 1, Holds: []string{"x"}, Dying: time.Now().UTC()}, marked.Object)
		require.Zero(t, made.Object.Dying, "what was answered is not changed")
		require.Equal(t, marked, must(b.Delete(ctx, "a", object.Any)), "a second one changes nothing")

		marked.Object = &job{N: 2, Holds: []string{"x", "y"}}
		_, err = b.Update(ctx, marked)
		require.ErrorIs(t, err, backend.ErrDeleting)

		dry := must(b.DryRun())
		marked.Object = &job{N: 2}
		gone, err := dry.Update(ctx, marked)
		require.NoError(t, err)
		require.Equal(t, &job{N: 2, Dying: time.Now().UTC()}, gone.Object)
		require.Equal(t, 1, must(store.Get(ctx, "a")).Object.N, "only tried")

		_, err = b.Update(ctx, marked)
		require.NoError(t, err)
		_, err = store.Get(ctx, "a")
		require.ErrorIs(t, err, backend.ErrNotFound)
	})
}

func TestWithFinalizersBy_NeedsEveryFunction(t *testing.T) {
	for name, take := range map[string]func(*backend.Marks[*job]){
		"Finalizers":   func(m *backend.Marks[*job]) { m.Finalizers = nil },
		"Deleting":     func(m *backend.Marks[*job]) { m.Deleting = nil },
		"WithDeleting": func(m *backend.Marks[*job]) { m.WithDeleting = nil },
	} {
		t.Run(name, func(t *testing.T) {
			marks := jobMarks
			take(&marks)
			b := backend.WithFinalizersBy[*job](memory.New[*job](nil), marks)
			_, err := b.Create(t.Context(), "a", &job{})
			require.ErrorIs(t, err, backend.ErrNoMeta)
			_, err = b.Delete(t.Context(), "a", object.Any)
			require.ErrorIs(t, err, backend.ErrNoMeta)
		})
	}
}
