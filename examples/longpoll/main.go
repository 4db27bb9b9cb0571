// Command longpoll shows how a system of one's own becomes a backend. [Service]
// stands for that system, a plain HTTP/JSON service with long polling; [Store] is
// the adapter, complete, and to be read in the order cursor.go, adapter.go, read.go,
// ask.go, write.go; docs/backends.md walks through it. This file runs a small
// controller over it, on a day on which the service is not always well, and ends
// by itself.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/retry"
)

// Order is placed by somebody, and priced by the controller.
type Order struct {
	object.Meta `json:"meta,omitzero"` // so that it can have finalizers
	Tea, Cake   int
	Total       int `json:",omitempty"`
}

func (o Order) due() int { return 3*o.Tea + 5*o.Cake }

// pricer writes the total where it is missing or wrong.
func pricer(orders reconcile.Client[Order]) reconcile.Func[Order] {
	return func(ctx context.Context, req reconcile.Request[Order]) error {
		order, exists := req.Object()
		if !exists || order.Total == order.due() {
			return nil
		}
		_, err := backend.Modify(ctx, orders, req.Key, func(o Order) (Order, error) {
			o.Total = o.due()
			return o, nil
		})
		if errors.Is(err, backend.ErrNotFound) { // gone since
			return nil
		}
		return err
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run starts the service and the controller, lives through a day, and ends both.
func run(ctx context.Context, out io.Writer) (err error) {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	service := NewService(1000)
	url, end, err := serve(ctx, service)
	if err != nil {
		return err
	}
	defer end()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	store := New[Order](url, nil, &Options{Client: client})

	orders := reconcile.NewClient(store, &informer.Options{Backoff: retry.Backoff{Max: time.Second}})
	running, ended := context.WithCancel(ctx)
	result := make(chan error, 1)
	go func() {
		result <- reconcile.Run(running, reconcile.New("prices", orders.Informer, pricer(orders), nil))
	}()
	defer func() {
		ended()
		err = errors.Join(err, <-result)
	}()
	return day(ctx, out, service, store, orders)
}

// day is what happens to the service.
func day(ctx context.Context, out io.Writer, service *Service, store *Store[Order], orders reconcile.Client[Order]) error {
	fmt.Fprintln(out, "two orders are placed")
	for guest, order := range map[string]Order{"ann": {Tea: 2}, "bob": {Tea: 1, Cake: 1}} {
		if _, err := store.Create(ctx, guest, order); err != nil {
			return err
		}
	}
	if err := show(ctx, out, orders, 2); err != nil {
		return err
	}

	fmt.Fprintln(out, "the service has too much to do")
	service.Overloaded.Store(true)
	_, err := store.Create(ctx, "cyd", Order{Cake: 3})
	pause, _ := retry.Delay(err)
	fmt.Fprintln(out, "  an order is refused, to be placed again after", pause)
	service.Overloaded.Store(false)
	if _, err := store.Create(ctx, "cyd", Order{Cake: 3}); err != nil {
		return err
	}
	if err := show(ctx, out, orders, 3); err != nil {
		return err
	}

	fmt.Fprintln(out, "the service starts anew, and empty")
	service.Reset()
	if err := show(ctx, out, orders, 0); err != nil {
		return err
	}
	if _, err := store.Create(ctx, "dan", Order{Tea: 1}); err != nil {
		return err
	}
	return show(ctx, out, orders, 1)
}

// show waits until the cache has n orders, all priced, and prints them.
func show(ctx context.Context, out io.Writer, orders reconcile.Client[Order], n int) error {
	var lines []string
	err := orders.Until(ctx, func(s *indexer.Snapshot[Order]) bool {
		lines = nil
		for guest, order := range s.Sorted() {
			if order.Total != order.due() {
				return false
			}
			lines = append(lines, fmt.Sprintf("  %s pays %d", guest, order.Total))
		}
		return len(lines) == n
	})
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
	return err
}

// serve serves on a free port of this machine until end is called. The end of ctx
// ends the long polls.
func serve(ctx context.Context, h http.Handler) (url string, end func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: h, BaseContext: func(net.Listener) context.Context { return ctx }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(listener)
	}()
	return "http://" + listener.Addr().String(), func() {
		server.Close()
		<-done
	}, nil
}
