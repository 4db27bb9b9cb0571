package kube_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/homeostat/homeostat/internal/stores/kube"
	"github.com/homeostat/homeostat/internal/stores/kube/kubeserver"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
)

func Example() {
	web := httptest.NewServer(kubeserver.New(nil))
	defer web.Close()
	ctx := context.Background()

	maps := kube.New[configMap](web.Client(), web.URL+"/api/v1/namespaces/shop/configmaps", nil)
	made, err := maps.Create(ctx, "prices", configMap{Data: map[string]string{"tea": "2"}})
	if err != nil {
		panic(err)
	}
	p, err := patch.Merge([]byte(`{"data":{"tea":"3"}}`))
	if err != nil {
		panic(err)
	}
	item, err := maps.Patch(ctx, "prices", p, made.Version)
	if err != nil {
		panic(err)
	}
	fmt.Println(item.Key, item.Object.Data, item.Version)
	_, err = maps.Delete(ctx, "prices", made.Version)
	fmt.Println(err)
	_, err = maps.Delete(ctx, "prices", object.Any)
	fmt.Println(err)
	// Output:
	// prices map[tea:3] 102
	// delete "prices": backend: version conflict (want version 101, found 102)
	// <nil>
}
