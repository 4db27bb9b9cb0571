// Package etcd is a backend over etcd, made to try whether the contract of
// packages reflector and backend fits it. It is no part of what users get; authors
// of adapters may copy from it.
//
// # Usage
//
//	pods := etcd.New[Pod](client, "pods/", nil)
//	cache := informer.New(pods, nil)
//
// A Store is everything under a prefix. A key is what follows the prefix, so that
// a prefix best ends in a separator: "pod" has all that is in "pods/" too.
//
// [Start] runs a server within the test, which can be stopped, killed and started
// again on its data.
//
// # What fits how
//
//   - A cursor is the cluster's ID and a revision, a version is the revision of an
//     object's last change (ModRevision), an ID the one of its creation
//     (CreateRevision). Versions and cursors compare.
//   - A list is paged at one revision: SnapshotPages. Compaction in the middle is
//     ErrExpired.
//   - A transaction is one revision and one batch.
//   - Resuming is proven: what was compacted is answered as such.
//   - Initial, StaleLists and DryRun there are none: etcd streams no first state,
//     reads through its leader, and checks nothing without doing it.
//
// # Ordering and delivery
//
// The client library resumes a broken watch by itself, and it keeps what it has
// received in a buffer without bounds while the consumer is busy: no backpressure
// reaches etcd.
//
// Progress is asked for. The server answers when all watches that share the client's
// stream are up to date, and only if each began at a revision that there is; so a
// watch begins at the revision of its cursor, whose events it leaves out, and takes
// up to 100 ms to be up to date. One that gets no answers ends and is to be resumed.
//
// A cluster that is made anew with the same members and the same cluster token has
// the same ID. So has one restored from a snapshot without a new token; use
// "etcdutl snapshot restore --bump-revision --mark-compacted", after which old
// cursors are ErrExpired. Without it a cursor ahead of the restored cluster is
// ErrFutureCursor, but one that the cluster has passed again cannot be told from a
// good one.
//
// # Errors
//
// A write whose answer did not come is backend.ErrOutcomeUnknown. What etcd refuses
// for good (permissions, sizes) is retry.Permanent. An object that the codec can't
// read is a reflector.Fault of the page or batch that it is in, and an error of Get and
// Patch that names its key; Update and Delete need not read it.
package etcd
