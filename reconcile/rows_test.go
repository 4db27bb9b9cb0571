package reconcile_test

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/reflector"
)

// trickle streams a full state of a hundred objects, one each 50 ms.
type trickle struct{ told atomic.Int64 }

func (s *trickle) Powers() reflector.Powers[int] { return reflector.Powers[int]{Initial: true} }

func (s *trickle) List(context.Context, reflector.ListOptions) (reflector.Page[int], error) {
	panic("it streams")
}

func (s *trickle) Watch(ctx context.Context, _ reflector.WatchOptions) iter.Seq2[reflector.Batch[int], error] {
	return func(yield func(reflector.Batch[int], error) bool) {
		for n := range 100 {
			time.Sleep(50 * time.Millisecond)
			s.told.Add(1)
			b := reflector.Put(object.Item[int]{Key: fmt.Sprint("k", n), Object: n}, "")
			b.Reset, b.Synced = n == 0, n == 99
			if !yield(b, nil) {
				return
			}
		}
		<-ctx.Done()
	}
}

// R34: nobody acts on a stream before its first full state is complete.
func TestR34_NoRunBeforeTheFirstFullState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &trickle{}
		inf := informer.New[int](src, nil)
		var runs, early atomic.Int64
		c := reconcile.New("c", inf, func(_ context.Context, req reconcile.Request[int]) error {
			runs.Add(1)
			if src.told.Load() < 100 || inf.Cache().Len() < 100 {
				early.Add(1)
			}
			return nil
		}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- reconcile.Run(ctx, c) }()
		time.Sleep(4900 * time.Millisecond)
		synctest.Wait()
		require.Zero(t, runs.Load())
		time.Sleep(time.Minute)
		synctest.Wait()
		require.EqualValues(t, 100, runs.Load())
		require.Zero(t, early.Load())
		cancel()
		require.NoError(t, <-done)
	})
}
