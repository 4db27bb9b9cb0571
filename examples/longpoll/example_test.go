package main

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/homeostat/homeostat/reflector"
)

// A list, and what comes after it, by hand. Programs leave this to an informer.
func Example() {
	server := httptest.NewServer(NewService(1000))
	defer server.Close()
	orders := New[Order](server.URL, nil, &Options{Client: server.Client()})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	orders.Create(ctx, "ann", Order{Tea: 2})
	page, _ := orders.List(ctx, reflector.ListOptions{})
	fmt.Println("listed", page.Items[0].Key, page.Items[0].Object.Tea)
	orders.Update(ctx, page.Items[0])
	for batch, err := range orders.Watch(ctx, reflector.WatchOptions{After: page.Cursor}) {
		if err != nil {
			fmt.Println(err)
		}
		if len(batch.Events) == 0 {
			fmt.Println("open")
			continue
		}
		fmt.Println("told of", batch.Events[0].Key, orders.Powers().Reached(batch.Cursor, batch.Events[0].Version))
		break
	}
	_, err := orders.Update(ctx, page.Items[0])
	fmt.Println(err != nil)
	// Output:
	// listed ann 2
	// open
	// told of ann true
	// true
}
