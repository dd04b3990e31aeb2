package api

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"fingerpost/resolver"
)

func TestDeadlines(t *testing.T) {
	limits := Limits{Read: 10 * time.Second, Write: 10 * time.Second, Idle: time.Minute}
	d := deadlines{limits: &limits, slack: time.Second}
	var zero, now time.Time
	now = zero.Add(time.Hour)
	zero = now
	at := func(seconds float64) { now = zero.Add(time.Duration(seconds * float64(time.Second))) }
	expect := func(what string, by time.Time, set bool, want float64) {
		t.Helper()
		if got := by.Sub(zero).Seconds(); set != (want >= 0) || set && got != want {
			t.Errorf("%s: deadline at %v s, set %v, want %v", what, got, set, want)
		}
	}
	const unchanged = -1
	read := func(what string, want float64) { t.Helper(); by, set := d.forRead(now); expect(what, by, set, want) }
	write := func(what string, want float64) { t.Helper(); by, set := d.forWrite(now); expect(what, by, set, want) }

	at(100)
	read("first byte", 110)
	d.beginMessage(now)
	at(104)
	read("the rest of a message has what is left", unchanged)
	d.beginMessage(now)
	read("pieces do not add time", unchanged)
	d.endMessage()
	write("answer", 114)
	read("next request", 164)
	at(104.5)
	read("a little later", unchanged)
	write("a little later", unchanged)
	at(106)
	read("more than slack later", 166)
	write("more than slack later", 116)
	d.beginMessage(now)
	read("sooner than what is set", 116)

	// A peer that takes 16 KiB in each second of an answer may go on; one that takes less is cut.
	d.endMessage()
	write("an answer begins", unchanged)
	d.written = 160 << 10
	at(116)
	write("just fast enough", 126)
	at(121)
	write("too slow", unchanged)
	d.endMessage()
	write("the next answer begins anew", 131)
	d.forRead(now)
	at(122)
	write("and so does one after a read", 132)
}

// A pausedConn is a peer on which deadlines pass as if the process had stood still.
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

// TestPause: a deadline that passed while the process stood still cuts nobody off whose bytes are there afterwards. One
// that passes twice in a row is one.
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

// Once the server stops, a connection whose goroutine comes late must not begin to wait.
func TestNoWaitingWhileStopping(t *testing.T) {
	s, addr := serveWith(t, Limits{Read: time.Hour, Idle: time.Hour})
	s.admitted.killSilent()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil || isTimeout(err) {
		t.Errorf("read %d, %v; want the end of the connection", n, err)
	}
}

func isTimeout(err error) bool {
	netErr, ok := err.(net.Error)
	return ok && netErr.Timeout()
}
