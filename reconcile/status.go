package reconcile

import (
	"encoding/json"
	"time"

	"github.com/homeostat/homeostat/workqueue"
)

// Status is how a controller as a whole is doing.
type Status struct {
	Name  string          `json:"name"`
	State State           `json:"state"`
	Since time.Time       `json:"since"` // of State
	Queue workqueue.Stats `json:"queue"`
	// Barred is how many keys wait for their own writes; the queue counts them as
	// working.
	Barred  int           `json:"barred"`
	Counts  Counts        `json:"counts"`
	Watches []WatchStatus `json:"watches"`
}

// Counts count the runs that have ended, since Run began.
type Counts struct {
	Runs        uint64 `json:"runs"`        // all of them
	Failures    uint64 `json:"failures"`    // those with Decision.Failure
	Done        uint64 `json:"done"`        // the rest: by Outcome
	Later       uint64 `json:"later"`       //
	Conflict    uint64 `json:"conflict"`    //
	Failed      uint64 `json:"failed"`      //
	Parked      uint64 `json:"parked"`      //
	Panicked    uint64 `json:"panicked"`    //
	TimedOut    uint64 `json:"timedOut"`    //
	Interrupted uint64 `json:"interrupted"` //
	// Unproven counts the keys that a deadline released before their caches had
	// what they wrote.
	Unproven uint64 `json:"unproven"`
}

func (c *Counts) add(d Decision) {
	c.Runs++
	if d.Failure {
		c.Failures++
	}
	switch d.Outcome {
	case Done:
		c.Done++
	case Later:
		c.Later++
	case Conflict:
		c.Conflict++
	case Failed:
		c.Failed++
	case Parked:
		c.Parked++
	case Panicked:
		c.Panicked++
	case TimedOut:
		c.TimedOut++
	case Interrupted:
		c.Interrupted++
	}
}

// WatchStatus is one source of triggers; the controller's own is the first.
type WatchStatus struct {
	// Source is the informer's name.
	Source string
	// Pending is how many changes wait to be mapped to keys (WatchFunc alone).
	Pending int
	// Failures counts how often the mapping failed or panicked, Err is the last
	// failure, and Key the object it was about. A WatchFunc forgets Key and Err when
	// that object was mapped at last.
	Failures uint64
	Key      string
	Err      error
}

// MarshalJSON prints Err as text.
func (s WatchStatus) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Source   string `json:"source"`
		Pending  int    `json:"pending,omitempty"`
		Failures uint64 `json:"failures,omitempty"`
		Key      string `json:"key,omitempty"`
		Err      string `json:"err,omitempty"`
	}{s.Source, s.Pending, s.Failures, s.Key, text(s.Err)})
}

// Status is a picture of this instant.
func (c *Controller[T]) Status() Status {
	s := Status{Name: c.name, Queue: c.queue.Stats()}
	for _, f := range c.allFeeds() {
		s.Watches = append(s.Watches, f.status())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.State, s.Since, s.Counts, s.Barred = c.state, c.since, c.counts, c.barred
	return s
}
