//go:build !race

package workqueue_test

// operations of the model test.
const operations = 1_000_000
