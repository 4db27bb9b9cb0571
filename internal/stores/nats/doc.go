// Package nats is a backend over a key-value bucket of NATS JetStream, made to try
// whether the contract of packages reflector and backend fits it. It is no part of
// what users get; authors of adapters may copy from it.
//
// # Usage
//
//	js, err := jetstream.New(conn)
//	pods, err := nats.Open[Pod](ctx, js, "pods", nil)
//	cache := informer.New(pods, nil)
//
// A Store is a whole bucket. Keys of buckets are restricted; those of a Store are
// not, as each is written in base64url.
//
// [Start] runs a server within the test, which can be stopped and started again on
// its data.
//
// # What fits how
//
//   - A bucket is a stream. A version is a sequence number of the stream, a cursor
//     that and the time when the stream was made. Versions and cursors compare. A
//     delete is a message, too, and has a version.
//   - There are no IDs: a bucket keeps no trace of when an object was created.
//   - A watch begins with the full state (Initial). Resuming cannot be proven: a
//     bucket forgets the oldest changes of a key, and deletes that are purged, and
//     does not say so. Every resume is ErrExpired.
//   - Sequence numbers have no holes but where something was removed. Live batches
//     say by Prev what they follow, so that what was removed before it was told,
//     in a watch that is slow, leads to a new full state. Give the bucket a history
//     of more than one, or each value that is replaced before it was told does so.
//   - Progress is asked for: the stream's consumer is known by the server, with the
//     number of messages that it was sent.
//   - No pages, no keys alone, no dry run. Powers.Get is nil: Get may be answered by
//     a replica that lags. Where there are replicas, StaleLists says so.
//
// # Ordering and delivery
//
// The client's own KeyWatcher is not used. It mends itself: after a lost
// connection, or silence, it goes on behind the last message that it saw, past
// deletes that were purged meanwhile, and says nothing. A Store reads the stream by a
// consumer of its own, counts what it is sent, and ends the session when anything
// is amiss. It reads all of the bucket's history for a full state: where a consumer
// that is given only the last value of each key loses its connection, a server
// (2.15) leaves out the value that it was about to send.
//
// # Errors
//
// A write whose answer did not come is backend.ErrOutcomeUnknown; a connection with
// a reconnect buffer may do it much later, so make it with nats.ReconnectBufSize(-1).
// An object that the codec can't read fails each list and full state that it is in,
// and names its key.
package nats
