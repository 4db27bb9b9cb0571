// Package proxy stands between a client and a server and breaks what connects
// them: for tests of adapters, whose client libraries mend connections by
// themselves.
//
// # Usage
//
//	p, err := proxy.New(server.Addr())
//	// the client connects to p.Addr()
//	p.Cut()  // every connection breaks; new ones are taken
//	p.Down() // and no new ones
//	p.Up()
//	p.Hold() // connections stay, but nothing passes until Up
//
// # Concurrency
//
// All methods may be called from any goroutine. Close waits for all that the proxy
// started.
package proxy

import (
	"fmt"
	"net"
	"sync"
)

// Proxy passes bytes on, both ways.
type Proxy struct {
	target   string
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex
	moved  *sync.Cond // held, or conns
	down   bool
	held   bool
	closed bool
	conns  map[net.Conn]struct{}
}

// New listens on a free port of the loopback for what is meant for target, host
// and port. The target need not be there yet.
func New(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p := &Proxy{target: target, listener: l, conns: map[net.Conn]struct{}{}}
	p.moved = sync.NewCond(&p.mu)
	p.running.Go(p.accept)
	return p, nil
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut breaks all connections, in the middle of whatever passes through them.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
	p.moved.Broadcast()
}

// Down is Cut, and breaks every new connection until Up.
func (p *Proxy) Down() {
	p.mu.Lock()
	p.down = true
	p.mu.Unlock()
	p.Cut()
}

// Hold lets nothing pass until Up, as a connection does whose other end was
// unplugged: nobody is told.
func (p *Proxy) Hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = true
}

// Up ends Down and Hold. What was held is late, but not lost.
func (p *Proxy) Up() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down, p.held = p.closed, false
	p.moved.Broadcast()
}

// Close ends everything. A second call does nothing.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Down()
	p.listener.Close()
	p.running.Wait()
	return nil
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(c) })
	}
}

// serve is one connection. When one end breaks, so does the other.
func (p *Proxy) serve(near net.Conn) {
	defer near.Close()
	if !p.keep(near) {
		return
	}
	defer p.drop(near)
	far, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer far.Close()
	if !p.keep(far) {
		return
	}
	defer p.drop(far)
	p.running.Go(func() {
		p.pass(far, near)
		far.Close()
	})
	p.pass(near, far)
}

// pass copies what comes from one end to the other, until either breaks.
func (p *Proxy) pass(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && p.wait(from) {
			_, err = to.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// wait returns when nothing is held any more; false says that the connection is
// gone.
func (p *Proxy) wait(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if _, there := p.conns[c]; !there || !p.held {
			return there
		}
		p.moved.Wait()
	}
}

// keep is false while the proxy is down.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.down {
		p.conns[c] = struct{}{}
	}
	return !p.down
}

func (p *Proxy) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}
