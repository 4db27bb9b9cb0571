//go:build !race

package nats_test

const racing = false
