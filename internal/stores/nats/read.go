package nats

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/homeostat/homeostat/reflector"
)

const (
	soon     = 100 * time.Millisecond // to wait for a message before asking for it
	patience = 2 * time.Second        // to wait for one that was sent
	beat     = time.Second            // twice that in silence is the end of a consumer
)

// errLost: the server has sent what did not arrive.
var errLost = errors.New("a message was lost on its way")

// change is what one message says. The zero change is none.
type change[T any] struct {
	reflector.Event[T]
	unread error // of a put: why there is no object
}

func (c change[T]) fault() reflector.Fault {
	return reflector.Fault{Key: c.Key, Version: c.Version, Err: c.unread}
}

// reader reads the stream of a bucket, by a consumer of its own, and knows when it
// missed something. One goroutine uses it.
type reader[T any] struct {
	store    *Store[T]
	ctx      context.Context // of the one call that it is made for
	epoch    string
	head     uint64 // of the stream, when the reader was made
	consumer jetstream.Consumer
	messages jetstream.MessagesContext

	at    uint64    // all that the stream has up to here was read
	whole bool      // from here on nothing that there was may be missing
	seen  uint64    // messages of the consumer that arrived
	owed  uint64    // messages that the server had sent when not all were here
	since time.Time // when that was
}

// read makes a reader of what comes after message number after; close ends it.
func (s *Store[T]) read(ctx context.Context, after uint64) (*reader[T], error) {
	info, err := s.stream.Info(ctx)
	if err != nil {
		return nil, err
	}
	r := &reader[T]{store: s, ctx: ctx, epoch: epoch(info), head: info.State.LastSeq, at: after}
	r.consumer, err = s.stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       after + 1,
		AckPolicy:         jetstream.AckNonePolicy,
		MemoryStorage:     true,
		InactiveThreshold: time.Minute,
	})
	if err != nil {
		return nil, err
	}
	if r.messages, err = r.consumer.Messages(jetstream.PullHeartbeat(beat)); err != nil {
		return nil, err
	}
	return r, nil
}

// close takes the consumer away, if the server can be reached; else it goes by itself.
func (r *reader[T]) close() {
	r.messages.Stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), time.Second)
	defer cancel()
	r.store.stream.DeleteConsumer(ctx, r.consumer.CachedInfo().Name)
}

// full reads the whole state: what it tells, one over the other, is what the bucket
// has at r.at. Values that were replaced before they were read come later. So what
// was written until the reader had passed what there was at first is read, too, and
// none of that may be missing.
func (r *reader[T]) full() iter.Seq2[change[T], error] {
	return func(yield func(change[T], error) bool) {
		for _, r.whole = range []bool{false, true} {
			info, err := r.store.stream.Info(r.ctx)
			for err == nil && r.at < info.State.LastSeq {
				var c change[T]
				if c, err = r.next(soon); err == nil && c.Op != 0 && !yield(c, nil) {
					return
				}
			}
			if err != nil {
				yield(change[T]{}, err)
				return
			}
		}
	}
}

// next waits for a message. When none comes, it asks the server whether one should
// have, and answers no change.
func (r *reader[T]) next(wait time.Duration) (none change[T], err error) {
	ctx, cancel := context.WithTimeout(r.ctx, wait)
	defer cancel()
	msg, err := r.messages.Next(jetstream.NextContext(ctx))
	switch {
	case r.ctx.Err() != nil:
		return none, r.ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return none, r.ask()
	case err != nil:
		return none, err
	}
	meta, err := msg.Metadata()
	if err != nil {
		return none, err
	}
	if r.seen++; meta.Sequence.Consumer != r.seen {
		return none, errLost
	}
	if err := r.pass(meta.Sequence.Stream - 1); err != nil {
		return none, err
	}
	r.at = meta.Sequence.Stream
	return r.change(msg, r.at)
}

// pass moves over what is not there any more, up to message number to.
func (r *reader[T]) pass(to uint64) error {
	if r.whole && to > r.at {
		return fmt.Errorf("messages %d to %d were removed before they were read: %w", r.at+1, to, reflector.ErrExpired)
	}
	r.at = max(r.at, to)
	return nil
}

// ask finds out whether all that was sent arrived, and whether there is more to
// come: what there is no more of was removed, and is passed over.
func (r *reader[T]) ask() error {
	c, err := r.consumer.Info(r.ctx)
	switch {
	case err != nil:
		return err
	case c.Delivered.Consumer != r.seen && r.seen >= r.owed: // on its way, it may be
		r.owed, r.since = c.Delivered.Consumer, time.Now()
		return nil
	case c.Delivered.Consumer != r.seen:
		if time.Since(r.since) > patience {
			return errLost
		}
		return nil
	}
	info, err := r.store.stream.Info(r.ctx)
	if err != nil {
		return err
	}
	_, err = r.store.stream.GetMsg(r.ctx, r.at+1, jetstream.WithGetMsgSubject(r.store.subject(">")))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return r.pass(info.State.LastSeq)
	}
	return err
}

// change is what a message says. The error is that of one about no key.
func (r *reader[T]) change(msg jetstream.Msg, seq uint64) (c change[T], err error) {
	key, err := r.store.key(msg.Subject())
	if err != nil {
		return c, err
	}
	h := msg.Headers()
	if h.Get("KV-Operation") != "" || h.Get(jetstream.MarkerReasonHeader) != "" {
		c.Event = reflector.Delete[T](key, "").Events[0] // the last state is not told
		c.Version = version(seq)
		return c, nil
	}
	c.Op, c.Known = reflector.OpPut, true
	c.Item, c.unread = r.store.item(key, seq, msg.Data())
	return c, nil
}
