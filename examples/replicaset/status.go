//go:build unix

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/homeostat/homeostat/backend/file"
	"github.com/homeostat/homeostat/examples/internal/workload"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/reflector"
)

// status watches both sides with informers of its own and tells the printer.
type status struct {
	out    *printer
	sets   *informer.Informer[*workload.ReplicaSet]
	pods   *informer.Informer[*workload.Pod]
	faults func() []file.Fault

	changed chan struct{} // there is something to look at
	// converged, if set, is called when all is as declared, and has been for a while.
	converged func()
	since     time.Time // since when; zero when it is not
	summary   []string  // how it was then
	bad       map[string]bool
	reached   func(part string) error
}

func newStatus(out *printer, sets *informer.Informer[*workload.ReplicaSet], pods *informer.Informer[*workload.Pod], faults func() []file.Fault) *status {
	s := &status{out: out, sets: sets, pods: pods, faults: faults, changed: make(chan struct{}, 1),
		reached: func(string) error { return nil }}
	sets.AddHandler(s.setChanged, &informer.HandlerOptions{Name: "printer"})
	pods.AddHandler(s.podChanged, &informer.HandlerOptions{Name: "printer"})
	return s
}

// Needs makes reconcile.Run run the informers, and wait for them.
func (s *status) Needs() []reconcile.Runner { return []reconcile.Runner{s.sets, s.pods} }

// Run shows the whole at each change, and now and then for what no change tells
// of: which files are at fault.
func (s *status) Run(ctx context.Context) error {
	s.touch()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
		case <-tick.C:
		}
		if err := s.reached("status"); err != nil {
			return err
		}
		faults := s.faults()
		s.tellHealed(faults)
		s.out.Table(s.rows(), faults)
		if s.converged != nil && s.isStable(time.Now()) {
			s.converged()
			return nil
		}
	}
}

// steady is how long all must be as declared, and nothing change, for it to count:
// a process that ends at once runs for a moment, too.
const steady = 300 * time.Millisecond

func (s *status) isStable(now time.Time) bool {
	if !s.isConverged() {
		s.since = time.Time{}
		return false
	}
	if lines := s.lines(); s.since.IsZero() || !slices.Equal(lines, s.summary) {
		s.since, s.summary = now, lines
	}
	return now.Sub(s.since) >= steady
}

// tellHealed says which files are no longer at fault.
func (s *status) tellHealed(faults []file.Fault) {
	bad := map[string]bool{}
	for _, f := range faults {
		bad[f.File] = true
	}
	for name := range s.bad {
		if !bad[name] {
			s.out.Line("manifest %s is good again, or gone", name)
		}
	}
	s.bad = bad
}

func (s *status) touch() {
	select {
	case s.changed <- struct{}{}:
	default: // it will look, and see this too
	}
}

func (s *status) setChanged(c informer.Change[*workload.ReplicaSet]) {
	switch {
	case c.Type == informer.Deleted:
		s.out.Line("set %s is gone", c.Key)
	case c.Type == informer.Added || c.Old.Want() != c.New.Want():
		s.out.Line("set %s wants %d", c.Key, c.New.Want())
	}
	s.touch()
}

func (s *status) podChanged(c informer.Change[*workload.Pod]) {
	s.reached("printer")
	before, after := "", "Gone"
	if c.Type != informer.Added {
		before = phaseOf(c.Old)
	}
	if c.Type != informer.Deleted {
		after = phaseOf(c.New)
	}
	switch {
	case c.Type == informer.Deleted:
		s.out.Line("pod %s %s → %s", c.Key, before, after)
	case before == "":
		s.out.Line("pod %s %s%s", c.Key, after, details(c.New))
	case before != after || c.Old.Status.PID != c.New.Status.PID:
		s.out.Line("pod %s %s → %s%s", c.Key, before, after, details(c.New))
	}
	s.touch()
}

// phaseOf is the phase as a person would name it.
func phaseOf(p *workload.Pod) string {
	switch {
	case p.IsDeleting():
		return "Ending"
	case p.Status.Phase == "":
		return "Pending"
	}
	return string(p.Status.Phase)
}

func details(p *workload.Pod) (text string) {
	if p.Status.PID != 0 {
		text += fmt.Sprintf(" pid=%d", p.Status.PID)
	}
	if p.Status.Restarts > 0 {
		text += fmt.Sprintf(" restarts=%d", p.Status.Restarts)
	}
	if p.Status.ExitCode != nil {
		text += fmt.Sprintf(" last=%q", p.Status.Message)
	}
	return text
}

// row is one line of the table: a set, or one of its Pods.
type row struct {
	set         string
	want, ready int
	pod         string
	state       *workload.Pod
}

// rows lists the sets by name, each with its Pods, and then the Pods of none.
func (s *status) rows() (rows []row) {
	pods := s.pods.Cache().Snapshot()
	seen := map[string]bool{}
	add := func(set string, want int) {
		head, ready := len(rows), 0
		rows = append(rows, row{set: set, want: want})
		for key, pod := range byOwner.Lookup(pods, set) {
			seen[key] = true
			rows = append(rows, row{pod: key, state: pod})
			if pod.Status.Phase == workload.Running && !pod.IsDeleting() {
				ready++
			}
		}
		rows[head].ready = ready
		slices.SortFunc(rows[head+1:], func(a, b row) int { return cmp.Compare(a.pod, b.pod) })
	}
	for key, set := range s.sets.Cache().Sorted() {
		add(key, set.Want())
	}
	for key, pod := range pods.Sorted() {
		if !seen[key] {
			rows = append(rows, row{pod: key, state: pod})
		}
	}
	return rows
}

// isConverged: every file is understood, each set has as many Pods as it wants,
// and every Pod there is belongs to one and runs.
func (s *status) isConverged() bool {
	if !s.sets.Synced() || !s.pods.Synced() || len(s.faults()) > 0 {
		return false
	}
	if s.sets.Status().Source.State != reflector.Watching {
		return false // what is declared now cannot be seen
	}
	pods, owned := s.pods.Cache().Snapshot(), 0
	for key, set := range s.sets.Cache().All() {
		n := 0
		for _, pod := range byOwner.Lookup(pods, key) {
			if pod.IsDeleting() || pod.Status.Phase != workload.Running || pod.Status.PID == 0 || !set.Selects(pod.Labels) {
				return false
			}
			n++
		}
		if n != set.Want() {
			return false
		}
		owned += n
	}
	return owned == pods.Len()
}

// lines is everything, in lines.
func (s *status) lines() (lines []string) {
	for _, r := range s.rows() {
		if r.pod == "" {
			lines = append(lines, fmt.Sprintf("set %s: %d of %d run", r.set, r.ready, r.want))
		} else {
			lines = append(lines, fmt.Sprintf("  pod %s %s%s", r.pod, phaseOf(r.state), details(r.state)))
		}
	}
	return lines
}
