// Package kube is a backend over the Kubernetes API, made with net/http alone. It
// is for tests: with it the contract of reflector and backend is tried on a system
// that it was not made for. Package kubeserver is a server for it.
//
// # Usage
//
//	pods := kube.New[Pod](client, "https://…/api/v1/namespaces/shop/pods", nil)
//
// The URL is that of a collection, in one namespace, over all of them, or of a
// kind that has none. T is what an object's JSON is decoded into; what T leaves
// out of its JSON is lost by Update, not by Patch. The client brings the
// credentials, and has no Timeout, which would end each watch.
//
// # Concurrency
//
// A [Store] keeps nothing between two calls and is used by any number of
// goroutines. Everything happens on the goroutine of the caller.
//
// # Ordering and delivery
//
// A key is the object's name, or namespace/name where the URL names no namespace.
// Version is the resourceVersion, ID the uid, and a cursor is a resourceVersion
// too: of a list or bookmark, or of a watch's last event. They compare as numbers.
//
// Cursors have no epoch. A cluster whose database was set back, without its
// revisions being raised beyond those it had given out, is noticed while it is
// behind ([reflector.ErrFutureCursor]); once it has overtaken the cursor nobody can
// tell. ResumeProven rests on the raising, which the restore of etcd does when it
// is told to.
//
// A server opens a watch from a resourceVersion that it has not come to, and is
// silent in it. So after opening one the store asks the server where it stands.
//
// # Errors
//
// Those of reflector and backend, with the words of package retry. A 5xx to a write
// is [backend.ErrOutcomeUnknown], as an answer that did not arrive is.
//
// An object that is no T is a [reflector.Fault] of the page or batch that it is in, and
// an error of Get that names its key. Update, Patch and Delete need not decode it. What
// has no name is an error of the list, and ends a watch in [reflector.ErrExpired].
package kube
