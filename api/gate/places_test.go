package gate

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"
)

// A peerListener accepts connections from the addresses that it is given.
type peerListener struct {
	net.Listener
	from   chan string
	closed chan string // gets the address of a connection that is closed
}

type peerConn struct {
	net.Conn
	addr   string
	closed chan string
}

func (c *peerConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.addr), Port: 1} }
func (c *peerConn) Close() error         { c.closed <- c.addr; return nil }

func (l peerListener) Accept() (net.Conn, error) {
	addr, ok := <-l.from
	if !ok {
		return nil, io.EOF
	}
	return &peerConn{addr: addr, closed: l.closed}, nil
}

// peers returns an admission behind a listener. admit returns a connection from ip, nil if it gets no place.
func peers(t *testing.T, limits Limits) (a *Gate, admit func(ip string) *Conn) {
	a = New(limits)
	raw := peerListener{from: make(chan string), closed: make(chan string, 1000)}
	l := a.Listener(raw, ListenerOptions{})
	accepted := make(chan net.Conn)
	t.Cleanup(func() { close(raw.from) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	return a, func(ip string) *Conn {
		raw.from <- ip
		for {
			select {
			case c := <-accepted:
				return c.(*Conn)
			case closed := <-raw.closed:
				if closed == ip {
					return nil
				}
			}
		}
	}
}

// Connections are counted per IPv4 address and per IPv6 /64: a host with IPv6 has a /64 of addresses.
func TestConnectionsPerNetwork(t *testing.T) {
	_, admit := peers(t, Limits{Conns: 100, ConnsPerPeer: 3})
	for _, c := range []struct {
		ip   string
		want bool
	}{
		{"2001:db8:0:1::1", true}, {"2001:db8:0:1::2", true}, {"2001:db8:0:1:ffff::3", true}, {"2001:db8:0:1::4", false},
		{"2001:db8:0:2::1", true},
		{"192.0.2.1", true}, {"::ffff:192.0.2.1", true}, {"192.0.2.1", true}, {"192.0.2.1", false}, {"192.0.2.2", true},
	} {
		if got := admit(c.ip) != nil; got != c.want {
			t.Errorf("%s: admitted %v, want %v", c.ip, got, c.want)
		}
	}
}

// The last places are for peers that have sent a good key recently, even if all others are busy.
func TestPlacesAreKeptForGoodPeers(t *testing.T) {
	a, admit := peers(t, Limits{Conns: 64, ConnsPerPeer: 64})
	a.remember(netip.MustParseAddr("198.51.100.1"))
	admitted := 0
	for i := range 100 {
		if c := admit(fmt.Sprintf("192.0.2.%d", i)); c != nil {
			c.life.hand() // its request never ends
			admitted++
		}
	}
	if admitted != 56 {
		t.Errorf("%d of 64 places went to peers without a key, want 56", admitted)
	}
	for i := range 8 {
		if admit("198.51.100.1") == nil {
			t.Errorf("a good peer got %d of 8 kept places", i)
		}
	}
	a.begun = a.begun.Add(-goodFor)
	if a.isGood(netip.MustParseAddr("198.51.100.1")) {
		t.Error("a peer stays good for ever")
	}
}

// A client that has yet to show its key gets in if connections of good peers have been idle for long.
func TestLongIdleConnectionsMakeRoom(t *testing.T) {
	a, admit := peers(t, Limits{Conns: 64, ConnsPerPeer: 64})
	a.remember(netip.MustParseAddr("198.51.100.1"))
	for range 64 {
		c := admit("198.51.100.1")
		c.spoke.Store(true)
		c.active.Store(int64(a.now()))
	}
	if admit("192.0.2.1") != nil {
		t.Error("a connection of a good peer made room that was in use a moment ago")
	}
	a.begun = a.begun.Add(-longIdle)
	for i := range 20 {
		if admit(fmt.Sprintf("192.0.2.%d", 2+i)) == nil {
			t.Fatalf("new client %d is turned away", i)
		}
	}
}

func TestGoodPeersAreBounded(t *testing.T) {
	a := New(Limits{Conns: 1})
	first := netip.MustParseAddr("2001:db8::")
	addr := first
	for range 2 * maxGoodPeers {
		a.begun = a.begun.Add(-time.Millisecond)
		a.remember(first)
		addr = addr.Next()
		a.remember(addr)
	}
	if len(a.good) != maxGoodPeers || !a.isGood(first) || !a.isGood(addr) || a.isGood(first.Next()) {
		t.Errorf("%d are remembered; the first %v, the last %v, the second %v", len(a.good), a.isGood(first), a.isGood(addr), a.isGood(first.Next()))
	}
}
