//go:build race

package etcd_test

const racing = true
