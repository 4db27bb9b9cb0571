package kubeserver_test

import (
	"fmt"
	"io"
	"net/http/httptest"

	"github.com/homeostat/homeostat/internal/stores/kube/kubeserver"
)

func Example() {
	srv := kubeserver.New(nil)
	web := httptest.NewServer(srv)
	defer web.Close()

	path := "/api/v1/namespaces/shop/configmaps"
	if err := srv.Put(path, map[string]any{"metadata": map[string]any{"name": "prices"}}); err != nil {
		panic(err)
	}
	resp, err := web.Client().Get(web.URL + path + "/price")
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(err)
	}
	fmt.Print(string(text))
	// Output:
	// {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"configmaps \"price\" not found","reason":"NotFound","details":{"name":"price","kind":"configmaps"},"code":404}
}
