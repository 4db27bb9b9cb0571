package reconcile

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/homeostat/homeostat/object"
)

// Barrier is a write that a key waits for: it does not run again before the cache
// of that kind provably contains it. For a moment it may also be somebody else's
// write, which the run conflicted with.
type Barrier struct {
	// Kind is the name of the informer whose cache is waited for.
	Kind string
	// Key is the object that was written.
	Key string
	// Version is what the write made. Empty when that is not known (a lost answer,
	// a store without versions, a write still being made): then a list is waited
	// for that was begun after the write returned.
	Version object.Version
	// Since is when the write began.
	Since time.Time
	// StaleLists says that lists of the source may be older than they should be,
	// so that a list is a weaker proof than it looks.
	StaleLists bool
	// Err is why the cache can't tell, if it can't.
	Err error
}

// String is one line.
func (b Barrier) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s %q", b.Kind, b.Key)
	if b.Version != "" {
		fmt.Fprintf(&s, " at version %s", b.Version)
	} else {
		s.WriteString(" in a new list")
	}
	fmt.Fprintf(&s, " since %s", clock(b.Since))
	if b.StaleLists {
		s.WriteString(" (its lists may be stale)")
	}
	if b.Err != nil {
		fmt.Fprintf(&s, " (%v)", b.Err)
	}
	return s.String()
}

// MarshalJSON prints Err as text.
func (b Barrier) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Kind       string         `json:"kind"`
		Key        string         `json:"key"`
		Version    object.Version `json:"version,omitempty"`
		Since      time.Time      `json:"since"`
		StaleLists bool           `json:"staleLists,omitempty"`
		Err        string         `json:"err,omitempty"`
	}{b.Kind, b.Key, b.Version, b.Since, b.StaleLists, text(b.Err)})
}

// hold waits until the caches have all that the run wrote, until the deadline, or
// until the intake ends (then the key will not run again anyway).
func (c *Controller[T]) hold(r *run, req Request[T], ran *Ran, open []*write) {
	if len(open) == 0 {
		return
	}
	deadline := time.NewTimer(barrierDeadline)
	defer deadline.Stop()
	expired := false
	for _, w := range open {
		select {
		case <-w.done:
			continue
		default:
		}
		select {
		case <-w.done:
			continue
		case <-deadline.C:
			expired = true
		case <-r.intake.Done():
		}
		break
	}
	unproven := r.barriers()
	r.release()
	c.mu.Lock()
	c.barred--
	if expired {
		c.counts.Unproven++
	}
	c.mu.Unlock()
	if expired {
		c.history.unproven(ran, unproven)
		for _, b := range unproven {
			req.Log().Warn("released a key before its cache had what it wrote", "waited", barrierDeadline,
				"kind", b.Kind, "written", b.Key, "version", string(b.Version), "err", b.Err)
		}
	}
}
