package etcd_test

import (
	"context"
	"fmt"

	"github.com/homeostat/homeostat/internal/stores/etcd"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// A list, and a watch of all that came after it.
func Example() {
	ctx := context.Background()
	client, err := dial(server.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	lamps := etcd.New[string](client, "lamps/", nil)

	lamps.Create(ctx, "hall", "off")
	page, _ := lamps.List(ctx, reflector.ListOptions{})
	for _, item := range page.Items {
		fmt.Println("listed", item.Key, item.Object)
	}
	lamps.Delete(ctx, "hall", object.Any)

	for batch, err := range lamps.Watch(ctx, reflector.WatchOptions{After: page.Cursor}) {
		if err != nil {
			fmt.Println(err)
			break
		}
		if len(batch.Events) > 0 {
			e := batch.Events[0]
			fmt.Println("told", e.Key, e.Object, e.Op == reflector.OpDelete)
			break
		}
	}
	// Output:
	// listed hall off
	// told hall off true
}
