package stepped

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Stats count what histories have been through, so that a test can see that the
// weather was as bad as it was meant to be.
type Stats struct {
	Histories, Steps, Faults int
	// FewestSteps and FewestFaults are those of the history that had the fewest.
	FewestSteps, FewestFaults int
	// Done counts the steps by name.
	Done map[string]int
	// What the reflectors say of themselves in the end; Synced counts the steps at
	// which a client had a full state, of Looks at any.
	Lists, Watches, Resets, Gaps, Replays, Missed uint64
	Synced, Looks                                 int
	// Astray counts the clients that ended in another state than the store, where
	// nothing was to repair them (Config.Unrepaired).
	Astray int
}

// Add adds those of others.
func (s *Stats) Add(t *Stats) {
	if s.Histories == 0 {
		s.FewestSteps, s.FewestFaults = t.FewestSteps, t.FewestFaults
	}
	s.FewestSteps, s.FewestFaults = min(s.FewestSteps, t.FewestSteps), min(s.FewestFaults, t.FewestFaults)
	s.Histories += t.Histories
	s.Steps += t.Steps
	s.Faults += t.Faults
	if s.Done == nil {
		s.Done = map[string]int{}
	}
	for op, n := range t.Done {
		s.Done[op] += n
	}
	s.Lists += t.Lists
	s.Watches += t.Watches
	s.Resets += t.Resets
	s.Gaps += t.Gaps
	s.Replays += t.Replays
	s.Missed += t.Missed
	s.Synced += t.Synced
	s.Looks += t.Looks
	s.Astray += t.Astray
}

// String is a line for each.
func (s *Stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d histories, %d steps, %d faults; %d lists, %d watches, %d resets, %d gaps, %d replays, %d missed; synced at %d of %d looks\n",
		s.Histories, s.Steps, s.Faults, s.Lists, s.Watches, s.Resets, s.Gaps, s.Replays, s.Missed, s.Synced, s.Looks)
	for _, op := range slices.Sorted(maps.Keys(s.Done)) {
		fmt.Fprintf(&b, "%s %d  ", op, s.Done[op])
	}
	return b.String()
}

// count adds the history that has just ended, before it is brought to rest.
func (s *Stats) count(w *world) {
	t := Stats{
		Histories: 1, Steps: len(w.done), Faults: w.faults, FewestSteps: len(w.done), FewestFaults: w.faults,
		Done: map[string]int{}, Synced: w.synced, Looks: w.looks,
	}
	for _, st := range w.done {
		t.Done[st.op]++
	}
	for _, c := range w.clients {
		st := c.inf.Status().Source
		t.Lists += st.Lists
		t.Watches += st.Watches
		t.Resets += st.Resets
		t.Gaps += st.Gaps
		t.Replays += st.Replays
		t.Missed += st.Missed
	}
	s.Add(&t)
}
