package deltafifo_test

import (
	"context"
	"fmt"

	"github.com/homeostat/homeostat/deltafifo"
	"github.com/homeostat/homeostat/object"
)

// A consumer that was away is told the least that is true.
func ExampleFIFO() {
	ctx := context.Background()
	fifo := deltafifo.New[string](nil, nil)
	defer fifo.Close()

	_ = fifo.Put([]object.Item[string]{{Key: "lamp", Object: "off"}, {Key: "door", Object: "shut"}}, object.Initial)
	show(fifo.PopBatch(ctx, make([]deltafifo.Delta[string], 0, 8)))

	// The lamp goes on and off; the door is gone, and there is another one.
	_ = fifo.Put([]object.Item[string]{{Key: "lamp", Object: "on"}}, object.Watched)
	_ = fifo.Put([]object.Item[string]{{Key: "lamp", Object: "dim"}}, object.Watched)
	_ = fifo.Delete(object.Item[string]{Key: "door"}, object.Watched)
	_ = fifo.Put([]object.Item[string]{{Key: "door", Object: "open"}}, object.Watched)
	fmt.Println("--")
	show(fifo.PopBatch(ctx, make([]deltafifo.Delta[string], 0, 8)))

	// Output:
	// put lamp: off (had nothing)
	// put door: shut (had nothing)
	// --
	// put lamp: dim (had off)
	// delete door: shut (had shut)
	// put door: open (had nothing)
}

func show(deltas []deltafifo.Delta[string], err error) {
	if err != nil {
		fmt.Println(err)
	}
	for _, d := range deltas {
		old := "nothing"
		if d.Had {
			old = d.Old.Object
		}
		fmt.Printf("%v %s: %s (had %s)\n", d.Type, d.Item.Key, d.Item.Object, old)
	}
}

// An informer has a cache, so it needs no memory of what it handed over.
func ExampleBuffer() {
	buffer := deltafifo.NewBuffer[int](nil)
	defer buffer.Close()

	held := object.Item[int]{Key: "a", ID: "first", Object: 1}
	next := object.Item[int]{Key: "a", ID: "second", Object: 2}
	_ = buffer.Push(deltafifo.Delta[int]{Type: deltafifo.Put, Item: next, Had: true, Old: held, Cause: object.Relist})

	deltas, _ := buffer.Pop(context.Background())
	for _, d := range deltas {
		fmt.Println(d.Type, d.Item.ID, d.Inferred)
	}
	// Output:
	// delete first true
	// put second false
}
