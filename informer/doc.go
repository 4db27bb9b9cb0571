// Package informer keeps a cache equal to a source and tells any number of
// handlers what changes.
//
// # Usage
//
// Make an [Informer] of anything that can be listed and watched, add handlers, and
// run it:
//
//	pods := informer.New(source, &informer.Options{Name: "pods"}, byOwner)
//	pods.AddHandler(func(c informer.Change[*Pod]) {
//		log.Print(c.Type, " ", c.Key)
//	}, nil)
//	go pods.Run(ctx)
//	if err := pods.WaitForSync(ctx); err != nil {
//		return err // says what the source is doing, and why it does not work
//	}
//	pod, ok := pods.Cache().Get("a/1")
//
// A handler costs nobody but itself: behind its own compacting buffer it may be
// slow, or stand still. One that only hands keys on may ask to be called inline.
// It is then part of the step: while it runs, the source's next batch, and with it
// the cache and every other handler, waits. So it must be quick and must not block.
// Handlers come and go at any time; one that comes late is first given what the
// cache holds. There is no second way in: objects reach the cache from the source
// alone.
//
// An Informer runs once. It has no method that is named like one of a backend's, so
// that a type may embed both.
//
// # Concurrency
//
// All methods of [Informer] and [Subscription] may be called from any goroutine, at
// any time and inside handlers. Inside an inline handler nothing may wait for its
// own informer: it is the informer's goroutine that would wait.
//
// The reflector's goroutine, which is the one that calls Run, writes the cache and
// calls the inline handlers; each other handler has a goroutine of its own once
// there is a first list. Calls of one handler never overlap. Run waits for all of
// them, also for a handler that never returns.
//
// Of the locks, the one for the step "the cache has it and each buffer has it" is
// taken first; under it come the cache's own, then that of one buffer, or that of
// the barriers. The functions of indexes are called under it, as part of the write,
// and so must not call the informer. No handler and no function of the source is
// called under any lock.
//
// # Ordering and delivery
//
// The first full state, each later one, and each batch of the source appear in the
// cache, in all its indexes, at once. A handler is told of a change only after the
// cache has it. For each handler and key:
//
//   - The first change is Added, and another Added comes only after Deleted.
//   - [Change].Old is exactly what this handler was last given.
//   - States come in the source's order. Those that were overwritten while the
//     handler was busy are skipped; its memory is bounded by the number of keys.
//   - A delete is never skipped, for a handler that was told of the key: also when
//     nobody saw it and a list proves it (Inferred), and also when the key was
//     created again at once. What the source tells apart, by a delete or by ID, is
//     Deleted and Added, never Updated.
//   - What has not changed (same key, ID and version; without versions, objects
//     that reflect.DeepEqual finds equal) is no event, however often it is listed.
//
// Nothing is told before the first full state. Between keys there is no order
// within what is pending for one handler.
//
// When Run ends, what is pending is dropped. A subscription that was cancelled, or
// whose informer has stopped, starts no further call.
//
// [Informer.WaitFor] is the barrier with which a writer waits to read its own
// write.
//
// # Errors
//
// Waits that were given up are a *[WaitError]: it names the informer, the handler,
// what was waited for, and what the source is doing, since when, after how many
// failed attempts, with which error last. [ErrStopped] and [ErrCanceled] say that
// it can't come any more; the context's cause that it did not come in time.
//
// A handler that panics loses that one call: it is logged with key and stack and
// counted in [Status], and the next change follows. A batch handler loses the rest
// of its batch with it; what the next changes say of Old takes all of it as given.
//
// An object that the cache can't take, since an index function panics on it or a
// unique index has its value for another key, is refused: the last good state of
// its key stays in the cache, the rest of its batch goes on, and
// [Status].Refused names it until a later state is accepted, the value comes free,
// or the key is gone. An object without a key, which no source may have, is refused
// under "" as reflector.ErrContract. When the refused object is, by its ID, another one than the
// cache holds, that one is deleted.
//
// # Debugging
//
// [Informer.Status] says what the source is doing, who waits, what panicked and what
// was refused, and prints as JSON. [Subscription.Lag] says how far a handler is
// behind, [Informer.Fresh] how far the cache may be.
//
// # Testing
//
// An Informer uses plain time, and no goroutine of it outlives Run: tests run in a
// testing/synctest bubble. fake.New is a source with faults as data.
package informer
