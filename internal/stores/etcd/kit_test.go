package etcd_test

import (
	"context"
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/backend/backendtest"
	"github.com/homeostat/homeostat/internal/stores/etcd"
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
	require.Equal(t, []string{"DryRun", "Initial"}, report.Lacks)
}

// fixture is one prefix. The adapter's client goes through a proxy, the harness's
// own does not.
type fixture struct {
	prefix          string
	proxy           *proxy.Proxy
	client, harness *clientv3.Client
}

func newFixture(context.Context) (*backendtest.Fixture[pod], error) {
	f := &fixture{prefix: prefix()}
	var err error
	if f.proxy, err = proxy.New(server.Addr()); err != nil {
		return nil, err
	}
	if f.client, err = dial(f.proxy.Addr()); err != nil {
		return nil, err
	}
	if f.harness, err = dial(server.Addr()); err != nil {
		return nil, err
	}
	return &backendtest.Fixture[pod]{
		Source:  etcd.New[pod](f.client, f.prefix, nil),
		Write:   f.write,
		Restart: f.restart,
		Compact: f.compact,
		Forget:  f.compact, // all that etcd remembers of the dead is history
		Cut:     func(context.Context) error { f.proxy.Cut(); return nil },
		Down: func(context.Context) (func() error, error) {
			f.proxy.Down()
			return func() error { f.proxy.Up(); return nil }, nil
		},
		Spoil: func(ctx context.Context, key string) error {
			_, err := f.harness.Put(ctx, f.prefix+key, "{")
			return err
		},
		Close: f.close,
	}, nil
}

// write makes one transaction of all changes.
func (f *fixture) write(ctx context.Context, changes ...backendtest.Change[pod]) error {
	ops := make([]clientv3.Op, len(changes))
	for i, c := range changes {
		if c.Delete {
			ops[i] = clientv3.OpDelete(f.prefix + c.Key)
			continue
		}
		value, err := object.JSON[pod]{}.Encode(c.Object)
		if err != nil {
			return err
		}
		ops[i] = clientv3.OpPut(f.prefix+c.Key, string(value))
	}
	_, err := f.harness.Txn(ctx).Then(ops...).Commit()
	return err
}

// restart also makes a new client: the old one would resume its watches.
func (f *fixture) restart(ctx context.Context) (reflector.ListWatcher[pod], error) {
	if err := f.client.Close(); err != nil {
		return nil, err
	}
	server.Stop()
	if err := server.Restart(); err != nil {
		return nil, err
	}
	var err error
	if f.client, err = dial(f.proxy.Addr()); err != nil {
		return nil, err
	}
	return etcd.New[pod](f.client, f.prefix, nil), up(ctx, f.harness)
}

// compact makes etcd forget all but the present state.
func (f *fixture) compact(ctx context.Context) error {
	now, err := f.harness.Get(ctx, f.prefix, clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	_, err = f.harness.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical())
	return err
}

func (f *fixture) close() error {
	defer f.proxy.Close()
	f.client.Close() // after a restart in the middle of a check it is closed already
	return f.harness.Close()
}
