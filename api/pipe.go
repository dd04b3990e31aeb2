package api

import (
	"context"
	"net"
	"sync"
)

// A Pipe is a listener inside the process: what dials it talks to the Server like a peer on a Unix socket. It has no
// address that other programs could reach, so nothing but the key in a request counts.
type Pipe struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	name   string
}

// The names of the Pipes of the console and of the cluster: who dials them is known.
const (
	consolePipe = "console"
	clusterPipe = "cluster"
)

// NewClusterPipe makes the Pipe over which the requests of edges come.
func NewClusterPipe() *Pipe { return NewPipe(clusterPipe) }

// NewPipe makes a Pipe. Its name shows up in the log.
func NewPipe(name string) *Pipe {
	return &Pipe{conns: make(chan net.Conn), closed: make(chan struct{}), name: name}
}

// Dial connects to the Server that serves the Pipe. It waits until the Server accepts, the Pipe is closed or ctx ends.
func (p *Pipe) Dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *Pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *Pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (p *Pipe) Addr() net.Addr { return &net.UnixAddr{Name: p.name, Net: "unix"} }
