// Package backend is the write side of a store: what every store can do, what
// its answers mean, and the few things that are done the same way over all of
// them.
//
// # Usage
//
// A [Backend] is a source (reflector.ListWatcher) that can be written to.
// backend/memory is one that is embedded in the program, fake is that one under
// a plan of faults for tests.
//
// [Modify] is how a controller writes a status: read, change, write what was
// changed, again when somebody else was faster. [Ensure] is the same for an
// object that need not exist yet. [WithFinalizers] gives any store soft deletion.
// [PatchByUpdate] is for authors of stores that have no patch of their own.
//
// # The rules of the write side
//
// What a caller may rely on, and what the author of a store has to do:
//
//  1. Update, Patch and Delete name their precondition: the version that the
//     object must have, or [object.Any] for whatever it is now. The empty version
//     is [ErrNoVersion], said before anything else is looked at.
//  2. The precondition is checked and the write is done in one step. Another
//     version than the one named is [ErrConflict], and nothing was written.
//  3. A write under object.Any waits its turn; it never fails because somebody
//     else writes too.
//  4. Create is [ErrNoKey] without a key: what no cache can hold must not come to
//     be. It is [ErrExists] when there is an object under the key. Update, Patch
//     and Delete are [ErrNotFound] when there is none, whatever version they name.
//  5. Every write answers the object as stored, with its new version and with
//     whatever the store filled in.
//  6. Create gives an ID that no object had before under this key; Update and
//     Patch keep it. An Update whose item has an ID is meant for that object
//     alone: when the key was deleted and created again it is ErrConflict, under
//     object.Any too. A store without IDs leaves them empty and ignores them.
//  7. Delete answers the last state, under the version of the delete itself; ""
//     when the store gives deletes none. It is never a version that the object
//     had while it was there, so that whoever waits for it has seen the delete. When
//     the last state can't be decoded it answers that version without an object:
//     the delete is done, so it can't be an error.
//  8. A patch is applied to the object as it is at that moment, in one step. One
//     that changes nothing writes nothing and answers the object as it is.
//  9. An error means that nothing was written, with one exception:
//     [ErrOutcomeUnknown], the answer was lost and the write may have happened. A
//     context that ends in the middle of a call is that too, unless the store
//     knows better.
//  10. What a store can't do is errors.ErrUnsupported, never passed over.
//  11. A write is told by every watch, and seen by every Get and List that begins
//     after it returned; where Powers.StaleLists is set, by later ones.
//  12. DryRun gives the same backend, checked and answered but not done. Its
//     answers have the version and ID that the object has now, and none for a
//     Create: no version came about that one could wait for.
//  13. What is given to a store belongs to it, and what it answers is shared:
//     behind a pointer, neither is changed afterwards.
//
// # The rules of soft deletion
//
// [WithFinalizers] keeps these, over any backend and for types that embed
// [object.Meta]; [WithFinalizersBy] for any type, by functions that are given:
//
//  1. Delete of an object with finalizers sets Meta.Deleting and keeps it; a
//     second Delete changes nothing and answers the object as it is. Without
//     finalizers the object goes at once.
//  2. The Update or Patch that takes the last finalizer from an object being
//     deleted is its delete, in one step: nobody sees it without finalizers, and
//     what else the write changed is seen only in its answer.
//  3. Once an object is being deleted, finalizers can only be taken away. A write
//     that adds one is [ErrDeleting].
//  4. Meta.Deleting belongs to the store: what a writer puts there is ignored.
//  5. Preconditions hold as for any write. Under object.Any the wrapper reads and
//     writes again until no one is faster; it never skips a finalizer that was
//     added, or a deletion that was asked for, in between.
//  6. A type without object.Meta is refused: [ErrNoMeta] from every write.
//
// # Concurrency
//
// A Backend is used by any number of goroutines at once. The functions here hold
// no lock and start no goroutine; functions given to them run on the caller's
// goroutine.
//
// # Errors
//
// Errors of a store are an [*Error] with operation, key and versions around one
// of the sentinels below (or whatever else went wrong): decide by errors.Is. The
// words of package retry are honoured and kept: ErrNoVersion, ErrDeleting and
// ErrNoMeta are permanent.
//
// # Testing
//
// Use package fake: it does on demand, and repeatably, what a real store does on
// a bad day.
package backend
