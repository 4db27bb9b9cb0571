package retry_test

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/homeostat/homeostat/retry"
)

// What a loop does with an outcome.
func Example() {
	backoff := retry.Backoff{NoJitter: true}
	failures := 0
	for _, outcome := range []error{
		errors.New("connection refused"),
		errors.New("connection refused"),
		retry.After(errors.New("too many requests"), 30*time.Second),
		retry.Later(10*time.Second, "waiting for the volume"),
		errors.New("connection refused"),
		retry.Permanent(errors.New("no such image")),
	} {
		switch d, named := retry.Delay(outcome); {
		case retry.IsPermanent(outcome):
			fmt.Println("give up: ", outcome)
		case retry.IsLater(outcome):
			failures = 0
			fmt.Println("wait    ", d, outcome)
		default:
			failures++
			if !named {
				d = backoff.Delay(failures)
			}
			fmt.Println("again in", d, outcome)
		}
	}
	// Output:
	// again in 100ms connection refused
	// again in 200ms connection refused
	// again in 30s too many requests (again after 30s)
	// wait     10s later: waiting for the volume (in 10s)
	// again in 100ms connection refused
	// give up:  permanent: no such image
}

func ExampleResponse() {
	busy := &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {"120"}}}
	fmt.Println(retry.Response(busy))
	gone := &http.Response{StatusCode: 404}
	fmt.Println(retry.Response(gone))
	fmt.Println(retry.Response(gone, http.StatusNotFound))
	// Output:
	// http: 503 Service Unavailable (again after 2m0s)
	// permanent: http: 404 Not Found
	// <nil>
}

func ExampleBackoff() {
	b := retry.Backoff{Base: time.Second, Max: 5 * time.Second, NoJitter: true}
	for attempt := 1; attempt <= 5; attempt++ {
		fmt.Print(b.Delay(attempt), " ")
	}
	// Output: 1s 2s 4s 5s 5s
}
