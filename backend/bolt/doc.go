// Package bolt is a durable backend in one file: what backend/memory is, for
// objects that outlive the program. It stands on go.etcd.io/bbolt and is a module
// of its own.
//
// # Usage
//
//	pods, err := bolt.Open[Pod]("/var/lib/app/pods.db", nil, nil)
//	…
//	defer pods.Close()
//	item, err := pods.Create(ctx, "web-1", Pod{Image: "nginx"})
//
// A file has one store, of one type; several stores are several files, and do not
// wait for each other. One process at a time has a file open: another one is told
// [ErrLocked]. For soft deletion and finalizers wrap the Store in
// backend.WithFinalizers.
//
// The file does not know its type. Opened as a store of another one it is read as
// far as the codec allows, and JSON allows much: fields that the type does not have
// are passed over, those that the object does not have are zero, and an Update writes
// that back. Keep one name of a file for one type.
//
// It keeps all rules of packages reflector and backend and has every power.
//
// # What survives
//
// Objects, versions, IDs, the epoch and the recent history are in the file, and are
// written together: after a restart, a crash or kill -9 there is every write that
// was acknowledged, of each write all or nothing, and a cursor or page token of
// before goes on exactly where it stood. What the file says is on the disk (bbolt
// syncs twice for each commit) before a writer, a reader or a watch is told of it.
//
// A write that was not acknowledged when the process died may have been made.
//
// A file restored from a backup is older than what others were told. Open it once
// with Options.NewEpoch, so that they learn of it.
//
// # What a write costs
//
// One commit: two syncs, from some 0.3 ms on a virtual disk in a data centre to 10
// ms and more on a disk that turns. Writers that come at the same time share
// commits: 64 of them write about 14 times as much as one. Each write is still a
// revision, a step and an answer of its own. Each object is in the file three times
// at most: as it is, and in the history before and after its change; the object is
// encoded once and decoded once, so that nothing can be stored that can't be read.
//
// A Get is a look at mapped memory, 1 µs or two, and decoding. Lists are as long as
// all their objects take to decode; each page, and each part of a streamed list,
// that is read while others write looks through the history since the first one.
//
// The file grows as it has to and never shrinks: room that was freed is used again.
// To give it back to the file system, close the store and use the command of bbolt,
// which Go fetches:
//
//	go run go.etcd.io/bbolt/cmd/bbolt@v1.5.0 compact -o smaller.db pods.db
//
// It makes a new file, to be put in the place of the old one, and keeps everything,
// cursors too. [Store.Compact] is something else: it forgets the history.
//
// # Concurrency
//
// A Store is used by any number of goroutines, and starts none. The lock that
// guards it is not held while anybody waits, reads the file or runs others' code. No
// transaction is open while a watch yields, or a codec or patch runs: a slow one
// holds up only its caller; but a patch that was overtaken twice makes other writers
// wait until it is done, so it must not write to the same store itself.
//
// What a Store answers and tells was decoded for the one who is told: only it has
// it.
//
// # Ordering and delivery
//
// Every write is one revision, numbered from 1; an object's version is the
// decimal revision of its last write. A watch tells each revision as one batch, in
// order, none left out: a watcher that sleeps through more changes than the
// history holds is told reflector.ErrExpired instead, and no writer ever waits for
// it. A cursor is the file's epoch, which is random, and a revision: one of
// another file is ErrExpired; one ahead of the store is ErrFutureCursor.
//
// The pages of a list, and the parts of a streamed one, show one state, which is
// worked out of the present one and the history: when more is written meanwhile
// than the history holds, they are ErrExpired.
//
// The event of a delete has the object's final state, under the version of the
// delete.
//
// # Errors
//
// Those of package backend, in a *backend.Error. A commit that fails, as on a full
// disk, is undone, and the store goes on. Only when the disk fails after the last
// page was handed to it can nobody say what it has: the answer is then
// backend.ErrOutcomeUnknown, and [ErrFailed] from every later call until the file is
// closed and opened again. A context that ends takes back a write that has not
// begun; one that has is waited for, so that its answer is true.
//
// An object that the codec can't read is [ErrUndecodable] from every call for it
// alone, and a reflector.Fault of the list or batch that it is in. Update replaces it. A panic of a codec
// or a patch is a *reflector.PanicError and undoes the write. A damaged file is
// [ErrCorrupt] from Open, or from the call that comes upon the damage.
//
// # Testing
//
// A controller's tests are faster over backend/memory or fake, which keep the same
// rules. Inside a testing/synctest bubble, open the Store in the bubble too.
package bolt
