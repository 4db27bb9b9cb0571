package consul_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/homeostat/homeostat/internal/stores/consul"
	"github.com/homeostat/homeostat/internal/stores/consul/consulserver"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

const prefix = "shop/"

type flag struct {
	Text string
	N    int
}

// serve runs a handler, and leaves nothing behind.
func serve(t *testing.T, h http.Handler) (client *http.Client, url string) {
	t.Helper()
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	return web.Client(), web.URL
}

func open(t *testing.T, opts *consul.Options) (*consulserver.Server, *consul.Store[flag]) {
	t.Helper()
	srv := consulserver.New(nil)
	client, url := serve(t, srv)
	return srv, consul.New[flag](client, url, prefix, nil, opts)
}

func set(t *testing.T, key string, n int) consulserver.Op {
	t.Helper()
	value, err := json.Marshal(flag{N: n})
	require.NoError(t, err)
	return consulserver.Op{Key: prefix + key, Value: value}
}

func unset(key string) consulserver.Op { return consulserver.Op{Key: prefix + key, Delete: true} }

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// take ranges over a watch until n batches came or it ended.
func take(t *testing.T, src reflector.ListWatcher[flag], opts reflector.WatchOptions, n int, between ...func(got int)) ([]reflector.Batch[flag], error) {
	t.Helper()
	ctx, cancel := context.WithCancel(soon(t))
	defer cancel()
	var got []reflector.Batch[flag]
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

// keys are those of a full state, with what they hold.
func keys(b reflector.Batch[flag]) map[string]int {
	all := map[string]int{}
	for _, e := range b.Events {
		all[e.Key] = e.Object.N
	}
	return all
}
