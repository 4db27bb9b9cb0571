package informer_test

import "github.com/homeostat/homeostat/informer"

// A type that embeds an informer and a backend must have the backend's methods. So
// the Informer may have none of their names: a method of both would be ambiguous,
// and the selectors below would not compile.
type backendNames struct{}

func (backendNames) Get()    {}
func (backendNames) List()   {}
func (backendNames) Watch()  {}
func (backendNames) Powers() {}
func (backendNames) Create() {}
func (backendNames) Update() {}
func (backendNames) Patch()  {}
func (backendNames) Delete() {}
func (backendNames) DryRun() {}

type client struct {
	*informer.Informer[int]
	backendNames
}

var _ = []func(client){
	client.Get, client.List, client.Watch, client.Powers, client.Create,
	client.Update, client.Patch, client.Delete, client.DryRun,
}
