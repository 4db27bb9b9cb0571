package deltafifo_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/homeostat/homeostat/deltafifo"
	"github.com/homeostat/homeostat/object"
)

// world is the model: a source of a few keys whose objects come, change, go and
// come again; a queue that is told; and a consumer that takes what is pending in
// pieces, sometimes fails, and checks each delta against what it holds and
// against what happened.
type world struct {
	t      *testing.T
	choose func(n int) int // the only source of choice: 0 ≤ choose(n) < n

	fifo    *deltafifo.FIFO[life]
	buffer  *deltafifo.Buffer[life] // instead, fed from view
	keepAll bool
	ids     bool // the source tells objects apart by ID…
	vers    bool // …and states by version

	rev     int
	view    map[string]lifeItem   // what the source has
	held    map[string]lifeItem   // what the consumer has
	endings map[life]ending       // by object (Rev 0): how it ended, if it did
	causes  map[life]object.Cause // by state: who told of it
	everyID int
}

// life is an object's state: which of the objects that lived under its key, and
// its revision.
type life struct{ Object, Rev int }

type (
	lifeItem  = object.Item[life]
	lifeDelta = deltafifo.Delta[life]
)

// ending is how an object ended: its newest state, and whether that was told.
type ending struct {
	last   life
	told   bool
	unsure bool // told again later: both is fine
}

func newWorld(t *testing.T, choose func(int) int) *world {
	w := &world{
		t: t, choose: choose,
		keepAll: choose(8) == 0, ids: choose(2) == 0, vers: choose(3) > 0,
		view: map[string]lifeItem{}, held: map[string]lifeItem{},
		endings: map[life]ending{}, causes: map[life]object.Cause{},
	}
	opts := &deltafifo.Options{KeepAll: w.keepAll}
	if choose(3) == 0 {
		w.buffer = deltafifo.NewBuffer[life](opts)
	} else {
		w.fifo = deltafifo.New[life](nil, opts)
	}
	return w
}

var modelKeys = []string{"a", "b", "c", "d"}

// item makes the next state of key: of the object that is there, or of a new one.
func (w *world) item(key string, fresh bool) lifeItem {
	was, ok := w.view[key]
	w.rev++
	l := life{Object: was.Object.Object, Rev: w.rev}
	if !ok || fresh {
		w.everyID++
		l.Object = w.everyID
	}
	it := lifeItem{Key: key, Object: l}
	if w.ids {
		it.ID = fmt.Sprint("id", l.Object)
	}
	if w.vers {
		it.Version = object.Version(fmt.Sprint(w.rev))
	}
	return it
}

// ends notes that what is under key, if anything, is no more.
func (w *world) ends(key string, last life, told bool) {
	if _, ok := w.view[key]; !ok {
		return
	}
	w.endings[life{Object: last.Object}] = ending{last: last, told: told}
	delete(w.view, key)
}

func (w *world) starts(it lifeItem, why object.Cause) {
	if was, ok := w.view[it.Key]; ok && was.Object.Object != it.Object.Object {
		w.ends(it.Key, was.Object, false)
	}
	w.view[it.Key] = it
	w.causes[it.Object] = why
}

// push makes Buffer deltas as an informer does, from its own view.
func (w *world) push(ds ...lifeDelta) {
	w.t.Helper()
	must(w.t, w.buffer.Push(ds...))
}

func (w *world) delta(ty deltafifo.Type, it lifeItem, why object.Cause) lifeDelta {
	old, had := w.view[it.Key]
	return lifeDelta{Type: ty, Item: it, Old: old, Had: had, Cause: why}
}

func (w *world) put(key string, fresh bool) {
	it := w.item(key, fresh && w.ids)
	if w.buffer != nil {
		w.push(w.delta(put, it, object.Watched))
	} else {
		must(w.t, w.fifo.Put([]lifeItem{it}, object.Watched))
	}
	w.starts(it, object.Watched)
}

func (w *world) delete(key string) {
	was, ok := w.view[key]
	last, final := was, w.choose(2) == 0
	last.Key = key
	if final && ok {
		last = w.item(key, false)
	}
	if w.buffer != nil {
		w.push(w.delta(del, last, object.Watched))
	} else {
		it := last
		if !final || !ok {
			it = lifeItem{Key: key} // its state is not told
		}
		must(w.t, w.fifo.Delete(it, object.Watched))
	}
	if !ok {
		// A queued delete that was inferred may be a told one now.
		for o, e := range w.endings {
			e.unsure = true
			w.endings[o] = e
		}
	}
	w.ends(key, last.Object, true)
}

func (w *world) replace() {
	var items []lifeItem
	var deltas []lifeDelta
	for _, key := range modelKeys {
		switch was, ok := w.view[key]; w.choose(4) {
		case 0: // gone
			if ok {
				d := w.delta(del, was, object.Relist)
				d.Inferred = true
				deltas = append(deltas, d)
				w.ends(key, was.Object, false)
			}
		case 1: // new or changed
			it := w.item(key, w.ids && w.choose(2) == 0)
			deltas = append(deltas, w.delta(put, it, object.Relist))
			items = append(items, it)
			w.starts(it, object.Relist)
		default: // as it was
			if ok {
				items = append(items, was)
				if !w.vers {
					w.causes[was.Object] = object.Relist
					deltas = append(deltas, w.delta(put, was, object.Relist))
				}
			}
		}
	}
	if w.buffer != nil {
		w.push(deltas...)
	} else {
		must(w.t, w.fifo.Replace(items, object.Relist))
	}
}

func (w *world) resync() {
	if w.fifo != nil {
		must(w.t, w.fifo.Resync())
		return
	}
	for _, key := range modelKeys {
		if it, ok := w.view[key]; ok {
			w.push(w.delta(sync, it, object.Resync))
		}
	}
}

func (w *world) stats() deltafifo.Stats {
	if w.buffer != nil {
		return w.buffer.Stats()
	}
	return w.fifo.Stats()
}

// pop takes some keys; the consumer takes what it got, but for the last keys when
// it fails.
func (w *world) pop(room int, fails bool) {
	if w.stats().Keys == 0 {
		return
	}
	buf := make([]lifeDelta, 0, room)
	var err error
	if w.buffer != nil {
		buf, err = w.buffer.PopBatch(context.Background(), buf)
	} else {
		buf, err = w.fifo.PopBatch(context.Background(), buf)
	}
	must(w.t, err)
	if len(buf) == 0 {
		w.t.Fatal("popped nothing")
	}
	for i := 0; i < len(buf); {
		n := 1
		for i+n < len(buf) && buf[i+n].Item.Key == buf[i].Item.Key {
			n++
		}
		if n > 2 && !w.keepAll {
			w.t.Fatalf("%d deltas of one key: %v", n, buf[i:i+n])
		}
		if fails && w.fifo != nil && w.choose(3) == 0 {
			// What happens before they are put back, they go before.
			if w.choose(2) == 0 {
				w.write()
			}
			must(w.t, w.fifo.Requeue(buf[i:]...))
			return
		}
		for _, d := range buf[i : i+n] {
			w.take(d)
		}
		i += n
	}
}

// take checks one delta and applies it.
func (w *world) take(d lifeDelta) {
	w.t.Helper()
	key := d.Item.Key
	was, had := w.held[key]
	if d.Had != had || d.Old != was {
		w.t.Fatalf("told %+v, but held are %t, %+v", d, had, was)
	}
	if d.Inferred && d.Type != del {
		w.t.Fatalf("inferred: %+v", d)
	}
	now := d.Item.Object
	switch d.Type {
	case put:
		if had && now.Object != was.Object.Object {
			w.t.Fatalf("another object as an update: %+v", d)
		}
		if had && now.Rev < was.Object.Rev {
			w.t.Fatalf("an older state after a newer one: %+v", d)
		}
		if !w.keepAll && d.Cause != w.causes[now] {
			w.t.Fatalf("cause of %+v: want %v", d, w.causes[now])
		}
		w.held[key] = d.Item
	case del:
		if !had || now.Object != was.Object.Object {
			w.t.Fatalf("delete of what is not held: %+v", d)
		}
		e, ok := w.endings[life{Object: now.Object}]
		if !ok || e.last != now {
			w.t.Fatalf("tombstone %+v, want the state %+v (%t)", d, e, ok)
		}
		if d.Inferred == e.told && !e.unsure {
			w.t.Fatalf("inferred: %+v, want %+v", d, e)
		}
		delete(w.held, key)
	case sync:
		if !had || d.Item != was {
			w.t.Fatalf("sync: %+v, held %+v", d, was)
		}
	default:
		w.t.Fatalf("type: %+v", d)
	}
}

// write is one thing that the source tells.
func (w *world) write() {
	key := modelKeys[w.choose(len(modelKeys))]
	switch w.choose(10) {
	case 0, 1, 2, 3:
		w.put(key, false)
	case 4:
		w.put(key, true)
	case 5, 6, 7:
		w.delete(key)
	case 8:
		w.replace()
	case 9:
		w.resync()
	}
}

func (w *world) step() {
	if w.choose(3) > 0 {
		w.write()
	} else {
		w.pop(1+w.choose(6), w.choose(3) == 0)
	}
	s := w.stats()
	if !w.keepAll && (s.Deltas > 2*s.Keys || s.Keys > len(modelKeys)) {
		w.t.Fatalf("not bounded by keys: %+v", s)
	}
	if s.Deltas < s.Keys || (s.Keys == 0) != s.Oldest.IsZero() {
		w.t.Fatalf("stats don't fit: %+v", s)
	}
}

func (w *world) finish() {
	for w.stats().Keys > 0 {
		w.pop(100, false)
	}
	same(w.t, w.held, w.view)
}

// What a consumer is told, it would hold had it been told everything (G2); no
// delete is lost and no two objects are merged (G3); never more than two deltas
// of a key (G4).
func TestG2_G3_G4_RandomHistories(t *testing.T) {
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 0))
		ok := t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := newWorld(t, r.IntN)
			for range 120 {
				w.step()
			}
			w.finish()
		})
		if !ok {
			return
		}
	}
}

// The same, told by a fuzzer.
func FuzzCompaction(f *testing.F) {
	for seed := range byte(20) {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		data := make([]byte, 300)
		for i := range data {
			data[i] = byte(r.IntN(256))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		i := 0
		choose := func(n int) int {
			if i == len(data) {
				return 0
			}
			i++
			return int(data[i-1]) % n
		}
		w := newWorld(t, choose)
		for i < len(data) {
			w.step()
		}
		w.finish()
	})
}
