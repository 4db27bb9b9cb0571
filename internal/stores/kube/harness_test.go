package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/homeostat/homeostat/backend/backendtest"
	"github.com/homeostat/homeostat/internal/stores/kube"
	"github.com/homeostat/homeostat/internal/stores/kube/kubeserver"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

// payload is what of an object is its writer's alone.
type payload struct {
	Data       map[string]string `json:"data,omitempty"`
	BinaryData map[string][]byte `json:"binaryData,omitempty"`
}

// harness drives a server for the kit.
func harness(opts *kubeserver.Options) backendtest.Harness[payload] {
	return backendtest.Harness[payload]{
		Many: 100, // there is no page that the server cannot make larger
		New:  func(context.Context) (*backendtest.Fixture[payload], error) { return fixture(opts), nil },
		Object: func(n int) payload {
			return payload{Data: map[string]string{"number": fmt.Sprint(n)}, BinaryData: map[string][]byte{"n": {byte(n), byte(n >> 8)}}}
		},
	}
}

func fixture(opts *kubeserver.Options) *backendtest.Fixture[payload] {
	srv := kubeserver.New(opts)
	web := httptest.NewServer(srv)
	store := kube.New[payload](web.Client(), web.URL+configMaps, nil)
	var source reflector.ListWatcher[payload] = store
	if opts.NoWatchList {
		source = unstreamed{store}
	}
	var cuts atomic.Uint32
	return &backendtest.Fixture[payload]{
		Source: source,
		Write: func(_ context.Context, changes ...backendtest.Change[payload]) error {
			if len(changes) != 1 {
				return fmt.Errorf("no transactions: %w", errors.ErrUnsupported)
			}
			c := changes[0]
			if c.Delete {
				return srv.Delete(configMaps, c.Key)
			}
			return srv.Put(configMaps, map[string]any{
				"metadata": map[string]string{"name": c.Key}, "data": c.Object.Data, "binaryData": c.Object.BinaryData,
			})
		},
		Restart: func(context.Context) (reflector.ListWatcher[payload], error) {
			srv.Restart()
			return source, nil
		},
		Compact: func(context.Context) error { srv.Compact(); return nil },
		Cut: func(context.Context) error {
			how := []kubeserver.Break{kubeserver.Abrupt, kubeserver.HalfLine, kubeserver.HalfLineEnded, kubeserver.Timeout}
			srv.Cut(how[int(cuts.Add(1))%len(how)])
			return nil
		},
		Down: func(context.Context) (func() error, error) {
			up := srv.Down()
			return func() error { up(); return nil }, nil
		},
		Spoil: func(_ context.Context, key string) error {
			return srv.Put(configMaps, map[string]any{"metadata": map[string]string{"name": key}, "data": 7})
		},
		Close: func() error { web.Close(); return nil },
	}
}

// unstreamed says that its server cannot stream a list, which the store finds out
// only when it asks.
type unstreamed struct{ *kube.Store[payload] }

func (u unstreamed) Powers() reflector.Powers[payload] {
	p := u.Store.Powers()
	p.Initial = false
	return p
}

func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name  string
		opts  kubeserver.Options
		lacks []string
	}{
		{"ConfigMaps", kubeserver.Options{}, []string{"Harness.Forget", "Progress", "Transactions"}},
		{"a kind whose delete answers", kubeserver.Options{DeletedObject: true}, []string{"Harness.Forget", "Progress", "Transactions"}},
		{"a server that cannot stream a list", kubeserver.Options{NoWatchList: true}, []string{"Harness.Forget", "Initial", "Progress", "Transactions"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			report := backendtest.Test(t, harness(&c.opts))
			require.Equal(t, c.lacks, report.Lacks)
		})
	}
}
