package api

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// The pauses after an Accept that failed for want of descriptors or memory.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = time.Second
)

// An admission counts connections, over all listeners of a server, in total and per peer address, and knows them all.
type admission struct {
	limits   Limits
	begun    time.Time     // has a monotonic reading: a jump of the wall clock changes nothing
	slots    chan struct{} // holds one token per open connection
	stopping atomic.Bool   // no connection may wait for a request any more

	mu    sync.Mutex // guards what follows
	conns map[*conn]struct{}
	peers map[netip.Addr]int
	good  map[netip.Addr]time.Duration // when a peer's good key was last seen, see now; at most maxGoodPeers

	admitted int // since the start
}

func newAdmission(limits Limits) *admission {
	return &admission{
		limits: limits,
		begun:  time.Now(),
		slots:  make(chan struct{}, limits.Conns),
		conns:  make(map[*conn]struct{}),
		peers:  make(map[netip.Addr]int),
		good:   make(map[netip.Addr]time.Duration),
	}
}

// now is the time since the admission began.
func (a *admission) now() time.Duration { return time.Since(a.begun) }

// killSilent cuts the connections that have sent nothing yet, and keeps the others from waiting for another request.
// Those that wait already are the library's to close; the silent ones it takes for busy.
func (a *admission) killSilent() {
	a.stopping.Store(true) // before the look: see conn.readHead for the other half
	a.killWhere(func(c *conn) bool { return !c.spoke.Load() })
}

func (a *admission) killAll() { a.killWhere(func(*conn) bool { return true }) }

func (a *admission) killWhere(pick func(*conn) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.conns {
		if pick(c) {
			c.kill()
		}
	}
}

// A listener admits connections. Its Accept fails only when it has been closed or the socket is broken for good: the
// HTTP library gives up on the first error, and the port would stay deaf for ever.
type listener struct {
	net.Listener
	admitted *admission
	services Services
	server   *Server     // nil where the listener does not offer resolve
	tls      *tls.Config // nil: none
	closing  chan struct{}
	once     sync.Once
	accepts  func(error) // told when accepting pauses, with the cause
}

// Accept returns the next connection that gets a place, see admission.enter.
func (l *listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.acceptRaw()
		if err != nil {
			return nil, err
		}
		limits := &l.admitted.limits
		c := &conn{
			Conn: raw, raw: raw, admitted: l.admitted, peer: peerAddr(raw.RemoteAddr()), services: l.services, server: l.server,
			times: deadlines{limits: limits, slack: limits.slack()},
		}
		if l.tls != nil {
			// The handshake runs with the first read, under its deadline and off this goroutine.
			c.Conn = tls.Server(raw, l.tls)
		} else {
			c.Conn = newRawConn(raw)
		}
		if l.admitted.enter(c, l.closing) {
			return c, nil
		}
		raw.Close()
	}
}

// acceptRaw retries what may pass: a peer that hung up in the queue, no descriptors, no memory.
func (l *listener) acceptRaw() (net.Conn, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		raw, err := l.Listener.Accept()
		if err == nil {
			return raw, nil
		}
		if !passing(err) {
			return nil, err
		}
		l.accepts(err)
		select {
		case <-time.After(pause):
		case <-l.closing:
			return nil, net.ErrClosed
		}
	}
}

func passing(err error) bool {
	for _, cause := range []error{
		syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
		syscall.EAGAIN, syscall.EINTR, syscall.EPERM, // the last: a firewall rule
	} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// Close ends Accept. It may be called more than once.
func (l *listener) Close() (err error) {
	l.once.Do(func() {
		close(l.closing)
		err = l.Listener.Close()
	})
	return err
}

// peerAddr is the network of the peer's address, invalid for a Unix socket.
func peerAddr(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	addr, _ := netip.AddrFromSlice(tcp.IP)
	return network(addr.Unmap())
}
