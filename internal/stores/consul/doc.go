// Package consul is a backend over Consul's key-value API, made with net/http
// alone. It is for tests: with it the contract of reflector and backend is tried on
// a system that it was not made for. Package consulserver is a server for it.
//
// # Usage
//
//	flags := consul.New[Flag](client, "http://127.0.0.1:8500", "shop/flags/", nil, nil)
//
// The store is what lies under a prefix; its keys begin behind it. Values are made
// by a codec, JSON if there is none. The client has no Timeout, which would end
// each blocking query.
//
// # Concurrency
//
// A [Store] keeps nothing between two calls and is used by any number of
// goroutines. Everything happens on the goroutine of the caller.
//
// # Ordering and delivery
//
// A watch is a row of blocking queries, each answered with the full state: what is
// written while one answer is on its way is told in the next, and states in between
// are not told at all. A cursor is the index of an answer (X-Consul-Index); a
// Version is the ModifyIndex, an ID the CreateIndex.
//
// An index says "wait until it is another one", and no more. It goes back when the
// store is restored, when a replica lags, and when deletes are forgotten, and
// nothing tells which it was; and it may go back, or forth again, to the very number
// that stood for another state. So cursors are not compared, nor with versions, no
// watch is resumed (Powers.ResumeProven is not set), and that nothing has changed is
// believed of an equal answer, not of an equal index.
//
// Reads ask for consistency; with [Options].Stale any server may answer, and what
// is read may go back in time for a while.
//
// # Errors
//
// Those of reflector and backend, with the words of package retry. An answer
// without an index is an error, also a 404: it is none of Consul's. Index 0, which
// must not be waited for, ends the watch after it was shown.
//
// A value that the codec cannot decode is a reflector.Fault of the state that it is
// in, and an error of Get and Patch that names its key; Update and Delete need not
// decode it.
package consul
