package proxy_test

import (
	"fmt"
	"io"
	"net"

	"github.com/homeostat/homeostat/internal/stores/proxy"
)

// A proxy that is down breaks every connection.
func Example() {
	p, err := proxy.New("127.0.0.1:1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	p.Down()

	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	heard, _ := io.ReadAll(c)
	fmt.Println("heard:", len(heard))
	// Output: heard: 0
}
