package nats_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/backend/backendtest"
	"github.com/homeostat/homeostat/internal/stores/nats"
	"github.com/homeostat/homeostat/internal/stores/proxy"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

type pod struct {
	object.Meta
	Image string
	N     int
}

func TestStore_KeepsTheContract(t *testing.T) {
	report := backendtest.Test(t, backendtest.Harness[pod]{
		New:    newFixture,
		Object: func(n int) pod { return pod{Image: fmt.Sprint("image-", n), N: n} },
	})
	require.Equal(t, []string{"DryRun", "Get", "Harness.Compact", "IDs", "KeysOnly", "Paged", "ResumeProven", "Transactions"}, report.Lacks)
}

// fixture is one bucket. The adapter's connection goes through a proxy, the
// harness's own does not.
type fixture struct {
	bucket        string
	proxy         *proxy.Proxy
	conn, harness *client.Conn
	js            jetstream.JetStream // harness's
	kv            jetstream.KeyValue
}

func newFixture(ctx context.Context) (*backendtest.Fixture[pod], error) {
	p, err := proxy.New(server.Addr())
	if err != nil {
		return nil, err
	}
	f := &fixture{proxy: p}
	source, err := f.connect(ctx)
	if err != nil {
		return nil, err
	}
	return &backendtest.Fixture[pod]{
		Source:  source,
		Write:   f.write,
		Restart: f.restart,
		Forget:  func(ctx context.Context) error { return forget(ctx, f.js, f.bucket) },
		Cut:     func(context.Context) error { f.proxy.Cut(); return nil },
		Down: func(context.Context) (func() error, error) {
			f.proxy.Down()
			return func() error { f.proxy.Up(); return nil }, nil
		},
		Spoil: func(ctx context.Context, key string) error {
			_, err := f.kv.Put(ctx, token(key), []byte("{"))
			return err
		},
		Close: f.close,
	}, nil
}

// connect makes both connections, and the bucket if there is none yet.
func (f *fixture) connect(ctx context.Context) (s *nats.Store[pod], err error) {
	if f.harness, f.js, err = dial(server.Addr()); err != nil {
		return nil, err
	}
	if f.bucket == "" {
		f.bucket, err = bucket(ctx, f.js, 64)
	}
	if err == nil {
		f.kv, err = f.js.KeyValue(ctx, f.bucket)
	}
	if err != nil {
		return nil, err
	}
	conn, js, err := dial(f.proxy.Addr())
	if err != nil {
		return nil, err
	}
	f.conn = conn
	return nats.Open[pod](ctx, js, f.bucket, nil)
}

// write makes one change: a bucket has no transactions.
func (f *fixture) write(ctx context.Context, changes ...backendtest.Change[pod]) error {
	if len(changes) > 1 {
		return errors.ErrUnsupported
	}
	for _, c := range changes {
		if c.Delete {
			return f.kv.Delete(ctx, token(c.Key))
		}
		value, err := object.JSON[pod]{}.Encode(c.Object)
		if err != nil {
			return err
		}
		if _, err = f.kv.Put(ctx, token(c.Key), value); err != nil {
			return err
		}
	}
	return nil
}

func (f *fixture) restart(ctx context.Context) (reflector.ListWatcher[pod], error) {
	f.conn.Close()
	f.harness.Close()
	server.Stop()
	if err := server.Restart(); err != nil {
		return nil, err
	}
	return f.connect(ctx)
}

func (f *fixture) close() error {
	f.conn.Close()
	f.harness.Close()
	return f.proxy.Close()
}
