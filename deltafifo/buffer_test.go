package deltafifo_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/homeostat/homeostat/deltafifo"
	"github.com/homeostat/homeostat/object"
)

// at is revision rev of key.
func at(key string, rev int) item {
	return item{Key: key, Version: object.Version(fmt.Sprint(rev)), Object: rev}
}

func added(key string, rev int) delta {
	return delta{Type: put, Item: at(key, rev), Cause: object.Watched}
}

// keysOf reads deltas as "a put", "a delete"….
func keysOf(ds []delta) (got []string) {
	for _, d := range ds {
		got = append(got, d.Item.Key+" "+d.Type.String())
	}
	return got
}

func same[T any](t *testing.T, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestBuffer_KeysComeInTheOrderOfTheirFirstDelta(t *testing.T) {
	b := deltafifo.NewBuffer[int](nil)
	must(t, b.Push(added("a", 1), added("b", 1), added("c", 1)))
	must(t, b.Push(added("a", 2), added("d", 1)))
	// b leaves from the middle and comes again at the end.
	must(t, b.Push(delta{Type: del, Item: at("b", 1)}))
	must(t, b.Push(added("b", 2)))

	got, err := b.PopBatch(t.Context(), make([]delta, 0, 10))
	must(t, err)
	same(t, got, []delta{added("a", 2), added("c", 1), added("d", 1), added("b", 2)})
}

// Whatever leaves, from wherever, the list stays whole.
func TestBuffer_KeysThatCancelOutLeaveNoGap(t *testing.T) {
	for _, gone := range []string{"a", "b", "c"} {
		b := deltafifo.NewBuffer[int](nil)
		must(t, b.Push(added("a", 1), added("b", 1), added("c", 1)))
		must(t, b.Push(delta{Type: del, Item: at(gone, 1)}))
		must(t, b.Push(added("d", 1)))
		var want []string
		for _, k := range []string{"a", "b", "c", "d"} {
			if k != gone {
				want = append(want, k+" put")
			}
		}
		got, err := b.PopBatch(t.Context(), make([]delta, 0, 10))
		must(t, err)
		same(t, keysOf(got), want)
		same(t, b.Stats(), deltafifo.Stats{Compacted: 2})
	}
}

func TestBuffer_PopBatchTakesWholeKeysUpToCapacity(t *testing.T) {
	held := at("b", 1)
	fill := func() *deltafifo.Buffer[int] {
		b := deltafifo.NewBuffer[int](nil)
		must(t, b.Push(added("a", 1),
			delta{Type: del, Item: held, Had: true, Old: held}, added("b", 2), added("c", 1)))
		return b
	}
	tests := []struct {
		name string
		buf  []delta
		want []string
	}{
		{"nil is one key", nil, []string{"a put"}},
		{"a key that does not fit whole waits", make([]delta, 0, 2), []string{"a put"}},
		{"exactly", make([]delta, 0, 3), []string{"a put", "b delete", "b put"}},
		{"room for all", make([]delta, 0, 9), []string{"a put", "b delete", "b put", "c put"}},
		{"behind what is there", append(make([]delta, 0, 4), added("z", 1)), []string{"z put", "a put", "b delete", "b put"}},
		{"a full one still gets a key", []delta{added("z", 1)}, []string{"z put", "a put"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := fill().PopBatch(t.Context(), tt.buf)
			must(t, err)
			same(t, keysOf(got), tt.want)
		})
	}
	t.Run("Pop is one key, both deltas", func(t *testing.T) {
		b := fill()
		for _, want := range [][]string{{"a put"}, {"b delete", "b put"}, {"c put"}} {
			got, err := b.Pop(t.Context())
			must(t, err)
			same(t, keysOf(got), want)
		}
	})
	t.Run("the first key comes whole even where there is no room", func(t *testing.T) {
		b := fill()
		_, err := b.Pop(t.Context())
		must(t, err)
		got, err := b.PopBatch(t.Context(), make([]delta, 0, 1))
		must(t, err)
		same(t, keysOf(got), []string{"b delete", "b put"})
	})
}

func TestBuffer_PushIsAllOrNothing(t *testing.T) {
	for _, bad := range []deltafifo.Type{0, sync + 1} {
		b := deltafifo.NewBuffer[int](nil)
		err := b.Push(added("a", 1), delta{Type: bad, Item: at("b", 1)})
		if !errors.Is(err, deltafifo.ErrInvalidDelta) {
			t.Errorf("got %v, want ErrInvalidDelta", err)
		}
		same(t, b.Stats(), deltafifo.Stats{})
	}
}

func TestBuffer_VoidDeltasDoNotBecomePending(t *testing.T) {
	b := deltafifo.NewBuffer[int](nil)
	must(t, b.Push(delta{Type: del, Item: at("a", 1)}, delta{Type: sync, Item: at("b", 1)}))
	same(t, b.Stats(), deltafifo.Stats{Compacted: 2})
}

func TestBuffer_PopWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := deltafifo.NewBuffer[int](nil)
		time.AfterFunc(time.Minute, func() { _ = b.Push(added("a", 1)) })
		start := time.Now()
		got, err := b.Pop(t.Context())
		must(t, err)
		same(t, got, []delta{added("a", 1)})
		same(t, time.Since(start), time.Minute)
	})
}

// One push wakes as many consumers as it has work for.
func TestBuffer_EveryWaitingConsumerIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := deltafifo.NewBuffer[int](nil)
		got := make(chan string, 3)
		for range 3 {
			go func() {
				ds, err := b.Pop(t.Context())
				if err == nil {
					got <- ds[0].Item.Key
				}
			}()
		}
		synctest.Wait()
		must(t, b.Push(added("a", 1), added("b", 1), added("c", 1)))
		synctest.Wait()
		same(t, len(got), 3)
	})
}

func TestBuffer_PopEndsWithItsContext(t *testing.T) {
	cause := errors.New("enough")
	synctest.Test(t, func(t *testing.T) {
		b := deltafifo.NewBuffer[int](nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		if _, err := b.Pop(ctx); !errors.Is(err, cause) {
			t.Errorf("got %v, want the context's cause", err)
		}
		// A consumer that was told to stop gets nothing more, pending or not.
		must(t, b.Push(added("a", 1)))
		buf := []delta{added("z", 1)}
		got, err := b.PopBatch(ctx, buf)
		if !errors.Is(err, cause) {
			t.Errorf("got %v, want the context's cause", err)
		}
		same(t, got, buf)
		same(t, b.Stats().Keys, 1)
	})
}

func TestD12_CloseWakesEveryPop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := deltafifo.NewBuffer[int](nil)
		errs := make(chan error, 10)
		for range cap(errs) {
			go func() {
				_, err := b.Pop(context.Background())
				errs <- err
			}()
		}
		synctest.Wait()
		b.Close()
		b.Close()
		for range cap(errs) {
			if err := <-errs; !errors.Is(err, deltafifo.ErrClosed) {
				t.Errorf("got %v, want ErrClosed", err)
			}
		}
	})
}

func TestBuffer_CloseDropsWhatIsPending(t *testing.T) {
	b := deltafifo.NewBuffer[int](nil)
	must(t, b.Push(added("a", 1), added("a", 2)))
	b.Close()
	same(t, b.Stats(), deltafifo.Stats{Compacted: 1})
	if _, err := b.Pop(t.Context()); !errors.Is(err, deltafifo.ErrClosed) {
		t.Errorf("Pop: got %v, want ErrClosed", err)
	}
	if err := b.Push(added("a", 1)); !errors.Is(err, deltafifo.ErrClosed) {
		t.Errorf("Push: got %v, want ErrClosed", err)
	}
	same(t, b.Stats().Keys, 0)
}

func TestD04_ProducersNeverWaitForConsumers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := deltafifo.NewBuffer[int](nil)
		must(t, b.Push(added("a", 0)))
		worked := make(chan struct{})
		go func() {
			defer close(worked)
			_, _ = b.Pop(t.Context())
			time.Sleep(5 * time.Second) // the work, in the bubble's time
		}()
		synctest.Wait()
		start := time.Now()
		for i := range 1000 {
			must(t, b.Push(added(fmt.Sprint(i), i)))
		}
		same(t, time.Since(start), 0)
		same(t, b.Stats().Keys, 1000)
		<-worked
	})
}

func TestD10_StatsTellDepthAndAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := deltafifo.NewBuffer[int](nil)
		same(t, b.Stats(), deltafifo.Stats{})
		time.Sleep(time.Second)
		first := time.Now()
		must(t, b.Push(added("a", 1)))
		time.Sleep(time.Second)
		second := time.Now()
		must(t, b.Push(added("a", 2), added("b", 1)))
		time.Sleep(time.Second)
		same(t, b.Stats(), deltafifo.Stats{Keys: 2, Deltas: 2, Compacted: 1, Oldest: first})
		_, err := b.Pop(t.Context())
		must(t, err)
		same(t, b.Stats(), deltafifo.Stats{Keys: 1, Deltas: 1, Compacted: 1, Oldest: second})
		_, err = b.Pop(t.Context())
		must(t, err)
		same(t, b.Stats(), deltafifo.Stats{Compacted: 1})
	})
}

func TestBuffer_KeepAll(t *testing.T) {
	b := deltafifo.NewBuffer[int](&deltafifo.Options{KeepAll: true})
	x1, x2, y3 := state("x", 1), state("x", 2), state("y", 3)
	must(t, b.Push(
		delta{Type: del, Item: at("void", 1)},
		delta{Type: put, Item: x1, Cause: object.Initial},
		added("b", 1),
		delta{Type: sync, Item: x1, Cause: object.Resync, Had: true, Old: x1},
		delta{Type: put, Item: x2, Cause: object.Watched},  // Had is found by itself
		delta{Type: put, Item: y3, Cause: object.Relist},   // another object
		delta{Type: del, Item: y3, Cause: object.Watched},  //
		delta{Type: del, Item: y3, Cause: object.Watched},  // void
		delta{Type: sync, Item: y3, Cause: object.Watched}, // void
	))
	same(t, b.Stats().Deltas, 7)
	same(t, b.Stats().Compacted, 3)
	got, err := b.Pop(t.Context())
	must(t, err)
	same(t, got, []delta{
		{Type: put, Item: x1, Cause: object.Initial},
		{Type: sync, Item: x1, Cause: object.Resync, Had: true, Old: x1},
		{Type: put, Item: x2, Cause: object.Watched, Had: true, Old: x1},
		{Type: del, Item: x2, Cause: object.Relist, Had: true, Old: x2, Inferred: true},
		{Type: put, Item: y3, Cause: object.Relist},
		{Type: del, Item: y3, Cause: object.Watched, Had: true, Old: y3},
	})
}
