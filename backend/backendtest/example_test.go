package backendtest_test

import (
	"context"
	"fmt"

	"github.com/homeostat/homeostat/backend/backendtest"
	"github.com/homeostat/homeostat/backend/memory"
)

// A store in memory has all powers; of what can happen to a store, this harness can
// only compact its history.
func Example() {
	type lamp struct {
		On     bool
		Colour string
	}
	report := backendtest.Run(context.Background(), backendtest.Harness[lamp]{
		New: func(context.Context) (*backendtest.Fixture[lamp], error) {
			s := memory.New[lamp](nil)
			return &backendtest.Fixture[lamp]{
				Source:  s,
				Compact: func(context.Context) error { s.Compact(); return nil },
			}, nil
		},
		Object: func(n int) lamp { return lamp{On: n%2 == 0, Colour: fmt.Sprint("colour ", n)} },
	})
	fmt.Println("broken rules:", report.Err())
	fmt.Println("lacks:", report.Lacks)
	// Output:
	// broken rules: <nil>
	// lacks: [Harness.Cut Harness.Down Harness.Forget Harness.Restart Harness.Spoil Transactions]
}

func ExampleReport_String() {
	report := backendtest.Report{
		Results: []backendtest.Result{
			{Check: backendtest.Check{Name: "list/whole"}},
			{Check: backendtest.Check{Name: "list/pages"}, Skipped: "Paged"},
			{Check: backendtest.Check{Name: "powers/get"}, Err: fmt.Errorf("Get of what was deleted is not ErrNotFound")},
		},
		Lacks: []string{"Paged"},
	}
	fmt.Print(report)
	// Output:
	// ok    list/whole
	// skip  list/pages  lacks Paged
	// FAIL  powers/get  Get of what was deleted is not ErrNotFound
	// 3 checks, 1 failed, 1 skipped
	// lacks Paged
}
