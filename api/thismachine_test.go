package api

import (
	"context"
	"net"
	"net/http"
	"testing"
)

// TestFromThisMachine is inside the package because no test can come from another machine.
func TestFromThisMachine(t *testing.T) {
	f := func(peer, at, host string, want bool) {
		t.Helper()
		local, err := net.ResolveTCPAddr("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		r := &http.Request{RemoteAddr: peer, Host: host}
		r = r.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(local)))
		if got := fromThisMachine(r); got != want {
			t.Errorf("from %s to %s as %q: %v, want %v", peer, at, host, got, want)
		}
	}
	f("127.0.0.1:5000", "127.0.0.1:9090", "127.0.0.1:9090", true)
	f("127.0.0.1:5000", "127.0.0.1:9090", "LocalHost", true)
	f("127.0.0.1:5000", "127.0.0.1:9090", "[::1]", true)
	f("127.0.0.1:5000", "127.0.0.1:9090", "localhost.evil.example:9090", false)
	f("127.0.0.1:5000", "127.0.0.1:9090", "evil.example:9090", false)
	f("127.0.0.1:5000", "127.0.0.1:9090", "", false)
	f("[::1]:5000", "[::1]:9090", "[::1]:9090", true)
	f("10.0.0.5:5000", "10.0.0.5:9090", "10.0.0.5:9090", true)
	f("10.0.0.6:5000", "10.0.0.5:9090", "10.0.0.5:9090", false)
	f("10.0.0.6:5000", "127.0.0.1:9090", "127.0.0.1:9090", false)
	f("[::ffff:127.0.0.1]:5000", "[::ffff:127.0.0.1]:9090", "127.0.0.1", true)

	unix := &http.Request{RemoteAddr: "@", Host: "whatever"}
	if !fromThisMachine(unix.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(&net.UnixAddr{Net: "unix"})))) {
		t.Error("a Unix socket is refused")
	}
	if fromThisMachine(&http.Request{RemoteAddr: "@", Host: "127.0.0.1"}) {
		t.Error("a peer without an address is let in")
	}
}
