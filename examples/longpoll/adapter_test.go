package main

import (
	"context"
	"errors"
	"testing"

	"github.com/homeostat/homeostat/backend/backendtest"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

// harness is how the conformance kit gets at the service.
var harness = backendtest.Harness[Order]{
	Object: func(n int) Order { return Order{Tea: n} },
	New: func(context.Context) (*backendtest.Fixture[Order], error) {
		w := newWorld(1000)
		return &backendtest.Fixture[Order]{
			Source: w.store(Options{}),
			Write: func(_ context.Context, changes ...backendtest.Change[Order]) error {
				if len(changes) > 1 { // the service has no transactions
					return errors.ErrUnsupported
				}
				for _, c := range changes {
					w.write(c)
				}
				return nil
			},
			// It keeps nothing: what comes back is empty, and of another epoch.
			Restart: func(context.Context) (reflector.ListWatcher[Order], error) {
				w.server.CloseClientConnections()
				w.Reset()
				return w.store(Options{}), nil
			},
			Compact: func(context.Context) error {
				w.Compact()
				return nil
			},
			Cut: func(context.Context) error {
				w.server.CloseClientConnections()
				return nil
			},
			Down: func(context.Context) (up func() error, err error) {
				w.shut.Store(true)
				w.server.CloseClientConnections()
				return func() error {
					w.shut.Store(false)
					return nil
				}, nil
			},
			Spoil: func(_ context.Context, key string) error {
				w.spoil(key)
				return nil
			},
			Close: func() error {
				w.server.Close()
				return nil
			},
		}, nil
	},
}

func TestConformance(t *testing.T) {
	report := backendtest.Test(t, harness)
	require.Equal(t, []string{
		"DryRun", "Harness.Forget", "Head", "Initial", "KeysOnly", "Paged", "Transactions",
	}, report.Lacks)
}
