package benchmarks_test

import (
	"testing"

	"github.com/homeostat/homeostat/workqueue"
)

func podKeys(n int) []string {
	keys := make([]string, n)
	for i, item := range podItems(n) {
		keys[i] = item.Key
	}
	return keys
}

// newQueue is a queue that is put away at the row's end.
func newQueue(b *testing.B) *workqueue.Queue[string] {
	b.Helper()
	q := workqueue.New[string](nil)
	b.Cleanup(func() { q.Abort() })
	return q
}

func getDone(b *testing.B, q *workqueue.Queue[string]) {
	key, err := q.Get(b.Context())
	must(b, err)
	must(b, q.Done(key, nil))
}

// BenchmarkWorkqueueAddGetDone takes one key through the queue.
func BenchmarkWorkqueueAddGetDone(b *testing.B) {
	row(b, "keys", keys, func(b *testing.B) {
		q, names := newQueue(b), podKeys(keys)
		for i := 0; b.Loop(); i++ {
			q.Add(names[i%keys])
			getDone(b, q)
		}
	})
}

// BenchmarkWorkqueueDrain adds 10 000 keys, then takes them all.
func BenchmarkWorkqueueDrain(b *testing.B) {
	const n = 10_000
	row(b, "keys", n, func(b *testing.B) {
		q, names := newQueue(b), podKeys(n)
		for b.Loop() {
			for _, key := range names {
				q.Add(key)
			}
			for range n {
				getDone(b, q)
			}
		}
		perItem(b, n, "key")
	})
}

// BenchmarkWorkqueueAddQueued adds a key that waits already.
func BenchmarkWorkqueueAddQueued(b *testing.B) {
	row(b, "keys", keys, func(b *testing.B) {
		q, names := newQueue(b), podKeys(keys)
		q.Add(names...)
		for i := 0; b.Loop(); i++ {
			q.Add(names[i%keys])
		}
	})
}
