package stepped_test

import (
	"fmt"

	"github.com/homeostat/homeostat/internal/stepped"
)

// A history is text: the clients, then the steps.
func ExampleCheck() {
	fmt.Println(stepped.Check(`
		client list+order+ids
		create k0
		go c0       // the list is let through
		fail c0 boom`))
	fmt.Println(stepped.Check("lose c0"))
	// Output:
	// <nil>
	// stepped: "lose c0": no step is called "lose"
}
