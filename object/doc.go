// Package object is the vocabulary that every other package speaks: an object
// as a store holds it, its version, and why somebody looks at it again.
//
// # Usage
//
// Any Go type is an object; a store wraps it in an [Item] with the key it is
// held under. T is a pointer, or a value of up to about 128 bytes: items are
// copied as they travel, the objects behind pointers are shared and therefore
// never changed once they were given away.
//
// A type that wants labels, owners, finalizers or soft deletion embeds [Meta];
// one that does not is none the worse for it.
//
// # Concurrency
//
// Everything here is a plain value without locks. Values may be read by any
// number of goroutines as long as nobody writes them.
package object
