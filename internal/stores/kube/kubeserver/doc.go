// Package kubeserver is a small HTTP server that speaks the Kubernetes API for
// objects, over a store in memory that a test can write to, compact, set back and
// cut off. It answers in the forms that a real kube-apiserver was recorded in; the
// tests of package kube compare the two.
//
// # Usage
//
//	srv := kubeserver.New(nil)
//	web := httptest.NewServer(srv)
//	defer web.Close()
//
// It serves ConfigMaps, Pods and Deployments, namespaced and over all namespaces:
// list, pages, watch, streamed lists, get, create, replace, merge patch, JSON
// patch and delete, with preconditions, dry runs and finalizers. There are no
// subresources, no field managers, no schemas, no tables and no controllers.
//
// # Concurrency
//
// A Server is used by any number of goroutines. One lock guards it, and is not held
// while a request or an answer is on its way.
//
// # Ordering and delivery
//
// Each write has a resourceVersion of its own, one more than the write before,
// whatever the resource. The history reaches back to the last [Server.Compact].
// Watches are served from a cache that begins anew with [Server.Restart] and can
// be made to lag by [Server.Freeze].
//
// What the recordings do not show is as the real server's source has it: a watch
// from a resourceVersion in the future is open and silent, a PUT of an object that
// is gone answers a conflict when it names a uid, a DELETE answers a Status.
//
// # Errors
//
// Every failure is a [Status].
package kubeserver
