package indexer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/indexer"
)

func hasLen(n int) func(*indexer.Snapshot[user]) bool {
	return func(s *indexer.Snapshot[user]) bool { return s.Len() == n }
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := users(t)
		require.NoError(t, c.Until(t.Context(), hasLen(0)), "true at once")

		calls, done := 0, make(chan error)
		go func() {
			done <- c.Until(t.Context(), func(s *indexer.Snapshot[user]) bool {
				calls++
				return s.Len() >= 2 && byMail.Count(s, "b@") == 1
			})
		}()
		synctest.Wait()
		require.Equal(t, 1, calls, "no polling")
		require.NoError(t, c.Put(mail("a", "a@")))
		synctest.Wait()
		require.Equal(t, 2, calls)
		require.Error(t, c.Put(mail("x", "a@")))
		c.Delete("none")
		synctest.Wait()
		require.Equal(t, 2, calls, "what changes nothing wakes nobody")
		require.NoError(t, c.Put(mail("b", "b@")))
		require.NoError(t, <-done)
		require.Equal(t, 3, calls)
	})
}

func TestUntilEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := users(t)
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error)
		go func() { done <- c.Until(ctx, hasLen(1)) }()
		synctest.Wait()
		cancel(why)
		require.Equal(t, why, <-done)
		require.Equal(t, why, c.Until(ctx, hasLen(1)))
		require.NoError(t, c.Until(ctx, hasLen(0)), "asked once in any case")

		for range 20 { // changes that never stop don't hide the end
			n := 0
			ctx, cancel = context.WithCancelCause(t.Context())
			require.Equal(t, why, c.Until(ctx, func(*indexer.Snapshot[user]) bool {
				require.NoError(t, c.Put(mail("a", "")))
				if n++; n == 3 {
					cancel(why)
				}
				require.LessOrEqual(t, n, 3)
				return false
			}))
		}
	})
}

func TestUntilContainsPanics(t *testing.T) {
	c := users(t)
	err := c.Until(t.Context(), func(*indexer.Snapshot[user]) bool { panic("oh no") })
	var p *indexer.PanicError
	require.ErrorAs(t, err, &p)
	require.Equal(t, "indexer: the function given to Until panicked: oh no", p.Error())
	require.NotEmpty(t, p.Stack)
}

// The condition runs with nothing held, so it may write and wait itself.
func TestUntilHoldsNothing(t *testing.T) {
	c := users(t)
	require.NoError(t, c.Until(t.Context(), func(s *indexer.Snapshot[user]) bool {
		require.NoError(t, c.Put(mail(fmt.Sprint(s.Len()), "")))
		require.NoError(t, c.Until(t.Context(), hasLen(s.Len()+1)))
		return s.Len() == 5
	}))
	require.Equal(t, 6, c.Len())
}

// No wake-up is lost between the look and the wait: who waits for the last of many
// quick writes gets it. (A lost one would hang this test.)
func TestUntilMissesNothing(t *testing.T) {
	for range 300 {
		c := users(t)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := c.Until(t.Context(), hasLen(20)); err != nil {
					t.Error(err)
				}
			})
		}
		for i := range 20 {
			require.NoError(t, c.Put(mail(fmt.Sprint(i), "")))
		}
		wg.Wait()
	}
}
