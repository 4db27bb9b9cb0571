package backend_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
)

func add(n int) func(pod) (pod, error) {
	return func(p pod) (pod, error) {
		p.N += n
		return p, nil
	}
}

func TestModifyWritesWhatChanged(t *testing.T) {
	s, b := seeded(t, pod{N: 1, Name: "x", Extra: map[string]any{"k": "v"}})
	got, err := backend.Modify(t.Context(), b, "a", func(p pod) (pod, error) {
		p.N++
		p.Name = ""
		p.Finalizers = []string{"f"}
		return p, nil
	})
	require.NoError(t, err)
	require.Equal(t, must(s.Get(t.Context(), "a")), got)
	require.Equal(t, object.Version("2"), got.Version)
	require.Equal(t, pod{N: 2, Meta: object.Meta{Finalizers: []string{"f"}}, Extra: map[string]any{"k": "v"}}, got.Object)
	require.Len(t, b.log, 1)
	verb, doc, _ := cutAt(b.log[0])
	require.Equal(t, "patch at 1", verb)
	require.JSONEq(t, `{"n":2,"name":null,"meta":{"finalizers":["f"]}}`, doc)
}

func cutAt(line string) (verb, doc string, ok bool) {
	for i := range line {
		if i+2 < len(line) && line[i:i+2] == ": " {
			return line[:i], line[i+2:], true
		}
	}
	return line, "", false
}

func TestModifyWithoutChangeIsNoWrite(t *testing.T) {
	_, b := seeded(t, pod{N: 1})
	got, err := backend.Modify(t.Context(), b, "a", add(0))
	require.NoError(t, err)
	require.Equal(t, item{Key: "a", Version: "1", ID: got.ID, Object: pod{N: 1}}, got)
	require.Empty(t, b.log)

	t.Run("of what JSON does not keep as it is", func(t *testing.T) {
		_, b := seeded(t, pod{Extra: map[string]any{"big": json.Number("12345678901234567890")}})
		_, err := backend.Modify(t.Context(), b, "a", add(0))
		require.NoError(t, err)
		require.Empty(t, b.log)
		_, err = backend.Modify(t.Context(), b, "a", add(1))
		require.NoError(t, err)
		require.Equal(t, []string{`patch at 1: {"n":1}`}, b.log)
	})
}

func TestModifyGivesACopy(t *testing.T) {
	s := memory.New[*pod](nil)
	obj := &pod{N: 1, Extra: map[string]any{"k": "v"}}
	must(s.Create(t.Context(), "a", obj))
	got, err := backend.Modify(t.Context(), s, "a", func(p *pod) (*pod, error) {
		p.N, p.Extra["k"] = 2, "w"
		return p, nil
	})
	require.NoError(t, err)
	require.Equal(t, &pod{N: 1, Extra: map[string]any{"k": "v"}}, obj)
	require.Equal(t, &pod{N: 2, Extra: map[string]any{"k": "w"}}, got.Object)
}

func TestModifyMeetsOtherWriters(t *testing.T) {
	ctx := t.Context()
	cases := []struct {
		name    string
		between func(s *memory.Store[pod])
		want    pod
		calls   int
		err     error
	}{
		{"of another field", func(s *memory.Store[pod]) {
			must(s.Patch(ctx, "a", merge(`{"name":"y"}`), object.Any))
		}, pod{N: 2, Name: "y"}, 2, nil},
		{"of the same field", func(s *memory.Store[pod]) {
			must(s.Patch(ctx, "a", merge(`{"n":7}`), object.Any))
		}, pod{N: 8}, 2, nil},
		{"that does the same", func(s *memory.Store[pod]) {
			must(s.Patch(ctx, "a", merge(`{"n":2}`), object.Any))
		}, pod{N: 3}, 2, nil},
		{"who deletes", func(s *memory.Store[pod]) {
			must(s.Delete(ctx, "a", object.Any))
		}, pod{}, 1, backend.ErrNotFound},
		{"who deletes and creates", func(s *memory.Store[pod]) {
			must(s.Delete(ctx, "a", object.Any))
			must(s.Create(ctx, "a", pod{N: 40}))
		}, pod{N: 41}, 2, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, b := seeded(t, pod{N: 1})
			b.before = once(func() { c.between(s) })
			calls := 0
			got, err := backend.Modify(ctx, b, "a", func(p pod) (pod, error) {
				calls++
				p.N++
				return p, nil
			})
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.calls, calls)
			if c.err == nil {
				require.Equal(t, c.want, got.Object)
				require.Equal(t, got, must(s.Get(ctx, "a")))
			} else {
				require.Empty(t, got)
			}
		})
	}
}

func TestModifyLosesNoUpdate(t *testing.T) {
	s, _ := seeded(t, pod{})
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			if _, err := backend.Modify(t.Context(), s, "a", add(1)); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() { // a list: a patch without a version would replace all of it
			if _, err := backend.Modify(t.Context(), s, "a", func(p pod) (pod, error) {
				p.Finalizers = append(p.Finalizers, fmt.Sprint(len(p.Finalizers)))
				return p, nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := must(s.Get(t.Context(), "a")).Object
	require.Equal(t, 40, got.N)
	require.Len(t, got.Finalizers, 40)
}

func TestErrorsOfTheFunctionEndModify(t *testing.T) {
	for _, mine := range []error{errors.New("mine"), backend.ErrConflict, backend.ErrNotFound, backend.ErrExists, errors.ErrUnsupported} {
		for _, key := range []string{"a", "new"} {
			for name, do := range map[string]func(context.Context, backend.Backend[pod], string, func(pod) (pod, error)) (item, error){
				"modify": backend.Modify[pod], "ensure": backend.Ensure[pod],
			} {
				if name == "modify" && key == "new" {
					continue
				}
				_, b := seeded(t, pod{})
				calls := 0
				got, err := do(t.Context(), b, key, func(p pod) (pod, error) {
					calls++
					p.N++
					return p, mine
				})
				require.True(t, err == mine, "as it is")
				require.Equal(t, 1, calls)
				require.Empty(t, got)
				require.Empty(t, b.log)
			}
		}
	}
}

func TestModifyOfNothing(t *testing.T) {
	_, b := seeded(t, pod{})
	_, err := backend.Modify(t.Context(), b, "b", add(1))
	require.ErrorIs(t, err, backend.ErrNotFound)
	require.Empty(t, b.log)
}

func TestModifyDoesNotGuessAnOutcome(t *testing.T) {
	for name, do := range map[string]func(context.Context, backend.Backend[pod], string, func(pod) (pod, error)) (item, error){
		"modify": backend.Modify[pod], "ensure": backend.Ensure[pod],
	} {
		for _, key := range []string{"a", "new"} {
			b := fake.New(fake.Plan{Faults: []fake.Fault{{Do: fake.FailAfterCommit, Call: 1}}}, item{Key: "a"})
			if name == "modify" && key == "new" {
				continue
			}
			_, err := do(t.Context(), b, key, add(1))
			require.ErrorIs(t, err, backend.ErrOutcomeUnknown)
			require.Equal(t, 1, b.Calls(fake.Writes), "f is not run again")
			require.Equal(t, 1, must(b.Get(t.Context(), key)).Object.N)
		}
	}
}

func TestModifyBeyondMergePatches(t *testing.T) {
	setNull := func(p pod) (pod, error) {
		p.Extra["k"] = nil // a merge patch would delete it
		return p, nil
	}
	s, b := seeded(t, pod{N: 1, Extra: map[string]any{"k": "v"}})
	b.before = once(func() { must(s.Patch(t.Context(), "a", merge(`{"n":5}`), object.Any)) })
	got, err := backend.Modify(t.Context(), b, "a", setNull)
	require.NoError(t, err)
	require.Equal(t, pod{N: 5, Extra: map[string]any{"k": nil}}, got.Object)
	require.Equal(t, []string{
		`update at 1: {"n":1,"extra":{"k":null}}`,
		`update at 2: {"n":5,"extra":{"k":null}}`,
	}, b.log)
}

func TestModifyWithoutVersionsOrPatches(t *testing.T) {
	s := memory.New[pod](nil)
	must(s.Create(t.Context(), "a", pod{N: 1}))
	got, err := backend.Modify(t.Context(), backend.Backend[pod](bare[pod]{s}), "a", add(1))
	require.NoError(t, err)
	require.Equal(t, item{Key: "a", Object: pod{N: 2}}, got)
}

func TestModifyOfWhatHasNoJSON(t *testing.T) {
	s := memory.New[any](nil)
	must(s.Create(t.Context(), "a", any(make(chan int))))
	must(s.Create(t.Context(), "b", any("x")))
	for _, key := range []string{"a", "b"} {
		_, err := backend.Modify(t.Context(), s, key, func(any) (any, error) { return func() {}, nil })
		var e *backend.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "patch", e.Op)
		require.Equal(t, key, e.Key)
	}
}

// A store that answers a conflict to everything is not spun on, and ctx ends it.
func TestModifyAgainstEndlessConflicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New(fake.Plan{Faults: []fake.Fault{{Do: fake.Conflict}}}, item{Key: "a"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err := backend.Modify(ctx, b, "a", add(1))
		require.Equal(t, time.Minute, time.Since(start))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, backend.ErrConflict)
		var e *backend.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "a", e.Key)
		require.Greater(t, b.Calls(fake.Writes), 60, "and goes on trying")
		require.Less(t, b.Calls(fake.Writes), 300)

		ended, cancel := context.WithCancel(t.Context())
		b.Intercept(fake.Patch, func(context.Context, string) error { cancel(); return nil })
		_, err = backend.Modify(ended, b, "a", add(1))
		require.ErrorIs(t, err, context.Canceled)

		b.Intercept(fake.Patch, nil)
		b.SetPlan(fake.Plan{})
		_, err = backend.Modify(t.Context(), b, "a", add(1))
		require.NoError(t, err)
	})
}

func TestModifyKeepsTheWordsOfRetry(t *testing.T) {
	limited := retry.After(errors.New("too many"), time.Minute)
	b := fake.New(fake.Plan{Faults: []fake.Fault{{On: fake.Patch, Do: fake.Fail, Err: limited}}}, item{Key: "a"})
	_, err := backend.Modify(t.Context(), b, "a", add(1))
	d, ok := retry.Delay(err)
	require.True(t, ok)
	require.Equal(t, time.Minute, d)
}

func TestEnsure(t *testing.T) {
	ctx := t.Context()
	cases := []struct {
		name    string
		key     string
		between func(s *memory.Store[pod])
		add     int
		want    int
		calls   int
	}{
		{"creates", "new", nil, 5, 5, 1},
		{"creates what f leaves as it is", "new", nil, 0, 0, 1},
		{"modifies", "a", nil, 5, 6, 1},
		{"leaves alone", "a", nil, 0, 1, 1},
		{"meets a creator", "new", func(s *memory.Store[pod]) { must(s.Create(ctx, "new", pod{N: 70})) }, 5, 75, 2},
		{"meets a writer", "a", func(s *memory.Store[pod]) { must(s.Patch(ctx, "a", merge(`{"n":70}`), object.Any)) }, 5, 75, 2},
		{"meets a deleter", "a", func(s *memory.Store[pod]) { must(s.Delete(ctx, "a", object.Any)) }, 5, 5, 2},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, b := seeded(t, pod{N: 1})
			if c.between != nil {
				b.before = once(func() { c.between(s) })
			}
			calls := 0
			got, err := backend.Ensure(ctx, b, c.key, func(p pod) (pod, error) {
				calls++
				return add(c.add)(p)
			})
			require.NoError(t, err)
			require.Equal(t, c.want, got.Object.N)
			require.Equal(t, c.calls, calls)
			require.Equal(t, got, must(s.Get(ctx, c.key)))
		})
	}
}

func TestEnsureOfAPointer(t *testing.T) {
	s := memory.New[*pod](nil)
	got, err := backend.Ensure(t.Context(), s, "a", func(p *pod) (*pod, error) {
		p.N++
		return p, nil
	})
	require.NoError(t, err)
	require.Equal(t, &pod{N: 1}, got.Object)
}

func TestConcurrentEnsures(t *testing.T) {
	s := memory.New[pod](nil)
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			if _, err := backend.Ensure(t.Context(), s, "a", add(1)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 30, must(s.Get(t.Context(), "a")).Object.N)
}

func TestEnsureFailsAsTheStoreDoes(t *testing.T) {
	b := fake.New[pod](fake.Plan{Faults: []fake.Fault{{On: fake.Get, Do: fake.Fail}}})
	_, err := backend.Ensure(t.Context(), b, "a", add(1))
	require.ErrorIs(t, err, fake.ErrFault)
	require.Zero(t, b.Calls(fake.Writes), "an unanswered Get is not an absent object")
}

func TestEnsureDoesNotInsistOnCreating(t *testing.T) {
	b := fake.New[pod](fake.Plan{})
	b.Intercept(fake.Create, func(context.Context, string) error { return backend.ErrNotFound }) // its folder, say
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := backend.Ensure(ctx, b, "a", add(1))
	require.ErrorIs(t, err, backend.ErrNotFound)
	require.Equal(t, 1, b.Calls(fake.Create))
}
