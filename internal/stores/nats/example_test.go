package nats_test

import (
	"context"
	"fmt"

	"github.com/homeostat/homeostat/internal/stores/nats"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// A watch that begins with what there is.
func Example() {
	ctx := context.Background()
	conn, js, err := dial(server.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	name, err := bucket(ctx, js, 5)
	if err != nil {
		fmt.Println(err)
		return
	}
	lamps, err := nats.Open[string](ctx, js, name, nil)
	if err != nil {
		fmt.Println(err)
		return
	}

	lamps.Create(ctx, "hall", "off")
	for batch, err := range lamps.Watch(ctx, reflector.WatchOptions{Initial: true}) {
		if err != nil {
			fmt.Println(err)
			break
		}
		for _, e := range batch.Events {
			fmt.Println("told", e.Key, e.Object, e.Op == reflector.OpDelete)
		}
		if len(batch.Events) > 0 && !batch.Reset {
			break
		}
		if batch.Synced {
			lamps.Delete(ctx, "hall", object.Any)
		}
	}
	// Output:
	// told hall off false
	// told hall  true
}
