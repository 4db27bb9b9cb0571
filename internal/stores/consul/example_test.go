package consul_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/homeostat/homeostat/internal/stores/consul"
	"github.com/homeostat/homeostat/internal/stores/consul/consulserver"
	"github.com/homeostat/homeostat/object"
)

func Example() {
	web := httptest.NewServer(consulserver.New(nil))
	defer web.Close()
	ctx := context.Background()

	prices := consul.New[int](web.Client(), web.URL, "shop/prices/", nil, nil)
	tea, err := prices.Create(ctx, "tea", 2)
	if err != nil {
		panic(err)
	}
	changed, err := prices.Update(ctx, object.Item[int]{Key: "tea", Version: tea.Version, Object: 3})
	fmt.Println(changed.Object, changed.Version, err)
	_, err = prices.Update(ctx, object.Item[int]{Key: "tea", Version: tea.Version, Object: 4})
	fmt.Println(err)
	// Output:
	// 3 12 <nil>
	// update "tea": backend: version conflict (want version 11, found 12)
}
