package bolt

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
	r, err := s.file.get(ctx, key)
	if err == nil {
		var item object.Item[T]
		if item, err = s.item(r, false); err == nil {
			return item, nil
		}
	}
	return object.Item[T]{}, &backend.Error{Op: "get", Key: key, Found: r.version(), Err: err}
}

func (f *file) get(ctx context.Context, key string) (r record, err error) {
	if err := ctx.Err(); err != nil {
		return r, err
	}
	var seen int64
	err = f.view(func(st *state) error {
		seen = st.rev
		value := st.objects.Get([]byte(key))
		if value == nil {
			return nil
		}
		got, err := readRecord(key, value)
		r = got.copied(false)
		return err
	})
	if err == nil {
		err = f.settled(ctx, seen)
	}
	if err == nil && r.rev == 0 {
		err = backend.ErrNotFound
	}
	return r, err
}

// List answers the objects as of one revision, sorted by key. The pages of one
// list, if opts.Limit cuts it into some, all show the state that the first one
// showed; they are to be had for as long as the history reaches back to it, then
// they are reflector.ErrExpired, as is a token that is none of this store's.
func (s *Store[T]) List(ctx context.Context, opts reflector.ListOptions) (reflector.Page[T], error) {
	p, err := s.list(ctx, opts)
	if err != nil {
		return reflector.Page[T]{}, fmt.Errorf("bolt: list: %w", err)
	}
	return p, nil
}

func (s *Store[T]) list(ctx context.Context, opts reflector.ListOptions) (page reflector.Page[T], err error) {
	if err := ctx.Err(); err != nil {
		return page, err
	}
	var notBefore int64
	if opts.NotBefore != "" {
		if notBefore, err = s.file.position(opts.NotBefore); err != nil {
			return page, err
		}
	}
	at, last := int64(-1), "" // as of now, from the beginning
	if opts.Page != "" {
		if at, last, err = s.file.place(opts.Page); err != nil {
			return page, err
		}
		if at < notBefore {
			return page, fmt.Errorf("a page as of revision %d, asked for not before %d: %w", at, notBefore, reflector.ErrExpired)
		}
	}
	p, at, err := s.file.part(ctx, at, last, opts.Limit, opts.KeysOnly)
	if err != nil {
		return page, err
	}
	page.Cursor = cursor(s.file.epoch, at)
	page.Items = make([]object.Item[T], 0, len(p.records))
	for _, r := range p.records {
		item, err := s.item(r, opts.KeysOnly)
		if err != nil {
			page.Faults = append(page.Faults, fault(r, err))
			continue
		}
		page.Items = append(page.Items, item)
	}
	if p.more {
		page.Next = token(s.file.epoch, at, p.records[len(p.records)-1].key)
	}
	return page, nil
}

// part reads a piece of the state at a revision, -1 for the one of now.
func (f *file) part(ctx context.Context, at int64, last string, limit int, keysOnly bool) (p part, _ int64, err error) {
	err = f.view(func(st *state) (err error) {
		if at < 0 {
			at = st.rev
		}
		p, err = st.part(at, last, limit, keysOnly)
		return err
	})
	if err == nil {
		err = f.settled(ctx, at)
	}
	return p, at, err
}

// place reads a page token of this file.
func (f *file) place(t reflector.PageToken) (rev int64, last string, err error) {
	epoch, rev, last, ok := readToken(t)
	now, _, err := f.head()
	switch {
	case err != nil:
		return 0, "", err
	case !ok || epoch != f.epoch || rev > now:
		return 0, "", fmt.Errorf("no page of this store: %w", reflector.ErrExpired)
	}
	return rev, last, nil
}

// position is the revision of a cursor that this file gave out and has reached.
func (f *file) position(c reflector.Cursor) (int64, error) {
	epoch, rev, ok := parsed(c)
	now, _, err := f.head()
	switch {
	case err != nil:
		return 0, err
	case !ok || epoch != f.epoch:
		return 0, fmt.Errorf("a cursor of another epoch: %w", reflector.ErrExpired)
	case rev > now:
		return 0, fmt.Errorf("revision %d, now at %d: %w", rev, now, reflector.ErrFutureCursor)
	}
	return rev, nil
}

func cursor(epoch string, rev int64) reflector.Cursor {
	return reflector.Cursor(epoch + "." + strconv.FormatInt(rev, 10))
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
	return ok && err == nil && epoch == s.file.epoch && at >= rev
}

func (s *Store[T]) head(ctx context.Context) (reflector.Cursor, error) {
	err := ctx.Err()
	if err == nil {
		var rev int64
		if rev, _, err = s.file.head(); err == nil {
			return cursor(s.file.epoch, rev), nil
		}
	}
	return "", fmt.Errorf("bolt: head: %w", err)
}
