package nats

import (
	"context"
	"errors"
	"fmt"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/homeostat/homeostat/retry"
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
	for ctx.Err() == nil {
		seq, err := s.kv.Create(ctx, token(key), value)
		switch {
		case err == nil:
			return object.Item[T]{Key: key, Version: version(seq), Object: obj}, nil
		case !overtaken(err):
			return fail(unanswered(err), "")
		}
		// There is one, or there was a delete that has just been purged.
		cur, err := s.kv.Get(ctx, token(key))
		switch {
		case err == nil:
			return fail(backend.ErrExists, version(cur.Revision()))
		case !errors.Is(err, jetstream.ErrKeyNotFound):
			return fail(err, "")
		}
	}
	return fail(ctx.Err(), "")
}

// Update replaces the object under item.Key if item.Version is that of the object
// there. There are no IDs.
func (s *Store[T]) Update(ctx context.Context, item object.Item[T]) (object.Item[T], error) {
	value, err := s.codec.Encode(item.Object)
	if err != nil {
		return failing[T]("update", item.Key, item.Version)(err, "")
	}
	msg := client.Msg{Data: value}
	_, seq, err := s.replace(ctx, "update", item.Key, item.Version, msg)
	if err != nil {
		return object.Item[T]{}, err
	}
	return object.Item[T]{Key: item.Key, Version: version(seq), Object: item.Object}, nil
}

// Patch reads, applies and updates, again when somebody else was faster.
func (s *Store[T]) Patch(ctx context.Context, key string, p patch.Patch, v object.Version) (object.Item[T], error) {
	return backend.PatchByUpdate(ctx, s, key, p, v)
}

// Delete removes the object and answers its last state, under the version of the
// delete. What the codec can't read can be deleted too: its answer has no object.
func (s *Store[T]) Delete(ctx context.Context, key string, v object.Version) (object.Item[T], error) {
	// By a message of our own: the client's Delete does not tell its number.
	marker := client.Msg{Header: client.Header{"KV-Operation": {"DEL"}}}
	last, seq, err := s.replace(ctx, "delete", key, v, marker)
	if err != nil {
		return object.Item[T]{}, err
	}
	item, _ := s.item(key, last.Revision(), last.Value())
	item.Version = version(seq)
	return item, nil
}

// DryRun is none of NATS's.
func (s *Store[T]) DryRun() (backend.Backend[T], error) { return nil, errors.ErrUnsupported }

// replace publishes msg over the object in the version v, which it answers. It
// looks first: the server only compares numbers, and a delete has one, too.
func (s *Store[T]) replace(ctx context.Context, op, key string, v object.Version, msg client.Msg) (cur jetstream.KeyValueEntry, seq uint64, err error) {
	fail := func(err error, has object.Version) (jetstream.KeyValueEntry, uint64, error) {
		return nil, 0, &backend.Error{Op: op, Key: key, Want: v, Found: has, Err: err}
	}
	if v == "" {
		return fail(backend.ErrNoVersion, "")
	}
	for ctx.Err() == nil {
		cur, err := s.kv.Get(ctx, token(key))
		switch {
		case errors.Is(err, jetstream.ErrKeyNotFound), key == "":
			return fail(backend.ErrNotFound, "")
		case err != nil:
			return fail(err, "")
		case v != object.Any && v != version(cur.Revision()):
			return fail(backend.ErrConflict, version(cur.Revision()))
		}
		m := client.Msg{Subject: s.subject(token(key)), Header: client.Header{}, Data: msg.Data}
		for name, values := range msg.Header {
			m.Header[name] = values
		}
		ack, err := s.js.PublishMsg(ctx, &m, jetstream.WithExpectLastSequencePerSubject(cur.Revision()))
		switch {
		case err == nil:
			return cur, ack.Sequence, nil
		case !overtaken(err):
			return fail(unanswered(err), "")
		}
		// Somebody was faster: look again.
	}
	return fail(ctx.Err(), "")
}

// overtaken: the last message of the subject is another one than was expected.
func overtaken(err error) bool {
	e, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (e.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		e.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// unanswered adds, to the error of a write, that it may have been done. Only what
// the server refused, or nobody took, has not been.
func unanswered(err error) error {
	_, refused := errors.AsType[*jetstream.APIError](err)
	switch {
	case errors.Is(err, client.ErrMaxPayload), errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum):
		return retry.Permanent(err)
	case refused, errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, client.ErrReconnectBufExceeded):
		return err
	}
	return fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, err)
}

// failing makes the errors of one call.
func failing[T any](op, key string, want object.Version) func(error, object.Version) (object.Item[T], error) {
	return func(err error, has object.Version) (object.Item[T], error) {
		return object.Item[T]{}, &backend.Error{Op: op, Key: key, Want: want, Found: has, Err: err}
	}
}
