package workqueue_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/homeostat/homeostat/retry"
	"github.com/homeostat/homeostat/workqueue"
)

func Example() {
	q := workqueue.New(&workqueue.Options[string]{
		Backoff: retry.Backoff{Schedule: []time.Duration{time.Millisecond}},
	})
	ctx, cancel := context.WithCancel(context.Background())
	tries := 0
	q.Add("a", "b", "a") // a is one key, so it runs once
	q.Run(ctx, 1, func(_ context.Context, key string) error {
		fmt.Println("working on", key)
		if key == "a" {
			return nil
		}
		if tries++; tries == 1 {
			return errors.New("not reachable") // again after the backoff
		}
		cancel()
		return retry.Permanent(errors.New("no such thing"))
	})
	for e := range q.Keys(workqueue.Parked) {
		fmt.Println("given up on", e.Key, "after", e.Attempts, "attempts:", e.Err)
	}
	// Output:
	// working on a
	// working on b
	// working on b
	// given up on b after 2 attempts: permanent: no such thing
}

// Run by hand: each key from Get needs its Done.
func ExampleQueue_Get() {
	q := workqueue.New[int](nil)
	q.Add(1)
	key, err := q.Get(context.Background())
	fmt.Println(key, err)
	q.Add(1) // while it is worked on: it runs once more
	fmt.Println(q.Len(), "due")
	fmt.Println(q.Done(1, nil), q.Len(), "due")
	fmt.Println(q.Done(1, nil))
	fmt.Println(q.Abort(), "left over")
	_, err = q.Get(context.Background())
	fmt.Println(err)
	// Output:
	// 1 <nil>
	// 0 due
	// <nil> 1 due
	// workqueue: key is not in work: 1
	// [1] left over
	// workqueue: closed
}
