package consul_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/homeostat/homeostat/backend/backendtest"
	"github.com/homeostat/homeostat/internal/stores/consul"
	"github.com/homeostat/homeostat/internal/stores/consul/consulserver"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

// harness drives a server for the kit.
func harness(opts *consul.Options) backendtest.Harness[flag] {
	return backendtest.Harness[flag]{
		New:      func(context.Context) (*backendtest.Fixture[flag], error) { return fixture(opts), nil },
		Object:   func(n int) flag { return flag{Text: fmt.Sprint("number ", n), N: n} },
		Progress: 200 * time.Millisecond,
	}
}

func fixture(opts *consul.Options) *backendtest.Fixture[flag] {
	srv := consulserver.New(nil)
	web := httptest.NewServer(srv)
	store := consul.New[flag](web.Client(), web.URL, prefix, nil, opts)
	return &backendtest.Fixture[flag]{
		Source: store,
		Write: func(_ context.Context, changes ...backendtest.Change[flag]) error {
			var ops []consulserver.Op
			for _, c := range changes {
				value, err := json.Marshal(c.Object)
				if err != nil {
					return err
				}
				ops = append(ops, consulserver.Op{Key: prefix + c.Key, Value: value, Delete: c.Delete})
			}
			srv.Apply(ops...)
			return nil
		},
		Restart: func(context.Context) (reflector.ListWatcher[flag], error) {
			srv.Restart()
			return store, nil
		},
		Forget: func(context.Context) error { srv.Reap(); return nil },
		Cut:    func(context.Context) error { srv.Cut(); return nil },
		Down: func(context.Context) (func() error, error) {
			up := srv.Down()
			return func() error { up(); return nil }, nil
		},
		Spoil: func(_ context.Context, key string) error { srv.Apply(garbage(key)); return nil },
		Close: func() error { web.Close(); return nil },
	}
}

func TestConformance(t *testing.T) {
	lacks := []string{"Compare", "DryRun", "Harness.Compact", "Head", "KeysOnly", "Paged", "Reached", "ResumeProven"}
	for _, c := range []struct {
		name  string
		opts  *consul.Options
		lacks []string
	}{
		{"consistent", nil, lacks},
		{"stale", &consul.Options{Stale: true}, append(slices.Clone(lacks), "StaleLists")},
	} {
		t.Run(c.name, func(t *testing.T) {
			report := backendtest.Test(t, harness(c.opts))
			require.Equal(t, c.lacks, report.Lacks)
		})
	}
}
