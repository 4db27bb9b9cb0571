package nats

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Server is a NATS server with JetStream within this process, for tests and
// benchmarks. One goroutine at a time may start and stop it.
type Server struct {
	dir     string
	port    int // kept once it is known
	running *server.Server
}

// Start runs a server on the data in dir, which is made if there is none. It
// listens on a port of the loopback that was free, and keeps it.
func Start(dir string) (*Server, error) {
	s := &Server{dir: dir, port: server.RANDOM_PORT}
	if err := s.Restart(); err != nil {
		return nil, err
	}
	s.port = s.running.Addr().(*net.TCPAddr).Port
	return s, nil
}

// Addr is where clients find it: host and port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Restart runs the server again, on its data and port, after Stop.
func (s *Server) Restart() error {
	running, err := server.NewServer(&server.Options{
		Host:      "127.0.0.1",
		Port:      s.port,
		JetStream: true,
		StoreDir:  s.dir,
		NoLog:     true,
		NoSigs:    true,
	})
	if err != nil {
		return fmt.Errorf("nats: start: %w", err)
	}
	s.running = running
	running.Start()
	if !running.ReadyForConnections(time.Minute) {
		s.Stop()
		return fmt.Errorf("nats: start: %w", errors.New("not ready within a minute"))
	}
	return nil
}

// Stop ends the server in the middle of whatever it is doing: writes that it has not
// answered may or may not have been done.
func (s *Server) Stop() {
	s.running.Shutdown()
	s.running.WaitForShutdown()
}
