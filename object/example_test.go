package object_test

import (
	"fmt"

	"github.com/homeostat/homeostat/object"
)

// Pod is a type with labels, owners and finalizers.
type Pod struct {
	object.Meta `json:"meta,omitzero"`
	Command     []string `json:"command"`
}

func Example() {
	pod := Pod{Command: []string{"serve"}}
	pod.Labels = map[string]string{"app": "web"}
	pod.Finalizers = []string{"volume"}

	item := object.Item[Pod]{Key: object.Key("shop", "web/1"), Version: "42", Object: pod}
	fmt.Println(item.Key, object.Split(item.Key))

	// Code that knows nothing of Pod finds its Meta.
	meta := object.MetaOf(&item.Object)
	fmt.Println(meta.Labels["app"], meta.Finalizers, meta.IsDeleting())
	// Output:
	// shop/web%2F1 [shop web/1]
	// web [volume] false
}

func ExampleKey() {
	fmt.Println(object.Key("shop", "web"))
	fmt.Println(object.Key("a/b", "c"), object.Key("a", "b/c"))
	// Output:
	// shop/web
	// a%2Fb/c a/b%2Fc
}
