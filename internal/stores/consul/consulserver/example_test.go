package consulserver_test

import (
	"fmt"
	"io"
	"net/http/httptest"

	"github.com/homeostat/homeostat/internal/stores/consul/consulserver"
)

func Example() {
	srv := consulserver.New(nil)
	web := httptest.NewServer(srv)
	defer web.Close()

	srv.Apply(consulserver.Op{Key: "shop/tea", Value: []byte("2")})
	resp, err := web.Client().Get(web.URL + "/v1/kv/shop/?recurse&index=9&wait=1s")
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(err)
	}
	fmt.Println(resp.Header.Get("X-Consul-Index"), string(text))
	// Output:
	// 11 [{"LockIndex":0,"Key":"shop/tea","Flags":0,"Value":"Mg==","CreateIndex":11,"ModifyIndex":11}]
}
