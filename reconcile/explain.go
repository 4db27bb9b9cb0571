package reconcile

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/workqueue"
)

// Explanation is all that a controller knows of one key: it prints as text and
// marshals as JSON.
type Explanation struct {
	Controller string
	Key        string
	// Exists says that the cache has an object under the key, Version which.
	Exists  bool
	Version object.Version
	// State is what the key is doing: "idle" (nothing to do), "due", "delayed",
	// "working", "barred" (its run has ended, and what it wrote is waited for) or
	// "parked".
	State string
	// Entry is the queue's view: since when, when next, how many failures, the
	// last error. Zero when idle.
	Entry workqueue.Entry[string]
	// Waiting are the writes of the present or last run that their caches do not
	// have yet.
	Waiting []Barrier
	// Causes are why it will run next.
	Causes []Trigger
	// Runs are its last runs, the last one first: up to five, of the 1024 keys that
	// ran last.
	Runs []Ran
}

// Explain tells what a key is doing, why, and what happened to it. Of a key that
// was never heard of it says "idle".
func (c *Controller[T]) Explain(key string) Explanation {
	e := Explanation{Controller: c.name, Key: key, State: "idle"}
	if c.in != nil {
		item, ok := c.item(key)
		e.Exists, e.Version = ok, item.Version
	}
	if entry, ok := c.queue.Explain(key); ok {
		e.Entry, e.State = entry, entry.State.String()
	}
	c.mu.Lock()
	var r *run
	if s := c.keys[key]; s != nil {
		e.Causes, r = slices.Clone(s.causes), s.run
	}
	c.mu.Unlock()
	if r != nil {
		e.Waiting = r.barriers()
		if r.over() && len(e.Waiting) > 0 {
			e.State = "barred"
		}
	}
	e.Runs = c.history.of(key)
	return e
}

// Keys are the keys in one state of the queue, in any order. Those that are
// barred are among workqueue.Working.
func (c *Controller[T]) Keys(s workqueue.State) iter.Seq[workqueue.Entry[string]] {
	return c.queue.Keys(s)
}

// String is the explanation for people, several lines.
func (e Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q: %s", e.Controller, e.Key, e.State)
	if !e.Entry.Since.IsZero() {
		fmt.Fprintf(&b, " since %s", clock(e.Entry.Since))
	}
	if e.State == "delayed" {
		fmt.Fprintf(&b, ", next at %s", clock(e.Entry.Due))
	}
	if e.Entry.Attempts > 0 {
		fmt.Fprintf(&b, ", %d failures", e.Entry.Attempts)
	}
	if e.Entry.Err != nil {
		fmt.Fprintf(&b, "\n  last error: %v", e.Entry.Err)
	}
	switch {
	case !e.Exists:
		b.WriteString("\n  object: none")
	case e.Version != "":
		fmt.Fprintf(&b, "\n  object: at version %s", e.Version)
	}
	for _, w := range e.Waiting {
		fmt.Fprintf(&b, "\n  waiting for %v", w)
	}
	if len(e.Causes) > 0 {
		fmt.Fprintf(&b, "\n  will run because of %s", causesText(e.Causes))
	}
	for _, r := range e.Runs {
		fmt.Fprintf(&b, "\n  ran %v", r)
	}
	return b.String()
}

// MarshalJSON has the same as String, for programs.
func (e Explanation) MarshalJSON() ([]byte, error) {
	v := struct {
		Controller string                   `json:"controller"`
		Key        string                   `json:"key"`
		Exists     bool                     `json:"exists"`
		Version    object.Version           `json:"version,omitempty"`
		State      string                   `json:"state"`
		Entry      *workqueue.Entry[string] `json:"entry,omitempty"`
		Waiting    []Barrier                `json:"waiting,omitempty"`
		Causes     []Trigger                `json:"causes,omitempty"`
		Runs       []Ran                    `json:"runs,omitempty"`
	}{e.Controller, e.Key, e.Exists, e.Version, e.State, nil, e.Waiting, e.Causes, e.Runs}
	if e.Entry.State != 0 {
		v.Entry = &e.Entry
	}
	return json.Marshal(v)
}

// causesText lists triggers in one line.
func causesText(causes []Trigger) string {
	var b strings.Builder
	for i, t := range causes {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strings.TrimSpace(t.Source + " " + t.Reason))
		if t.Key != "" {
			fmt.Fprintf(&b, " (%s)", t.Key)
		}
		if t.Count > 1 {
			fmt.Fprintf(&b, " ×%d", t.Count)
		}
	}
	return b.String()
}

// clock is how times are printed for people.
func clock(t time.Time) string { return t.Format("15:04:05.000") }

// text is an error's text, "" for none.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
