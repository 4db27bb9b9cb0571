package backendtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/homeostat/homeostat/object"
)

// history is what was written to a store, step by step, by one writer.
type history[T any] struct {
	equal  func(a, b T) bool
	states []map[string]T // the n-th is the one after n steps
	steps  [][]Change[T]
}

func newHistory[T any](equal func(a, b T) bool) *history[T] {
	return &history[T]{equal: equal, states: []map[string]T{{}}}
}

func (h *history[T]) add(step ...Change[T]) {
	state := maps.Clone(h.now())
	for _, c := range step {
		if c.Delete {
			delete(state, c.Key)
		} else {
			state[c.Key] = c.Object
		}
	}
	h.steps = append(h.steps, step)
	h.states = append(h.states, state)
}

func (h *history[T]) last() int         { return len(h.steps) }
func (h *history[T]) now() map[string]T { return h.states[len(h.steps)] }

// find is the first state from the given one on that looks like this; -1 if there
// is none.
func (h *history[T]) find(items map[string]object.Item[T], from int) int {
	for i := from; i < len(h.states); i++ {
		if h.differs(items, h.states[i]) == "" {
			return i
		}
	}
	return -1
}

// follows is the first state from the given one on that what was told may have led
// to, from the state that was. In a log that keeps only the last change of each key, a
// key that is changed again later may still be as it was. -1 if there is none.
func (h *history[T]) follows(got, was map[string]object.Item[T], from int) int {
	for i := from; i < len(h.states); i++ {
		want := maps.Clone(h.states[i])
		for _, step := range h.steps[i:] {
			for _, c := range step {
				if before, there := was[c.Key]; !there {
					if _, now := got[c.Key]; !now {
						delete(want, c.Key)
					}
				} else if now, still := got[c.Key]; still && h.equal(now.Object, before.Object) {
					want[c.Key] = before.Object
				}
			}
		}
		if h.differs(got, want) == "" {
			return i
		}
	}
	return -1
}

// touched says that a step after the n-th has changed the key.
func (h *history[T]) touched(key string, n int) bool {
	for _, step := range h.steps[n:] {
		for _, c := range step {
			if c.Key == key {
				return true
			}
		}
	}
	return false
}

// differs says in what a state is not as wanted; "" when it is.
func (h *history[T]) differs(got map[string]object.Item[T], want map[string]T) string {
	var missing, odd, other []string
	for key, obj := range want {
		switch item, ok := got[key]; {
		case !ok:
			missing = append(missing, key)
		case !h.equal(item.Object, obj):
			other = append(other, key)
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			odd = append(odd, key)
		}
	}
	var texts []string
	for _, d := range []struct {
		what string
		keys []string
	}{{"missing", missing}, {"not there any more, or never", odd}, {"in another state", other}} {
		if len(d.keys) > 0 {
			texts = append(texts, fmt.Sprintf("%s: %s", d.what, named(d.keys)))
		}
	}
	return strings.Join(texts, "; ")
}

// next says what the step after n steps did.
func (h *history[T]) next(n int) string {
	if n >= len(h.steps) {
		return "nothing"
	}
	return told(h.steps[n])
}

func told[T any](step []Change[T]) string {
	var texts []string
	for _, c := range step {
		verb := "put "
		if c.Delete {
			verb = "delete "
		}
		texts = append(texts, verb+c.Key)
	}
	return named(texts)
}

// named lists some of the names.
func named(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	const most = 6
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" … (%d)", len(names))
		names = names[:most]
	}
	return strings.Join(names, ", ") + more
}

// set has the store be in this state from now on, however it came about.
func (h *history[T]) set(state map[string]T) {
	h.steps = append(h.steps, nil)
	h.states = append(h.states, state)
}

// objects are those of items.
func objects[T any](items map[string]object.Item[T]) map[string]T {
	all := make(map[string]T, len(items))
	for key, item := range items {
		all[key] = item.Object
	}
	return all
}
