//go:build !race

package backendtest_test

const raced = false
