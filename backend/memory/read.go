package memory

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// Powers tells what the store can do: everything, and its lists are never stale.
func (s *Store[T]) Powers() reflector.Powers[T] {
	return reflector.Powers[T]{
		Paged:         true,
		SnapshotPages: true,
		Initial:       true,
		Progress:      true,
		ResumeProven:  true,
		KeysOnly:      true,
		Compare:       compare,
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

// List answers the objects as of one revision, sorted by key. The pages of one
// list, if opts.Limit cuts it into some, all show the state that the first one
// showed; they are to be had for as long as the history reaches back to it, then
// they are reflector.ErrExpired, as is a token that is none of this store's.
func (s *Store[T]) List(ctx context.Context, opts reflector.ListOptions) (reflector.Page[T], error) {
	p, err := s.list(ctx, opts)
	if err != nil {
		return reflector.Page[T]{}, fmt.Errorf("memory: list: %w", err)
	}
	return p, nil
}

func (s *Store[T]) list(ctx context.Context, opts reflector.ListOptions) (p reflector.Page[T], err error) {
	if err := s.usable(ctx); err != nil {
		return p, err
	}
	var notBefore int64
	if opts.NotBefore != "" {
		if notBefore, _, err = s.position(opts.NotBefore); err != nil {
			return p, err
		}
	}
	if opts.Page != "" {
		return s.next(opts.Page, notBefore, opts)
	}
	return s.Snapshot().page("", opts), nil
}

// usable is what every call checks first.
func (s *Store[T]) usable(ctx context.Context) error {
	if s.fault != nil {
		return s.fault
	}
	return ctx.Err()
}

// position is the revision of a cursor that this store gave out and has reached,
// and the life that this is true in. No error names the epoch: texts of two runs
// that did the same are the same.
func (s *Store[T]) position(c reflector.Cursor) (rev, life int64, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.positionLocked(c)
}

func (s *Store[T]) positionLocked(c reflector.Cursor) (rev, life int64, err error) {
	epoch, rev, ok := parsed(c)
	switch {
	case !ok || epoch != s.epoch:
		return 0, 0, fmt.Errorf("a cursor of another epoch: %w", reflector.ErrExpired)
	case rev > s.rev:
		return 0, 0, fmt.Errorf("revision %d, now at %d: %w", rev, s.rev, reflector.ErrFutureCursor)
	}
	return rev, s.life.Load(), nil
}

// parsed takes a cursor apart.
func parsed(c reflector.Cursor) (epoch string, rev int64, ok bool) {
	epoch, digits, ok := strings.Cut(string(c), ".")
	rev, err := strconv.ParseInt(digits, 10, 64)
	return epoch, rev, ok && err == nil && rev >= 0
}

func compare(a, b reflector.Cursor) int {
	e, x, okx := parsed(a)
	f, y, oky := parsed(b)
	if !okx || !oky || e != f {
		return 0
	}
	return cmp.Compare(x, y)
}

func (s *Store[T]) reached(c reflector.Cursor, v object.Version) bool {
	epoch, at, ok := parsed(c)
	rev, err := strconv.ParseInt(string(v), 10, 64)
	if !ok || err != nil || at < rev {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return epoch == s.epoch
}

func (s *Store[T]) head(ctx context.Context) (reflector.Cursor, error) {
	if err := s.usable(ctx); err != nil {
		return "", fmt.Errorf("memory: head: %w", err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return cursorOf(s.epoch, s.rev), nil
}
