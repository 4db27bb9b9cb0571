package informer_test

import (
	"context"
	"fmt"

	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reflector"
)

type Service struct{ Name, Zone string }

var byZone = indexer.By("zone", func(s Service) string { return s.Zone })

// Any function that lists is a source.
func listServices(context.Context) ([]Service, error) {
	return []Service{{"mail", "north"}, {"web", "south"}, {"db", "north"}}, nil
}

func Example() {
	source := reflector.Poll(listServices, func(s Service) string { return s.Name }, nil)
	services := informer.New(source, &informer.Options{Name: "services"}, byZone)

	added := 0
	counter := services.AddHandler(func(c informer.Change[Service]) {
		if c.Type == informer.Added {
			added++
		}
	}, nil)

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- services.Run(ctx) }()

	if err := counter.WaitForSync(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println("told of", added)
	web, ok := services.Cache().Get("web")
	fmt.Println(web.Zone, ok)
	fmt.Println("in the north:", byZone.Count(services.Cache(), "north"))

	cancel()
	fmt.Println(<-done)
	// Output:
	// told of 3
	// south true
	// in the north: 2
	// <nil>
}
