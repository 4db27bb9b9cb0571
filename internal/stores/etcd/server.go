package etcd

import (
	"fmt"
	"net"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// Server is an etcd of one member within this process, for tests and benchmarks.
// One goroutine at a time may start and stop it.
type Server struct {
	config  func() *embed.Config
	addr    string
	running *embed.Etcd
	grpc    []*grpc.Server // of running
}

// Start runs a server on the data in dir, which is made if there is none. It
// listens on ports of the loopback that were free, and keeps them.
func Start(dir string) (*Server, error) {
	client, peer, err := freePorts()
	if err != nil {
		return nil, err
	}
	s := &Server{addr: client.Host}
	s.config = func() *embed.Config {
		c := embed.NewConfig()
		c.Dir = dir
		c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
		c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
		c.InitialCluster = c.InitialClusterFromName(c.Name)
		c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
		c.TickMs, c.ElectionMs = 10, 100 // a leader at once
		c.UnsafeNoFsync = true           // what the process wrote outlives it, if not the machine
		c.QuotaBackendBytes = 4 << 30
		c.ServiceRegister = func(g *grpc.Server) { s.grpc = append(s.grpc, g) }
		return c
	}
	return s, s.Restart()
}

// Addr is where clients find it: host and port.
func (s *Server) Addr() string { return s.addr }

// Restart runs the server again, on its data and ports, after Stop.
func (s *Server) Restart() error {
	running, err := embed.StartEtcd(s.config())
	if err != nil {
		return fmt.Errorf("etcd: start: %w", err)
	}
	s.running = running
	select {
	case <-running.Server.ReadyNotify():
		return nil
	case err = <-running.Err():
	case <-running.Server.StopNotify():
	case <-time.After(time.Minute):
		err = fmt.Errorf("not ready within a minute")
	}
	s.Stop()
	return fmt.Errorf("etcd: start: %w", err)
}

// Stop ends the server in the middle of whatever it is doing, as a crash does:
// writes that it has not answered may or may not have been done.
func (s *Server) Stop() {
	for _, g := range s.grpc { // Close alone would wait 5 s for open watches
		g.Stop()
	}
	s.grpc = nil
	s.running.Server.HardStop()
	s.running.Close()
}

// freePorts are two addresses of the loopback on which nobody listens.
func freePorts() (client, peer url.URL, err error) {
	for _, u := range []*url.URL{&client, &peer} {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return client, peer, fmt.Errorf("etcd: a free port: %w", err)
		}
		defer free.Close() // not sooner: the second is to be another one
		*u = url.URL{Scheme: "http", Host: free.Addr().String()}
	}
	return client, peer, nil
}
