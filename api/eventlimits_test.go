package api_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// A client that does not read is cut, and delays no other stream.
func TestEventStreamSlowReader(t *testing.T) {
	h := start(t, func(o *api.Options) { o.Limits.Write = 100 * time.Millisecond })
	slow, good := h.dial(), h.events(h.all, "")
	defer slow.Close() // keeps the connection reachable: the garbage collector would close it
	if err := slow.Conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	slow.send("GET /api/platform/events HTTP/1.1\r\nHost: t\r\nX-PLATFORM-KEY: " + h.all + "\r\n\r\n")
	testrig.Eventually(t, "two streams", func() bool { return h.streams() == 2 })
	names := make([]string, 2000)
	for i := range names {
		names[i] = fmt.Sprintf("d%d.%s.example", i, strings.Repeat("x", 60))
	}
	for i := 0; h.streams() == 2; i++ {
		if i == 200 {
			t.Fatal("a client that has read nothing of 30 MB is still served")
		}
		h.edit(project(7, "seven", fmt.Sprint("Seven ", i), catalog.StatusActive, names...))
		good.want("project.changed", names[1999])
	}
	testrig.Eventually(t, "the log", func() bool { return strings.Contains(h.log.String(), `"ended":"slow"`) })
	h.edit(project(8, "eight", "Eight", catalog.StatusActive))
	good.want("project.changed", "eight")
}

func TestEventStreamShutdown(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	h := start(t)
	streams := make([]*stream, 20)
	for i := range streams {
		streams[i] = h.events(h.all, "")
	}
	stuck := h.dial() // a client that does not read
	defer stuck.Close()
	stuck.send("GET /api/platform/events HTTP/1.1\r\nHost: t\r\nX-PLATFORM-KEY: " + h.all + "\r\n\r\n")
	testrig.Eventually(t, "all streams", func() bool { return h.streams() == 21 })
	h.edit(project(7, "seven", "Seven", catalog.StatusActive))
	ctx, cancel := context.WithTimeout(t.Context(), testrig.Patience)
	defer cancel()
	if err := h.server.Shutdown(ctx); err != nil {
		t.Error("streams kept the server from ending:", err)
	}
	for _, s := range streams {
		s.want("project.changed", "seven") // an event from before the shutdown is delivered
		s.ends()
	}
	if n := h.streams(); n != 0 {
		t.Errorf("%d streams are left", n)
	}
	if n := strings.Count(h.log.String(), `"ended":"shutdown"`); n != 21 {
		t.Errorf("%d of 21 streams are logged", n)
	}
}

// TestEventThenResolve: a resolve that follows an event gets the new answer, over real sockets.
func TestEventThenResolve(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	h := start(t)
	versions := testrig.Part(150)
	var wg sync.WaitGroup
	for range 4 {
		s, asker := h.events(h.all, ""), h.dial()
		wg.Go(func() {
			for at := 0; at < versions; {
				e, err := s.next()
				if err != nil {
					t.Error(err)
					return
				}
				p, err := catalog.ParsePosition(e.id)
				if err != nil {
					t.Errorf("%+v: %v", e, err)
					return
				}
				at = int(p.Generation)
				fmt.Fprintf(asker, "GET /api/platform/projects/resolve?domain=seven.example HTTP/1.1\r\nHost: t\r\nX-PLATFORM-KEY: %s\r\n\r\n", h.all)
				a, err := asker.tryAnswer("GET")
				if err != nil {
					t.Error(err)
					return
				}
				var got int
				name := a.json["data"].(map[string]any)["project"].(map[string]any)["name"].(string)
				if fmt.Sscanf(name, "v%d", &got); got < at {
					t.Errorf("after event %d comes %s", at, name)
				}
			}
		})
	}
	for v := 2; v <= versions; v++ {
		h.edit(project(7, "seven", fmt.Sprint("v", v), catalog.StatusActive, "seven.example"))
	}
	wg.Wait()
}

// A very large event arrives complete, with chunks and, over HTTP/1.0, without.
func TestEventStreamLargeEvent(t *testing.T) {
	h := start(t)
	s, old := h.events(h.all, ""), h.dial().events("1.0", h.all, "")
	names := make([]string, 8000)
	for i := range names {
		names[i] = fmt.Sprintf("d%04d.%s.example", i, strings.Repeat("x", 60))
	}
	h.edit(project(7, "seven", "Seven", catalog.StatusActive, names...))
	for _, s := range []*stream{s, old} {
		if e := s.want("project.changed", names[7999]); strings.Count(e.data, ".example") != len(names) {
			t.Errorf("%d names", strings.Count(e.data, ".example"))
		}
	}
}

// The limits for requests do not apply to streams.
func TestEventStreamIsNotTimedOut(t *testing.T) {
	h := start(t, func(o *api.Options) {
		o.Limits.Idle, o.Limits.Read, o.Limits.Write = 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
	})
	s := h.events(h.all, "")
	s.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := s.next(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an idle stream: %v", err)
	}
}
