package api

import (
	"context"
	"net"
	"testing"
	"time"

	"fingerpost/resolver"
)

func TestDeadlines(t *testing.T) {
	clock := newTicker(time.Hour)
	limits := Limits{Read: 10 * time.Second, Write: 10 * time.Second, Idle: time.Minute}
	d := deadlines{clock: clock, limits: &limits, slack: time.Second}
	at := func(seconds float64) { clock.elapsed.Store(int64(seconds * float64(time.Second))) }
	expect := func(what string, by time.Time, set bool, want float64) {
		t.Helper()
		if got := by.Sub(clock.zero).Seconds(); set != (want >= 0) || set && got != want {
			t.Errorf("%s: deadline at %v s, set %v, want %v", what, got, set, want)
		}
	}
	const unchanged = -1
	read := func(what string, want float64) { t.Helper(); by, set := d.forRead(); expect(what, by, set, want) }
	write := func(what string, want float64) { t.Helper(); by, set := d.forWrite(); expect(what, by, set, want) }

	at(100)
	read("first byte", 110)
	d.beginMessage()
	at(104)
	read("the rest of a message has what is left", unchanged)
	d.beginMessage()
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
	d.beginMessage()
	read("sooner than what is set", 116)

	// A peer that takes 16 KiB in each second that it keeps the server waiting may go on; one that takes less is cut.
	d.written, d.blocked = 160<<10, 10*time.Second
	at(116)
	write("just fast enough", 126)
	d.blocked = 15 * time.Second
	write("too slow", 121)
	d.blocked = 21 * time.Second
	write("far too slow", 115)
	d.forRead()
	write("the next answer begins anew", 126)
}

// serveWith runs a server without projects until the test ends. A clock, where one is given, takes the place of its own.
func serveWith(t *testing.T, limits Limits, clock *ticker) (s *Server, addr string) {
	t.Helper()
	r, err := resolver.Open(resolver.Options{CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if s, err = New(Options{Resolver: r, Limits: limits}); err != nil {
		t.Fatal(err)
	}
	if clock != nil {
		s.admitted.clock = clock
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
	s, addr := serveWith(t, Limits{Read: time.Hour, Idle: time.Hour}, nil)
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
