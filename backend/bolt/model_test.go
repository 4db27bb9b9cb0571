package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/bolt"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

// model is the store as a plain map, and every state that it ever had.
type model struct {
	now    map[string]item
	states []map[string]item // by revision
	ids    map[string]bool
	oldest int // the first revision that can be resumed from
}

func newModel() *model {
	return &model{now: map[string]item{}, ids: map[string]bool{}, states: []map[string]item{{}}}
}

func (m *model) last() int { return len(m.states) - 1 }

// trimmed notes that no more than keep changes are left.
func (m *model) trimmed(keep int) { m.oldest = max(m.oldest, m.last()-keep) }

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

// TestModel does random writes to a store and to a map, and compares every answer;
// now and then the file is closed and opened again, with a longer or shorter
// history. Then watches from every cursor replay exactly what followed it.
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
	path := filepath.Join(t.TempDir(), "pods.db")
	s := opened(t, path, &bolt.Options{History: keep})
	m := newModel()
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
			switch r.IntN(10) {
			case 0:
				require.NoError(t, s.Compact(ctx))
				m.oldest = m.last()
			case 1, 2, 3:
				require.NoError(t, s.Close())
				if r.IntN(4) == 0 {
					keep = 1 + r.IntN(80)
				}
				s = opened(t, path, &bolt.Options{History: keep})
				m.trimmed(keep)
			}
			got, err := s.Get(ctx, key)
			if there != (err == nil) || there && !reflect.DeepEqual(got, cur) {
				return fmt.Errorf("step %d: get: %v, %w", step, got, err)
			}
			if err := is(list(t, s).Items, m.now); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
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
		m.trimmed(keep)
	}
	return replays(t, s, m)
}

// replays checks that from each revision on, a watch leads through every state to
// the last, or is expired when the history does not reach that far; and that pages
// show the state that the list began with.
func replays(t *testing.T, s *bolt.Store[pod], m *model) error {
	head := string(cursorOf(t, s))
	epoch := head[:len(head)-len(strconv.Itoa(m.last()))]
	for from := range m.states {
		if err := replay(t, s, m, epoch, from); err != nil {
			return fmt.Errorf("from %d of %d, oldest is %d: %w", from, m.last(), m.oldest, err)
		}
		var items []item
		token := reflector.PageToken(fmt.Sprintf("%s/%d/0", strings.TrimSuffix(epoch, "."), from)) // all keys are greater
		for token != "" {
			p, err := s.List(t.Context(), reflector.ListOptions{Page: token, Limit: 1 + from%4})
			if from < m.oldest {
				if !errors.Is(err, reflector.ErrExpired) {
					return fmt.Errorf("a list at %d, oldest is %d: %w", from, m.oldest, err)
				}
				break
			}
			if err != nil {
				return err
			}
			if want := reflector.Cursor(epoch + strconv.Itoa(from)); p.Cursor != want {
				return fmt.Errorf("a list at %s, want %s", p.Cursor, want)
			}
			items, token = append(items, p.Items...), p.Next
		}
		if from >= m.oldest {
			if err := is(items, m.states[from]); err != nil {
				return fmt.Errorf("a list at %d: %w", from, err)
			}
		}
	}
	return nil
}

func replay(t *testing.T, s *bolt.Store[pod], m *model, epoch string, from int) error {
	got, err := told(t, s, reflector.WatchOptions{After: reflector.Cursor(epoch + strconv.Itoa(from))})
	if from < m.oldest {
		if !errors.Is(err, reflector.ErrExpired) || len(got) != 0 {
			return fmt.Errorf("%d batches, %w", len(got), err)
		}
		return nil
	}
	if err != nil || len(got) != 1+m.last()-from {
		return fmt.Errorf("%d batches, %w", len(got), err)
	}
	state := maps.Clone(m.states[from])
	for i, b := range got {
		if want := epoch + strconv.Itoa(from+i); string(b.Cursor) != want {
			return fmt.Errorf("batch %d: cursor %s, want %s", i, b.Cursor, want)
		}
		for _, e := range b.Events {
			if e.Op == reflector.OpDelete {
				last := state[e.Key]
				if last.Version = e.Version; !e.Known || !reflect.DeepEqual(last, e.Item) {
					return fmt.Errorf("batch %d: deleted %v, want %v", i, e, last)
				}
				delete(state, e.Key)
			} else {
				state[e.Key] = e.Item
			}
		}
		if !reflect.DeepEqual(m.states[from+i], state) {
			return fmt.Errorf("batch %d leads to %v, want %v", i, state, m.states[from+i])
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
	s := fresh(t, &bolt.Options{History: 50})
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
func follow(ctx context.Context, s *bolt.Store[pod], initial bool) error {
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
