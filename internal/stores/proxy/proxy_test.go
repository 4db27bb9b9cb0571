package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/homeostat/homeostat/internal/stores/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo says back what it is told, line by line.
func echo(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); io.Copy(c, c) }()
		}
	}()
	return l.Addr().String()
}

func start(t *testing.T) *proxy.Proxy {
	p, err := proxy.New(echo(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// dial gives a way to say something and hear it back.
func dial(t *testing.T, p *proxy.Proxy) func(string) error {
	c, err := net.DialTimeout("tcp", p.Addr(), time.Minute)
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	t.Cleanup(func() { c.Close() })
	lines := bufio.NewReader(c)
	return func(s string) error {
		if _, err := fmt.Fprintln(c, s); err != nil {
			return err
		}
		_, err := lines.ReadString('\n')
		return err
	}
}

func TestProxy_PassesOnUntilItIsCut(t *testing.T) {
	p := start(t)
	say := dial(t, p)
	require.NoError(t, say("a"))
	require.NoError(t, say("b"))
	p.Cut()
	require.Error(t, say("c"))
	require.NoError(t, dial(t, p)("d"), "a new connection is taken")
}

func TestProxy_RefusesWhileItIsDown(t *testing.T) {
	p := start(t)
	say := dial(t, p)
	require.NoError(t, say("a"))
	p.Down()
	require.Error(t, say("b"))
	require.Error(t, dial(t, p)("c"))
	p.Up()
	require.NoError(t, dial(t, p)("d"))
	require.NoError(t, p.Close())
	p.Up()
	_, err := net.DialTimeout("tcp", p.Addr(), time.Second)
	require.Error(t, err, "closed is closed")
}

func TestProxy_HoldsWhatIsOnItsWay(t *testing.T) {
	p := start(t)
	say := dial(t, p)
	require.NoError(t, say("a"))
	p.Hold()
	heard := make(chan error, 1)
	go func() { heard <- say("b") }()
	select {
	case err := <-heard:
		t.Fatalf("held, and passed on: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	p.Up()
	require.NoError(t, <-heard)

	p.Hold()
	go func() { heard <- say("c") }()
	p.Cut()
	require.Error(t, <-heard, "what is held can be cut")
}
