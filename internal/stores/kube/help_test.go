package kube_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/homeostat/homeostat/internal/stores/kube"
	"github.com/homeostat/homeostat/internal/stores/kube/kubeserver"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

const (
	configMaps  = "/api/v1/namespaces/shop/configmaps"
	deployments = "/apis/apps/v1/namespaces/shop/deployments"
	pods        = "/api/v1/namespaces/shop/pods"
)

// configMap is what the tests decode objects into.
type configMap struct {
	Kind       string            `json:"kind,omitempty"`
	APIVersion string            `json:"apiVersion,omitempty"`
	Metadata   metadata          `json:"metadata"`
	Data       map[string]string `json:"data,omitempty"`
}

type metadata struct {
	Name              string            `json:"name,omitempty"`
	Namespace         string            `json:"namespace,omitempty"`
	UID               string            `json:"uid,omitempty"`
	ResourceVersion   string            `json:"resourceVersion,omitempty"`
	CreationTimestamp string            `json:"creationTimestamp,omitempty"`
	DeletionTimestamp string            `json:"deletionTimestamp,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Finalizers        []string          `json:"finalizers,omitempty"`
}

func named(name, text string) configMap {
	return configMap{Metadata: metadata{Name: name}, Data: map[string]string{"text": text}}
}

// serve runs a handler, and leaves nothing behind.
func serve(t *testing.T, h http.Handler) (client *http.Client, url string) {
	t.Helper()
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	return web.Client(), web.URL
}

// open makes a server and a store of its ConfigMaps.
func open(t *testing.T, opts *kubeserver.Options) (*kubeserver.Server, *kube.Store[configMap]) {
	t.Helper()
	srv := kubeserver.New(opts)
	client, url := serve(t, srv)
	return srv, kube.New[configMap](client, url+configMaps, nil)
}

func put(t *testing.T, srv *kubeserver.Server, objs ...configMap) {
	t.Helper()
	for _, obj := range objs {
		require.NoError(t, srv.Put(configMaps, obj))
	}
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// take ranges over a watch until n batches came or it ended.
func take[T any](t *testing.T, src reflector.ListWatcher[T], opts reflector.WatchOptions, n int, between ...func(got int)) ([]reflector.Batch[T], error) {
	t.Helper()
	ctx, cancel := context.WithCancel(soon(t))
	defer cancel()
	var got []reflector.Batch[T]
	for b, err := range src.Watch(ctx, opts) {
		if err != nil {
			return got, err
		}
		got = append(got, b)
		if len(got) == n {
			return got, nil
		}
		for _, f := range between {
			f(len(got))
		}
	}
	require.NoError(t, ctx.Err(), "waited for more than %d batches", len(got))
	return got, nil
}
