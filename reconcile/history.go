package reconcile

import (
	"container/list"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Ran is one run that has ended.
type Ran struct {
	// At is when it began, Took how long Func took.
	At   time.Time
	Took time.Duration
	// Attempt and Causes are what the Request had.
	Attempt int
	Causes  []Trigger
	Outcome Outcome
	// Err is what Func returned, or its panic as a *PanicError.
	Err error
	// Unproven are the writes that the key waited for in vain: it was released by
	// the deadline, and its next run may not have seen them.
	Unproven []Barrier
}

// String is one line, or more when there is something unproven.
func (r Ran) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s took %v: ", clock(r.At), r.Took)
	what := r.Outcome.String()
	if r.Err == nil {
		b.WriteString(what)
	} else if said := r.Err.Error(); strings.HasPrefix(said, what) {
		b.WriteString(said) // retry's own words
	} else {
		b.WriteString(what + ": " + said)
	}
	if len(r.Causes) > 0 {
		fmt.Fprintf(&b, "; because of %s", causesText(r.Causes))
	}
	for _, w := range r.Unproven {
		fmt.Fprintf(&b, "\n    unproven: %v", w)
	}
	return b.String()
}

// MarshalJSON prints Err as text, and the stack of a panic.
func (r Ran) MarshalJSON() ([]byte, error) {
	stack := ""
	if p, ok := r.Err.(*PanicError); ok {
		stack = string(p.Stack)
	}
	return json.Marshal(struct {
		At       time.Time `json:"at"`
		Took     string    `json:"took"`
		Attempt  int       `json:"attempt"`
		Causes   []Trigger `json:"causes,omitempty"`
		Outcome  Outcome   `json:"outcome"`
		Err      string    `json:"err,omitempty"`
		Stack    string    `json:"stack,omitempty"`
		Unproven []Barrier `json:"unproven,omitempty"`
	}{r.At, r.Took.String(), r.Attempt, r.Causes, r.Outcome, text(r.Err), stack, r.Unproven})
}

// What a controller remembers of the past: the last runs of the keys that ran
// last. A constant, whatever the number of keys.
const (
	maxHistoryKeys = 1024
	maxHistoryRuns = 5
)

type history struct {
	mu   sync.Mutex
	keys map[string]*list.Element
	lru  list.List // of *past, the key that ran last in front
}

type past struct {
	key  string
	runs []*Ran // the last one last
}

func (h *history) add(key string, ran *Ran) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keys == nil {
		h.keys = map[string]*list.Element{}
	}
	e := h.keys[key]
	if e == nil {
		if len(h.keys) == maxHistoryKeys {
			oldest := h.lru.Back()
			delete(h.keys, h.lru.Remove(oldest).(*past).key)
		}
		e = h.lru.PushFront(&past{key: key})
		h.keys[key] = e
	} else {
		h.lru.MoveToFront(e)
	}
	p := e.Value.(*past)
	if len(p.runs) == maxHistoryRuns {
		p.runs = slices.Delete(p.runs, 0, 1)
	}
	p.runs = append(p.runs, ran)
}

// unproven adds to a run what came of its barriers.
func (h *history) unproven(ran *Ran, barriers []Barrier) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ran.Unproven = barriers
}

// of are the last runs of a key, the last one first.
func (h *history) of(key string) []Ran {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.keys[key]
	if e == nil {
		return nil
	}
	p := e.Value.(*past)
	runs := make([]Ran, 0, len(p.runs))
	for _, ran := range slices.Backward(p.runs) {
		runs = append(runs, *ran)
	}
	return runs
}
