package patch_test

import (
	"errors"
	"fmt"

	"github.com/homeostat/homeostat/patch"
)

func ExampleMerge() {
	p, err := patch.Merge([]byte(`{"replicas":3,"paused":null,"labels":{"tier":"front"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	doc, err := p.Apply([]byte(`{"name":"shop","replicas":2,"paused":true,"labels":{"app":"shop"}}`))
	fmt.Println(string(doc), err)
	// Output: {"name":"shop","replicas":3,"labels":{"app":"shop","tier":"front"}} <nil>
}

func ExampleJSON() {
	p, err := patch.JSON([]byte(`[
		{"op":"test","path":"/replicas","value":2},
		{"op":"replace","path":"/replicas","value":3},
		{"op":"add","path":"/ports/-","value":8443}
	]`))
	if err != nil {
		fmt.Println(err)
		return
	}
	doc, err := p.Apply([]byte(`{"replicas":2,"ports":[8080]}`))
	fmt.Println(string(doc), err)

	_, err = p.Apply([]byte(`{"replicas":5,"ports":[8080]}`))
	fmt.Println(errors.Is(err, patch.ErrTestFailed), err)
	// Output:
	// {"replicas":3,"ports":[8080,8443]} <nil>
	// true patch: operation 0: test: "/replicas": test failed: the value is another one
}

func ExampleMergeBetween() {
	p, err := patch.MergeBetween(
		[]byte(`{"name":"shop","replicas":2,"paused":true}`),
		[]byte(`{"name":"shop","replicas":3}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := p.MarshalJSON()
	fmt.Println(string(text), err)

	_, err = patch.MergeBetween([]byte(`{}`), []byte(`{"paused":null}`))
	fmt.Println(err)
	// Output:
	// {"paused":null,"replicas":3} <nil>
	// patch: "/paused": not representable as a merge patch: it can't set null
}

func ExampleJSONBetween() {
	p, err := patch.JSONBetween(
		[]byte(`{"ports":[80,443,8080],"paused":true}`),
		[]byte(`{"ports":[80,8080],"paused":null}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := p.MarshalJSON()
	fmt.Println(string(text), err)
	// Output: [{"op":"remove","path":"/ports/1"},{"op":"replace","path":"/paused","value":null}] <nil>
}

type Service struct {
	Name     string   `json:"name"`
	Replicas int      `json:"replicas"`
	Ports    []string `json:"ports"`
}

func ExampleInto() {
	p, err := patch.Merge([]byte(`{"replicas":3}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	old := &Service{Name: "shop", Replicas: 2}
	changed, err := patch.Into(p, old)
	fmt.Println(changed.Replicas, old.Replicas, err)
	// Output: 3 2 <nil>
}

func ExampleBetween() {
	old := Service{Name: "shop", Replicas: 2, Ports: []string{"http"}}
	p, err := patch.Between(old, Service{Name: "shop", Replicas: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := p.MarshalJSON()
	fmt.Println(string(text), err)

	same, err := patch.Between(old, old)
	fmt.Println(patch.IsEmpty(p), patch.IsEmpty(same), err)
	// Output:
	// {"replicas":3,"ports":null} <nil>
	// false true <nil>
}

func ExamplePath() {
	p := patch.Path{{Member: "spec"}, {Member: "a/b"}, {Index: 2, InList: true}}
	fmt.Println(p)
	// Output: /spec/a~1b/2
}
