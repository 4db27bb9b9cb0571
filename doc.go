// Package homeostat is a page of documentation; the code is in the packages
// beside it.
//
// homeostat keeps a system at its declared state. It is the machinery of informers
// and reconcile loops, as a library that knows nothing of where the state is kept:
// whatever can list keyed objects drives it, and any Go type is an object.
//
// # How the parts fit
//
//	backend ──List/Watch──▶ reflector ──▶ informer ──▶ indexer (the cache)
//	                                         │
//	                                         ├─▶ deltafifo ──▶ handler      (a compacting buffer each)
//	                                         └─▶ workqueue ──▶ reconcile.Controller workers
//	                                                              │ read the cache
//	                                                              └ write the backend
//
// The data flows one way, and the only way back is the backend itself: what a
// controller writes returns through the watch. The watch keeps a cache fast, the
// list keeps it right: whatever a watch loses, a list finds.
//
// # The packages
//
//   - object and retry are the words that all others speak: Item, Version, Cause;
//     Later, After, Permanent, Backoff.
//   - reflector has the contract of a source, adapters for sources with less (Poll,
//     Hint), and the loop that keeps a sink equal to a source through every fault.
//   - deltafifo is the buffer of changes that compacts them per key.
//   - indexer is the cache, with snapshots and typed indexes.
//   - workqueue is the queue of keys, with delays, retries and dead letters.
//   - patch makes and applies JSON merge patches and JSON patches.
//   - informer joins reflector, indexer and deltafifo to a cache that tells any
//     number of handlers.
//   - backend is the write side, with Modify and Ensure, and WithFinalizers for soft
//     deletion; backend/memory is the embedded default.
//   - reconcile has Controller, Client and Run: the loop itself.
//   - fake is backend/memory on a bad day, for tests.
//
// The packages from reflector to patch import none of each other and are useful
// alone.
//
// # Promises
//
// Each is proved by tests that carry its number.
//
//   - G1 Convergence. Once the source stops changing, every cache equals the source
//     and every handler's last word for every key equals the cache, whatever came
//     before: watches cut or silent, cursors expired or from the future, errors in
//     the middle of a list, a source restored to an older state.
//   - G2 Subsequence. Per key, the states that a cache and each handler see are a
//     subsequence of the source's, in order. What a handler is given as the old
//     state is exactly what it was given last.
//   - G3 No lost delete, no merged identity. A delete that nobody watched is
//     delivered, marked as inferred, with the newest known state. A key deleted and
//     created again is never shown as an update, as far as the source tells.
//   - G4 Bounded memory. Every buffer is bounded by live keys plus the keys that its
//     consumer knows, never by the number of events.
//   - G5 Snapshot reads. A Snapshot, and each Lookup, All, Prefix and Values, is one
//     state of the cache across all its indexes. Batches and relists appear at once.
//   - G6 One key, one worker. A key is never reconciled twice at once, a change
//     during its reconcile makes it run again, and nothing is lost between the two.
//   - G7 Read your writes. A key whose controller wrote does not run again before the
//     cache provably contains the write. Only that key waits.
//   - G8 Pull compensates push. A change that the watch lost is found by the next list
//     or audit, repaired and counted; what did not change causes no event. Audits are
//     on by default where a source can't prove that its watch misses nothing.
//   - G9 Failure is not emptiness. Only a complete list infers deletes; an error or a
//     part of a list never does, and a guard can hold a list that would delete too much
//     to be true. No controller acts on a cache that is not synced.
//   - G10 Nothing leaks, nothing crashes. After Run returned nothing of ours is left.
//     A panic of user code on our goroutines is caught, reported with key and stack,
//     and the rest goes on.
//   - G11 Nothing is silent. Every source, handler and key can be asked what it is
//     doing, since when, what failed last and what comes next.
package homeostat
