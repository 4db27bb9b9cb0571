package fake_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/homeostat/homeostat/backend/backendtest"
	"github.com/homeostat/homeostat/fake"
	"github.com/stretchr/testify/require"
)

// Without a plan the fake keeps all rules.
func TestConformance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := backendtest.Run(t.Context(), backendtest.Harness[pod]{
			New: func(context.Context) (*backendtest.Fixture[pod], error) {
				b := fake.New[pod](fake.Plan{})
				return &backendtest.Fixture[pod]{
					Source:  b.As("kit"),
					Compact: func(context.Context) error { b.Compact(); return nil },
					Cut:     func(context.Context) error { b.Cut(); return nil },
				}, nil
			},
			Object: func(n int) pod { return pod{N: n + 1} },
		})
		require.NoError(t, r.Err(), r)
		t.Log(r)
	})
}
