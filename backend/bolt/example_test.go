package bolt_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/homeostat/homeostat/backend/bolt"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// A program ends and is started again. Who kept a cursor goes on where it stood.
func Example() {
	type Lamp struct{ On bool }
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "lamps.db")

	lamps, err := bolt.Open[Lamp](path, nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	lamps.Create(ctx, "hall", Lamp{})
	page, _ := lamps.List(ctx, reflector.ListOptions{})
	hall := page.Items[0]
	hall.Object.On = true
	lamps.Update(ctx, hall)
	lamps.Delete(ctx, "hall", object.Any)
	lamps.Close()

	lamps, err = bolt.Open[Lamp](path, nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lamps.Close()
	for batch, err := range lamps.Watch(ctx, reflector.WatchOptions{After: page.Cursor}) {
		if err != nil {
			fmt.Println(err) // reflector.ErrExpired: list again
			break
		}
		gone := false
		for _, e := range batch.Events {
			gone = e.Op == reflector.OpDelete
			fmt.Println(e.Key, "version", e.Version, "on:", e.Object.On, "deleted:", gone)
		}
		if gone {
			break
		}
	}
	// Output:
	// hall version 2 on: true deleted: false
	// hall version 3 on: true deleted: true
}
