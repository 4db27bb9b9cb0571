package indexer_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/object"
)

type Pod struct{ Owner, IP string }

var (
	podsByOwner = indexer.By("owner", func(p Pod) string { return p.Owner })
	podByIP     = indexer.Unique("ip", func(p Pod) (string, bool) { return p.IP, p.IP != "" })
)

func Example() {
	pods := indexer.New[Pod](podsByOwner, podByIP)
	_ = pods.Put(object.Item[Pod]{Key: "a/web-1", Object: Pod{Owner: "web", IP: "10.0.0.1"}})
	_ = pods.Put(object.Item[Pod]{Key: "a/web-2", Object: Pod{Owner: "web", IP: "10.0.0.2"}})

	err := pods.Put(object.Item[Pod]{Key: "b/db-1", Object: Pod{Owner: "db", IP: "10.0.0.1"}})
	fmt.Println(err)

	now := pods.Snapshot()
	fmt.Println(podsByOwner.Count(now, "web"), "of", now.Len())
	for key, pod := range now.Prefix("a/") {
		fmt.Println(key, pod.IP)
	}
	// Output:
	// indexer: value taken in unique index "ip": "b/db-1" asks for 10.0.0.1, which "a/web-1" has
	// 2 of 2
	// a/web-1 10.0.0.1
	// a/web-2 10.0.0.2
}

// Moving an address is one step, for every reader.
func ExampleIndexer_Write() {
	pods := indexer.New[Pod](podByIP)
	_ = pods.Put(object.Item[Pod]{Key: "old", Version: "1", Object: Pod{IP: "10.0.0.1"}})

	move := func(b *indexer.Batch[Pod]) error {
		b.Put(object.Item[Pod]{Key: "new", Object: Pod{IP: "10.0.0.1"}})
		b.PutIf(object.Item[Pod]{Key: "old", Version: "2"}, "1")
		return nil
	}
	fmt.Println(pods.Write(move))
	key, _, _ := podByIP.One(pods, "10.0.0.1")
	fmt.Println(key)

	err := pods.Write(move)
	fmt.Println(errors.Is(err, indexer.ErrStale), err)
	// Output:
	// <nil>
	// new
	// true indexer: version moved: "old": want "1", found "2"
}

func ExampleIndexer_Until() {
	pods := indexer.New[Pod](podsByOwner)
	go func() { _ = pods.Put(object.Item[Pod]{Key: "web-1", Object: Pod{Owner: "web"}}) }()

	err := pods.Until(context.Background(), func(s *indexer.Snapshot[Pod]) bool {
		return podsByOwner.Count(s, "web") == 1
	})
	fmt.Println(err)
	// Output: <nil>
}
