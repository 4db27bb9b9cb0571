package fake_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/homeostat/homeostat/fake"
	"github.com/stretchr/testify/require"
)

func TestPlansThatMeanNothing(t *testing.T) {
	cases := map[string]fake.Fault{
		"there is no effect 0":                     {},
		"there is no effect 99":                    {Do: 99},
		"cut can't strike list, only watch":        {On: fake.List, Do: fake.Cut},
		"silence can't strike get, only watch":     {On: fake.Get, Do: fake.Silence},
		"expire can't strike get, only list|watch": {On: fake.Get, Do: fake.Expire},
		"conflict can't strike create":             {On: fake.Create, Do: fake.Conflict},
		"fail after commit can't strike get":       {On: fake.Get, Do: fake.FailAfterCommit},
		"fail can't strike none":                   {On: 1 << 12, Do: fake.Fail},
		"fail with a negative number":              {Do: fake.Fail, OneIn: -1},
		"cut with a negative number":               {Do: fake.Cut, Call: -1},
		"delay with a negative number":             {Do: fake.Delay, For: -1},
		"fail with both OneIn and Call":            {Do: fake.Fail, OneIn: 2, Call: 2},
		"delay without For":                        {Do: fake.Delay},
		"fail with For":                            {Do: fake.Fail, For: time.Second},
		"expire with Err":                          {Do: fake.Expire, Err: errors.New("x")},
		"drop with Err":                            {Do: fake.Drop, Err: errors.New("x")},
		"drop can't strike list, only watch":       {On: fake.List, Do: fake.Drop},
		"reorder can't strike get, only watch":     {On: fake.Get, Do: fake.Reorder},
		"partial page can't strike get":            {On: fake.Get, Do: fake.PartialPage},
		"stale read can't strike watch":            {On: fake.Watch, Do: fake.StaleRead},
		"stale read with a negative number":        {Do: fake.StaleRead, Back: -1},
		"conflict with Back":                       {Do: fake.Conflict, Back: 1},
		"stale read with NewEpoch":                 {Do: fake.StaleRead, NewEpoch: true},
		"restore with Unseen":                      {Do: fake.Restore, Unseen: true},
		"reorder with For":                         {Do: fake.Reorder, For: time.Second},
	}
	for want, f := range cases {
		t.Run(want, func(t *testing.T) {
			bad := fake.Plan{Faults: []fake.Fault{{Do: fake.Cut}, f}}
			said := func(f func()) (s string) {
				defer func() { s = fmt.Sprint(recover()) }()
				f()
				return
			}
			require.Contains(t, said(func() { fake.New[int](bad) }), "fake: fault 1 of the plan: "+want)
			b := fake.New[int](fake.Plan{})
			require.Contains(t, said(func() { b.SetPlan(bad) }), want)
			b.SetPlan(fake.Plan{}) // the old one is still in force, and no lock held
		})
	}
}

func TestPlanIsCopied(t *testing.T) {
	p := plan(fake.Fault{Do: fake.Fail})
	b := fake.New[pod](p)
	p.Faults[0].Do = fake.Delay
	_, err := b.Get(t.Context(), "a")
	require.ErrorIs(t, err, fake.ErrFault)
}

func TestNames(t *testing.T) {
	require.Equal(t, "create|update|patch|delete", fake.Writes.String())
	require.Equal(t, "list|watch|get", (fake.List | fake.Watch | fake.Get).String())
	require.Equal(t, "none", fake.Op(0).String())
	var effects []string
	for e := fake.Fail; e <= fake.Restore; e++ {
		effects = append(effects, e.String())
	}
	require.Equal(t, []string{"fail", "fail after commit", "delay", "expire", "silence", "cut", "duplicate",
		"reorder", "drop", "partial page", "stale read", "conflict", "restore"}, effects)
	require.Empty(t, fake.Effect(0).String())
	require.Equal(t, "Effect(99)", fake.Effect(99).String())
	c := fake.Call{Op: fake.Update, N: 3, Key: "a", Fault: fake.FailAfterCommit, Revision: 7, DryRun: true, Err: errors.New("lost")}
	require.Equal(t, `update #3 "a" (dry run) at 7: fail after commit: lost`, c.String())
	require.Equal(t, "list #1", fake.Call{Op: fake.List, N: 1}.String())
	require.Equal(t, "ann: list #1", fake.Call{Caller: "ann", Op: fake.List, N: 1}.String())
}

func TestWhichCallIsStruck(t *testing.T) {
	struck := func(b *fake.Backend[pod], n int) (calls []int) {
		for i := 1; i <= n; i++ {
			if _, err := b.Get(t.Context(), "a"); errors.Is(err, fake.ErrFault) {
				calls = append(calls, i)
			}
		}
		return calls
	}
	at := func(seed uint64, f fake.Fault) *fake.Backend[pod] {
		f.Do = fake.Fail
		return fake.New[pod](fake.Plan{Seed: seed, Faults: []fake.Fault{f}})
	}
	require.Equal(t, []int{1, 2, 3}, struck(at(1, fake.Fault{}), 3), "always")
	require.Equal(t, []int{1, 2, 3}, struck(at(1, fake.Fault{OneIn: 1}), 3))
	require.Equal(t, []int{1, 2, 3}, struck(at(1, fake.Fault{On: fake.Get | fake.List}), 3))
	require.Empty(t, struck(at(1, fake.Fault{On: fake.Writes}), 3))
	require.Equal(t, []int{3}, struck(at(1, fake.Fault{Call: 3}), 9))

	b := at(1, fake.Fault{On: fake.Get | fake.Create, Call: 3})
	b.Create(t.Context(), "a", pod{})
	b.Delete(t.Context(), "a", "1") // is none of them
	require.Equal(t, []int{2}, struck(b, 9), "counted over the whole set")
	b.SetPlan(plan(fake.Fault{Do: fake.Fail, On: fake.Get, Call: 2}))
	require.Equal(t, []int{2}, struck(b, 9), "counted anew with each plan")

	once := struck(at(7, fake.Fault{OneIn: 10}), 2000)
	require.InDelta(t, 200, len(once), 50, "one in ten")
	require.Equal(t, once, struck(at(7, fake.Fault{OneIn: 10}), 2000), "the same seed")
	require.NotEqual(t, once, struck(at(8, fake.Fault{OneIn: 10}), 2000), "another seed")

	require.NotEqual(t, once, struck(at(7, fake.Fault{OneIn: 10}).As("ann"), 2000), "another caller")
	b = at(7, fake.Fault{OneIn: 10})
	b.As("ann").Get(t.Context(), "a")
	require.Equal(t, once, struck(b, 2000), "whatever others do")

	b = at(7, fake.Fault{OneIn: 10})
	var mixed []int
	for i := 1; i <= 2000; i++ { // calls of other operations do not move the faults
		b.Create(t.Context(), "a", pod{})
		b.List(t.Context(), listAll)
		if _, err := b.Get(t.Context(), "a"); errors.Is(err, fake.ErrFault) {
			mixed = append(mixed, i)
		}
	}
	require.Equal(t, once, mixed)

	// Two faults of one plan, and one fault on two operations, decide apart.
	two := fake.New[pod](fake.Plan{Seed: 7, Faults: []fake.Fault{{Do: fake.Conflict}, {Do: fake.Fail, OneIn: 10}}})
	require.NotEqual(t, once, struck(two, 2000))
	b = at(7, fake.Fault{OneIn: 10})
	var lists []int
	for i := 1; i <= 2000; i++ {
		if _, err := b.List(t.Context(), listAll); err != nil {
			lists = append(lists, i)
		}
	}
	require.NotEqual(t, once, lists)
}
