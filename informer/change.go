package informer

import (
	"fmt"

	"github.com/homeostat/homeostat/deltafifo"
	"github.com/homeostat/homeostat/object"
)

// Type is what a [Change] is. The zero value is invalid.
type Type uint8

// What can happen to a key, as one handler sees it.
const (
	// Added: the handler did not hold the key.
	Added Type = iota + 1
	// Updated: the handler held Old, now it is New.
	Updated
	// Deleted: the handler held Old, now the key is gone.
	Deleted
)

// String gives "added", "updated" or "deleted".
func (t Type) String() string {
	switch t {
	case Added:
		return "added"
	case Updated:
		return "updated"
	case Deleted:
		return "deleted"
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// MarshalText is String: a type reads as its name in JSON and in logs.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Change is one step of one key as one handler saw it. The objects are shared
// with the cache and must not be changed.
type Change[T any] struct {
	Type Type
	Key  string
	// Old is exactly what this handler was last given for Key, also when states
	// between it and New, or between it and the delete, were never handed over.
	// Unset when Added.
	Old T
	// New is the new state. Unset when Deleted.
	New T
	// Last is, when Deleted, the newest state known of what was deleted: as the
	// source told it with the delete, else as the cache held it last. It may be
	// newer than Old. Unset otherwise.
	Last T
	// Version is that of New; when Deleted, that which the source told with the
	// delete, else that of Last.
	Version object.Version
	// Cause is why this was looked at: Initial for what the first list found and
	// for what a handler that joins later is given first.
	Cause object.Cause
	// Inferred says of a delete that nobody saw it: a list without the key, or
	// another object under the same key, proved it.
	Inferred bool
}

// Object is New, or Old when Deleted: what to take the object's fields from when
// it does not matter which of the three happened.
func (c Change[T]) Object() T {
	if c.Type == Deleted {
		return c.Old
	}
	return c.New
}

// changeOf turns what a buffer hands over into what a handler is told.
func changeOf[T any](d *deltafifo.Delta[T]) Change[T] {
	c := Change[T]{Key: d.Item.Key, Old: d.Old.Object, Version: d.Item.Version, Cause: d.Cause}
	switch {
	case d.Type == deltafifo.Delete:
		c.Type, c.Last, c.Inferred = Deleted, d.Item.Object, d.Inferred
	case d.Had:
		c.Type, c.New = Updated, d.Item.Object
	default:
		c.Type, c.New = Added, d.Item.Object
	}
	return c
}
