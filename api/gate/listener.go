package gate

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"
)

// The pauses after an Accept that failed because descriptors or memory ran out.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = time.Second
)

// ListenerOptions say what a Listener's connections get.
type ListenerOptions struct {
	TLS      *tls.Config       // nil: none
	Resolver Resolver          // for the fast path; nil: there is none
	Plain    Plain             // what the fast path answers
	Attach   func(*Conn) any   // makes the State of a new connection; nil: it has none
	Paused   func(cause error) // called when accepting pauses; may be nil
}

// A Listener admits connections. Its Accept fails only if the Listener is closed or the socket fails for good: the HTTP
// library stops serving at the first error.
type Listener struct {
	net.Listener
	gate    *Gate
	options ListenerOptions
	closing chan struct{}
	once    sync.Once
}

// Listener makes a Listener from ln, and owns it. It returns nil after Close, which then includes ln.
func (g *Gate) Listener(ln net.Listener, o ListenerOptions) *Listener {
	l := &Listener{Listener: ln, gate: g, options: o, closing: make(chan struct{})}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		l.Close()
		return nil
	}
	g.listeners = append(g.listeners, l)
	return l
}

// Accept returns the next connection that gets a place, see Gate.enter.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.acceptRaw()
		if err != nil {
			return nil, err
		}
		limits := &l.gate.limits
		c := &Conn{
			Conn: raw, raw: raw, gate: l.gate, peer: PeerAddr(raw.RemoteAddr()), resolver: l.options.Resolver,
			plain: l.options.Plain,
			times: deadlines{limits: limits, slack: limits.slack()},
		}
		if l.options.TLS != nil {
			// The handshake runs in the first read, under its deadline and in the connection's goroutine.
			c.Conn = tls.Server(raw, l.options.TLS)
		} else {
			c.Conn = newRawConn(raw)
		}
		if l.gate.enter(c, l.closing) {
			if l.options.Attach != nil {
				c.State = l.options.Attach(c)
			}
			return c, nil
		}
		raw.Close()
	}
}

// acceptRaw retries errors that pass: a peer that hung up in the queue, no descriptors, no memory.
func (l *Listener) acceptRaw() (net.Conn, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		raw, err := l.Listener.Accept()
		if err == nil {
			return raw, nil
		}
		if !passing(err) {
			return nil, err
		}
		if l.options.Paused != nil {
			l.options.Paused(err)
		}
		select {
		case <-time.After(pause):
		case <-l.closing:
			return nil, net.ErrClosed
		}
	}
}

func passing(err error) bool {
	return slices.ContainsFunc([]error{
		syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
		syscall.EAGAIN, syscall.EINTR, syscall.EPERM, // the last: a firewall rule
	}, func(cause error) bool { return errors.Is(err, cause) })
}

// Close ends Accept. It may be called more than once.
func (l *Listener) Close() (err error) {
	l.once.Do(func() {
		close(l.closing)
		err = l.Listener.Close()
	})
	return err
}

// PeerAddr returns the network of a peer's address, invalid for a Unix socket.
func PeerAddr(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	addr, _ := netip.AddrFromSlice(tcp.IP)
	return Network(addr.Unmap())
}

// Network returns the network that one customer has: the whole address in IPv4, the /64 in IPv6.
func Network(addr netip.Addr) netip.Addr {
	if !addr.Is6() {
		return addr
	}
	prefix, err := addr.WithZone("").Prefix(64)
	if err != nil {
		return addr
	}
	return prefix.Addr()
}
