package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// Powers tells what the store can do: all but pages.
func (s *Store[T]) Powers() reflector.Powers[T] {
	return reflector.Powers[T]{
		SnapshotPages: true, // there is only one
		Initial:       true,
		Progress:      true,
		ResumeProven:  true,
		KeysOnly:      true,
		Compare:       s.compare,
		Reached:       s.reached,
		Head:          s.head,
		Get:           s.Get,
	}
}

// Get reads one object as it is now; backend.ErrNotFound when there is none.
func (s *Store[T]) Get(ctx context.Context, key string) (object.Item[T], error) {
	if err := s.usable(ctx); err != nil {
		return object.Item[T]{}, &backend.Error{Op: "get", Key: key, Err: err}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	item, ok := s.objects[key]
	if !ok {
		return object.Item[T]{}, &backend.Error{Op: "get", Key: key, Err: backend.ErrNotFound}
	}
	return *item, nil
}

// List answers everything, as of one revision and sorted by key. Limit has no
// effect; a page token is none of this store's and therefore expired.
func (s *Store[T]) List(ctx context.Context, opts reflector.ListOptions) (reflector.Page[T], error) {
	if err := s.usable(ctx); err != nil {
		return reflector.Page[T]{}, fmt.Errorf("memory: list: %w", err)
	}
	if opts.Page != "" {
		return reflector.Page[T]{}, fmt.Errorf("memory: list page %q: %w", opts.Page, reflector.ErrExpired)
	}
	if opts.NotBefore != "" {
		if _, err := s.position(opts.NotBefore); err != nil {
			return reflector.Page[T]{}, fmt.Errorf("memory: list: %w", err)
		}
	}
	snap := s.current()
	items := make([]object.Item[T], len(snap.items))
	for i, item := range snap.items {
		items[i] = told(item, opts.KeysOnly)
	}
	return reflector.Page[T]{Items: items, Cursor: s.cursor(snap.rev)}, nil
}

// snapshot is one state. Lists and watches that begin at the same revision share
// it, and sort it once.
type snapshot[T any] struct {
	rev   int64
	items []*object.Item[T] // by key, once sorted was called
	sort  sync.Once
}

func (s *snapshot[T]) sorted() *snapshot[T] {
	s.sort.Do(func() {
		slices.SortFunc(s.items, func(a, b *object.Item[T]) int { return cmp.Compare(a.Key, b.Key) })
	})
	return s
}

// current is the present state. A write, which takes the snapshot away, can't come
// between its making and its keeping.
func (s *Store[T]) current() *snapshot[T] {
	if snap := s.snapshot.Load(); snap != nil {
		return snap.sorted()
	}
	return s.taken().sorted()
}

func (s *Store[T]) taken() *snapshot[T] {
	s.mu.RLock()
	defer s.mu.RUnlock()
	snap := &snapshot[T]{rev: s.rev, items: make([]*object.Item[T], 0, len(s.objects))}
	for _, item := range s.objects {
		snap.items = append(snap.items, item)
	}
	s.snapshot.Store(snap)
	return snap
}

// told is item, without its object when only keys were asked for.
func told[T any](item *object.Item[T], keysOnly bool) object.Item[T] {
	if keysOnly {
		return object.Item[T]{Key: item.Key, Version: item.Version, ID: item.ID}
	}
	return *item
}

// usable is what every call checks first.
func (s *Store[T]) usable(ctx context.Context) error {
	if s.fault != nil {
		return s.fault
	}
	return ctx.Err()
}

// position is the revision of a cursor that this store gave out and has reached.
// No error names the epoch: texts of two runs that did the same are the same.
func (s *Store[T]) position(c reflector.Cursor) (int64, error) {
	rev, ok := s.revision(c)
	if !ok {
		return 0, fmt.Errorf("a cursor of another epoch: %w", reflector.ErrExpired)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if rev > s.rev {
		return 0, fmt.Errorf("revision %d, now at %d: %w", rev, s.rev, reflector.ErrFutureCursor)
	}
	return rev, nil
}

// revision reads a cursor of this epoch.
func (s *Store[T]) revision(c reflector.Cursor) (int64, bool) {
	epoch, digits, _ := strings.Cut(string(c), ".")
	rev, err := strconv.ParseInt(digits, 10, 64)
	return rev, err == nil && epoch == s.epoch
}

func (s *Store[T]) compare(a, b reflector.Cursor) int {
	x, okx := s.revision(a)
	y, oky := s.revision(b)
	if !okx || !oky {
		return 0
	}
	return cmp.Compare(x, y)
}

func (s *Store[T]) reached(c reflector.Cursor, v object.Version) bool {
	at, ok := s.revision(c)
	rev, err := strconv.ParseInt(string(v), 10, 64)
	return ok && err == nil && at >= rev
}

func (s *Store[T]) head(ctx context.Context) (reflector.Cursor, error) {
	if err := s.usable(ctx); err != nil {
		return "", fmt.Errorf("memory: head: %w", err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.cursor(s.rev), nil
}
