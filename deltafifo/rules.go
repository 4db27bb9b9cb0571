package deltafifo

import (
	"fmt"
	"reflect"

	"github.com/homeostat/homeostat/object"
)

// merge is the rule table of the package documentation: it puts next behind what
// is pending in e, and leaves the shortest deltas that tell the same to a
// consumer that holds what e says it holds.
func merge[T any](e *entry[T], next *Delta[T]) {
	first := &e.first
	switch {
	case first.Type == 0:
		// The consumer is up to date: next's own word on what it holds counts.
		begin(e, next)

	case len(e.rest) > 0: // Delete, Put
		// The consumer holds the old object and has not heard of the new one.
		switch next.Type {
		case Put:
			e.rest[0].Item, e.rest[0].Cause = next.Item, next.Cause
		case Delete:
			e.rest[0] = Delta[T]{}
			e.rest = e.rest[:0]
		}

	case first.Type == Delete:
		switch next.Type {
		case Put: // never an update: a delete lies between
			e.rest = append(e.rest, added(next))
		case Delete: // told twice: who saw it knows the last state best
			if !next.Inferred && !otherID(first.Item.ID, next.Item.ID) {
				end(first, next)
			}
		}

	default: // Put or Sync
		switch next.Type {
		case Put:
			if first.Had && otherID(identity(first), next.Item.ID) {
				recreate(e, next)
			} else {
				first.Type, first.Item, first.Cause = Put, next.Item, next.Cause
			}
		case Delete:
			if first.Had {
				end(first, next)
			} else { // added and deleted unseen
				*first = Delta[T]{}
			}
		}
	}
}

// begin is merge into nothing.
func begin[T any](e *entry[T], next *Delta[T]) {
	if !next.Had {
		if next.Type == Put {
			e.first = added(next)
		}
		return // a Delete or a Sync of what the consumer does not hold is void
	}
	e.first = *next
	e.first.Inferred = false
	switch {
	case next.Type == Put && otherID(next.Old.ID, next.Item.ID):
		e.first.Item = next.Old
		recreate(e, next)
	case next.Type == Delete:
		e.first.Item = next.Old
		end(&e.first, next)
	}
}

// recreate makes "the object that e.first speaks of is gone, and next is there"
// of e.
func recreate[T any](e *entry[T], next *Delta[T]) {
	first := &e.first
	first.Type, first.Cause, first.Inferred = Delete, next.Cause, true
	first.Item.Key = next.Item.Key
	e.rest = append(e.rest, added(next))
}

// end makes the Delete next of first, which speaks of an object that the consumer
// holds.
func end[T any](first, next *Delta[T]) {
	first.Type, first.Cause, first.Inferred = Delete, next.Cause, next.Inferred
	switch {
	case otherID(identity(first), next.Item.ID):
		// The deleted object came after the one that the consumer holds, unseen:
		// what has ended for the consumer is the one before, in its own last state.
		first.Inferred = true
	case tellsState(&next.Item):
		first.Item = next.Item
	}
	first.Item.Key = next.Item.Key
}

// tellsState is false for the item of a Delete whose source named nothing but the
// key. Reflection is for those without versions and IDs alone.
func tellsState[T any](item *object.Item[T]) bool {
	return item.Version != "" || item.ID != "" || !reflect.ValueOf(&item.Object).Elem().IsZero()
}

// keep is what KeepAll does in merge's place: everything stays, and only what the
// consumer holds when it gets next is set right.
func keep[T any](e *entry[T], next *Delta[T]) {
	d := *next
	if last := e.last(); last.Type != 0 {
		d.Had, d.Old = last.Type != Delete, object.Item[T]{}
		if d.Had {
			d.Old = last.Item
		}
	}
	var one entry[T]
	begin(&one, &d)
	if e.first.Type == 0 {
		e.first, e.rest = one.first, one.rest
	} else if one.first.Type != 0 {
		e.rest = append(append(e.rest, one.first), one.rest...)
	}
}

// added is the Put of an object that the consumer does not hold.
func added[T any](d *Delta[T]) Delta[T] {
	return Delta[T]{Type: Put, Item: d.Item, Cause: d.Cause}
}

// identity is the ID of the object that d, a Put or Sync, speaks of. A state
// without one is taken for the same object as the state before.
func identity[T any](d *Delta[T]) string {
	if d.Item.ID == "" && d.Had {
		return d.Old.ID
	}
	return d.Item.ID
}

// otherID says that two IDs tell two objects apart; "" is the ID of a source that
// can't tell.
func otherID(a, b string) bool { return a != b && a != "" && b != "" }

func validate[T any](ds []Delta[T]) error {
	for i := range ds {
		if t := ds[i].Type; t < Put || t > Sync {
			return fmt.Errorf("%w: %v of key %q", ErrInvalidDelta, t, ds[i].Item.Key)
		}
	}
	return nil
}
