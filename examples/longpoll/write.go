package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/homeostat/homeostat/retry"
)

// Get reads one object.
func (s *Store[T]) Get(ctx context.Context, key string) (object.Item[T], error) {
	return s.one(ctx, "get", object.Item[T]{Key: key}, request{method: http.MethodGet})
}

// Create stores a new object.
func (s *Store[T]) Create(ctx context.Context, key string, obj T) (object.Item[T], error) {
	if key == "" {
		return object.Item[T]{}, &backend.Error{Op: "create", Err: backend.ErrNoKey}
	}
	return s.put(ctx, "create", object.Item[T]{Key: key, Object: obj}, http.Header{"If-None-Match": {"*"}})
}

// Update replaces an object, if it has the version, and the ID, of item.
func (s *Store[T]) Update(ctx context.Context, item object.Item[T]) (object.Item[T], error) {
	if item.Version == "" {
		return object.Item[T]{}, &backend.Error{Op: "update", Key: item.Key, Err: backend.ErrNoVersion}
	}
	return s.put(ctx, "update", item, match(item.Version))
}

// Patch reads and updates: the service knows no patches.
func (s *Store[T]) Patch(ctx context.Context, key string, p patch.Patch, v object.Version) (object.Item[T], error) {
	return backend.PatchByUpdate(ctx, s, key, p, v)
}

// Delete removes an object, if it has the version v.
func (s *Store[T]) Delete(ctx context.Context, key string, v object.Version) (object.Item[T], error) {
	if v == "" {
		return object.Item[T]{}, &backend.Error{Op: "delete", Key: key, Err: backend.ErrNoVersion}
	}
	return s.one(ctx, "delete", object.Item[T]{Key: key, Version: v}, request{method: http.MethodDelete, header: match(v)})
}

// DryRun is more than the service can do.
func (s *Store[T]) DryRun() (backend.Backend[T], error) {
	return nil, fmt.Errorf("longpoll: dry run: %w", errors.ErrUnsupported)
}

func (s *Store[T]) put(ctx context.Context, op string, item object.Item[T], header http.Header) (object.Item[T], error) {
	body, err := s.codec.Encode(item.Object)
	if err != nil {
		return object.Item[T]{}, &backend.Error{Op: op, Key: item.Key, Want: item.Version, Err: retry.Permanent(err)}
	}
	return s.one(ctx, op, item, request{method: http.MethodPut, header: header, body: body})
}

// one is a request about one object. Item says which, in which version.
func (s *Store[T]) one(ctx context.Context, op string, item object.Item[T], q request) (object.Item[T], error) {
	stored, err := s.send(ctx, item, q)
	if err == nil {
		return stored, nil
	}
	e := &backend.Error{Op: op, Key: item.Key, Want: item.Version, Err: err}
	if no, ok := errors.AsType[*refusal](err); ok {
		e.Found = object.Version(no.Version)
	}
	return object.Item[T]{}, e
}

func (s *Store[T]) send(ctx context.Context, item object.Item[T], q request) (stored object.Item[T], err error) {
	q.path, q.query = "/object", url.Values{"key": {item.Key}}
	if item.ID != "" {
		q.query.Set("id", item.ID)
	}
	var rec record
	if err := s.ask(ctx, q, &rec); err != nil {
		return stored, err
	}
	// An answer about another object, or about none, does not say what was done.
	if rec.Key != item.Key || rec.Version == "" {
		return stored, q.lost(errors.New("the answer is not about this object"))
	}
	stored, err = s.item(rec)
	switch {
	case err != nil && q.method == http.MethodDelete:
		// It is gone, whatever it was.
		return object.Item[T]{Key: rec.Key, Version: object.Version(rec.Version), ID: rec.ID}, nil
	case err != nil:
		return stored, q.lost(err)
	}
	return stored, nil
}

// match is the header of a precondition. Quoted, any text can be in a header.
func match(v object.Version) http.Header {
	if v == object.Any {
		return http.Header{"If-Match": {"*"}}
	}
	return http.Header{"If-Match": {strconv.Quote(string(v))}}
}
