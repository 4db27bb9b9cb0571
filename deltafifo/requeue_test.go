package deltafifo_test

import (
	"errors"
	"math"
	"testing"

	"github.com/homeostat/homeostat/deltafifo"
	"github.com/homeostat/homeostat/object"
)

func TestD07_RequeueNeverOverSomethingNewer(t *testing.T) {
	pop := func(f *deltafifo.FIFO[int]) []delta {
		t.Helper()
		ds, err := f.Pop(t.Context())
		must(t, err)
		return ds
	}
	t.Run("newer pending", func(t *testing.T) {
		f := deltafifo.New[int](nil, nil)
		must(t, f.Put([]item{at("a", 1)}, object.Watched))
		ds := pop(f)
		must(t, f.Put([]item{at("a", 2)}, object.Watched))
		must(t, f.Requeue(ds...))
		// An add, since the consumer never took a@1.
		same(t, drain(t, f), []delta{{Type: put, Item: at("a", 2), Cause: object.Watched}})
	})
	t.Run("newer handed over", func(t *testing.T) {
		f := deltafifo.New[int](nil, nil)
		must(t, f.Put([]item{at("a", 1)}, object.Watched))
		ds := pop(f)
		must(t, f.Put([]item{at("a", 2)}, object.Watched))
		pop(f)
		must(t, f.Requeue(ds...))
		same(t, f.Stats().Keys, 0)
		must(t, f.Put([]item{at("a", 3)}, object.Watched))
		same(t, drain(t, f)[0].Old, at("a", 2))
	})
	t.Run("newer handed over, told apart by ID", func(t *testing.T) {
		f := deltafifo.New[int](nil, nil)
		must(t, f.Put([]item{{Key: "a", ID: "1", Version: "1"}}, object.Watched))
		ds := pop(f)
		must(t, f.Put([]item{{Key: "a", ID: "2", Version: "1"}}, object.Watched))
		pop(f)
		must(t, f.Requeue(ds...))
		same(t, f.Stats().Keys, 0)
	})
	t.Run("newer handed over, without versions", func(t *testing.T) {
		f := deltafifo.New[int](nil, nil)
		must(t, f.Put([]item{{Key: "a", Object: 1}}, object.Watched))
		ds := pop(f)
		must(t, f.Put([]item{{Key: "a", Object: 2}}, object.Watched))
		newest := pop(f)
		must(t, f.Requeue(ds...))
		same(t, f.Stats().Keys, 0)
		must(t, f.Requeue(newest...))
		same(t, drain(t, f), newest)
	})
	t.Run("deleted and handed over", func(t *testing.T) {
		f := deltafifo.New[int](nil, nil)
		must(t, f.Put([]item{at("a", 1)}, object.Watched))
		ds := pop(f)
		must(t, f.Delete(at("a", 1), object.Watched))
		pop(f)
		must(t, f.Requeue(ds...))
		same(t, f.Stats().Keys, 0)
	})
	t.Run("deleted and handed over, of a zero object without version", func(t *testing.T) {
		f := deltafifo.New[int](nil, nil)
		must(t, f.Put([]item{{Key: "a"}}, object.Watched))
		ds := pop(f)
		must(t, f.Delete(item{Key: "a"}, object.Watched))
		pop(f)
		must(t, f.Requeue(ds...))
		same(t, f.Stats().Keys, 0)
	})
	t.Run("where there are versions they tell, not the objects", func(t *testing.T) {
		f := deltafifo.New[float64](nil, nil)
		nan := object.Item[float64]{Key: "a", Version: "1", Object: math.NaN()}
		must(t, f.Put([]object.Item[float64]{nan}, object.Watched))
		ds, err := f.Pop(t.Context())
		must(t, err)
		must(t, f.Requeue(ds...))
		same(t, f.Stats().Keys, 1)
	})
	t.Run("put back already", func(t *testing.T) {
		f := holding(at("a", 1))
		must(t, f.Put([]item{at("a", 2)}, object.Watched))
		ds := pop(f)
		must(t, f.Requeue(ds...))
		must(t, f.Requeue(ds...))
		same(t, f.Stats().Compacted, 0) // not merged with itself
		same(t, drain(t, f), ds)
	})
	t.Run("a delete, there again and handed over", func(t *testing.T) {
		f := holding(at("a", 1))
		must(t, f.Delete(at("a", 1), object.Watched))
		ds := pop(f)
		must(t, f.Put([]item{at("a", 2)}, object.Watched))
		pop(f)
		must(t, f.Requeue(ds...))
		same(t, f.Stats().Keys, 0)
	})
}

func TestFIFO_RequeueIsAsIfNeverPopped(t *testing.T) {
	had := delta{Had: true, Old: at("a", 1), Cause: object.Watched}
	withType := func(ty deltafifo.Type, it item) delta { d := had; d.Type, d.Item = ty, it; return d }
	deletePut := []delta{withType(del, at("a", 1)), {Type: put, Item: at("a", 2), Cause: object.Watched}}

	tests := []struct {
		name      string
		held      bool
		push      func(f *deltafifo.FIFO[int]) error // popped, put back
		meanwhile func(f *deltafifo.FIFO[int]) error
		want      []delta
	}{
		{"an update", true, putA(2), nil, []delta{withType(put, at("a", 2))}},
		{"a delete", true, deleteA(2), nil, []delta{withType(del, at("a", 2))}},
		{"a sync", true, (*deltafifo.FIFO[int]).Resync, nil,
			[]delta{{Type: sync, Item: at("a", 1), Had: true, Old: at("a", 1), Cause: object.Resync}}},
		{"a delete and a put", true, both(deleteA(1), putA(2)), nil, deletePut},
		{"an add, deleted meanwhile, never happened", false, putA(1), deleteA(1), nil},
		{"an update, updated meanwhile", true, putA(2), putA(3), []delta{withType(put, at("a", 3))}},
		{"an update, deleted meanwhile", true, putA(2), deleteA(3), []delta{withType(del, at("a", 3))}},
		{"a delete, there again meanwhile", true, deleteA(1), putA(2), deletePut},
		{"a delete and a put, deleted meanwhile", true, both(deleteA(1), putA(2)), deleteA(3),
			[]delta{withType(del, at("a", 1))}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := deltafifo.New[int](nil, nil)
			if tt.held {
				f = holding(at("a", 1))
			}
			must(t, tt.push(f))
			ds := drain(t, f)
			if tt.meanwhile != nil {
				must(t, tt.meanwhile(f))
			}
			must(t, f.Requeue(ds...))
			same(t, f.Stats().Deltas, len(tt.want))
			same(t, drain(t, f), tt.want)
		})
	}
}

func putA(rev int) func(*deltafifo.FIFO[int]) error {
	return func(f *deltafifo.FIFO[int]) error { return f.Put([]item{at("a", rev)}, object.Watched) }
}

func deleteA(rev int) func(*deltafifo.FIFO[int]) error {
	return func(f *deltafifo.FIFO[int]) error { return f.Delete(at("a", rev), object.Watched) }
}

func both(first, second func(*deltafifo.FIFO[int]) error) func(*deltafifo.FIFO[int]) error {
	return func(f *deltafifo.FIFO[int]) error { return errors.Join(first(f), second(f)) }
}

// What was put back the consumer does not hold: the next delta's Old, and what a
// list deletes, say so.
func TestFIFO_RequeueTakesBackWhatIsHeld(t *testing.T) {
	f := deltafifo.New[int](nil, nil)
	must(t, putA(1)(f))
	must(t, f.Requeue(drain(t, f)...))
	must(t, f.Replace(nil, object.Relist))
	if got := drain(t, f); got != nil {
		t.Errorf("told %v of a key that the consumer does not hold", got)
	}
}

func TestFIFO_RequeueOfManyKeys(t *testing.T) {
	f := holding(at("b", 1))
	must(t, f.Put([]item{at("a", 1)}, object.Watched))
	must(t, f.Delete(at("b", 1), object.Watched))
	must(t, f.Put([]item{at("b", 2), at("c", 1)}, object.Watched))
	ds := drain(t, f)
	must(t, f.Put([]item{at("x", 1), at("b", 3)}, object.Watched))
	must(t, f.Requeue(ds[1:]...)) // a was taken
	// x and b are pending and keep their places; c goes to the end.
	same(t, drain(t, f), []delta{
		{Type: put, Item: at("x", 1), Cause: object.Watched},
		{Type: del, Item: at("b", 1), Had: true, Old: at("b", 1), Cause: object.Watched},
		{Type: put, Item: at("b", 3), Cause: object.Watched},
		{Type: put, Item: at("c", 1), Cause: object.Watched},
	})
}

func TestFIFO_RequeueOfNonsense(t *testing.T) {
	f := deltafifo.New[int](nil, nil)
	must(t, f.Requeue())
	err := f.Requeue(added("a", 1), delta{Item: at("b", 1)})
	if !errors.Is(err, deltafifo.ErrInvalidDelta) {
		t.Errorf("got %v, want ErrInvalidDelta", err)
	}
	same(t, f.Stats().Keys, 0)
}

func TestFIFO_RequeueWithAnOldThatHasNoKey(t *testing.T) {
	f := holding(at("a", 1))
	old := at("a", 1)
	old.Key = ""
	must(t, f.Requeue(delta{Type: sync, Item: at("a", 1), Had: true, Old: old}))
	drain(t, f)
	must(t, f.Resync())
	same(t, keysOf(drain(t, f)), []string{"a sync"})
}

func TestFIFO_RequeueWithKeepAll(t *testing.T) {
	f := deltafifo.New[int](nil, &deltafifo.Options{KeepAll: true})
	must(t, putA(1)(f))
	must(t, putA(2)(f))
	ds := drain(t, f)
	must(t, putA(3)(f))
	must(t, f.Requeue(ds...))
	same(t, drain(t, f), []delta{
		{Type: put, Item: at("a", 1), Cause: object.Watched},
		{Type: put, Item: at("a", 2), Had: true, Old: at("a", 1), Cause: object.Watched},
		{Type: put, Item: at("a", 3), Had: true, Old: at("a", 2), Cause: object.Watched},
	})
}
