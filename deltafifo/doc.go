// Package deltafifo is a queue of per-key deltas: per key the shortest list that
// still tells the truth.
package deltafifo
