package reflector

import "github.com/homeostat/homeostat/object"

// Sink takes what a [Reflector] delivers. One goroutine, that of Run, makes all
// calls, the [Relist]'s too. Whoever reads a sink sees all of a batch, or of a
// full state, or none of it.
//
// An error of Apply, Stage, Commit or Unchanged is a failure of the session: it is shown,
// and a new full state is taken after a backoff. So is a panic.
type Sink[T any] interface {
	// Apply takes one live batch, never with Reset or Synced. A batch without
	// events says only that the source stands at b.Cursor, which has moved. A
	// batch with events whose Cursor is "" leaves the sink's position where it
	// was.
	//
	// Of an object in b.Faults the sink keeps what it has, and knows that it is old.
	//
	// b.Events is valid until Apply returns: what is kept of it is copied.
	Apply(b Batch[T], why object.Cause) error
	// Begin says that a full state may be about to be read, and gives what will
	// take it. why is object.Initial until the first Commit, object.Audit for a
	// full state that is taken to see whether the watch has lost anything, and
	// object.Relist for every other.
	//
	// Begin is called before the source can have begun to read: before the
	// first page of a list; before each watch, and again after each Commit or
	// Unchanged in it, since a source may stream a full state at any time of a session. So
	// whatever was written to the source before Begin is in the full state that
	// is committed. Most relists that are begun for a watch end unused in Abort:
	// Begin must be cheap. A second one may be begun before the first has ended.
	//
	// Apply may be called before the first Stage, and, while an audit waits for the
	// watch to come to where its list was read, between Stage and Commit: what is
	// staged stays as it was staged, and what it differs in from the sink's state is
	// decided at Commit.
	Begin(why object.Cause) Relist[T]
}

// Diff counts what a full state changes in a sink.
type Diff struct {
	// Puts are objects that are new or other than what the sink has, Deletes those
	// that it has and the full state has not; Of is how many the sink has.
	Puts, Deletes, Of int
	// Gone tells one set of deletes from another: equal sets have equal numbers. 0 is
	// not told.
	Gone uint64
}

// Relist takes one full state. It ends with exactly one call of Commit, Unchanged
// or Abort.
// Until Commit nobody sees any of it; at Commit everything is seen at once, and
// what was not staged is deleted.
type Relist[T any] interface {
	// Stage adds objects to the full state. Of two under one key the later
	// counts. The slice is valid until Stage returns.
	Stage(items []object.Item[T]) error
	// StageKeys adds objects of which only key, version and ID are told: enough to see
	// whether the sink has them in that very state. Of a relist with such objects
	// nothing is committed; it ends with Unchanged when Diff finds no difference, and
	// else with Abort.
	StageKeys(items []object.Item[T]) error
	// Unstage takes the object under key out again: the source said that it was
	// deleted while it streamed. A key that was not staged is nothing special.
	Unstage(key string)
	// Distrust says, before anything is staged, that the source was set back or is
	// another one: equal versions do not mean equal objects, which are to be compared
	// themselves.
	Distrust()
	// Keep names objects that are there in a state that the source cannot read: they
	// are not deleted, and the sink keeps what it has of them.
	Keep(faults []Fault)
	// Diff says what Commit would change now.
	Diff() Diff
	// Commit publishes the full state, which the source gave as of the cursor
	// at; "" when it has no positions. With an error the relist has ended too.
	Commit(at Cursor) error
	// Unchanged ends the relist like Commit, of the state that the sink holds: the
	// source was asked for a full state after Begin and said that it is still this
	// one ([ErrNotModified]), or told keys and versions that are the sink's, as of
	// the cursor at. Nothing is published, and readers see nothing change; who waits
	// for a full state has had it.
	Unchanged(at Cursor) error
	// Abort forgets what was staged.
	Abort()
}
