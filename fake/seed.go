package fake

import (
	"context"
	"errors"
	"fmt"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
)

// ErrBadSeed: an item that no program could have written into the store. A
// [*SeedError] says which and why.
var ErrBadSeed = errors.New("fake: bad seed")

// SeedError is one item that a store was not seeded with. It matches ErrBadSeed
// and what it wraps.
type SeedError struct {
	// Index is the item's place among the arguments.
	Index int
	// Key is the item's.
	Key string
	// Err is what is wrong: backend.ErrNoKey, backend.ErrExists, or a text of its
	// own.
	Err error
}

// Error names the item and what is wrong with it.
func (e *SeedError) Error() string {
	return fmt.Sprintf("fake: bad seed: item %d, %q: %v", e.Index, e.Key, e.Err)
}

// Unwrap gives ErrBadSeed and Err.
func (e *SeedError) Unwrap() []error { return []error{ErrBadSeed, e.Err} }

// Seed puts items into the store in the given order, each as a create that is no
// call: not struck, counted or logged, nor seen by OnWrite. Of an item, key and
// object count; version and ID are the store's to give.
//
// It is strict: what a program could not have created is an error, of all such
// items together, and then nothing is stored. That is an item without a key; a key
// that is there already or named twice; an item with a version or an ID; an object
// that is being deleted. [Backend.SeedRaw] takes odd states as they are.
func (b *Backend[T]) Seed(items ...object.Item[T]) error {
	var faults []error
	seen := map[string]bool{}
	for i, item := range items {
		if err := b.seedable(item, seen); err != nil {
			faults = append(faults, &SeedError{Index: i, Key: item.Key, Err: err})
		}
		seen[item.Key] = true
	}
	if faults != nil {
		return errors.Join(faults...)
	}
	return seed(items, func(item object.Item[T]) error {
		_, err := b.store.Create(context.Background(), item.Key, item.Object)
		return err
	})
}

// seedable says what is wrong with an item.
func (b *Backend[T]) seedable(item object.Item[T], seen map[string]bool) error {
	_, err := b.store.Get(context.Background(), item.Key)
	meta := object.MetaOf(&item.Object)
	switch {
	case item.Key == "":
		return backend.ErrNoKey
	case err == nil || seen[item.Key]:
		return backend.ErrExists
	case item.Version != "":
		return fmt.Errorf("has version %q, which is the store's to give", item.Version)
	case item.ID != "":
		return fmt.Errorf("has ID %q, which is the store's to give", item.ID)
	case meta != nil && meta.IsDeleting():
		return errors.New("is being deleted, and only a delete can mark it so")
	}
	return nil
}

// SeedRaw is Seed without questions: a key that is there already is updated, so
// that of a key named twice the later item counts; versions and IDs are ignored;
// objects may be in any state, being deleted without a finalizer for instance. Only
// what no store can hold, an item without a key, is an error, and then the rest
// is stored nevertheless.
func (b *Backend[T]) SeedRaw(items ...object.Item[T]) error {
	return seed(items, func(item object.Item[T]) error {
		ctx := context.Background() // the store never waits
		_, err := b.store.Create(ctx, item.Key, item.Object)
		if errors.Is(err, backend.ErrExists) {
			item.Version, item.ID = object.Any, ""
			_, err = b.store.Update(ctx, item)
		}
		return err
	})
}

func seed[T any](items []object.Item[T], put func(object.Item[T]) error) error {
	var faults []error
	for i, item := range items {
		if err := put(item); err != nil {
			if e, ok := errors.AsType[*backend.Error](err); ok {
				err = e.Err
			}
			faults = append(faults, &SeedError{Index: i, Key: item.Key, Err: err})
		}
	}
	return errors.Join(faults...)
}
