// Package consulserver is a small HTTP server that speaks the key-value part of
// Consul's API, blocking queries included, over a store in memory that a test can
// write to, set back and cut off.
//
// # Usage
//
//	srv := consulserver.New(nil)
//	web := httptest.NewServer(srv)
//	defer web.Close()
//
// It serves GET, PUT and DELETE of /v1/kv/… with recurse, cas, index, wait, stale
// and consistent, and PUT of /v1/txn with the verbs set, cas, delete, delete-cas,
// get, check-index and check-not-exists.
//
// # Concurrency
//
// A Server is used by any number of goroutines. One lock guards it, and is not held
// while a request or an answer is on its way.
//
// # Ordering and delivery
//
// Every write has the next index, also one that is none of this store's
// ([Server.Skip]). A value that is written again as it is changes nothing, its
// index neither. The index of an answer is the highest of what it shows and of
// what was deleted there, as long as that is remembered ([Server.Reap]); where
// there is neither, that of the whole table. So it may go back: after a Reap, after
// a [Server.Restore], and at a replica that lags ([Server.Lag]).
//
// A blocking query waits until the index is higher than the one that it names. It
// is answered with the whole state, also when its time is over, or for no reason
// ([Server.Wake]).
package consulserver
