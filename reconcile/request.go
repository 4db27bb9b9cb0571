package reconcile

import (
	"context"
	"log/slog"
	"time"

	"github.com/homeostat/homeostat/object"
)

// Func makes the world match one key. It is called with the key alone, not with
// what happened to it: it looks at the whole and does what is missing, and may
// be called at any time, any number of times. What it returns decides when it
// runs next; see [Decide] and the package documentation.
//
// ctx is the run's own. Writes that a tracked backend makes with it (or with a
// context derived from it) are remembered: see [Client]. It ends when Func
// returns, when Options.Timeout has passed ([ErrTimeout]), or when the grace
// period after a stop has ([ErrStopping]).
//
// What it writes triggers it like any other change: it must come to rest once the
// world is as it should be. See the package documentation, What you return.
//
// Several goroutines call a Func at once, never two for one key.
type Func[T any] func(ctx context.Context, req Request[T]) error

// Request is one key to look at. It stays valid after the run, and may be used
// by any goroutine.
type Request[T any] struct {
	Key string
	// Attempt is 1, or one more for each failure in a row just before.
	Attempt int
	// Causes are the reasons for this run since the one before, merged by source
	// and reason, in the order in which they came first; at most 16.
	Causes []Trigger

	run *request[T]
}

// request is what a Request shares with all its copies.
type request[T any] struct {
	c      *Controller[T]
	item   object.Item[T]
	exists bool
	last   *T
}

// Trigger is why a key runs.
type Trigger struct {
	// Source is the informer, by name, or by the type of its objects when it has
	// none; the controller's own name for what it does by itself ("failed", "later",
	// "conflict", "every"); "trigger" for Controller.Trigger and Request.Trigger.
	Source string `json:"source"`
	// Key is the key of the object in Source that triggered last.
	Key string `json:"key"`
	// Reason is what happened, as "updated" or "deleted (relist)", or what Trigger
	// was given.
	Reason string `json:"reason"`
	// Count is how often, between First and Last.
	Count int       `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// Object is the object as the cache had it when the run began, false if it was
// gone. It is read once: every call in a run, and after it, answers the same.
// (For the state of this instant ask the informer's Cache.) Like everything in
// a cache it is shared and must not be changed.
func (r Request[T]) Object() (T, bool) {
	item, ok := r.Item()
	return item.Object, ok
}

// Item is Object with its version and identity.
func (r Request[T]) Item() (object.Item[T], bool) {
	if r.run == nil {
		return object.Item[T]{}, false
	}
	return r.run.item, r.run.exists
}

// Last is what the object was before it went, if this controller was told of
// that. It is kept until a run that knew of it returned nil, also when an object
// was meanwhile created under the same key: then Object has the new one and Last
// the one before.
func (r Request[T]) Last() (T, bool) {
	if r.run == nil || r.run.last == nil {
		var none T
		return none, false
	}
	return *r.run.last, true
}

// Trigger makes the key run again, at once or after the present run. It never
// waits, and may be called long after the run, when something that this run
// started has come to an end.
func (r Request[T]) Trigger(reason string) {
	if r.run != nil {
		r.run.c.Trigger(r.Key, reason)
	}
}

// Log is the controller's logger, with the controller, key and attempt attached.
func (r Request[T]) Log() *slog.Logger {
	if r.run == nil {
		return slog.New(slog.DiscardHandler)
	}
	return r.run.c.log.With("key", r.Key, "attempt", r.Attempt)
}

// with is the same request for an object that this very run has written.
func (r Request[T]) with(item object.Item[T]) Request[T] {
	if r.run == nil {
		return r
	}
	changed := *r.run
	changed.item, changed.exists = item, true
	r.run = &changed
	return r
}

// maxCauses bounds what is remembered of one key between two runs.
const maxCauses = 16

// addCause merges by source and reason; whatever is one too many is counted in
// the last place.
func addCause(causes []Trigger, source, key, reason string, now time.Time) []Trigger {
	for i := range causes {
		if c := &causes[i]; c.Source == source && c.Reason == reason {
			c.Key, c.Last = key, now
			c.Count++
			return causes
		}
	}
	if len(causes) == maxCauses-1 {
		source, key, reason = "", "", "others"
	}
	if len(causes) == maxCauses {
		c := &causes[maxCauses-1]
		c.Last = now
		c.Count++
		return causes
	}
	return append(causes, Trigger{Source: source, Key: key, Reason: reason, Count: 1, First: now, Last: now})
}
