//go:build race

package workqueue_test

// operations of the model test: under the race detector fewer, for what runs on
// one goroutine gains nothing from it.
const operations = 100_000
