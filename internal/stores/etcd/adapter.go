package etcd

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// Store is all objects under one prefix. Its methods may be called from any
// goroutine; it holds nothing but the client, which stays the caller's to close.
type Store[T any] struct {
	client *clientv3.Client
	prefix string
	codec  object.Codec[T]
}

// New makes a Store of what is under prefix. A nil codec is object.JSON.
func New[T any](client *clientv3.Client, prefix string, codec object.Codec[T]) *Store[T] {
	if codec == nil {
		codec = object.JSON[T]{}
	}
	return &Store[T]{client: client, prefix: prefix, codec: codec}
}

// Powers tells what etcd can do: all but the first state in a watch.
func (s *Store[T]) Powers() reflector.Powers[T] {
	return reflector.Powers[T]{
		Paged:         true,
		SnapshotPages: true,
		Progress:      true,
		ResumeProven:  true,
		KeysOnly:      true,
		Compare:       compare,
		Reached:       reached,
		Head:          s.head,
		Get:           s.Get,
	}
}

// List answers a page of one revision, sorted by key. A page token is the revision
// and the last key of the page before.
func (s *Store[T]) List(ctx context.Context, opts reflector.ListOptions) (reflector.Page[T], error) {
	page, err := s.list(ctx, opts)
	if err != nil {
		return reflector.Page[T]{}, fmt.Errorf("etcd: list %q: %w", s.prefix, translate(err))
	}
	return page, nil
}

func (s *Store[T]) list(ctx context.Context, opts reflector.ListOptions) (page reflector.Page[T], err error) {
	from, rev := s.first(), int64(0) // the present revision
	if opts.Page != "" {
		at, last, ok := strings.Cut(string(opts.Page), "/")
		page.Cursor = reflector.Cursor(at)
		if _, rev, err = position(page.Cursor); err != nil || !ok {
			return page, fmt.Errorf("page token %q: %w", opts.Page, reflector.ErrExpired)
		}
		from = s.path(last) + "\x00"
	}
	get := []clientv3.OpOption{clientv3.WithRange(s.end()), clientv3.WithRev(rev), clientv3.WithLimit(int64(opts.Limit))}
	if opts.Freshness == reflector.Any {
		get = append(get, clientv3.WithSerializable()) // what this member has
	}
	if opts.KeysOnly {
		get = append(get, clientv3.WithKeysOnly())
	}
	resp, err := s.client.Get(ctx, from, get...)
	if err != nil {
		return page, err
	}
	if rev == 0 {
		rev = resp.Header.Revision
		page.Cursor = cursor(resp.Header.ClusterId, rev)
	}
	for _, c := range []reflector.Cursor{page.Cursor, opts.NotBefore} {
		if err := within(c, resp.Header.ClusterId, rev); err != nil {
			return page, err
		}
	}
	page.Items = make([]object.Item[T], 0, len(resp.Kvs))
	for _, kv := range resp.Kvs {
		item, err := s.item(kv, opts.KeysOnly)
		if err != nil {
			page.Faults = append(page.Faults, fault(item, err))
		} else {
			page.Items = append(page.Items, item)
		}
	}
	if n := len(resp.Kvs); resp.More && n > 0 { // the last one, readable or not
		page.Next = reflector.PageToken(string(page.Cursor) + "/" + s.key(resp.Kvs[n-1]))
	}
	return page, nil
}

// Get reads one object as it is now; backend.ErrNotFound when there is none.
func (s *Store[T]) Get(ctx context.Context, key string) (object.Item[T], error) {
	resp, err := s.client.Get(ctx, s.path(key))
	if err == nil && (len(resp.Kvs) == 0 || key == "") {
		err = backend.ErrNotFound
	}
	var item object.Item[T]
	if err == nil {
		item, err = s.item(resp.Kvs[0], false)
	}
	if err != nil {
		return object.Item[T]{}, &backend.Error{Op: "get", Key: key, Found: item.Version, Err: translate(err)}
	}
	return item, nil
}

// head reads through the leader, so that every acknowledged write is before it.
func (s *Store[T]) head(ctx context.Context) (reflector.Cursor, error) {
	resp, err := s.client.Get(ctx, s.first(), clientv3.WithCountOnly())
	if err != nil {
		return "", fmt.Errorf("etcd: head: %w", translate(err))
	}
	return cursor(resp.Header.ClusterId, resp.Header.Revision), nil
}

func (s *Store[T]) path(key string) string         { return s.prefix + key }
func (s *Store[T]) key(kv *mvccpb.KeyValue) string { return string(kv.Key[len(s.prefix):]) }

// first and end are the range of all keys but the empty one, which is none.
func (s *Store[T]) first() string { return s.prefix + "\x00" }
func (s *Store[T]) end() string   { return clientv3.GetPrefixRangeEnd(s.prefix) }

// item is kv as the contract has it, with an error without its object. Of keys
// alone there is no error.
func (s *Store[T]) item(kv *mvccpb.KeyValue, keysOnly bool) (item object.Item[T], err error) {
	item.Key = s.key(kv)
	item.Version = version(kv.ModRevision)
	item.ID = strconv.FormatInt(kv.CreateRevision, 10)
	if !keysOnly {
		obj, err := s.codec.Decode(kv.Value)
		if err != nil {
			return item, fmt.Errorf("object %q, version %s: %w", item.Key, item.Version, err)
		}
		item.Object = obj
	}
	return item, nil
}

// fault names what is there and can't be read.
func fault[T any](item object.Item[T], err error) reflector.Fault {
	return reflector.Fault{Key: item.Key, Version: item.Version, Err: err}
}

func version(rev int64) object.Version { return object.Version(strconv.FormatInt(rev, 10)) }

// cursor is the place after revision rev of a cluster.
func cursor(cluster uint64, rev int64) reflector.Cursor {
	return reflector.Cursor(strconv.FormatUint(cluster, 16) + "." + strconv.FormatInt(rev, 10))
}

// position is the inverse of cursor.
func position(c reflector.Cursor) (cluster uint64, rev int64, err error) {
	id, digits, _ := strings.Cut(string(c), ".")
	if cluster, err = strconv.ParseUint(id, 16, 64); err == nil {
		rev, err = strconv.ParseInt(digits, 10, 64)
	}
	if err != nil || rev <= 0 {
		return 0, 0, fmt.Errorf("%q is no cursor of etcd: %w", c, reflector.ErrExpired)
	}
	return cluster, rev, nil
}

// within says that c, if any, belongs to the cluster and is not ahead of rev.
func within(c reflector.Cursor, cluster uint64, rev int64) error {
	if c == "" {
		return nil
	}
	of, at, err := position(c)
	switch {
	case err != nil:
		return err
	case of != cluster:
		return fmt.Errorf("cursor %s in cluster %x: %w", c, cluster, reflector.ErrExpired)
	case at > rev:
		return fmt.Errorf("cursor %s, now at revision %d: %w", c, rev, reflector.ErrFutureCursor)
	}
	return nil
}

func compare(a, b reflector.Cursor) int {
	x, i, errA := position(a)
	y, j, errB := position(b)
	if errA != nil || errB != nil || x != y {
		return 0
	}
	return cmp.Compare(i, j)
}

func reached(c reflector.Cursor, v object.Version) bool {
	_, at, err := position(c)
	rev, errV := strconv.ParseInt(string(v), 10, 64)
	return err == nil && errV == nil && at >= rev
}
