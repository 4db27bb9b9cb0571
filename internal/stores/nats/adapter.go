package nats

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// Store is all objects of one bucket. Its methods may be called from any goroutine;
// the connection stays the caller's to close.
type Store[T any] struct {
	js     jetstream.JetStream
	kv     jetstream.KeyValue
	stream jetstream.Stream // of the bucket
	codec  object.Codec[T]
	stale  bool // Get is answered by replicas
}

// Open makes a Store of a bucket that exists. A nil codec is object.JSON. A bucket
// whose values expire without a marker is refused: nobody would be told.
func Open[T any](ctx context.Context, js jetstream.JetStream, bucket string, codec object.Codec[T]) (*Store[T], error) {
	s := &Store[T]{js: js, codec: codec}
	if codec == nil {
		s.codec = object.JSON[T]{}
	}
	var err error
	if s.kv, err = js.KeyValue(ctx, bucket); err != nil {
		return nil, fmt.Errorf("nats: bucket %q: %w", bucket, err)
	}
	if s.stream, err = js.Stream(ctx, "KV_"+bucket); err != nil {
		return nil, fmt.Errorf("nats: bucket %q: %w", bucket, err)
	}
	c := s.stream.CachedInfo().Config
	if (c.MaxAge > 0 || c.AllowMsgTTL) && c.SubjectDeleteMarkerTTL == 0 {
		return nil, fmt.Errorf("nats: bucket %q: values expire without a marker: %w", bucket, errors.ErrUnsupported)
	}
	s.stale = c.Replicas > 1 && c.AllowDirect
	return s, nil
}

// Powers tells what a bucket can do. List needs no StaleLists, Get does.
func (s *Store[T]) Powers() reflector.Powers[T] {
	return reflector.Powers[T]{
		SnapshotPages: true, // there is only one
		Initial:       true,
		Progress:      true,
		StaleLists:    s.stale,
		Compare:       compare,
		Reached:       reached,
		Head:          s.head,
	}
}

// List answers everything, in one page.
func (s *Store[T]) List(ctx context.Context, opts reflector.ListOptions) (reflector.Page[T], error) {
	page, err := s.list(ctx, opts)
	if err != nil {
		return reflector.Page[T]{}, fmt.Errorf("nats: list %q: %w", s.kv.Bucket(), err)
	}
	return page, nil
}

func (s *Store[T]) list(ctx context.Context, opts reflector.ListOptions) (page reflector.Page[T], err error) {
	if opts.Page != "" {
		return page, fmt.Errorf("page token %q: %w", opts.Page, reflector.ErrExpired)
	}
	r, err := s.read(ctx, 0)
	if err != nil {
		return page, err
	}
	defer r.close()
	last := map[string]change[T]{}
	for c, err := range r.full() {
		switch {
		case err != nil:
			return page, err
		case c.Op == reflector.OpPut:
			last[c.Key] = c
		default:
			delete(last, c.Key)
		}
	}
	page.Cursor = cursor(r.epoch, r.at)
	for _, c := range last {
		if c.unread != nil {
			page.Faults = append(page.Faults, c.fault())
		} else {
			page.Items = append(page.Items, c.Item)
		}
	}
	return page, notBefore(opts.NotBefore, page.Cursor)
}

// Get reads one object; backend.ErrNotFound when there is none.
func (s *Store[T]) Get(ctx context.Context, key string) (object.Item[T], error) {
	var item object.Item[T]
	entry, err := s.kv.Get(ctx, token(key))
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound), key == "":
		err = backend.ErrNotFound
	case err == nil:
		item, err = s.item(key, entry.Revision(), entry.Value())
	}
	if err != nil {
		return object.Item[T]{}, &backend.Error{Op: "get", Key: key, Found: item.Version, Err: err}
	}
	return item, nil
}

// head asks the stream's leader.
func (s *Store[T]) head(ctx context.Context) (reflector.Cursor, error) {
	info, err := s.stream.Info(ctx)
	if err != nil {
		return "", fmt.Errorf("nats: head of %q: %w", s.kv.Bucket(), err)
	}
	return cursor(epoch(info), info.State.LastSeq), nil
}

// item is a value as the contract has it, with an error without its object.
func (s *Store[T]) item(key string, seq uint64, value []byte) (object.Item[T], error) {
	item := object.Item[T]{Key: key, Version: version(seq)}
	obj, err := s.codec.Decode(value)
	if err != nil {
		return item, fmt.Errorf("object %q, version %s: %w", key, item.Version, err)
	}
	item.Object = obj
	return item, nil
}

// token is a key as a bucket can have it.
func token(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

// subject is that of the messages about a token, or with ">" about any.
func (s *Store[T]) subject(token string) string { return "$KV." + s.kv.Bucket() + "." + token }

// key is what messages with this subject are about.
func (s *Store[T]) key(subject string) (string, error) {
	key, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(subject, s.subject("")))
	if err != nil || len(key) == 0 {
		return "", fmt.Errorf("%q is no key of a Store", subject)
	}
	return string(key), nil
}

func version(seq uint64) object.Version { return object.Version(strconv.FormatUint(seq, 10)) }

// epoch tells a stream from a later one of the same name.
func epoch(info *jetstream.StreamInfo) string {
	return strconv.FormatInt(info.Created.UnixNano(), 36)
}

// cursor is the place behind message seq.
func cursor(epoch string, seq uint64) reflector.Cursor {
	return reflector.Cursor(epoch + "." + strconv.FormatUint(seq, 10))
}

// position is the inverse of cursor.
func position(c reflector.Cursor) (epoch string, seq uint64, ok bool) {
	epoch, digits, _ := strings.Cut(string(c), ".")
	seq, err := strconv.ParseUint(digits, 10, 64)
	return epoch, seq, err == nil
}

// notBefore checks a page's cursor against what was asked for, if anything.
func notBefore(want, has reflector.Cursor) error {
	switch {
	case want == "" || want == has || compare(want, has) < 0:
		return nil
	case compare(want, has) > 0:
		return fmt.Errorf("not before %s, now at %s: %w", want, has, reflector.ErrFutureCursor)
	}
	return fmt.Errorf("not before %s, which is no cursor of this stream: %w", want, reflector.ErrExpired)
}

func compare(a, b reflector.Cursor) int {
	x, i, okA := position(a)
	y, j, okB := position(b)
	if !okA || !okB || x != y {
		return 0
	}
	return cmp.Compare(i, j)
}

func reached(c reflector.Cursor, v object.Version) bool {
	_, at, ok := position(c)
	seq, err := strconv.ParseUint(string(v), 10, 64)
	return ok && err == nil && at >= seq
}
