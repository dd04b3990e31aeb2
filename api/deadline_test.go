package api

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
)

// A pausedConn is a peer whose deadlines pass as if the process had been stopped.
type pausedConn struct {
	*recordedConn
	reads, writes int // how many are to fail
}

func (c *pausedConn) Read(p []byte) (int, error) {
	if c.reads--; c.reads >= 0 {
		return 0, os.ErrDeadlineExceeded
	}
	return c.recordedConn.Read(p)
}

func (c *pausedConn) Write(p []byte) (int, error) {
	if c.writes--; c.writes >= 0 {
		n, _ := c.recordedConn.Write(p[:len(p)/2])
		return n, os.ErrDeadlineExceeded
	}
	return c.recordedConn.Write(p)
}

// TestPause: a deadline that passed while the process was stopped cuts off no peer whose bytes are there afterwards. A
// second missed deadline in a row does.
func TestPause(t *testing.T) {
	s, fill := fastServer(t)
	want := len(s.askGate(fill(plainRequests[0])))
	ask := func(reads, writes int) int {
		peer := &pausedConn{newRecordedConn(fill(plainRequests[0])), reads, writes}
		c := s.admit(peer, true)
		_, _ = c.Read(make([]byte, 4096)) // the end
		c.Close()
		return peer.got.Len()
	}
	if got := ask(1, 1); want == 0 || got != want {
		t.Errorf("after a pause %d bytes, want %d", got, want)
	}
	if got := ask(2, 0); got != 0 {
		t.Errorf("a request after the deadline was answered: %d bytes", got)
	}
	if got := ask(0, 2); got >= want {
		t.Error("a write went on after its deadline")
	}
}

// serveWith runs a server without projects until the test ends.
func serveWith(t *testing.T, limits Limits) (s *Server, addr string) {
	t.Helper()
	r, err := resolver.Open(resolver.Options{CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if s, err = New(Options{Resolver: r, Limits: limits}); err != nil {
		t.Fatal(err)
	}
	ln, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(ln, Platform)
	t.Cleanup(func() { s.Shutdown(context.Background()) })
	return s, ln.Addr().String()
}

// Once the server stops, a connection whose goroutine runs late must not begin to wait.
func TestNoWaitingWhileStopping(t *testing.T) {
	t.Parallel()
	s, addr := serveWith(t, Limits{Read: time.Hour, Idle: time.Hour})
	s.gate.Stop()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(testrig.Patience))
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil || isTimeout(err) {
		t.Errorf("read %d, %v; want the end of the connection", n, err)
	}
}

func isTimeout(err error) bool {
	netErr, ok := err.(net.Error)
	return ok && netErr.Timeout()
}
