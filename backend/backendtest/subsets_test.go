package backendtest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/homeostat/homeostat/backend/backendtest"
)

func equalThings(a, b thing) bool { return reflect.DeepEqual(a, b) }

// kit runs the kit over models, in a bubble of its own.
func kit(t *testing.T, tr traits, bad string) (r backendtest.Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var all []*model
		r = backendtest.Run(t.Context(), backendtest.Harness[thing]{
			New: func(context.Context) (*backendtest.Fixture[thing], error) {
				m := newModel(tr, bad, fmt.Sprintf("e%d", len(all)))
				all = append(all, m)
				return m.fixture(), nil
			},
			Object: func(n int) thing {
				return thing{N: n + 1, Text: fmt.Sprint("text ", n), Tags: map[string]string{"n": fmt.Sprint(n), fmt.Sprint("tag-", n%3): "set"}}
			},
			Many: 3 * chunk,
		})
		for _, m := range all {
			close(m.release) // whatever ignores its context may go now
		}
	})
	return r
}

// switches are the traits by name.
func switches() []string {
	var names []string
	t := reflect.TypeFor[traits]()
	for i := range t.NumField() {
		names = append(names, t.Field(i).Name)
	}
	return names
}

func (t traits) with(name string, on bool) traits {
	reflect.ValueOf(&t).Elem().FieldByName(name).SetBool(on)
	return t
}

func (t traits) has(name string) bool { return reflect.ValueOf(t).FieldByName(name).Bool() }

func TestACorrectStorePasses(t *testing.T) {
	pass := func(t *testing.T, tr traits) backendtest.Report {
		t.Helper()
		r := kit(t, tr, "")
		if r.Err() != nil {
			t.Errorf("with %+v\n%v", tr, r)
		}
		return r
	}
	t.Run("with everything", func(t *testing.T) {
		r := pass(t, everything())
		if len(r.Lacks) > 0 {
			t.Errorf("lacks %v", r.Lacks)
		}
	})
	for _, name := range switches() {
		t.Run("all but "+name, func(t *testing.T) {
			all := everything()
			pass(t, all.with(name, !all.has(name)))
		})
		t.Run("only "+name, func(t *testing.T) {
			pass(t, traits{}.with(name, true))
			pass(t, traits{Cursors: true}.with(name, true))
			pass(t, traits{Cursors: true, Writes: true, Versions: true}.with(name, true))
		})
	}
}

func TestACorrectStoreWithAnySubsetOfPowersPasses(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() || raced {
		seeds = 30
	}
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(seed, 3))
		var tr traits
		for _, name := range switches() {
			tr = tr.with(name, rnd.IntN(2) == 0)
		}
		if seed%3 == 0 {
			tr.Cursors = true // most depends on it
		}
		if r := kit(t, tr, ""); r.Err() != nil {
			t.Fatalf("seed %d: with %+v\n%v", seed, tr.sane(), r)
		}
	}
}
