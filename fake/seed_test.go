package fake_test

import (
	"errors"
	"testing"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/object"
	"github.com/stretchr/testify/require"
)

type tagged struct {
	object.Meta
	N int
}

type taggedItem = object.Item[tagged]

func deleting(key string) taggedItem {
	return taggedItem{Key: key, Object: tagged{Meta: object.Meta{Deleting: time.Unix(1, 0)}}}
}

// F05: what no program could have written is a typed error, or taken raw.
func TestF05_OddSeedsAreErrorsOrTakenRaw(t *testing.T) {
	cases := []struct {
		name  string
		items []taggedItem
		index int
		is    error // besides ErrBadSeed
		says  string
		raw   int // objects there after SeedRaw
	}{
		{name: "no key", items: []taggedItem{{Key: "b"}, {}}, index: 1, is: backend.ErrNoKey, says: `item 1, "": permanent: backend: an object without a key`, raw: 2},
		{name: "key twice", items: []taggedItem{{Key: "b"}, {Key: "b", Object: tagged{N: 2}}}, index: 1, is: backend.ErrExists, says: `item 1, "b": backend: exists already`, raw: 2},
		{name: "key there", items: []taggedItem{{Key: "a", Object: tagged{N: 2}}}, is: backend.ErrExists, raw: 1},
		{name: "version", items: []taggedItem{{Key: "b", Version: "7"}}, says: `has version "7"`, raw: 2},
		{name: "ID", items: []taggedItem{{Key: "b", ID: "x"}}, says: `has ID "x"`, raw: 2},
		{name: "being deleted", items: []taggedItem{deleting("b")}, says: "is being deleted", raw: 2},
		{name: "several", items: []taggedItem{{Key: "b"}, {}, {Key: "c"}, deleting("d")}, index: 1, is: backend.ErrNoKey, says: `item 3, "d"`, raw: 4},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := fake.New(fake.Plan{}, taggedItem{Key: "a"})
			err := b.Seed(c.items...)
			require.ErrorIs(t, err, fake.ErrBadSeed)
			var e *fake.SeedError
			require.ErrorAs(t, err, &e)
			require.Equal(t, [2]any{c.index, c.items[c.index].Key}, [2]any{e.Index, e.Key})
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			require.ErrorContains(t, err, c.says)
			require.Len(t, must(b.List(t.Context(), listAll)).Items, 1, "all or nothing")

			err = b.SeedRaw(c.items...)
			require.Equal(t, errors.Is(c.is, backend.ErrNoKey), errors.Is(err, fake.ErrBadSeed), "%v", err)
			require.Equal(t, errors.Is(c.is, backend.ErrNoKey), errors.Is(err, backend.ErrNoKey), "%v", err)
			got := must(b.List(t.Context(), listAll)).Items
			require.Len(t, got, c.raw)
			last := c.items[len(c.items)-1]
			if last.Key != "" {
				require.Equal(t, last.Object, must(b.Get(t.Context(), last.Key)).Object, "the later counts")
			}
			require.Zero(t, b.Calls(fake.Writes))
		})
	}
	b := fake.New[tagged](plan(fake.Fault{Do: fake.Fail}))
	b.OnWrite(func(tagged) tagged { panic("seeds are no writes") })
	require.NoError(t, b.Seed(taggedItem{Key: "b"}, taggedItem{Key: "a", Object: tagged{Meta: object.Meta{Finalizers: []string{"x"}}}}))
	b.SetPlan(fake.Plan{})
	require.Equal(t, object.Version("2"), must(b.Get(t.Context(), "a")).Version)
}

func TestNewWithASeedThatCannotBeStored(t *testing.T) {
	b := fake.New(fake.Plan{}, item{Key: "a"}, item{})
	for _, c := range calls {
		err := c.do(t.Context(), b)
		require.ErrorIs(t, err, fake.ErrBadSeed)
		require.ErrorContains(t, err, "item 1")
	}
	require.Len(t, b.Log(), len(calls))
}
