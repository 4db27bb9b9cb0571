package deltafifo

import (
	"fmt"

	"github.com/homeostat/homeostat/object"
)

// Type is what a [Delta] says of its key. The zero value is invalid.
type Type uint8

// The three things a delta can say.
const (
	// Put: the key now has this state.
	Put Type = iota + 1
	// Delete: the key is gone.
	Delete
	// Sync: nothing changed, look anyway.
	Sync
)

// String gives "put", "delete" or "sync".
func (t Type) String() string {
	switch t {
	case Put:
		return "put"
	case Delete:
		return "delete"
	case Sync:
		return "sync"
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// Delta is one step of one key.
type Delta[T any] struct {
	Type Type
	// Cause is why: that of the newest delta that went into this one.
	Cause object.Cause
	// Had says that the consumer holds the key, in the state Old, when it gets
	// this delta. A Put without it adds the key, a Put with it updates it; a
	// Delete or a Sync that is handed over always has it.
	Had bool
	// Inferred marks a Delete that nobody saw: a list, or another object under
	// the same key, proved it.
	Inferred bool
	// Item is the new state of a Put; the newest state known before the end of a
	// Delete, which may be newer than Old; what the consumer holds of a Sync. Its
	// Key is the key of the delta.
	Item object.Item[T]
	// Old is exactly what the consumer holds of this key; only set with Had.
	Old object.Item[T]
}
