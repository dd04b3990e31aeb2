package api

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// A process that stood still for longer than a timeout (a paused container, SIGSTOP) finds its clock behind: no peer may
// be cut for that.
func TestDeadlinesAfterANap(t *testing.T) {
	clock := newTicker(time.Second)
	limits := Limits{Read: 10 * time.Second, Write: 10 * time.Second, Idle: time.Minute}
	d := deadlines{clock: clock, limits: &limits, slack: time.Second}
	// behind lets the clock have stopped that long ago; what has been set was set at that time.
	behind := func(by time.Duration) {
		clock.zero = time.Now().Add(-time.Hour)
		clock.elapsed.Store(int64(time.Hour - by))
	}
	ahead := func(what string, by time.Time, set bool, want time.Duration) {
		t.Helper()
		if left := time.Until(by); !set || left > want || left < want-5*time.Second {
			t.Errorf("%s: %v left, set %t; want %v", what, left, set, want)
		}
	}
	behind(20 * time.Second)
	by, set := d.forRead()
	ahead("a new connection", by, set, limits.Read)
	if d.forgive() {
		t.Error("a deadline that passes without a nap is forgiven")
	}

	behind(20 * time.Second)
	d.beginMessage()
	by, set = d.forRead()
	ahead("the rest of a message that began while the clock was behind", by, set, limits.Read)

	d.forWrite()
	behind(20 * time.Second)
	if !d.forgive() {
		t.Error("a deadline that passed during a nap is not forgiven")
	}
	by, set = d.forRead()
	ahead("a message that was half there before the nap", by, set, limits.Read)
	by, set = d.forWrite()
	ahead("an answer", by, set, limits.Write)
	if d.forgive() {
		t.Error("one nap is forgiven twice")
	}
}

// TestNap lets a server's clock and its connections' deadlines stand as after a pause: new connections and those that
// were open before are served, and without a pause a deadline is one.
func TestNap(t *testing.T) {
	clock := newTicker(time.Hour) // beats by hand
	s, addr := serveWith(t, Limits{Read: time.Minute, Write: time.Minute, Idle: time.Hour}, clock)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	in := bufio.NewReader(c)
	ask := func(what string) error {
		t.Helper()
		if _, err := io.WriteString(c, "GET /api/platform/projects/resolve?domain=a.example HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			return err
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			return err
		}
		if res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: status %d", what, res.StatusCode)
		}
		return nil
	}
	past := time.Now().Add(-time.Second)
	each := func(f func(*conn)) {
		s.admitted.mu.Lock()
		defer s.admitted.mu.Unlock()
		for c := range s.admitted.conns {
			f(c)
		}
	}
	for range 2 { // after the second one no deadline is set anew until the clock moves
		if err := ask("before"); err != nil {
			t.Fatal(err)
		}
	}
	clock.naps.Add(1)
	each(func(c *conn) { c.raw.SetDeadline(past) })
	if err := ask("open before the pause"); err != nil {
		t.Errorf("open before the pause: %v", err)
	}
	clock.elapsed.Store(clock.elapsed.Load() - int64(5*time.Hour))
	fresh, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	fresh.SetDeadline(time.Now().Add(20 * time.Second))
	c, in = fresh, bufio.NewReader(fresh)
	if err := ask("a new connection"); err != nil {
		t.Errorf("a new connection: %v", err)
	}
	if err := ask("its second request"); err != nil {
		t.Errorf("its second request: %v", err)
	}
	each(func(c *conn) { c.raw.SetDeadline(past) })
	if err := ask("without a pause"); err == nil {
		t.Error("a deadline that passed without a pause did not count")
	}
}
