package fake_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// The first list fails, and one write is done although its answer is lost.
func Example() {
	ctx := context.Background()
	users := fake.New(fake.Plan{Faults: []fake.Fault{
		{On: fake.List, Do: fake.Fail, Call: 1},
		{On: fake.Writes, Do: fake.FailAfterCommit, Call: 2},
	}}, object.Item[string]{Key: "ann", Object: "Ann"})

	_, err := users.List(ctx, reflector.ListOptions{})
	fmt.Println(err)
	users.Create(ctx, "bob", "Bob")
	_, err = users.Delete(ctx, "ann", object.Any)
	fmt.Println(err, errors.Is(err, backend.ErrOutcomeUnknown))

	users.SetPlan(fake.Plan{}) // the sun comes out
	page, _ := users.List(ctx, reflector.ListOptions{})
	fmt.Println(len(page.Items), page.Items[0].Object)
	for _, call := range users.Log() {
		fmt.Println(call)
	}
	// Output:
	// fake: list: fake: a fault, as planned
	// delete "ann": backend: outcome unknown true
	// 1 Bob
	// list #1: fail: fake: list: fake: a fault, as planned
	// create #1 "bob" at 2
	// delete #1 "ann" at 3: fail after commit: delete "ann": backend: outcome unknown
	// list #2 at 3
}

// A test writes exactly between a list and the watch that follows it.
func ExampleBackend_Intercept() {
	ctx := context.Background()
	users := fake.New(fake.Plan{}, object.Item[string]{Key: "ann", Object: "Ann"})
	users.Intercept(fake.Watch, func(ctx context.Context, _ string) error {
		users.Create(ctx, "bob", "Bob")
		return nil
	})

	page, _ := users.List(ctx, reflector.ListOptions{})
	fmt.Println("listed", len(page.Items))
	for batch := range users.Watch(ctx, reflector.WatchOptions{After: page.Cursor}) {
		for _, e := range batch.Events {
			fmt.Println("told", e.Object)
			return
		}
	}
	// Output:
	// listed 1
	// told Bob
}

// A list is held when it has been read and not yet answered.
func ExampleBackend_PauseAfter() {
	ctx := context.Background()
	users := fake.New(fake.Plan{}, object.Item[string]{Key: "ann", Object: "Ann"})
	pause := users.PauseAfter(fake.List)
	listed := make(chan int)
	go func() {
		page, _ := users.As("reader").List(ctx, reflector.ListOptions{})
		listed <- len(page.Items)
	}()
	pause.Wait(ctx, 1) // it has been read
	users.Create(ctx, "bob", "Bob")
	pause.Release()
	fmt.Println("listed", <-listed)
	fmt.Println(users.As("reader").Log())
	// Output:
	// listed 1
	// [reader: list #1 at 1]
}

// Two callers are struck apart: each one's second read fails, whoever is faster.
func ExampleBackend_As() {
	ctx := context.Background()
	users := fake.New(fake.Plan{Faults: []fake.Fault{{On: fake.Get, Do: fake.Fail, Call: 2}}}, object.Item[string]{Key: "ann", Object: "Ann"})
	one, two := users.As("one"), users.As("two")
	for range 2 {
		one.Get(ctx, "ann")
	}
	_, err := two.Get(ctx, "ann")
	fmt.Println(err)
	_, err = two.Get(ctx, "ann")
	fmt.Println(err)
	// Output:
	// <nil>
	// get "ann": fake: a fault, as planned
}
