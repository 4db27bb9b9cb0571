// Package workload has the two kinds of object that the examples share: a
// ReplicaSet, which is declared, and a Pod, which is one process that runs.
package workload
