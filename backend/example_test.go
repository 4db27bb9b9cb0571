package backend_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/object"
)

type Counter struct {
	N    int
	Note string `json:",omitempty"`
}

// Modify writes what changed, whoever else writes meanwhile; Ensure creates what
// is not there.
func ExampleModify() {
	ctx := context.Background()
	counters := memory.New[Counter](nil)
	more := func(c Counter) (Counter, error) {
		c.N++
		return c, nil
	}

	_, err := backend.Modify(ctx, counters, "visits", more)
	fmt.Println(errors.Is(err, backend.ErrNotFound))
	item, _ := backend.Ensure(ctx, counters, "visits", more)
	fmt.Println(item.Object.N, "at version", item.Version)
	item, _ = backend.Modify(ctx, counters, "visits", more)
	fmt.Println(item.Object.N, "at version", item.Version)
	item, _ = backend.Modify(ctx, counters, "visits", func(c Counter) (Counter, error) { return c, nil })
	fmt.Println(item.Object.N, "at version", item.Version)
	// Output:
	// true
	// 1 at version 1
	// 2 at version 2
	// 2 at version 2
}

type Volume struct {
	object.Meta `json:"meta,omitzero"`
	Size        int
}

// A deleted object stays until everybody has cleaned up.
func ExampleWithFinalizers() {
	ctx := context.Background()
	volumes := backend.WithFinalizers(memory.New[Volume](nil))
	v := Volume{Size: 10}
	v.Finalizers = []string{"disk"}
	volumes.Create(ctx, "data", v)

	item, _ := volumes.Delete(ctx, "data", object.Any)
	fmt.Println("being deleted:", item.Object.IsDeleting())

	// Whoever set the finalizer cleans up and takes it away.
	backend.Modify(ctx, volumes, "data", func(v Volume) (Volume, error) {
		v.Finalizers = nil
		return v, nil
	})
	_, err := volumes.Get(ctx, "data")
	fmt.Println(err)
	// Output:
	// being deleted: true
	// get "data": not found
}
