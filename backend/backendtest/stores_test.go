package backendtest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/backendtest"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// thing is what the stores of these tests hold.
type thing struct {
	object.Meta `json:"meta,omitzero"`
	Name        string            `json:"name,omitempty"`
	N           int               `json:"n,omitempty"`
	Text        string            `json:"text,omitempty"`
	Tags        map[string]string `json:"tags,omitempty"`
}

func things(n int) thing { return thing{N: n + 1, Text: fmt.Sprint("text ", n)} }

type (
	fixture = backendtest.Fixture[thing]
	change  = backendtest.Change[thing]
	source  = reflector.ListWatcher[thing]
)

// stores are those of this module, with what they lack.
var stores = []struct {
	name  string
	new   func() *fixture
	lacks []string
}{
	{"memory", overMemory, []string{"Harness.Cut", "Harness.Down", "Harness.Forget", "Harness.Spoil", "Transactions"}},
	{"fake without a plan", overFake, []string{"Harness.Down", "Harness.Forget", "Harness.Restart", "Harness.Spoil", "Transactions"}},
	{"Poll", overPoll, []string{
		"Backend", "Compare", "Cursors", "Get", "Harness.Compact", "Harness.Cut", "Harness.Down", "Harness.Forget", "Harness.Restart", "Harness.Spoil",
		"Head", "IDs", "KeysOnly", "Paged", "Progress", "Reached", "ResumeProven", "SnapshotPages", "Versions",
	}},
	{"PollItems with a pause that grows", overPollItems, []string{
		"Backend", "Compare", "Cursors", "Get", "Harness.Compact", "Harness.Cut", "Harness.Down", "Harness.Forget", "Harness.Restart", "Harness.Spoil",
		"Head", "KeysOnly", "Paged", "Progress", "Reached", "ResumeProven", "SnapshotPages", "Transactions",
	}},
	{"Hint", overHint, []string{
		"Backend", "Compare", "Cursors", "Harness.Compact", "Harness.Cut", "Harness.Down", "Harness.Forget", "Harness.Restart", "Harness.Spoil",
		"Head", "Progress", "Reached", "ResumeProven", "Transactions",
	}},
	{"Hint without Get", overHintWithoutGet, []string{
		"Backend", "Compare", "Cursors", "Get", "Harness.Compact", "Harness.Cut", "Harness.Down", "Harness.Forget", "Harness.Restart", "Harness.Spoil",
		"Head", "Progress", "Reached", "ResumeProven", "Transactions",
	}},
}

func harness(new func() *fixture) backendtest.Harness[thing] {
	return backendtest.Harness[thing]{
		New:    func(context.Context) (*fixture, error) { return new(), nil },
		Object: things,
		Equal: func(a, b thing) bool {
			a.Name, b.Name = "", "" // of those that know their keys
			return reflect.DeepEqual(a, b)
		},
	}
}

// TestStores runs in no time of its own.
func TestStores(t *testing.T) {
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := backendtest.Run(t.Context(), harness(s.new))
				if r.Err() != nil {
					t.Error(r)
				}
				require.Subset(t, s.lacks, r.Lacks)
				require.Subset(t, r.Lacks, s.lacks)
			})
		})
	}
}

// TestStoresInRealTime takes a few seconds for all of them.
func TestStoresInRealTime(t *testing.T) {
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			h := harness(s.new)
			h.Progress = 100 * time.Millisecond
			backendtest.Test(t, h)
		})
	}
}

func overMemory() *fixture {
	fx := &fixture{}
	use := func() source {
		s := memory.New[thing](nil)
		fx.Source = s
		fx.Compact = func(context.Context) error { s.Compact(); return nil }
		return s
	}
	use()
	// It keeps nothing over a restart.
	fx.Restart = func(context.Context) (source, error) { return use(), nil }
	return fx
}

func overFake() *fixture {
	b := fake.New[thing](fake.Plan{})
	return &fixture{
		Source:  b,
		Compact: func(context.Context) error { b.Compact(); return nil },
		Cut:     func(context.Context) error { b.Cut(); return nil },
	}
}

// writeTo writes to a store, one change at a time.
func writeTo(s *memory.Store[thing]) func(context.Context, ...change) error {
	return func(ctx context.Context, changes ...change) error {
		if len(changes) != 1 {
			return errors.ErrUnsupported
		}
		c := changes[0]
		if c.Delete {
			_, err := s.Delete(ctx, c.Key, object.Any)
			if errors.Is(err, backend.ErrNotFound) {
				err = nil
			}
			return err
		}
		_, err := s.Update(ctx, item{Key: c.Key, Version: object.Any, Object: c.Object})
		if errors.Is(err, backend.ErrNotFound) {
			_, err = s.Create(ctx, c.Key, c.Object)
		}
		return err
	}
}

// overPoll polls a map, whose objects know their keys.
func overPoll() *fixture {
	var mu sync.Mutex
	all := map[string]thing{}
	list := func(ctx context.Context) ([]thing, error) {
		mu.Lock()
		defer mu.Unlock()
		return slices.Collect(maps.Values(all)), ctx.Err()
	}
	return &fixture{
		Source: reflector.Poll(list, func(t thing) string { return t.Name }, &reflector.PollOptions{Every: 5 * time.Millisecond}),
		Write: func(_ context.Context, changes ...change) error {
			mu.Lock()
			defer mu.Unlock()
			for _, c := range changes {
				c.Object.Name = c.Key
				all[c.Key] = c.Object
				if c.Delete {
					delete(all, c.Key)
				}
			}
			return nil
		},
	}
}

func overPollItems() *fixture {
	s := memory.New[thing](nil)
	list := func(ctx context.Context) ([]item, error) {
		page, err := s.List(ctx, reflector.ListOptions{})
		return page.Items, err
	}
	opts := &reflector.PollOptions{Every: 5 * time.Millisecond, Max: 20 * time.Millisecond}
	return &fixture{Source: reflector.PollItems(list, opts), Write: writeTo(s)}
}

// hints tell of the keys that a store's watch tells of.
func hints(s *memory.Store[thing]) func(context.Context) iter.Seq2[string, error] {
	return func(ctx context.Context) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			for b, err := range s.Watch(ctx, reflector.WatchOptions{}) {
				if err != nil || b.Synced {
					if !yield("", err) {
						return
					}
					continue
				}
				for _, e := range b.Events {
					if !yield(e.Key, nil) {
						return
					}
				}
			}
		}
	}
}

func overHint() *fixture {
	s := memory.New[thing](nil)
	return &fixture{Source: reflector.Hint(source(s), hints(s)), Write: writeTo(s)}
}

// getless has no Get.
type getless struct{ source }

func (g getless) Powers() reflector.Powers[thing] {
	p := g.source.Powers()
	p.Get = nil
	return p
}

func overHintWithoutGet() *fixture {
	s := memory.New[thing](nil)
	return &fixture{Source: reflector.Hint[thing](getless{s}, hints(s)), Write: writeTo(s)}
}
