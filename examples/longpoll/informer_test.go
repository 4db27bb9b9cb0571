package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/homeostat/homeostat/backend/backendtest"
	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
)

// Whatever happens to the service and to the network, a cache ends equal.
func TestInformerConverges(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(8) // a short log: what lags is expired
	defer w.server.Close()
	orders := informer.New(w.store(Options{}), &informer.Options{
		Backoff: retry.Backoff{Base: time.Millisecond, Max: 10 * time.Millisecond},
	})
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- orders.Run(ctx) }()
	defer func() {
		stop()
		require.NoError(t, <-ended)
	}()

	for round := range 30 {
		for range 1 + rng.IntN(12) {
			switch rng.IntN(12) {
			case 0:
				w.server.CloseClientConnections()
			case 1:
				w.Reset()
			case 2:
				w.Compact()
			case 3:
				w.shut.Store(true)
			case 4:
				w.shut.Store(false)
			default:
				key := fmt.Sprint(rng.IntN(10))
				w.write(backendtest.Change[Order]{Key: key, Object: Order{Tea: rng.IntN(100)}, Delete: rng.IntN(3) == 0})
			}
		}
		if round == 10 { // once: it costs a second
			w.Overloaded.Store(true)
			w.server.CloseClientConnections()
			w.Overloaded.Store(false)
		}
		w.shut.Store(false)
		want := w.versions()
		err := orders.Until(ctx, func(s *indexer.Snapshot[Order]) bool {
			for key, version := range want {
				if item, ok := s.Item(key); !ok || string(item.Version) != version {
					return false
				}
			}
			return s.Len() == len(want)
		})
		require.NoError(t, err, "round %d: want %v", round, want)
	}
	require.Zero(t, orders.Status().Source.Gaps)
}
