package memory_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// Two writers read the same version: the second one is told so.
func Example() {
	type Lamp struct{ On bool }
	ctx := context.Background()
	lamps := memory.New[Lamp](nil)

	hall, _ := lamps.Create(ctx, "hall", Lamp{})
	hall.Object.On = true
	_, err := lamps.Update(ctx, hall)
	fmt.Println("first:", err)
	_, err = lamps.Update(ctx, hall)
	fmt.Println("second:", err)
	fmt.Println("a conflict:", errors.Is(err, backend.ErrConflict))
	// Output:
	// first: <nil>
	// second: update "hall": backend: version conflict (want version 1, found 2)
	// a conflict: true
}

// A list and a watch from its cursor miss nothing.
func ExampleStore_Watch() {
	ctx := context.Background()
	names := memory.New[string](nil)
	names.Create(ctx, "a", "Ann")

	page, _ := names.List(ctx, reflector.ListOptions{})
	for _, item := range page.Items {
		fmt.Println("listed", item.Key, item.Object)
	}
	names.Create(ctx, "b", "Bob")
	names.Delete(ctx, "a", object.Any)

	told := 0
	for batch, err := range names.Watch(ctx, reflector.WatchOptions{After: page.Cursor}) {
		if err != nil {
			fmt.Println(err) // reflector.ErrExpired: list again
			break
		}
		for _, e := range batch.Events {
			fmt.Println("told", e.Key, e.Object, e.Op == reflector.OpDelete)
			told++
		}
		if told == 2 {
			break
		}
	}
	// Output:
	// listed a Ann
	// told b Bob false
	// told a Ann true
}

// A store comes back from a backup, under a new epoch: who watched is told that its
// place is gone.
func ExampleStore_Restore() {
	ctx := context.Background()
	names := memory.New[string](nil)
	names.Create(ctx, "a", "Ann")
	backup := names.Snapshot()
	names.Create(ctx, "b", "Bob")
	page, _ := names.List(ctx, reflector.ListOptions{})

	names.Restore(backup, true)
	for _, err := range names.Watch(ctx, reflector.WatchOptions{After: page.Cursor}) {
		fmt.Println(errors.Is(err, reflector.ErrExpired))
	}
	page, _ = names.List(ctx, reflector.ListOptions{})
	fmt.Println(len(page.Items), page.Items[0].Object)
	// Output:
	// true
	// 1 Ann
}
