package memory_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

// model is the store as a plain map, and every state that it ever had.
type model struct {
	now    map[string]item
	states []map[string]item // by revision
	ids    map[string]bool
}

// stored notes what a write that succeeded answered.
func (m *model) stored(got item, gone bool) error {
	if want := object.Version(strconv.Itoa(len(m.states))); got.Version != want {
		return fmt.Errorf("version %s, want %s", got.Version, want)
	}
	was, had := m.now[got.Key]
	switch {
	case had && was.ID != got.ID:
		return errors.New("another ID")
	case !had && m.ids[got.ID]:
		return errors.New("an ID used again")
	}
	m.ids[got.ID] = true
	if gone {
		delete(m.now, got.Key)
	} else {
		m.now[got.Key] = got
	}
	m.states = append(m.states, maps.Clone(m.now))
	return nil
}

// TestModel does random writes to a store and to a map, and compares every answer.
// Then watches from every cursor replay exactly what followed it.
func TestModel(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			if err := history(t, seed); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		})
	}
}

func history(t *testing.T, seed uint64) error {
	ctx := t.Context()
	r := rand.New(rand.NewPCG(seed, 0))
	keep := 1 + r.IntN(80)
	s := memory.New[pod](&memory.Options{History: keep})
	m := &model{now: map[string]item{}, ids: map[string]bool{}}
	m.states = append(m.states, map[string]item{})
	compacted := 0
	for step := range 150 {
		key := string(rune('a' + r.IntN(5)))
		cur, there := m.now[key]
		want := cur.Version
		switch r.IntN(4) {
		case 0:
			want = object.Any
		case 1:
			want = object.Version(strconv.Itoa(r.IntN(len(m.states) + 1)))
		}
		if want == "" {
			want = "1"
		}
		obj := pod{N: step + 1}
		var got item
		var err error
		op := r.IntN(8)
		switch op {
		case 0, 1, 2:
			got, err = s.Create(ctx, key, obj)
		case 3, 4:
			got, err = s.Update(ctx, item{Key: key, Version: want, Object: obj})
		case 5:
			got, err = s.Patch(ctx, key, merge(`{"n":%d}`, obj.N), want)
		case 6:
			got, err = s.Delete(ctx, key, want)
			obj = cur.Object
		default:
			if r.IntN(10) == 0 {
				s.Compact()
				compacted = len(m.states) - 1
			}
			got, err := s.Get(ctx, key)
			if there != (err == nil) || there && got.Object.N != cur.Object.N {
				return fmt.Errorf("step %d: get: %v, %w", step, got, err)
			}
			continue
		}
		create := op <= 2
		var expected error
		switch {
		case create && there:
			expected = backend.ErrExists
		case !create && !there:
			expected = backend.ErrNotFound
		case !create && want != object.Any && want != cur.Version:
			expected = backend.ErrConflict
		}
		if !errors.Is(err, expected) {
			return fmt.Errorf("step %d: op %d of %s at %s: %v, want %v", step, op, key, want, err, expected)
		}
		if err != nil {
			continue
		}
		if got.Key != key || got.Object.N != obj.N {
			return fmt.Errorf("step %d: op %d answers %v", step, op, got)
		}
		if err := m.stored(got, op == 6); err != nil {
			return fmt.Errorf("step %d: op %d: %w", step, op, err)
		}
	}
	return replays(t, s, m, max(compacted, len(m.states)-1-keep))
}

// replays checks that from each revision on, a watch leads through every state to
// the last, or is expired when the history does not reach that far.
func replays(t *testing.T, s *memory.Store[pod], m *model, oldest int) error {
	head := string(cursorOf(t, s))
	last := len(m.states) - 1
	epoch := head[:len(head)-len(strconv.Itoa(last))]
	for from := range m.states {
		if err := snapshots(s, m, reflector.Cursor(epoch+strconv.Itoa(from)), from, from >= oldest); err != nil {
			return err
		}
		got, err := told(t, s, reflector.WatchOptions{After: reflector.Cursor(epoch + strconv.Itoa(from))})
		if from < oldest {
			if !errors.Is(err, reflector.ErrExpired) || len(got) != 0 {
				return fmt.Errorf("from %d, before %d: %d batches, %v", from, oldest, len(got), err)
			}
			continue
		}
		if err != nil || len(got) != 1+last-from {
			return fmt.Errorf("from %d of %d: %d batches, %v", from, last, len(got), err)
		}
		state := maps.Clone(m.states[from])
		for i, b := range got {
			if want := epoch + strconv.Itoa(from+i); string(b.Cursor) != want {
				return fmt.Errorf("from %d, batch %d: cursor %s, want %s", from, i, b.Cursor, want)
			}
			for _, e := range b.Events {
				if e.Op == reflector.OpDelete {
					delete(state, e.Key)
				} else {
					state[e.Key] = e.Item
				}
			}
			require.Equal(t, m.states[from+i], state)
		}
	}
	return nil
}

// snapshots checks what is worked out of the state at rev.
func snapshots(s *memory.Store[pod], m *model, at reflector.Cursor, rev int, reached bool) error {
	snap, err := s.SnapshotAt(at)
	if !reached {
		if !errors.Is(err, reflector.ErrExpired) {
			return fmt.Errorf("snapshot at %d, which is gone: %v", rev, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("snapshot at %d: %w", rev, err)
	}
	if err := is(snap.List(reflector.ListOptions{}).Items, m.states[rev]); err != nil {
		return fmt.Errorf("snapshot at %d: %w", rev, err)
	}
	if snap.Len() != len(m.states[rev]) || snap.Cursor() != at {
		return fmt.Errorf("snapshot at %d: %d objects at %s", rev, snap.Len(), snap.Cursor())
	}
	for _, key := range []string{"a", "c", "e", "x"} {
		got, there := snap.Get(key)
		if want, has := m.states[rev][key]; there != has || got.Version != want.Version {
			return fmt.Errorf("snapshot at %d: %s is %v, want %v", rev, key, got, want)
		}
	}
	return nil
}

// is says how items differ from a state; they must be in order.
func is(items []item, state map[string]item) error {
	if !slices.IsSortedFunc(items, func(a, b item) int { return strings.Compare(a.Key, b.Key) }) {
		return fmt.Errorf("not in order: %v", items)
	}
	if len(items) != len(state) {
		return fmt.Errorf("%d objects, want %d", len(items), len(state))
	}
	for _, it := range items {
		if !reflect.DeepEqual(it, state[it.Key]) {
			return fmt.Errorf("%v, want %v", it, state[it.Key])
		}
	}
	return nil
}

// TestWatchersEndEqual: whatever writers do at once, every watcher ends at the
// store's state, or starts anew when it is told Expired, and never sees a key go
// back (G2).
func TestWatchersEndEqual(t *testing.T) {
	s := memory.New[pod](&memory.Options{History: 50})
	ctx := t.Context()
	var writers, watchers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			for i := range 300 {
				key := strconv.Itoa(r.IntN(20))
				switch r.IntN(3) {
				case 0:
					s.Create(ctx, key, pod{N: i})
				case 1:
					s.Patch(ctx, key, merge(`{"n":%d}`, i), object.Any)
				default:
					s.Delete(ctx, key, object.Any)
				}
			}
		})
	}
	stop, end := context.WithCancel(ctx)
	for w := range 20 {
		watchers.Go(func() {
			if err := follow(stop, s, w%2 == 0); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	must(s.Create(ctx, "end", pod{}))
	watchers.Wait()
	end()
}

// follow keeps a map equal to s until it has seen the key "end", and compares.
func follow(ctx context.Context, s *memory.Store[pod], initial bool) error {
	state := map[string]item{}
	seen := map[string]int{}
	var after reflector.Cursor
	for {
		if after == "" && !initial {
			page, err := s.List(ctx, reflector.ListOptions{})
			if err != nil {
				return err
			}
			clear(state)
			for _, it := range page.Items {
				state[it.Key] = it
			}
			after = page.Cursor
		}
		for b, err := range s.Watch(ctx, reflector.WatchOptions{After: after}) {
			if err != nil {
				if !errors.Is(err, reflector.ErrExpired) {
					return err
				}
				break
			}
			if b.Reset {
				clear(state)
			}
			for _, e := range b.Events {
				v := must(strconv.Atoi(string(e.Version)))
				if v < seen[e.Key] {
					return fmt.Errorf("%s went back from %d to %d", e.Key, seen[e.Key], v)
				}
				seen[e.Key] = v
				if e.Op == reflector.OpDelete {
					delete(state, e.Key)
				} else {
					state[e.Key] = e.Item
				}
			}
			if _, end := state["end"]; end && b.Cursor != "" {
				page, err := s.List(ctx, reflector.ListOptions{})
				if err != nil {
					return err
				}
				if len(page.Items) != len(state) {
					return fmt.Errorf("%d objects, want %d", len(state), len(page.Items))
				}
				for _, it := range page.Items {
					if got := state[it.Key]; got.Version != it.Version || got.ID != it.ID || got.Object.N != it.Object.N {
						return fmt.Errorf("%v, want %v", got, it)
					}
				}
				return nil
			}
		}
		after = ""
	}
}
