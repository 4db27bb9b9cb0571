// Package reflector has the contract between a source of objects and everything
// behind it, adapters for sources that can do less, and the loop that keeps a
// sink equal to a source through every fault.
//
// # Usage
//
// A source is a [ListWatcher]. Whoever has a function that lists has one:
//
//	users := reflector.Poll(listUsers, User.Key, nil)
//
// With something that says when to look, [Hint] makes it fast; [Filter] and
// [Transform] show less of it. A [Reflector] takes a source and a [Sink] and runs
// until its context ends. Most programs do not make one but an informer, which is
// such a sink: a cache with handlers.
//
//	r := reflector.New(users, sink, nil)
//	err := r.Run(ctx)
//
// # Rules for sources
//
// A source that keeps these rules is kept up with, whatever happens to it. What
// it can do beyond them it says in its [Powers]; the zero Powers are a source
// that lists. The errors in brackets are what the reflector shows when it notices
// that a rule was broken ([ErrContract]) or that it could not go on.
//
//  1. Watch gives a push iterator. It yields on the goroutine that ranges over it,
//     one batch after the other, cleans up by defer, does not yield again after
//     yield was false, and does not recover what yield panics with. It ends when
//     its context ends, plainly when the session is over (it is then resumed), or
//     with one error as the last thing yielded. There is no need for a goroutine
//     or a channel between source and reflector: while the sink is busy the source
//     waits in yield.
//  2. The first batch says that the watch is open and where it stands: it has no
//     events, and the cursor that was asked for or a later one; or it has Reset; or,
//     without positions, Synced alone: the full state is the one before. Until then
//     the watch is being opened, for [Options].Open at most.
//  3. Cursors lie between whole steps. What one step of the source changed comes in
//     one batch, whose Cursor lies after all of it and from which a watch can go
//     on; a batch whose Cursor is "" is no such place. The cursor of a page is the
//     state that the page shows. In a full state that is streamed, objects come in
//     any order and only Synced has a cursor that counts; it may be the one where the
//     watch stood before. A source that knows what
//     came right before a batch says so by Prev: a batch that does not follow where
//     the watch stands proves that a change was lost; it is not shown, a new full
//     state is taken, and Status.Gaps counts it.
//  4. Only what can be proven is resumed. A source answers [ErrExpired] to a cursor
//     after which it may have forgotten anything, and leaves Powers.ResumeProven
//     unset when it could not tell: then the reflector resumes nothing. At the cursor
//     of a list that was just read a watch can begin in any case. A source without
//     positions gives "" for every cursor and begins each watch with a full state.
//  5. A list may come in pages. If they do not all show one state
//     (Powers.SnapshotPages is not set, or a later page has another cursor), then
//     with Powers.Compare nothing is shown until a watch from the first page's
//     cursor has passed the last page's, and all of it at once then; without
//     Compare it is shown as it is, [Status].Torn says so, and the watch puts it
//     right.
//  6. Time does not go back. Within one epoch a list, a full state or a bookmark
//     that is older than what the sink has comes from a replica that lags: it is
//     refused and asked for again. It is believed when its cursor is of another
//     epoch (Compare says 0 of unequal cursors) or when the source, asked for its
//     latest state, has insisted for [Options].ResetAfter; then it is taken whole
//     and counted in Status.Resets. A batch of changes at or before the sink's
//     cursor is a replay, and dropped.
//  7. A watch shows that it is alive. With Powers.Progress it yields a batch at least
//     as often as WatchOptions.ProgressEvery says (10 s here), an empty one if need
//     be; after three times that in silence the watch is taken for dead and ended.
//     Other sources may be silent; their watch is ended and opened anew after
//     [Options].Session, which is no failure.
//  8. List and Watch return soon after their context ended, also while they connect,
//     wait or are blocked in yield. A call that has not returned after 5 s is shown
//     as [Stuck]; it is waited for however long it takes, since nothing can be left
//     running.
//  9. No key is empty. Item.ID is another one after a key was deleted and created
//     again. Within one epoch, equal key, ID and version mean equal objects; after a
//     reset (rule 6) consumers compare the objects themselves. A source without
//     versions leaves them empty; consumers then always compare objects.
//  10. Errors say what to do, wherever they arrive. [ErrExpired] and
//     [ErrFutureCursor] lead to a full state; so should a change that the source
//     cannot decode and cannot name. An object that it can name and cannot decode is
//     a [Fault] of its batch or page, never left out: it would be taken for deleted.
//     [ErrNotModified] stands for the list before, as long as the
//     sink still has exactly that. With retry.After the source is not asked before
//     that time, with retry.Permanent as rarely as the backoff knows, and
//     retry.Later is no failure. Any other error is tried again after a backoff,
//     where the watch stood if rule 4 allows it. All but the calls that we ended
//     ourselves count as failures: a history too short for its changes leaves a
//     cache behind by up to the longest backoff.
//
// # Rules for sinks
//
// One goroutine calls a [Sink]. The reflector tells it live batches by Apply, and
// each full state by Begin, Stage, Unstage and Keep, and Commit, Unchanged or Abort. A
// sink sees
//
//   - Begin before the source can have begun to read what will be staged: before
//     the first page of a list, before each watch, and after each Commit within a
//     watch. What was written to the source before Begin is in what Commit
//     publishes, or Unchanged confirms.
//   - Apply and Commit only of states that the source had (but for Torn), at
//     cursors that never go back within an epoch.
//   - no deletes but those that the source told and those that a complete full state
//     proves: neither an error nor a part of a list deletes anything.
//
// # Concurrency
//
// Run does everything on the goroutine that calls it: it calls the source, the
// sink, and all functions given to adapters. One more goroutine watches over the
// deadlines of each session, one over a call that was told to end, and [Hint] takes
// its hints on one; Run waits for them. Status, Relist and Run may be called from anywhere; no lock is held
// while anybody's code runs. Sources that this package makes keep nothing between
// two calls and may be used by many at once, if the functions given to them may.
//
// # Ordering and delivery
//
// Batches reach the sink in the order of the source, each at most once where
// cursors compare, else at least once after a break. A full state replaces all
// that was before it. States in between may be missed: a full state tells what is,
// not what was.
//
// # What is believed
//
// Push is fast and pull is right. Where a source can't prove that its watch misses
// nothing, or when [Options].Audit asks for it, a full state is listed from time to
// time only to be compared. With cursors that compare and can be resumed, it is
// compared at the moment at which the watch has come to where it was listed, so that
// what differs was lost, and nothing that was merely on its way is reported; a watch that
// is open and tells nothing for [Options].Open is not waited for any longer. What is
// found is repaired, told with object.Audit as its cause, and counted in
// Status.Corrections. An audit that fails costs nothing: the watch goes on.
//
// A full state that would delete implausibly much can be held ([Options].MaxDelete):
// the sink keeps what it has, the state is [Held], and the full state is taken again
// after a backoff until it is plausible, confirmed ([Reflector.ConfirmDeletes]) or
// repeated often enough. Deletes that a watch tells one by one are not held.
//
// # Errors
//
// Nothing but ErrInvalidOptions, and retry.Permanent if wished, ends Run. A failure of the source or the sink, and
// a panic of either ([PanicError]), is shown in Status, logged, and tried again
// after Options.Backoff. There is one backoff for the whole cycle of list and
// watch. It counts a session that ended in an error, and one that lived for less
// than a minute however it ended; one that lived longer begins it anew. Sessions
// that the reflector ended itself do not count. List has no deadline of its own:
// only the source knows how long it may take.
//
// # Debugging
//
// [Status] says what is being done, since when, what failed last and what comes
// next, and prints as JSON. The log has an Info line when the reflector is synced,
// asked for a full state, has recovered or stops, a Warn line when something is
// amiss (equal errors the first, second, fourth, eighth time in a row …) and every
// change of state at Debug. It never shows an object.
//
// # Testing
//
// All waiting is done with the time package and can be tested with
// testing/synctest. Package fake has a source with faults to order.
package reflector
