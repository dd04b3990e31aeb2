package gate

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Limits bound what peers can use of the gate.
type Limits struct {
	HeaderBytes  int           // request line and header
	BodyBytes    int           // of one request
	Read         time.Duration // from the first byte of a request to its last
	Write        time.Duration // of an answer; a long one gets more time while the client reads it (16 KiB/s)
	Idle         time.Duration // between two requests
	Conns        int           // in total
	ConnsPerPeer int           // per IPv4 address and per IPv6 /64, not for Unix sockets
}

// slack is how early a deadline may be, see deadlines.
func (l *Limits) slack() time.Duration {
	return min(time.Second, min(l.Read, l.Write, l.Idle)/8)
}

// A Resolver answers plain requests instead of the HTTP library.
type Resolver interface {
	// AnswerPlain returns the whole response to q, or nil to leave the request to the HTTP library. The response is the
	// Resolver's memory; the gate writes it before the next call for c.
	AnswerPlain(c *Conn, q *Question) (response []byte)
}

// A Gate counts connections, over all listeners of a server, in total and per peer address. Safe for concurrent use.
type Gate struct {
	limits   Limits
	begun    time.Time     // has a monotonic reading: a jump of the wall clock changes nothing
	slots    chan struct{} // holds one token per open connection
	stopping atomic.Bool   // no connection may wait for another request

	mu        sync.Mutex // guards what follows
	listeners []*Listener
	closed    bool // no listener accepts any more
	conns     map[*Conn]struct{}
	peers     map[netip.Addr]int
	good      map[netip.Addr]time.Duration // when a peer's good key was last seen, see now; at most maxGoodPeers
}

// New makes a Gate. All limits must be given.
func New(limits Limits) *Gate {
	return &Gate{
		limits: limits,
		begun:  time.Now(),
		slots:  make(chan struct{}, limits.Conns),
		conns:  make(map[*Conn]struct{}),
		peers:  make(map[netip.Addr]int),
		good:   make(map[netip.Addr]time.Duration),
	}
}

// now returns the time since the Gate was made.
func (g *Gate) now() time.Duration { return time.Since(g.begun) }

// Open returns the number of connections.
func (g *Gate) Open() int { return len(g.slots) }

// Stopping reports whether Stop was called.
func (g *Gate) Stopping() bool { return g.stopping.Load() }

// Close closes the listeners.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, l := range g.listeners {
		l.Close()
	}
}

// silentTime is how long a connection that has sent nothing yet has for its request once the gate stops: its request is
// on the way, and the peer could not know.
const silentTime = 500 * time.Millisecond

// Stop keeps connections from waiting for another request, and cuts those that have sent nothing yet after silentTime.
// The library closes those that wait for another request already; it takes the silent ones for busy.
func (g *Gate) Stop() {
	g.stopping.Store(true)
	time.AfterFunc(silentTime, func() { g.abortWhere(func(c *Conn) bool { return !c.spoke.Load() && !c.hasInput() }) })
}

// Cut cuts all connections.
func (g *Gate) Cut() { g.abortWhere(func(*Conn) bool { return true }) }

func (g *Gate) abortWhere(pick func(*Conn) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.conns {
		if pick(c) {
			c.Abort()
		}
	}
}
