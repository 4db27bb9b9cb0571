// Package memory is the embedded default backend: a store in memory, with
// versions, optimistic concurrency, and a bounded history to watch.
//
// # Usage
//
//	pods := memory.New[Pod](nil)
//	item, err := pods.Create(ctx, "web-1", Pod{Image: "nginx"})
//
// It is for programs whose objects need not outlive them, and for tests; package
// fake is the same store with faults. For labels, owners, finalizers and soft
// deletion wrap it in backend.WithFinalizers.
//
// It keeps all rules of packages reflector and backend, has every power that they
// know, and its lists are never stale.
//
// [Store.Snapshot] and [Store.Restore] are what a backup is to a real store: a test
// can find out what its program makes of one.
//
// # Lists
//
// A list is sorted by key and shows one state, also in pages. A page token holds
// the place in that state and nothing else is remembered for it, so that a list may
// be given up at any time. Its next page is to be had for as long as the history
// reaches back to the state, then it is reflector.ErrExpired.
//
// The state behind a token is worked out from the history. The last 8 that somebody
// asked for are kept ready, and what they have in common they share: after few
// changes a list costs what it answers, and no more. None is kept longer than the
// history reaches.
//
// # Concurrency
//
// A Store is used by any number of goroutines. One lock guards it; it is held for
// map and slice operations alone, never while a caller's code runs: not while a
// watch yields, nor while a patch is applied.
//
// What is given to the store belongs to it, and what it answers and tells is
// shared by all: when T is a pointer, the object behind it must not be changed by
// anybody afterwards. The store makes no copies; only Patch makes a new object,
// through encoding/json, so that what JSON leaves out of T is lost there.
//
// # Ordering and delivery
//
// Every write is one revision, numbered from 1; an object's version is the
// decimal revision of its last write. A watch tells each revision as one batch, in
// order, none left out: a watcher that sleeps through more changes than the
// history holds is told reflector.ErrExpired instead, and no writer ever waits for
// it. Each batch says by Prev which one it follows. A cursor is the store's epoch,
// which is random, and a revision: one of another store, or of an earlier run, is
// ErrExpired; one ahead of the store is ErrFutureCursor.
//
// The event of a delete has the object's final state, under the version of the
// delete.
//
// # Errors
//
// Those of package backend, in a *backend.Error; ErrOutcomeUnknown is never one
// of them. [ErrInvalidOptions] comes out of every call when Options were faulty.
//
// # Testing
//
// Inside a testing/synctest bubble, make the Store in the bubble too: watches
// wait on its channels.
package memory
