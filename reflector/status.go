package reflector

import (
	"encoding/json"
	"fmt"
	"time"
)

// State is what a reflector is doing.
type State uint8

// The states. A reflector goes from Starting to Listing or Opening, round and
// round through the others, and ends in Stopped.
const (
	// Starting: Run was not called, or has not asked the source for anything.
	Starting State = iota
	// Listing: a full state is read page by page.
	Listing
	// Opening: a watch was asked for and has not shown its first batch.
	Opening
	// Streaming: a watch is open and its full state is not complete yet, or
	// must not be shown yet (rule 5).
	Streaming
	// Watching: all is well; changes come in as they happen.
	Watching
	// BackingOff: something failed; Status.Next says when it is tried again.
	BackingOff
	// Held: a full state would delete implausibly much (Options.MaxDelete). The
	// sink keeps what it has; the full state is taken again at Status.Next.
	Held
	// Stuck: the source was told to end its call and has not returned for
	// several seconds. Nothing can be done but wait, which Run does.
	Stuck
	// Stopped: Run has returned.
	Stopped
)

var stateNames = [...]string{"starting", "listing", "opening", "streaming", "watching", "backing off", "held", "stuck", "stopped"}

// String gives the state's name in lower case: "watching", "backing off".
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// MarshalText is String: a state reads as its name in JSON and in logs.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (s *State) UnmarshalText(text []byte) error {
	for i, name := range stateNames {
		if name == string(text) {
			*s = State(i)
			return nil
		}
	}
	return fmt.Errorf("reflector: no state is called %q", text)
}

// Status is what a reflector is doing, since when, what failed last and what
// comes next.
type Status struct {
	// Name is Options.Name.
	Name string
	// State is what is being done. Since is when that began; for Stuck, when
	// the source was told to end.
	State State
	Since time.Time
	// Next is when it is tried again; set while State is BackingOff or Held.
	Next time.Time
	// Cursor is the position up to which the sink has everything; "" when the
	// source has no positions.
	Cursor Cursor
	// Synced: a full state was committed at least once.
	Synced bool
	// Failures are those in a row; 0 once a session has lived for a minute.
	Failures int
	// Err is what failed last; nil once a session is open and complete again.
	Err error
	// LastEvent is when the source last told of an object, Alive when it last
	// gave a sign of life. Both are never too new, and at most a second or so
	// too old while batches follow each other closely.
	LastEvent, Alive time.Time
	// Lists and Watches count the calls of List (each page is one) and Watch.
	Lists, Watches uint64
	// Resets counts the older or other histories that were accepted (rule 6).
	Resets uint64
	// Replays counts the batches that were dropped because the sink had them.
	Replays uint64
	// Gaps counts the batches that did not follow the one before: a change had
	// been lost (rule 3).
	Gaps uint64
	// Missed counts the deadlines that a watch missed: to open, to complete its
	// full state, to show that it is alive (rules 2 and 7).
	Missed uint64
	// Torn: the last full state came in pages that may show different states,
	// and the source has no order to wait by (rule 5). What is amiss is put
	// right as the watch goes on.
	Torn bool
	// NextAudit is when the next audit is due, as long as nothing comes in between.
	// Zero is never: nobody looks for what a watch loses without knowing, until the
	// next full state.
	NextAudit time.Time
	// Audits counts the full states that were taken to see whether the watch had
	// lost anything, and came to an end; Corrections the objects that they put right,
	// Drift those of the last one: while it is not 0, the watch is known to lose
	// changes. AuditErr is why the last audit came to no end, nil when it did.
	Audits, Corrections uint64
	Drift               int
	AuditErr            error
	// WouldDelete is how many objects the full state that is held would delete.
	WouldDelete int
	// Unreadable has the keys whose present state the source cannot read, and why;
	// nil when there are none. The sink has their last good state, if there was one.
	Unreadable map[string]error
	// Fallback is why full states are listed though the source says it streams
	// them; nil when they are not.
	Fallback error
}

// MarshalJSON prints errors as text and leaves out what is not set.
func (s Status) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name      string    `json:"name,omitempty"`
		State     State     `json:"state"`
		Since     time.Time `json:"since,omitzero"`
		Next      time.Time `json:"next,omitzero"`
		Cursor    Cursor    `json:"cursor,omitempty"`
		Synced    bool      `json:"synced"`
		Failures  int       `json:"failures"`
		Err       string    `json:"err,omitempty"`
		LastEvent time.Time `json:"lastEvent,omitzero"`
		Alive     time.Time `json:"alive,omitzero"`
		Lists     uint64    `json:"lists"`
		Watches   uint64    `json:"watches"`
		Resets    uint64    `json:"resets"`
		Replays   uint64    `json:"replays"`
		Gaps      uint64    `json:"gaps"`
		Missed    uint64    `json:"missed"`
		Torn      bool      `json:"torn,omitempty"`

		NextAudit   time.Time         `json:"nextAudit,omitzero"`
		Audits      uint64            `json:"audits"`
		Corrections uint64            `json:"corrections"`
		Drift       int               `json:"drift,omitempty"`
		AuditErr    string            `json:"auditErr,omitempty"`
		WouldDelete int               `json:"wouldDelete,omitempty"`
		Unreadable  map[string]string `json:"unreadable,omitempty"`
		Fallback    string            `json:"fallback,omitempty"`
	}{
		s.Name, s.State, s.Since, s.Next, s.Cursor, s.Synced, s.Failures, text(s.Err), s.LastEvent, s.Alive,
		s.Lists, s.Watches, s.Resets, s.Replays, s.Gaps, s.Missed, s.Torn,
		s.NextAudit, s.Audits, s.Corrections, s.Drift, text(s.AuditErr), s.WouldDelete, texts(s.Unreadable), text(s.Fallback),
	})
}

func texts(errs map[string]error) map[string]string {
	if len(errs) == 0 {
		return nil
	}
	all := make(map[string]string, len(errs))
	for key, err := range errs {
		all[key] = text(err)
	}
	return all
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprint(err) // not err.Error(), which may panic
}
