package etcd

import (
	"context"
	"errors"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
)

// Create stores obj under a key that has no object; backend.ErrExists when there
// is one.
func (s *Store[T]) Create(ctx context.Context, key string, obj T) (object.Item[T], error) {
	fail := failing[T]("create", key, "")
	if key == "" {
		return fail(backend.ErrNoKey, "")
	}
	value, err := s.codec.Encode(obj)
	if err != nil {
		return fail(err, "")
	}
	path := s.path(key)
	resp, err := s.commit(ctx, s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(path), "=", 0)).
		Then(clientv3.OpPut(path, string(value))).
		Else(clientv3.OpGet(path, clientv3.WithKeysOnly())))
	if err != nil {
		return fail(err, "")
	}
	if !resp.Succeeded {
		return fail(backend.ErrExists, found(resp))
	}
	v := version(resp.Header.Revision)
	return object.Item[T]{Key: key, Version: v, ID: string(v), Object: obj}, nil
}

// Update replaces the object under item.Key if item.Version, and item.ID unless
// it is empty, are those of the object there.
func (s *Store[T]) Update(ctx context.Context, item object.Item[T]) (object.Item[T], error) {
	fail := failing[T]("update", item.Key, item.Version)
	value, err := s.codec.Encode(item.Object)
	if err != nil {
		return fail(err, "")
	}
	path := s.path(item.Key)
	resp, err := s.change(ctx, item.Key, item.Version, item.ID,
		clientv3.OpPut(path, string(value)),
		clientv3.OpGet(path, clientv3.WithKeysOnly())) // for the ID
	if err != nil {
		return fail(err, found(resp))
	}
	put := resp.Responses[1].GetResponseRange().Kvs[0]
	item.Version, item.ID = version(put.ModRevision), strconv.FormatInt(put.CreateRevision, 10)
	return item, nil
}

// Patch reads, applies and updates, again when somebody else was faster.
func (s *Store[T]) Patch(ctx context.Context, key string, p patch.Patch, v object.Version) (object.Item[T], error) {
	return backend.PatchByUpdate(ctx, s, key, p, v)
}

// Delete removes the object and answers its last state, under the version of the
// delete. What the codec can't read can be deleted too: its answer has no object.
func (s *Store[T]) Delete(ctx context.Context, key string, v object.Version) (object.Item[T], error) {
	resp, err := s.change(ctx, key, v, "", clientv3.OpDelete(s.path(key), clientv3.WithPrevKV()))
	if err != nil {
		return failing[T]("delete", key, v)(err, found(resp))
	}
	item, _ := s.item(resp.Responses[0].GetResponseDeleteRange().PrevKvs[0], false)
	item.Version = version(resp.Header.Revision)
	return item, nil
}

// DryRun is none of etcd's.
func (s *Store[T]) DryRun() (backend.Backend[T], error) { return nil, errors.ErrUnsupported }

// change does ops if the object is there, in the version v, with the id, in one
// step. Its answer is set also when it is not.
func (s *Store[T]) change(ctx context.Context, key string, v object.Version, id string, ops ...clientv3.Op) (*clientv3.TxnResponse, error) {
	path := s.path(key)
	conds := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(path), ">", 0)}
	switch {
	case v == "":
		return nil, backend.ErrNoVersion
	case key == "":
		return nil, backend.ErrNotFound
	case v != object.Any:
		conds = append(conds, clientv3.Compare(clientv3.ModRevision(path), "=", revision(string(v))))
	}
	if id != "" {
		conds = append(conds, clientv3.Compare(clientv3.CreateRevision(path), "=", revision(id)))
	}
	resp, err := s.commit(ctx, s.client.Txn(ctx).If(conds...).Then(ops...).
		Else(clientv3.OpGet(path, clientv3.WithKeysOnly())))
	switch {
	case err != nil || resp.Succeeded:
		return resp, err
	case found(resp) == "":
		return resp, backend.ErrNotFound
	}
	return resp, backend.ErrConflict
}

// commit sends a transaction; what was not sent has not been done.
func (s *Store[T]) commit(ctx context.Context, txn clientv3.Txn) (*clientv3.TxnResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	resp, err := txn.Commit()
	if err != nil {
		return nil, unanswered(err)
	}
	return resp, nil
}

// revision reads a version or an ID; what is none of etcd's matches no object.
func revision(v string) int64 {
	rev, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return -1
	}
	return rev
}

// found is the version that an object had which did not meet the conditions.
func found(resp *clientv3.TxnResponse) object.Version {
	if resp == nil || resp.Succeeded {
		return ""
	}
	kvs := resp.Responses[0].GetResponseRange().Kvs
	if len(kvs) == 0 {
		return ""
	}
	return version(kvs[0].ModRevision)
}

// failing makes the errors of one call.
func failing[T any](op, key string, want object.Version) func(error, object.Version) (object.Item[T], error) {
	return func(err error, has object.Version) (object.Item[T], error) {
		return object.Item[T]{}, &backend.Error{Op: op, Key: key, Want: want, Found: has, Err: err}
	}
}
