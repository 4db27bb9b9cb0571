package etcd_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/internal/stores/etcd"
	"github.com/homeostat/homeostat/internal/stores/proxy"
)

// server is one for all tests, each of which has a prefix of its own.
var server *etcd.Server

func TestMain(m *testing.M) { goleak.VerifyTestMain(served{m}) }

type served struct{ m *testing.M }

func (s served) Run() int {
	dir, err := os.MkdirTemp("", "etcd")
	if err == nil {
		defer os.RemoveAll(dir)
		server, err = etcd.Start(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { server.Stop() }()
	return s.m.Run()
}

// dial makes a client that comes back soon after an outage.
func dial(addr string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: []string{addr},
		Logger:    zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1.5, MaxDelay: 100 * time.Millisecond},
			MinConnectTimeout: time.Second,
		})},
	})
}

var prefixes atomic.Int64

func prefix() string { return fmt.Sprintf("test-%d/", prefixes.Add(1)) }

// up waits until the server answers c.
func up(ctx context.Context, c *clientv3.Client) error {
	_, err := c.Get(ctx, "any", clientv3.WithCountOnly()) // the client tries again by itself
	return err
}

func client(t testing.TB, addr string) *clientv3.Client {
	c, err := dial(addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// within is a context for what has to be done in time.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// behind makes a proxy in front of the server.
func behind(t testing.TB) *proxy.Proxy {
	p, err := proxy.New(server.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}
