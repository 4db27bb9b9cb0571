package memory_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/homeostat/homeostat/backend/backendtest"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

// harness is a store that is restarted from a backup of itself: the epoch and all
// that it holds stay, the history goes.
func harness() backendtest.Harness[pod] {
	return backendtest.Harness[pod]{
		New: func(context.Context) (*backendtest.Fixture[pod], error) {
			s := memory.New[pod](nil)
			return &backendtest.Fixture[pod]{
				Source: s,
				Restart: func(context.Context) (reflector.ListWatcher[pod], error) {
					next := memory.New[pod](nil)
					next.Restore(s.Snapshot(), false)
					s.Restore(s.Snapshot(), false) // its watches end
					s = next
					return next, nil
				},
				Compact: func(context.Context) error { s.Compact(); return nil },
				Forget:  func(context.Context) error { s.Compact(); return nil },
				Cut: func(context.Context) error { // back to where it is
					s.Restore(s.Snapshot(), false)
					return nil
				},
			}, nil
		},
		Object: func(n int) pod { return pod{N: n + 1} },
	}
}

// The conformance kit, in the time of a bubble.
func TestConformance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := backendtest.Run(t.Context(), harness())
		require.NoError(t, r.Err(), r)
		require.Subset(t, []string{"Harness.Down", "Harness.Spoil", "Transactions"}, r.Lacks)
		t.Log(r)
	})
}
