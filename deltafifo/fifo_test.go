package deltafifo_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/deltafifo"
	"github.com/homeostat/homeostat/object"
)

// holding makes a FIFO whose consumer holds items.
func holding(items ...item) *deltafifo.FIFO[int] {
	m := map[string]item{}
	for _, it := range items {
		m[it.Key] = it
	}
	return deltafifo.New(func() iter.Seq2[string, item] { return maps.All(m) }, nil)
}

// drain pops all that is pending.
func drain(t *testing.T, f *deltafifo.FIFO[int]) []delta {
	t.Helper()
	if f.Stats().Keys == 0 {
		return nil
	}
	ds, err := f.PopBatch(t.Context(), make([]delta, 0, 1000))
	must(t, err)
	same(t, f.Stats().Keys, 0)
	return ds
}

// sorted is for what comes in no particular order.
func sorted(ds []delta) []delta {
	slices.SortStableFunc(ds, func(a, b delta) int {
		if a.Item.Key < b.Item.Key {
			return -1
		} else if a.Item.Key > b.Item.Key {
			return 1
		}
		return 0
	})
	return ds
}

func closedChan(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestFIFO_OldIsWhatTheConsumerHolds(t *testing.T) {
	f := deltafifo.New[int](nil, nil)
	must(t, f.Put([]item{at("a", 1), at("a", 2)}, object.Initial))
	same(t, drain(t, f), []delta{{Type: put, Item: at("a", 2), Cause: object.Initial}})
	must(t, f.Put([]item{at("a", 3), at("a", 4)}, object.Watched))
	same(t, drain(t, f), []delta{{Type: put, Item: at("a", 4), Had: true, Old: at("a", 2), Cause: object.Watched}})
	must(t, f.Delete(at("a", 5), object.Watched))
	same(t, drain(t, f), []delta{{Type: del, Item: at("a", 5), Had: true, Old: at("a", 4), Cause: object.Watched}})
	must(t, f.Put([]item{at("a", 6)}, object.Watched))
	same(t, drain(t, f), []delta{{Type: put, Item: at("a", 6), Cause: object.Watched}})
}

func TestFIFO_KnownIsWhatTheConsumerHoldsAtTheStart(t *testing.T) {
	nameless := at("a", 1)
	nameless.Key = "" // the sequence's key counts
	f := deltafifo.New(func() iter.Seq2[string, item] {
		return func(yield func(string, item) bool) { yield("a", nameless) }
	}, nil)
	must(t, f.Put([]item{at("a", 2)}, object.Initial))
	same(t, drain(t, f), []delta{{Type: put, Item: at("a", 2), Had: true, Old: at("a", 1), Cause: object.Initial}})
}

func TestFIFO_KnownUnderAnotherNameIsDeletedByItsKey(t *testing.T) {
	f := deltafifo.New(func() iter.Seq2[string, item] {
		return func(yield func(string, item) bool) { yield("a", item{Version: "1"}) }
	}, nil)
	must(t, f.Replace(nil, object.Initial))
	same(t, keysOf(drain(t, f)), []string{"a delete"})
}

func TestFIFO_ADeleteWithoutStateCarriesTheNewestKnown(t *testing.T) {
	bare := item{Key: "a"}
	t.Run("held", func(t *testing.T) {
		f := holding(at("a", 1))
		must(t, f.Delete(bare, object.Watched))
		same(t, drain(t, f), []delta{{Type: del, Item: at("a", 1), Had: true, Old: at("a", 1), Cause: object.Watched}})
	})
	t.Run("queued", func(t *testing.T) {
		f := holding(at("a", 1))
		must(t, f.Put([]item{at("a", 2)}, object.Watched))
		must(t, f.Delete(bare, object.Watched))
		same(t, drain(t, f), []delta{{Type: del, Item: at("a", 2), Had: true, Old: at("a", 1), Cause: object.Watched}})
	})
	t.Run("a queued delete's, and told counts more than inferred", func(t *testing.T) {
		f := holding(at("a", 1))
		must(t, f.Replace(nil, object.Relist))
		must(t, f.Delete(bare, object.Watched))
		same(t, drain(t, f), []delta{{Type: del, Item: at("a", 1), Had: true, Old: at("a", 1), Cause: object.Watched}})
	})
	for name, told := range map[string]item{
		"a version tells": {Key: "a", Version: "2"},
		"an ID tells":     {Key: "a", ID: "x"},
		"an object tells": {Key: "a", Object: 7},
	} {
		t.Run(name, func(t *testing.T) {
			f := holding(at("a", 1))
			must(t, f.Delete(told, object.Watched))
			same(t, drain(t, f)[0].Item, told)
		})
	}
	t.Run("of a pointer too", func(t *testing.T) {
		f := deltafifo.New[*int](nil, nil)
		one := 1
		must(t, f.Put([]object.Item[*int]{{Key: "a", Object: &one}}, object.Watched))
		_, err := f.Pop(t.Context())
		must(t, err)
		must(t, f.Delete(object.Item[*int]{Key: "a"}, object.Watched))
		got, err := f.Pop(t.Context())
		must(t, err)
		if got[0].Item.Object != &one {
			t.Errorf("got %v, want the object last handed over", got[0].Item.Object)
		}
	})
}

func TestFIFO_ADeleteOfWhatNobodyHoldsIsVoid(t *testing.T) {
	f := holding(at("a", 1))
	must(t, f.Delete(at("b", 1), object.Watched))
	must(t, f.Delete(item{Key: "c"}, object.Watched))
	same(t, f.Stats().Keys, 0)
}

func TestD01_WhatIsOnlyQueuedIsDeletedByAReplace(t *testing.T) {
	f := deltafifo.New[int](nil, nil)
	must(t, f.Put([]item{at("a", 1)}, object.Watched))
	must(t, f.Replace(nil, object.Relist))
	if got := drain(t, f); got != nil {
		t.Errorf("handed over %v, of an object that came and went unseen", got)
	}
}

func TestD02_TheTombstoneCarriesTheNewestState(t *testing.T) {
	f := holding(at("a", 1))
	must(t, f.Put([]item{at("a", 2)}, object.Watched))
	must(t, f.Replace(nil, object.Relist))
	same(t, drain(t, f), []delta{
		{Type: del, Item: at("a", 2), Had: true, Old: at("a", 1), Cause: object.Relist, Inferred: true}})
	must(t, f.Replace(nil, object.Relist))
	same(t, f.Stats().Keys, 0) // told once
}

func TestD03_ADeleteOfAQueuedAddIsNotLost(t *testing.T) {
	f := deltafifo.New[int](nil, nil)
	must(t, f.Put([]item{at("a", 1)}, object.Watched))
	must(t, f.Delete(at("a", 1), object.Watched))
	if got := drain(t, f); got != nil {
		t.Errorf("handed over %v", got)
	}
}

func TestD05_AReplaceIsOneStep(t *testing.T) {
	f := deltafifo.New[int](nil, nil)
	done := make(chan struct{})
	const rounds = 300
	go func() {
		defer close(done)
		for rev := 1; rev <= rounds; rev++ {
			_ = f.Replace([]item{at("a", rev), at("b", rev), at("c", rev)}, object.Relist)
		}
	}()
	holds := map[string]int{}
	buf := make([]delta, 0, 16)
	for holds["a"] != rounds {
		var err error
		buf, err = f.PopBatch(t.Context(), buf[:0])
		must(t, err)
		for _, d := range buf {
			holds[d.Item.Key] = d.Item.Object
		}
		if holds["a"] != holds["b"] || holds["b"] != holds["c"] {
			t.Fatalf("saw a part of a Replace: %v", holds)
		}
	}
	<-done
}

func TestD06_AnotherIDIsADeleteAndAPut(t *testing.T) {
	one, two := item{Key: "a", ID: "1", Version: "7"}, item{Key: "a", ID: "2", Version: "7"}
	f := holding(one)
	must(t, f.Replace([]item{two}, object.Relist))
	same(t, drain(t, f), []delta{
		{Type: del, Item: one, Had: true, Old: one, Cause: object.Relist, Inferred: true},
		{Type: put, Item: two, Cause: object.Relist}})
}

// A delete that nobody saw is told, with the newest state; and what was deleted
// and created again meanwhile is no update, whether a delete tells or an ID.
func TestG3_NoLostDeleteNoMergedIdentity(t *testing.T) {
	x := func(key, id string, rev int) item {
		it := at(key, rev)
		it.ID = id
		return it
	}
	gone, byID, byDelete := x("gone", "1", 1), x("by-id", "1", 1), x("by-delete", "1", 1)
	f := holding(gone, byID, byDelete)
	must(t, f.Put([]item{x("gone", "1", 2), x("by-id", "1", 2)}, object.Watched))
	must(t, f.Delete(x("by-delete", "1", 2), object.Watched))
	must(t, f.Replace([]item{x("by-id", "2", 3), x("by-delete", "1", 3)}, object.Relist))
	same(t, drain(t, f), []delta{
		{Type: del, Item: x("gone", "1", 2), Had: true, Old: gone, Cause: object.Relist, Inferred: true},
		{Type: del, Item: x("by-id", "1", 2), Had: true, Old: byID, Cause: object.Relist, Inferred: true},
		{Type: put, Item: x("by-id", "2", 3), Cause: object.Relist},
		{Type: del, Item: x("by-delete", "1", 2), Had: true, Old: byDelete, Cause: object.Watched},
		{Type: put, Item: x("by-delete", "1", 3), Cause: object.Relist},
	})
}

func TestD08_ADeleteCarriesWhatWasHeldAndTheFinalState(t *testing.T) {
	f := holding(at("a", 1))
	must(t, f.Put([]item{at("a", 2)}, object.Watched))
	must(t, f.Delete(at("a", 3), object.Watched))
	same(t, drain(t, f), []delta{{Type: del, Item: at("a", 3), Had: true, Old: at("a", 1), Cause: object.Watched}})
}

func TestD10_PendingIsBoundedByKeys(t *testing.T) {
	f := deltafifo.New[int](nil, nil)
	const keys, updates = 100, 1_000_000
	names := make([]string, keys)
	for i := range names {
		names[i] = object.Key("k", string(rune('a'+i%26)), string(rune('a'+i/26)))
		must(t, f.Put([]item{{Key: names[i]}}, object.Initial))
	}
	drain(t, f)
	for i := range updates {
		key := names[i%keys]
		if i%3 == 0 {
			must(t, f.Delete(item{Key: key}, object.Watched))
		}
		must(t, f.Put([]item{{Key: key, Object: i}}, object.Watched))
	}
	if s := f.Stats(); s.Keys != keys || s.Deltas > 2*keys {
		t.Errorf("got %+v, want at most 2 deltas of each of %d keys", s, keys)
	}
	last := map[string]int{}
	for _, d := range drain(t, f) {
		last[d.Item.Key] = d.Item.Object
	}
	for i := updates - keys; i < updates; i++ {
		same(t, last[names[i%keys]], i)
	}
}

func TestD11_AResyncIsToldAsOne(t *testing.T) {
	a, b := at("a", 1), at("b", 1)
	f := holding(a, b, at("c", 1))
	must(t, f.Put([]item{at("a", 2)}, object.Watched))
	drain(t, f) // "an object updated just before"
	must(t, f.Put([]item{at("b", 2), at("d", 1)}, object.Watched))
	must(t, f.Delete(at("c", 1), object.Watched))
	must(t, f.Resync())
	must(t, f.Resync())
	same(t, sorted(drain(t, f)), []delta{
		{Type: sync, Item: at("a", 2), Had: true, Old: at("a", 2), Cause: object.Resync},
		{Type: put, Item: at("b", 2), Had: true, Old: b, Cause: object.Watched},
		{Type: del, Item: at("c", 1), Had: true, Old: at("c", 1), Cause: object.Watched},
		{Type: put, Item: at("d", 1), Cause: object.Watched},
	})
	// A Sync changes nothing of what is held.
	must(t, f.Put([]item{at("a", 3)}, object.Watched))
	same(t, drain(t, f)[0].Old, at("a", 2))
}

func TestFIFO_Replace(t *testing.T) {
	noVersion := item{Key: "a", Object: 1}
	tests := []struct {
		name  string
		held  []item
		queue func(f *deltafifo.FIFO[int]) error
		items []item
		want  []delta
	}{
		{"what did not change causes nothing", []item{at("a", 1)}, nil, []item{at("a", 1)}, nil},
		{"what changed is a put", []item{at("a", 1)}, nil, []item{at("a", 2)},
			[]delta{{Type: put, Item: at("a", 2), Had: true, Old: at("a", 1), Cause: object.Relist}}},
		{"without versions everything is a put", []item{noVersion}, nil, []item{noVersion},
			[]delta{{Type: put, Item: noVersion, Had: true, Old: noVersion, Cause: object.Relist}}},
		{"a key named twice: the later", nil, nil, []item{at("a", 1), at("b", 1), at("a", 2)},
			[]delta{{Type: put, Item: at("b", 1), Cause: object.Relist}, {Type: put, Item: at("a", 2), Cause: object.Relist}}},
		{"deletes come before puts", []item{at("z", 1)}, nil, []item{at("a", 1)},
			[]delta{{Type: del, Item: at("z", 1), Had: true, Old: at("z", 1), Cause: object.Relist, Inferred: true},
				{Type: put, Item: at("a", 1), Cause: object.Relist}}},
		{"what is queued and did not change stays as it is", nil,
			func(f *deltafifo.FIFO[int]) error { return f.Put([]item{at("a", 1)}, object.Watched) },
			[]item{at("a", 1)},
			[]delta{{Type: put, Item: at("a", 1), Cause: object.Watched}}},
		{"compared is with what is queued, not with what is held", []item{at("a", 1)},
			func(f *deltafifo.FIFO[int]) error { return f.Put([]item{at("a", 2)}, object.Watched) },
			[]item{at("a", 1)},
			[]delta{{Type: put, Item: at("a", 1), Had: true, Old: at("a", 1), Cause: object.Relist}}},
		{"there again after a queued delete", []item{at("a", 1)},
			func(f *deltafifo.FIFO[int]) error { return f.Delete(at("a", 1), object.Watched) },
			[]item{at("a", 1)},
			[]delta{{Type: del, Item: at("a", 1), Had: true, Old: at("a", 1), Cause: object.Watched},
				{Type: put, Item: at("a", 1), Cause: object.Relist}}},
		{"a queued delete stays the one that was told", []item{at("a", 1)},
			func(f *deltafifo.FIFO[int]) error { return f.Delete(at("a", 2), object.Watched) },
			nil,
			[]delta{{Type: del, Item: at("a", 2), Had: true, Old: at("a", 1), Cause: object.Watched}}},
		{"a queued sync does not hide that its key is gone", []item{at("a", 1)},
			(*deltafifo.FIFO[int]).Resync, nil,
			[]delta{{Type: del, Item: at("a", 1), Had: true, Old: at("a", 1), Cause: object.Relist, Inferred: true}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := holding(tt.held...)
			if tt.queue != nil {
				must(t, tt.queue(f))
			}
			must(t, f.Replace(tt.items, object.Relist))
			same(t, drain(t, f), tt.want)
		})
	}
}

func TestFIFO_Synced(t *testing.T) {
	pop := func(f *deltafifo.FIFO[int]) {
		t.Helper()
		_, err := f.Pop(t.Context())
		must(t, err)
	}
	expect := func(f *deltafifo.FIFO[int], want bool) {
		t.Helper()
		if got := closedChan(f.Synced()); got != want {
			t.Errorf("synced is %t, want %t", got, want)
		}
	}
	t.Run("once the first Replace is handed over", func(t *testing.T) {
		f := deltafifo.New[int](nil, nil)
		must(t, f.Put([]item{at("z", 1)}, object.Watched)) // queued before, still pending after
		expect(f, false)
		must(t, f.Replace([]item{at("a", 1), at("z", 1)}, object.Initial))
		must(t, f.Put([]item{at("b", 1)}, object.Watched)) // not part of it
		expect(f, false)
		pop(f)
		expect(f, false)
		pop(f)
		expect(f, true)
		must(t, f.Replace([]item{at("c", 1)}, object.Relist))
		expect(f, true)
	})
	t.Run("not by puts alone", func(t *testing.T) {
		f := deltafifo.New[int](nil, nil)
		must(t, f.Put([]item{at("a", 1)}, object.Watched))
		pop(f)
		expect(f, false)
	})
	t.Run("at once when there is nothing to hand over", func(t *testing.T) {
		f := holding(at("a", 1))
		must(t, f.Replace([]item{at("a", 1)}, object.Initial))
		expect(f, true)
	})
	t.Run("its deletes count", func(t *testing.T) {
		f := holding(at("a", 1))
		must(t, f.Replace(nil, object.Initial))
		expect(f, false)
		pop(f)
		expect(f, true)
	})
	t.Run("what cancels out is not waited for", func(t *testing.T) {
		f := deltafifo.New[int](nil, nil)
		must(t, f.Replace([]item{at("a", 1)}, object.Initial))
		must(t, f.Delete(at("a", 1), object.Watched))
		expect(f, true)
	})
	t.Run("a second Replace before does not prolong it", func(t *testing.T) {
		f := deltafifo.New[int](nil, nil)
		must(t, f.Replace([]item{at("a", 1)}, object.Initial))
		must(t, f.Replace([]item{at("a", 1), at("b", 1)}, object.Relist))
		pop(f)
		expect(f, true)
	})
	t.Run("what is put back is waited for again", func(t *testing.T) {
		f := deltafifo.New[int](nil, nil)
		must(t, f.Replace([]item{at("a", 1), at("b", 1)}, object.Initial))
		a, err := f.Pop(t.Context())
		must(t, err)
		must(t, f.Requeue(a...))
		pop(f)
		expect(f, false)
		pop(f)
		expect(f, true)
		// Long after, it makes no difference.
		must(t, f.Requeue(a...))
		pop(f)
	})
	t.Run("closing is not syncing", func(t *testing.T) {
		f := deltafifo.New[int](nil, nil)
		must(t, f.Replace([]item{at("a", 1)}, object.Initial))
		f.Close()
		expect(f, false)
	})
}

func TestFIFO_Closed(t *testing.T) {
	f := holding(at("a", 1))
	popped := func() []delta {
		must(t, f.Put([]item{at("a", 2)}, object.Watched))
		return drain(t, f)
	}()
	must(t, f.Put([]item{at("b", 1)}, object.Watched))
	f.Close()
	f.Close()
	_, popErr := f.Pop(t.Context())
	_, batchErr := f.PopBatch(t.Context(), nil)
	for name, err := range map[string]error{
		"Put":      f.Put([]item{at("a", 1)}, object.Watched),
		"Delete":   f.Delete(at("a", 1), object.Watched),
		"Replace":  f.Replace(nil, object.Relist),
		"Resync":   f.Resync(),
		"Requeue":  f.Requeue(popped...),
		"Pop":      popErr,
		"PopBatch": batchErr,
	} {
		if !errors.Is(err, deltafifo.ErrClosed) {
			t.Errorf("%s: got %v, want ErrClosed", name, err)
		}
	}
	same(t, f.Stats().Keys, 0)
	if keys, entries, held := f.Room(); keys+entries+held != 0 {
		t.Errorf("closed, it keeps room for %d keys, %d entries, %d held", keys, entries, held)
	}
}

// Each kind of push wakes a consumer.
func TestFIFO_EveryPushWakes(t *testing.T) {
	pushes := map[string]func(f *deltafifo.FIFO[int]) error{
		"Put":     func(f *deltafifo.FIFO[int]) error { return f.Put([]item{at("b", 1)}, object.Watched) },
		"Delete":  func(f *deltafifo.FIFO[int]) error { return f.Delete(at("a", 1), object.Watched) },
		"Replace": func(f *deltafifo.FIFO[int]) error { return f.Replace(nil, object.Relist) },
		"Resync":  (*deltafifo.FIFO[int]).Resync,
		"Requeue": func(f *deltafifo.FIFO[int]) error { return f.Requeue(delta{Type: put, Item: at("a", 1)}) },
	}
	for name, push := range pushes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := holding(at("a", 1))
				time.AfterFunc(time.Second, func() { must(t, push(f)) })
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := f.Pop(ctx)
				must(t, err)
			})
		})
	}
}
