package consul

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
)

// op is an operation of a transaction. A plain PUT with cas says yes or no, but not
// what index it was given, nor does a DELETE tell deleted from not there.
type op struct{ KV kvOp }

type kvOp struct {
	Verb, Key string
	Value     []byte      `json:",omitempty"`
	Index     json.Number `json:",omitempty"`
}

// errStale: a transaction found another index than it was made for.
var errStale = errors.New("consul: the index is stale")

// txn does all operations in one step. The answer is the last key that one of them
// found or made; only a get has its value.
func (s *Store[T]) txn(ctx context.Context, ops ...op) (last entry, err error) {
	body, err := json.Marshal(ops)
	if err != nil {
		return last, err
	}
	code, _, text, err := s.send(ctx, http.MethodPut, "/v1/txn", nil, body, http.StatusConflict)
	if err != nil {
		return last, err
	}
	if code == http.StatusConflict {
		return last, errStale
	}
	var answer struct{ Results []struct{ KV entry } }
	if err := json.Unmarshal(text, &answer); err != nil {
		return last, unknown(http.MethodPut, err)
	}
	if n := len(answer.Results); n > 0 {
		last = answer.Results[n-1].KV
	}
	return last, nil
}

// put writes a value if the key's index is the given one (0: if there is none),
// and reads it back in the same step.
func (s *Store[T]) put(ctx context.Context, key string, obj T, index string) (object.Item[T], error) {
	value, err := s.codec.Encode(obj)
	if err != nil {
		return object.Item[T]{}, err
	}
	key = s.prefix + key
	stored, err := s.txn(ctx,
		op{kvOp{Verb: "cas", Key: key, Value: value, Index: json.Number(index)}},
		op{kvOp{Verb: "get", Key: key}})
	if err != nil {
		return object.Item[T]{}, err
	}
	item, err := s.item(stored)
	if err != nil { // it was written, but what?
		err = unknown(http.MethodPut, err)
	}
	return item, err
}

// Create stores a new object; backend.ErrExists when there is one under the key.
func (s *Store[T]) Create(ctx context.Context, key string, obj T) (item object.Item[T], err error) {
	err = backend.ErrNoKey
	if key != "" {
		item, err = s.put(ctx, key, obj, "0")
	}
	if errors.Is(err, errStale) {
		err = backend.ErrExists
	}
	if err != nil {
		return object.Item[T]{}, &backend.Error{Op: "create", Key: key, Err: err}
	}
	return item, nil
}

// Update replaces an object.
func (s *Store[T]) Update(ctx context.Context, item object.Item[T]) (object.Item[T], error) {
	return s.change(ctx, "update", item.Key, item.Version, item.ID, func(cur object.Item[T]) (object.Item[T], error) {
		return s.put(ctx, cur.Key, item.Object, string(cur.Version))
	})
}

// Delete deletes an object. Consul does not tell the index of a delete, so the
// answer has no version, and no object when that could not be decoded.
func (s *Store[T]) Delete(ctx context.Context, key string, v object.Version) (object.Item[T], error) {
	return s.change(ctx, "delete", key, v, "", func(cur object.Item[T]) (object.Item[T], error) {
		path := s.prefix + key
		// A delete-cas succeeds of what is gone already; the check does not.
		_, err := s.txn(ctx,
			op{kvOp{Verb: "check-index", Key: path, Index: json.Number(cur.Version)}},
			op{kvOp{Verb: "delete", Key: path}})
		cur.Version = ""
		return cur, err
	})
}

// change reads the object, checks what the caller named, and writes at the index
// that was read. If somebody was faster it begins again: then either the
// precondition is not met any more, or there was none.
func (s *Store[T]) change(ctx context.Context, name, key string, v object.Version, id string,
	write func(cur object.Item[T]) (object.Item[T], error)) (object.Item[T], error) {
	fail := func(found object.Version, err error) (object.Item[T], error) {
		return object.Item[T]{}, &backend.Error{Op: name, Key: key, Want: v, Found: found, Err: err}
	}
	if v == "" {
		return fail("", backend.ErrNoVersion)
	}
	for {
		e, err := s.read(ctx, key)
		if err != nil {
			return fail("", err)
		}
		cur, _ := s.item(e) // what cannot be decoded can be replaced and deleted, too
		switch {
		case v != object.Any && v != cur.Version:
			return fail(cur.Version, backend.ErrConflict)
		case id != "" && id != cur.ID:
			return fail(cur.Version, fmt.Errorf("%w: deleted and created again in the meantime", backend.ErrConflict))
		}
		item, err := write(cur)
		switch {
		case err == nil:
			return item, nil
		case !errors.Is(err, errStale):
			return fail(cur.Version, err)
		}
	}
}

// Patch is a read and an Update: Consul has none of its own.
func (s *Store[T]) Patch(ctx context.Context, key string, p patch.Patch, v object.Version) (object.Item[T], error) {
	return backend.PatchByUpdate(ctx, s, key, p, v)
}

// DryRun is errors.ErrUnsupported.
func (s *Store[T]) DryRun() (backend.Backend[T], error) {
	return nil, fmt.Errorf("consul: a dry run: %w", errors.ErrUnsupported)
}
