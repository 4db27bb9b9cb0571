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
//   - Sequence numbers have no holes but where something was removed: a value that
//     was replaced more often than the bucket has history, a delete that was purged.
//     A watch can therefore be resumed, and ends in ErrExpired where it meets a hole.
//     Give the bucket a history of more than one, or each value that is replaced
//     before it was told is such a hole.
//   - Still ResumeProven is not set. A purge of a stream or a subject takes away what
//     was told long ago, and leaves no trace; even KeyValue.PurgeDeletes does that to a
//     key that is created again at that moment. So each session begins with a full
//     state (Initial).
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
// is amiss. The consumer is pulled from: a slow reader holds up nobody and buffers
// little. It reads all of the bucket's history for a full state: where a consumer that
// is given only the last value of each key loses its connection, the server's code
// (2.15) seems to leave out the value that it was about to send.
//
// # Errors
//
// A write whose answer did not come is backend.ErrOutcomeUnknown; a connection with
// a reconnect buffer may do it much later, so make it with nats.ReconnectBufSize(-1).
// An object that the codec can't read is a reflector.Fault of the page or batch that it
// is in, and an error of Get and Patch that names its key; Update and Delete need not
// read it. A message whose key is none of a Store's cannot be named: it fails each list
// and full state.
package nats
