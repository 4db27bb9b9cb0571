//go:build unix

// Package node is a node agent: it makes processes of Pods.
//
// For each Pod it runs one process, in a process group of its own, starts it again
// as the Pod's restart policy says, writes what has become of it into the Pod's
// status, and ends the group when the Pod is deleted. A finalizer keeps the Pod
// until its group is gone.
//
// The agent acts on what it sees, not on what it did: its reconcile function may
// run at any time, any number of times. That an object's key is never reconciled
// twice at once is what guards a process's record.
package node
