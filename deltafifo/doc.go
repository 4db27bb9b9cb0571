// Package deltafifo is a queue of per-key deltas: per key the shortest list that
// still tells the truth.
//
// It stands between one who tells of changes and must never wait, and one who
// takes them at its own pace. While the second is busy the first may say a
// million things of a hundred keys; what is handed over then is at most two
// deltas per key, and the consumer ends up holding what it would hold had it been
// told everything.
//
// # Usage
//
// A [FIFO] is pushed plain states: Put, Delete, and Replace for a complete list.
// It remembers what it handed over, so it finds by itself what a list deletes,
// and what Old is. Its consumer calls PopBatch in a loop and applies each delta
// to what it holds:
//
//	buf := make([]deltafifo.Delta[Pod], 0, 256)
//	for {
//		var err error
//		if buf, err = fifo.PopBatch(ctx, buf[:0]); err != nil {
//			return err
//		}
//		for i := range buf {
//			apply(&buf[i])
//		}
//		clear(buf) // or the buffer keeps old objects alive
//	}
//
// A [Buffer] is the queue in it, for those who know what the consumer holds from
// elsewhere (an informer has its cache) and don't want to remember it twice: each
// pushed delta says so in Had and Old.
//
// # Concurrency
//
// All methods may be called from any goroutine. A push never waits for a
// consumer: no lock is held while deltas are processed, and waiting is done on
// channels. There is one lock per queue, held for as long as the keys of one call
// take; nobody's code runs under it.
//
// Several consumers may pop, but then two of them can have deltas of one key at
// once; Old and the order per key are only of use to consumers that keep one
// state between them.
//
// # Ordering and delivery
//
// Keys are handed over in the order of their first pending delta, each with all
// its deltas. Between keys, order is not that of history: a key's newest state
// comes at the place of its oldest. All that one call pushes becomes pending in
// one step, a Replace too: a PopBatch with room for all of it takes all or none.
//
// What is pending of a key ("put" alone, "delete, put" for both in this order)
// and what is pushed make what is pending then, by whether the consumer holds the
// key. "Other" is a Put whose ID differs from that of the object before it,
// neither being empty. This table is one function, and a test compares the two:
//
//	consumer holds the key
//	pending      | put         | put other   | delete  | sync
//	nothing      | put         | delete, put | delete  | sync
//	put          | put         | delete, put | delete  | put
//	sync         | put         | delete, put | delete  | sync
//	delete       | delete, put | delete, put | delete  | delete
//	delete, put  | delete, put | delete, put | delete  | delete, put
//
//	consumer does not hold the key
//	pending      | put         | put other   | delete  | sync
//	nothing      | put         | put         | nothing | nothing
//	put          | put         | put         | nothing | put
//
// What the merged deltas carry:
//
//   - Had and Old are those of the first pending delta, since they are what the
//     consumer really holds. A Put after a Delete has none: by then the consumer
//     holds nothing.
//   - A Put carries the newest state, and the Cause of the delta that brought it:
//     an object of the first list that changed before it was popped is Watched,
//     not Initial. A Sync adds nothing to what is pending anyway.
//   - A Delete carries the newest state known of the object that the consumer
//     holds, never that of a later object under the same key, which it has not
//     heard of. It is Inferred when that object's end was not told but proved, by
//     a list that lacks it or by an object of another ID. Of Deletes in a row the
//     last one that was told stands, else the first.
//   - An object that came and went unseen leaves no trace.
//
// So a consumer sees a subsequence of each key's states, never an older one after
// a newer one; a delete that it must know of is never lost (G3); and a key
// deleted and created again is never a plain update, as far as a delete or the ID
// tells. What is pending is bounded by twice the keys that live or that the
// consumer holds (G4). What a busy hour has filled is given back when the queue
// runs empty.
//
// With Options.KeepAll nothing is merged, and memory is bounded by nothing. Only
// void deltas (a Delete or a Sync of a key that is not held by then) are left
// out, and a Put of another object is still a Delete and a Put.
//
// # Errors
//
// [ErrClosed] after Close, which drops what is pending: whoever closes has
// stopped to care. Pops also end with the cause of their context. Everything is
// checked before anything is taken.
//
// WaitPopped is a watermark: everything up to here has been handed over.
//
// # Debugging
//
// Stats tells how much is pending, since when, and how much was merged away: Keys
// that stay high with Oldest far back is a slow consumer, many Compacted a hot
// key.
package deltafifo
