package fake_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
)

// The normal way to test what reads a cache: a real informer over the fake. Writes
// go to the fake; WaitFor waits until the cache has them, however bad the day.
func Example_informer() {
	fmt.Print(informerOverFake())
	// Output:
	// Ann Bob
	// ann is gone
}

func informerOverFake() string {
	var out strings.Builder
	ctx, cancel := context.WithCancel(context.Background())
	users := fake.New(fake.Plan{Seed: 7, Faults: []fake.Fault{
		{On: fake.Watch, Do: fake.Duplicate, OneIn: 2},
	}}, object.Item[string]{Key: "ann", Object: "Ann"})

	cache := informer.New(users, nil)
	var running sync.WaitGroup
	running.Go(func() { cache.Run(ctx) })
	defer running.Wait()
	defer cancel()

	bob, _ := users.Create(ctx, "bob", "Bob")
	if err := cache.WaitFor(ctx, "bob", bob.Version); err != nil {
		fmt.Fprintln(&out, err)
	}
	ann, _ := cache.Cache().Get("ann")
	name, _ := cache.Cache().Get("bob")
	fmt.Fprintln(&out, ann, name)

	gone, _ := users.Delete(ctx, "ann", object.Any)
	if err := cache.WaitFor(ctx, "ann", gone.Version); err != nil {
		fmt.Fprintln(&out, err)
	}
	if _, ok := cache.Cache().Get("ann"); !ok {
		fmt.Fprintln(&out, "ann is gone")
	}
	return out.String()
}
