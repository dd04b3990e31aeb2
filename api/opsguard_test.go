package api_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/api/ops"
	"fingerpost/cmd/testrig"
)

// A fromListener gives its connections another peer's address: no test can come from another machine.
type fromListener struct {
	net.Listener
	peer net.Addr
}

type fromConn struct {
	net.Conn
	peer net.Addr
}

func (l fromListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil || l.peer == nil {
		return c, err
	}
	return fromConn{c, l.peer}, nil
}

func (c fromConn) RemoteAddr() net.Addr { return c.peer }

// serveOps serves operations on addr for peers at an address, "" for their own, and returns where.
func serveOps(t *testing.T, addr, peer string) net.Addr {
	t.Helper()
	h := start(t)
	ln, err := api.Listen(addr)
	if err != nil {
		t.Fatal(err)
	}
	o, err := ops.New(ops.Options{Resolver: h.resolver, Figures: h.server, Streams: h.server.EventStreams(), Config: new(config), Logger: slog.New(slog.DiscardHandler),
		Listen: []string{addr, "Ops.Example:9090", ln.Addr().String()},
		Allow:  []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("2001:db8::/32")}})
	if err != nil {
		t.Fatal(err)
	}
	from := fromListener{Listener: ln}
	if peer != "" {
		from.peer = net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(peer), 5000))
	}
	served := make(chan error, 1)
	go func() { served <- o.Serve(from) }()
	t.Cleanup(func() {
		if err := o.Shutdown(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
		<-served
	})
	return ln.Addr()
}

// sendRaw sends one request with a Host line as it stands, none for "-", and returns the status and the body.
func sendRaw(t *testing.T, at net.Addr, route, host string) (status int, body string) {
	t.Helper()
	c, err := net.DialTimeout(at.Network(), at.String(), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(testrig.Patience))
	method, path, _ := strings.Cut(route, " ")
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", method, path, host)
	if host == "-" {
		text = fmt.Sprintf("%s %s HTTP/1.0\r\n\r\n", method, path)
	}
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s of %q: %v", route, host, err)
	}
	defer res.Body.Close()
	b := make([]byte, 400)
	n, _ := res.Body.Read(b)
	return res.StatusCode, string(b[:n])
}

// ownAddress is an address of this machine that is not loopback, "" where there is none.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	return ""
}

// TestOpsGuard: Host × route × peer. A page in a browser sends its own name as Host, whatever address the name resolves
// to.
func TestOpsGuard(t *testing.T) {
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	hosts := map[string]bool{ // those of this machine
		"127.0.0.1": true, "127.0.0.1:9090": true, "127.9.9.9": true, "[::1]:9090": true, "[::ffff:127.0.0.1]": true,
		"localhost": true, "LocalHost:9090": true, "localhost.": true, hostname: true, strings.ToUpper(hostname) + ":1": true,
		"ops.example": true, "OPS.example:9090": true,
		"evil.example": false, "evil.example:9090": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false,
		"203.0.113.7": false, "0.0.0.0": false, "[::]:9090": false, "[2001:db8::1]": false, "2130706433": false, "": false, "-": false,
	}
	peers := map[string]bool{ // those that may send commands
		"": true, "127.0.0.5": true, "::1": true, "::ffff:127.0.0.1": true, "198.51.100.9": true, "::ffff:198.51.100.9": true, "2001:db8::5": true,
		"203.0.113.7": false, "10.255.255.254": false, "2001:db9::5": false,
	}
	if own := ownAddress(t); own != "" {
		hosts[own], hosts[own+":9090"], peers[own] = true, true, true
	}
	const open, told, command = 0, 1, 2
	routes := map[string]int{
		"GET /livez": open, "GET /readyz": open, "GET /metrics": open, "HEAD /livez": open,
		"GET /status": told, "HEAD /status": told,
		"POST /reload": command, "POST /reload/confirm": command, "POST /backup": command,
		"GET /debug/pprof/": command, "GET /debug/pprof/cmdline": command, "GET /debug/pprof/symbol": command,
		"GET /debug/pprof/goroutine": command, "GET /debug/pprof/mutex": command, "GET /debug/pprof/block": command,
		"GET /debug/pprof/profile?seconds=x": command, "GET /debug/pprof/trace?seconds=x": command,
	}
	every := testrig.Size(t, 1, 17)
	for peer, local := range peers {
		t.Run("from "+peer, func(t *testing.T) {
			t.Parallel()
			at := serveOps(t, "127.0.0.1:0", peer)
			number := 0
			for _, host := range slices.Sorted(maps.Keys(hosts)) {
				ours := hosts[host]
				for _, route := range slices.Sorted(maps.Keys(routes)) {
					if number++; number%every != 0 {
						continue // 17 routes, so that every host and every route has its turn
					}
					kind := routes[route]
					if strings.Contains(route, "seconds=x") && ours && local {
						continue // takes 30 s
					}
					want := kind == open || ours && (kind == told || local)
					status, body := sendRaw(t, at, route, host)
					if got := status != http.StatusForbidden; got != want {
						t.Errorf("%s as %q: %d %s", route, host, status, body)
					}
					if says := "Host"; status == http.StatusForbidden && !strings.HasPrefix(route, "HEAD") {
						if ours {
							says = "--ops-allow"
						}
						if !strings.Contains(body, says) {
							t.Errorf("%s as %q is refused without the word %q: %s", route, host, says, body)
						}
					}
				}
			}
		})
	}
	t.Run("over a Unix socket", func(t *testing.T) {
		at := serveOps(t, "unix:"+filepath.Join(t.TempDir(), "ops.sock"), "")
		for host := range hosts {
			for route := range routes {
				if strings.Contains(route, "seconds=x") {
					continue
				}
				if status, body := sendRaw(t, at, route, host); status == http.StatusForbidden {
					t.Errorf("%s as %q: %d %s", route, host, status, body)
				}
			}
		}
	})
	t.Run("on every address", func(t *testing.T) {
		at := serveOps(t, "0.0.0.0:0", "").(*net.TCPAddr)
		for _, host := range []string{"0.0.0.0", at.String()} { // as serve announces it
			to := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: at.Port}
			if status, body := sendRaw(t, to, "POST /reload", host); status != http.StatusOK {
				t.Errorf("as %q: %d %s", host, status, body)
			}
		}
	})
}

// Silent connections make room for others: a probe comes through whatever their number, and at most 256 stay.
func TestOpsConnections(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	at := serveOps(t, "127.0.0.1:0", "").String()
	const all, kept = 600, 256
	var ended atomic.Int32
	for i := range all {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if i%2 == 0 { // one that was good once
			_, _ = c.Write([]byte("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		}
		go func() {
			_, _ = io.Copy(io.Discard, c)
			ended.Add(1)
		}()
	}
	testrig.Eventually(t, "the oldest have ended", func() bool { return ended.Load() >= all-kept })
	res, err := http.Get("http://" + at + "/livez")
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	res.Body.Close()
}
