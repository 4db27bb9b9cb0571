package reconcile_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reconcile"
)

// The longest durations there are mean "for ever", and not the opposite.

func TestPlus(t *testing.T) {
	for _, a := range []struct{ a, b, want time.Duration }{
		{1, 2, 3},
		{0, math.MaxInt64, math.MaxInt64},
		{math.MaxInt64 - 2, 2, math.MaxInt64},
		{math.MaxInt64 - 2, 1, math.MaxInt64 - 1},
		{math.MaxInt64, 1, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64},
	} {
		require.Equal(t, a.want, reconcile.Plus(a.a, a.b), "%+v", a)
	}
}

func TestEveryForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store(t)
		for i := range 200 { // of which one in twenty would have its look at once
			with(t, s, fmt.Sprint(i))
		}
		n := 0
		var c *reconcile.Controller[thing]
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		c = reconcile.New("c", informer.New(s, nil), func(context.Context, reconcile.Request[thing]) error {
			if n++; n > 1000 {
				cancel()
			}
			return nil
		}, &reconcile.Options{Every: math.MaxInt64, Workers: 1})
		require.NoError(t, reconcile.Run(ctx, c))
		require.Equal(t, 200, n)
	})
}

func TestGraceForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := reconcile.New("c", informer.New(store(t, "a"), nil), func(ctx context.Context, _ reconcile.Request[thing]) error {
			cancel()
			time.Sleep(10 * time.Hour)
			return ctx.Err()
		}, nil)
		begin := time.Now()
		require.NoError(t, (&reconcile.Group{Grace: math.MaxInt64}).Run(ctx, c))
		require.Equal(t, 10*time.Hour, time.Since(begin))
		require.EqualValues(t, 1, c.Status().Counts.Done)
	})
}
