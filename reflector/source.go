package reflector

import (
	"context"
	"iter"
	"time"

	"github.com/homeostat/homeostat/object"
)

// Cursor is a position in a source's history, "strictly after this", with the
// source's epoch in it. It is a type of its own, so that no object's version and
// no page token can be passed for it. "" means that the source has no positions.
type Cursor string

// PageToken says where the next page of one list begins.
type PageToken string

// Op is what happened to an object. The zero value is invalid.
type Op uint8

// The two things that can happen. Whether a Put added or updated is for the
// consumer to say, by its own state.
const (
	OpPut Op = iota + 1
	OpDelete
)

// Event is one object's change.
type Event[T any] struct {
	Op Op
	// Known says that Object is set: always for a put; for a delete when the
	// source told the final state.
	Known bool
	object.Item[T]
}

// Fault is an object that the source has and cannot read: it is there, in a state
// that nobody can be told of.
type Fault struct {
	Key     string
	Version object.Version
	Err     error
}

// Batch is what the source changed in one step; readers of a consumer see all of
// it or none.
//
// Without events it is a bookmark, and proof of life. Reset begins a full state
// and Synced ends it, in one batch or with any number of batches between them:
// until Synced nothing is published, and at Synced what was not named is deleted.
// Synced alone, from a source without positions, is a full state that is the same
// as the one before: a watch that lists says [ErrNotModified] like this.
type Batch[T any] struct {
	// Events is valid until yield returns: a consumer that keeps events copies
	// them, a source may use the slice again.
	Events []Event[T]
	// Faults are the objects that changed into something that the source cannot
	// decode; within a full state, those that are there and cannot be decoded. No key
	// is in Events as well.
	Faults []Fault
	// Cursor is strictly after all of the batch; "" is no place to resume from.
	Cursor Cursor
	// Prev, from a source that can tell it, is the cursor that this batch follows:
	// that of the batch before it, or of where the watch began. Who stands before
	// Prev has missed a change (rule 3). "" is not told.
	Prev          Cursor
	Reset, Synced bool
}

// ListWatcher is a source: anything that can list keyed objects and tell of
// their changes. The package documentation has the ten rules.
type ListWatcher[T any] interface {
	// List gives a page of all objects, as of now unless opts let it be older.
	// The page and its items belong to the caller; what the items point to is
	// shared and not changed by anybody.
	List(ctx context.Context, opts ListOptions) (Page[T], error)
	// Watch gives what changes after opts.After, for as long as ctx and the
	// source let it. Nothing happens until somebody ranges over it, and each
	// range is a session of its own. A non-nil error is the last thing yielded,
	// and its batch means nothing.
	Watch(ctx context.Context, opts WatchOptions) iter.Seq2[Batch[T], error]
	// Powers says what this source can do. It is cheap, needs no connection and
	// is asked again and again.
	Powers() Powers[T]
}

// Freshness is how old the answer of a list may be.
type Freshness uint8

const (
	// Latest asks for a state not older than the call.
	Latest Freshness = iota
	// Any takes what a replica has.
	Any
)

// ListOptions are what one call of List asks for. The zero value is everything, in
// as few pages as the source likes, as of now.
type ListOptions struct {
	// Page is where to go on: the Next of the page before. "" is the beginning.
	Page PageToken
	// Limit is the most items of a page; 0 is no limit. Sources without
	// Powers.Paged ignore it.
	Limit     int
	Freshness Freshness
	// NotBefore bounds either freshness: the answer's cursor must not lie before
	// it. A source that has not come so far answers ErrFutureCursor; to a cursor of
	// another epoch, ErrExpired. Without Powers.Compare it is not asked for.
	NotBefore Cursor
	// IfModified says that the caller still has what it was answered last, and no
	// more: ErrNotModified will do.
	IfModified bool
	// KeysOnly leaves out the objects: key, version and ID are enough. Sources
	// without Powers.KeysOnly ignore it.
	KeysOnly bool
}

// WatchOptions are what one session of Watch asks for.
type WatchOptions struct {
	// After is where to begin: only what came strictly after it is told. "" is
	// no place: the source begins with a full state where it has one to stream
	// or has no positions, and at its present end otherwise.
	After Cursor
	// Initial asks for the full state first (a batch with Reset … a batch with
	// Synced), whatever After says. Only for sources with Powers.Initial; one that
	// finds out only when it is asked that it can't answers errors.ErrUnsupported,
	// and full states are listed.
	Initial bool
	// IfModified says that the consumer still has the last full state that it was
	// told, and no more: Synced alone will do for one that is the same.
	IfModified bool
	// ProgressEvery asks for a batch at least so often, if need be an empty one.
	// 0 is never. Sources without Powers.Progress ignore it.
	ProgressEvery time.Duration
}

// Page is a part of a list.
type Page[T any] struct {
	Items []object.Item[T]
	// Faults are objects of this page that the source cannot decode, instead of
	// an item each: they count as listed.
	Faults []Fault
	// Cursor is the state that the page shows, where a watch that misses nothing
	// of what came after it begins.
	Cursor Cursor
	// Next is where the list goes on; "" when this was the last page.
	Next PageToken
}

// Powers is what a source can do beyond the least. The zero value is a list-only
// source without order. A wrapper starts from its inner Powers and replaces what
// it changes.
type Powers[T any] struct {
	// Paged: Limit is honoured. SnapshotPages: all pages show one state.
	Paged, SnapshotPages bool
	// Initial: Watch streams the first list. Progress: ProgressEvery is honoured.
	Initial, Progress bool
	// ResumeProven: rule 4 can be kept.
	ResumeProven bool
	// KeysOnly is honoured. StaleLists: what is read, by List or by Get, may be
	// older than the latest even when the latest was asked for.
	KeysOnly, StaleLists bool
	// Compare orders two cursors of one epoch (negative, 0, positive). Of
	// cursors of different epochs it answers 0: unequal cursors that compare as
	// equal are of different epochs. nil: no order.
	Compare func(a, b Cursor) int
	// Reached says that whoever has applied everything up to c has seen the
	// write that made v. nil: versions and cursors do not compare.
	Reached func(c Cursor, v object.Version) bool
	// Head tells a position at or after every write acknowledged before the call.
	Head func(context.Context) (Cursor, error)
	// Get fetches one object; ErrNotFound when there is none, ErrUnreadable when it
	// cannot be decoded. Hint fetches by it.
	Get func(context.Context, string) (object.Item[T], error)
}

// Put is the batch of one object put.
func Put[T any](item object.Item[T], at Cursor) Batch[T] {
	return Batch[T]{Events: []Event[T]{{Op: OpPut, Known: true, Item: item}}, Cursor: at}
}

// Delete is the batch of one object deleted, its final state not told.
func Delete[T any](key string, at Cursor) Batch[T] {
	return Batch[T]{Events: []Event[T]{{Op: OpDelete, Item: object.Item[T]{Key: key}}}, Cursor: at}
}

// Bookmark is the batch that says only where the source stands.
func Bookmark[T any](at Cursor) Batch[T] { return Batch[T]{Cursor: at} }
