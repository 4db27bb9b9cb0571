// Package benchmarks measures homeostat at the work it is made for: a cache of
// many objects, an event on its way from the source to a reconcile, the queues,
// and patches.
//
//	go test -bench . ./benchmarks/...
//
// Rows are named after the package and what it does, with their size:
// BenchmarkIndexerGet/objects=100000. Where one iteration is not one operation,
// the row reports its own unit (ns/key, ns/object). Absolute figures mean little
// between two machines, or between two hours of one: compare rows of one run.
// Allocations per operation are exact.
//
// Objects are pods of about two kilobytes under keys of two parts, shared by all
// rows and never changed, and most rows go over them in random order, as
// programs do: what does not fit the processor's cache is paid for.
package benchmarks
