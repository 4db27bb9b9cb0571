// Package memory is the embedded default backend: a store in memory, with
// versions, optimistic concurrency and a bounded history to watch.
package memory
