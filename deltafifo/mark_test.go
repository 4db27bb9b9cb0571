package deltafifo_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/homeostat/homeostat/deltafifo"
	"github.com/homeostat/homeostat/object"
)

func puts(t *testing.T, b *deltafifo.Buffer[int], keys ...string) {
	t.Helper()
	for _, key := range keys {
		if err := b.Push(deltafifo.Delta[int]{Type: deltafifo.Put, Item: object.Item[int]{Key: key}}); err != nil {
			t.Fatal(err)
		}
	}
}

// waiting gives what tells whether WaitPopped, called now, has returned, and with
// what.
func waiting(ctx context.Context, wait func(context.Context) error) func() (bool, error) {
	done := make(chan error, 1)
	go func() { done <- wait(ctx) }()
	synctest.Wait()
	return func() (bool, error) {
		synctest.Wait()
		select {
		case err := <-done:
			done <- err
			return true, err
		default:
			return false, nil
		}
	}
}

func TestWaitPopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		b := deltafifo.NewBuffer[int](nil)
		if err := b.WaitPopped(ctx); err != nil {
			t.Fatal(err) // nothing is pending
		}
		check := func(name string, passed func() (bool, error), want bool) {
			t.Helper()
			if got, err := passed(); got != want || err != nil {
				t.Errorf("%s: returned %v, %v; want %v", name, got, err, want)
			}
		}
		puts(t, b, "a", "b")
		one := waiting(ctx, b.WaitPopped)
		same := waiting(ctx, b.WaitPopped)
		puts(t, b, "c")
		two := waiting(ctx, b.WaitPopped)
		puts(t, b, "b", "d") // b is merged into what is waited for
		b.Pop(ctx)
		check("after a", one, false)
		b.Pop(ctx)
		check("after b", one, true)
		check("the same, after b", same, true)
		check("to c, after b", two, false)
		// What cancels out is not waited for either.
		b.Push(deltafifo.Delta[int]{Type: deltafifo.Delete, Item: object.Item[int]{Key: "c"}})
		check("to c, which came and went", two, true)
		all := waiting(ctx, b.WaitPopped)
		b.PopBatch(ctx, make([]deltafifo.Delta[int], 0, 10))
		check("to d", all, true)
	})
}

func TestWaitPopped_Ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := deltafifo.NewBuffer[int](nil)
		puts(t, b, "a")
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		given := waiting(ctx, b.WaitPopped)
		cancel(why)
		if ok, err := given(); !ok || err != why {
			t.Errorf("its context ended: %v, %v", ok, err)
		}
		if n := b.Marks(); n != 0 {
			t.Errorf("%d places are kept for nobody", n)
		}
		closed := waiting(t.Context(), b.WaitPopped)
		b.Close()
		if ok, err := closed(); !ok || !errors.Is(err, deltafifo.ErrClosed) {
			t.Errorf("closed: %v, %v", ok, err)
		}
		if err := b.WaitPopped(t.Context()); !errors.Is(err, deltafifo.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// A FIFO's waits are over when everything told before was popped, and not before.
func TestWaitPopped_OfAFIFO(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			f := deltafifo.New[int](nil, nil)
			keys := []string{"a", "b", "c", "d", "e"}
			for range 20 {
				key := keys[rng.IntN(len(keys))]
				switch rng.IntN(4) {
				case 0:
					f.Delete(object.Item[int]{Key: key}, object.Watched)
				case 1:
					f.Replace([]object.Item[int]{{Key: key, Object: rng.Int()}, {Key: "z"}}, object.Relist)
				default:
					f.Put([]object.Item[int]{{Key: key, Object: rng.Int()}}, object.Watched)
				}
				if rng.IntN(3) == 0 && f.Stats().Keys > 0 {
					f.Pop(t.Context())
				}
			}
			passed := waiting(t.Context(), f.WaitPopped)
			left := f.Stats().Keys
			for n := range left {
				if ok, _ := passed(); ok {
					t.Fatalf("seed %d: over, and %d keys are pending", seed, left-n)
				}
				f.Pop(t.Context())
				f.Put([]object.Item[int]{{Key: "later", Object: n}}, object.Watched)
			}
			if ok, err := passed(); !ok || err != nil {
				t.Errorf("seed %d: %v, %v", seed, ok, err)
			}
		})
	}
}
