package stepped_test

import (
	"testing"

	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/internal/stepped"
)

type fakeStore struct{ *fake.Backend[thing] }

func (s fakeStore) Save() any { return s.Snapshot() }

func (s fakeStore) Restore(saved any, newEpoch bool) {
	s.Backend.Restore(saved.(*memory.Snapshot[thing]), newEpoch)
}

// TestTheFakeWithoutAPlanIsTheStore: in calm weather there is nothing to tell it by.
func TestTheFakeWithoutAPlanIsTheStore(t *testing.T) {
	t.Parallel()
	for seed := range uint64(histories / 20) {
		cfg := config(1_000_000 + seed)
		cfg.Store = func(history int) stepped.Store {
			return fakeStore{fake.Over(fake.Plan{}, memory.New[thing](&memory.Options{History: history}))}
		}
		stepped.Run(t, cfg)
	}
}
