//go:build race

package informer_test

const raced = true
