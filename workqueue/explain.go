package workqueue

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"
)

// State is where a key is. Each key that the queue knows is in exactly one.
type State uint8

// The states.
const (
	Due     State = iota + 1 // queued: the next free worker takes it when it is its turn
	Delayed                  // waits for its time
	Working                  // between Get and Done
	Parked                   // given up on
)

var stateNames = [...]string{"unknown", "due", "delayed", "working", "parked"}

// String gives the state's name in lower case.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// MarshalText is String: a state reads as its name in JSON and in logs.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Stats is the queue in figures, all of one moment.
type Stats struct {
	// Due, Delayed, Working, Parked are how many keys are in each state.
	Due     int `json:"due"`
	Delayed int `json:"delayed"`
	Working int `json:"working"`
	Parked  int `json:"parked"`
	// Oldest is since when the first due key waits, zero when none does. It may be
	// a second early.
	Oldest time.Time `json:"oldest,omitzero"`
	// Refused is how many adds came after Drain or Abort, or with faulty options.
	Refused int64 `json:"refused"`
}

// Entry is what the queue knows of a key.
type Entry[K comparable] struct {
	Key   K
	State State
	// Since is when the key came into its state. It may be a second early.
	Since time.Time
	// Due is when its next run is planned; of a due key since when it could run.
	// Zero when none is planned, as for most keys that are parked or in work.
	Due time.Time
	// Attempts is how many runs in a row have failed.
	Attempts int
	// Err is what the last run returned, a retry.Later included; nil after one
	// that returned nil, and when there was none.
	Err error
	// Reasons are why it is to run, or in work, with how often each was given.
	// What failed keeps its reasons for the next run. Beyond 31 different ones
	// the rest is counted as "(other)".
	Reasons map[string]int
}

// MarshalJSON writes the error as its text.
func (e Entry[K]) MarshalJSON() ([]byte, error) {
	out := struct {
		Key      K              `json:"key"`
		State    State          `json:"state"`
		Since    time.Time      `json:"since"`
		Due      time.Time      `json:"due,omitzero"`
		Attempts int            `json:"attempts,omitempty"`
		Error    string         `json:"error,omitempty"`
		Reasons  map[string]int `json:"reasons,omitempty"`
	}{e.Key, e.State, e.Since, e.Due, e.Attempts, "", e.Reasons}
	if e.Err != nil {
		out.Error = e.Err.Error()
	}
	return json.Marshal(out)
}

// Len is the number of due keys: those in work and those that are delayed or
// parked are not counted.
func (q *Queue[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.due.n
}

// Stats counts the keys by state.
func (q *Queue[K]) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := Stats{Due: q.due.n, Working: q.inWork, Parked: q.parked, Refused: q.refused}
	s.Delayed = len(q.entries) - s.Due - s.Working - s.Parked
	if q.due.head != nil {
		s.Oldest = q.sinceTime(q.due.head)
	}
	return s
}

// Explain tells what the queue knows of key; false when it knows nothing: the key
// is neither wanted, nor in work, nor parked.
func (q *Queue[K]) Explain(key K) (Entry[K], bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var e *entry[K]
	if q.fault == nil {
		e = q.entries[key]
	}
	if e == nil {
		return Entry[K]{}, false
	}
	return q.describe(e), true
}

// Keys lists the keys in state s, or all for 0, as they are when the iteration
// begins: due keys in their order, delayed ones by their time, others those that
// are longest in their state first. It copies them under the lock, in time
// proportional to all keys: it is for people and tests.
func (q *Queue[K]) Keys(s State) iter.Seq[Entry[K]] {
	return func(yield func(Entry[K]) bool) {
		for _, e := range q.snapshot(s) {
			if !yield(e) {
				return
			}
		}
	}
}

func (q *Queue[K]) snapshot(s State) []Entry[K] {
	q.mu.Lock()
	defer q.mu.Unlock()
	var list []Entry[K]
	for state := Due; state <= Parked; state++ {
		if s != 0 && s != state {
			continue
		}
		for _, e := range q.inState(state) {
			list = append(list, q.describe(e))
		}
	}
	return list
}

// inState is the entries in state s in order. The caller holds the lock.
func (q *Queue[K]) inState(s State) []*entry[K] {
	var list []*entry[K]
	if s == Due {
		for e := q.due.head; e != nil; e = e.next {
			list = append(list, e)
		}
		return list
	}
	for _, e := range q.entries {
		if e.state() == s {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *entry[K]) int {
		if s == Delayed && before(a, b) {
			return -1
		}
		if s == Delayed {
			return 1
		}
		return cmp.Compare(a.since, b.since)
	})
	return list
}

func (e *entry[K]) state() State {
	switch {
	case e.is&working != 0:
		return Working
	case e.is&queued != 0:
		return Due
	case e.is&parked != 0:
		return Parked
	}
	return Delayed
}

func (q *Queue[K]) describe(e *entry[K]) Entry[K] {
	x := Entry[K]{Key: e.key, State: e.state(), Since: q.sinceTime(e), Due: q.time(e.at())}
	if x.State == Due {
		x.Due = x.Since
	}
	m := e.more
	if m == nil {
		return x
	}
	x.Attempts, x.Err = m.attempts, m.err
	reasons := m.asked
	if x.State == Working {
		reasons = m.served
	}
	for _, r := range reasons {
		if x.Reasons == nil {
			x.Reasons = make(map[string]int, len(reasons))
		}
		x.Reasons[r.text] = r.count
	}
	return x
}
