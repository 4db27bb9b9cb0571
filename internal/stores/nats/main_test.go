package nats_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/homeostat/homeostat/internal/stores/nats"
	"github.com/homeostat/homeostat/internal/stores/proxy"
)

// server is one for all tests, each of which has a bucket of its own.
var server *nats.Server

func TestMain(m *testing.M) { goleak.VerifyTestMain(served{m}) }

type served struct{ m *testing.M }

func (s served) Run() int {
	dir, err := os.MkdirTemp("", "nats")
	if err == nil {
		defer os.RemoveAll(dir)
		server, err = nats.Start(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { server.Stop() }()
	return s.m.Run()
}

// dial makes a connection that comes back soon after an outage, and does not keep
// for later what it could not send.
func dial(addr string) (*client.Conn, jetstream.JetStream, error) {
	conn, err := client.Connect("nats://"+addr,
		client.MaxReconnects(-1),
		client.ReconnectWait(20*time.Millisecond),
		client.ReconnectJitter(0, 0),
		client.ReconnectBufSize(-1),
		client.ErrorHandler(func(*client.Conn, *client.Subscription, error) {})) // or it prints them
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(conn)
	return conn, js, err
}

var buckets atomic.Int64

// bucket makes a new one, and says what it is called.
func bucket(ctx context.Context, js jetstream.JetStream, history uint8) (string, error) {
	name := fmt.Sprintf("test-%d", buckets.Add(1))
	_, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name, History: history})
	return name, err
}

// harness is a test's own way to the server, past any proxy.
func harness(t testing.TB) jetstream.JetStream { return through(t, server.Addr()) }

func through(t testing.TB, addr string) jetstream.JetStream {
	conn, js, err := dial(addr)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return js
}

// open makes a bucket and a Store of it.
func open[T any](t testing.TB, js jetstream.JetStream, history uint8) (*nats.Store[T], string) {
	name, err := bucket(t.Context(), js, history)
	require.NoError(t, err)
	s, err := nats.Open[T](t.Context(), js, name, nil)
	require.NoError(t, err)
	return s, name
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

// forget purges what a bucket remembers of deleted keys.
func forget(ctx context.Context, js jetstream.JetStream, name string) error {
	kv, err := js.KeyValue(ctx, name)
	if err != nil {
		return err
	}
	return kv.PurgeDeletes(ctx, jetstream.DeleteMarkersOlderThan(-1))
}

// token is a key as a bucket has it.
func token(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }
