package indexer

import (
	"errors"
	"fmt"

	"github.com/homeostat/homeostat/object"
)

// What a write is refused for. Nothing of its batch was written.
var (
	// ErrNoKey: an item without a key was put.
	ErrNoKey = errors.New("indexer: item without a key")
	// ErrStale: PutIf found another version, or none. See [StaleError].
	ErrStale = errors.New("indexer: version moved")
	// ErrTaken: a unique index has the value already. See [TakenError].
	ErrTaken = errors.New("indexer: value taken in unique index")
)

// What is wrong with an index.
var (
	// ErrNoIndex: no index of this name is registered.
	ErrNoIndex = errors.New("indexer: no such index")
	// ErrNameTaken: another index of the same name is registered; the error tells
	// where both were declared.
	ErrNameTaken = errors.New("indexer: another index has this name")
	// ErrInvalidIndex: an index without a name or a function, or nil.
	ErrInvalidIndex = errors.New("indexer: invalid index")
)

// stacksPerWrite bounds what a batch full of faulty objects costs.
const stacksPerWrite = 8

// IndexError says that an index function panicked.
type IndexError struct {
	// Key is the object's, Index the name of the index.
	Key, Index string
	// Value is what was panicked with.
	Value any
	// Stack is the stack at the panic. Of the errors of one write only the first
	// eight have it.
	Stack []byte
}

// Error names the index, the key and the panic's value.
func (e *IndexError) Error() string {
	return fmt.Sprintf("indexer: index %q panicked on %q: %v", e.Index, e.Key, e.Value)
}

// Unwrap is the panic's value, where that is an error.
func (e *IndexError) Unwrap() error { return asError(e.Value) }

// TakenError says that an object would be the second one under a value of a
// unique index. It matches [ErrTaken].
type TakenError struct {
	// Index is the name of the index, Value the value as fmt.Sprint prints it.
	Index, Value string
	// Key is the object that was refused, Holder the one that has the value: from
	// before the batch, or put earlier in it.
	Key, Holder string
}

// Error names the index, the value and both keys.
func (e *TakenError) Error() string {
	return fmt.Sprintf("%v %q: %q asks for %s, which %q has", ErrTaken, e.Index, e.Key, e.Value, e.Holder)
}

// Unwrap is ErrTaken.
func (e *TakenError) Unwrap() error { return ErrTaken }

// StaleError says what PutIf wanted and found. It matches [ErrStale].
type StaleError struct {
	Key string
	// Want is the precondition.
	Want object.Version
	// Found is the version that is there. Exists is false when nothing is.
	Found  object.Version
	Exists bool
}

// Error names the key and both versions.
func (e *StaleError) Error() string {
	found := "none"
	if e.Exists {
		found = fmt.Sprintf("%q", e.Found)
	}
	want := "none"
	if e.Want != "" {
		want = fmt.Sprintf("%q", e.Want)
	}
	return fmt.Sprintf("%v: %q: want %s, found %s", ErrStale, e.Key, want, found)
}

// Unwrap is ErrStale.
func (e *StaleError) Unwrap() error { return ErrStale }

// PanicError says that a function given to Write or Until panicked.
type PanicError struct {
	// Where is whose function it was: "Write" or "Until".
	Where string
	// Value is what was panicked with, Stack the stack at the panic.
	Value any
	Stack []byte
}

// Error names whose function panicked, and the panic's value.
func (e *PanicError) Error() string {
	return fmt.Sprintf("indexer: the function given to %s panicked: %v", e.Where, e.Value)
}

// Unwrap is the panic's value, where that is an error.
func (e *PanicError) Unwrap() error { return asError(e.Value) }

func asError(v any) error {
	err, _ := v.(error)
	return err
}

// Refused gives the keys that err, from Put or Write, blames, each with its
// *IndexError, *TakenError or *StaleError (the first, if there are several). It is
// nil when err is about no key in particular.
//
// A batch that is written again without these keys may be refused once more: a
// key that stays as it was can hold a value that it would have given up.
func Refused(err error) map[string]error {
	var found map[string]error
	blame := func(key string, err error) {
		if found == nil {
			found = make(map[string]error)
		}
		if _, known := found[key]; !known {
			found[key] = err
		}
	}
	var walk func(error)
	walk = func(err error) {
		switch e := err.(type) {
		case *IndexError:
			blame(e.Key, e)
		case *TakenError:
			blame(e.Key, e)
		case *StaleError:
			blame(e.Key, e)
		case interface{ Unwrap() error }:
			walk(e.Unwrap())
		case interface{ Unwrap() []error }:
			for _, err := range e.Unwrap() {
				walk(err)
			}
		}
	}
	walk(err)
	return found
}

// join is errors.Join, but leaves a single error as it is.
func join(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// Taken says, of each unique index that has item's value for another key now, what
// Put of item alone would be refused with; nil when none has. Who leaves a refused
// item out of a batch learns by it which others can't have what that one keeps.
func (c *Indexer[T]) Taken(item object.Item[T]) []*TakenError {
	s := c.state()
	var taken []*TakenError
	for _, col := range s.columns {
		if t := col.taken(&s.items, item.Key, item.Object); t != nil {
			taken = append(taken, t)
		}
	}
	return taken
}
