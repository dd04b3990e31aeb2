package ops

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
)

// A guard decides which requests the ops listener answers. The status needs a Host that names this machine: a web page
// in a browser on this machine can reach the listener by a name of its own (DNS rebinding), and its Host shows that.
// Commands also need a peer that is this machine or in allow. Requests over a Unix socket pass: the socket has
// permissions.
type guard struct {
	allow []netip.Prefix
	names []string // of this machine, in lower case
}

// newGuard takes as names of this machine: the hosts of the listen addresses, the host name and localhost.
func newGuard(listen []string, allow []netip.Prefix) *guard {
	g := &guard{allow: allow, names: []string{"localhost"}}
	if name, err := os.Hostname(); err == nil {
		g.names = append(g.names, strings.ToLower(name))
	}
	for _, addr := range listen {
		if name := hostOf(addr); name != "" { // ":9090" has none
			g.names = append(g.names, name)
		}
	}
	return g
}

// near refuses what a page of another site asks for in a browser. Browsers say so; others send no such header.
func (g *guard) near(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
			refuse(w, "a page of another site has asked for this; open the address itself")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// reading passes requests whose Host names this machine.
func (g *guard) reading(next http.HandlerFunc) http.Handler {
	return g.near(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !overUnix(r) && !g.isThisMachine(r) {
			refuse(w, fmt.Sprintf("the Host of the request, %.80q, is no address or name of this machine: ask for "+
				"http://127.0.0.1 or the address of --ops-listen", r.Host))
			return
		}
		next(w, r)
	}))
}

// command passes requests that also come from this machine or from a network of --ops-allow.
func (g *guard) command(next http.HandlerFunc) http.Handler {
	return g.reading(func(w http.ResponseWriter, r *http.Request) {
		if !overUnix(r) && !g.mayCommand(r) {
			refuse(w, fmt.Sprintf("commands and profiles are for this machine only, and this request comes from %s: serve "+
				"--ops-allow CIDR lets others in", peerOf(r)))
			return
		}
		next(w, r)
	})
}

func refuse(w http.ResponseWriter, why string) {
	writeJSON(w, http.StatusForbidden, map[string]string{"error": why})
}

func (g *guard) isThisMachine(r *http.Request) bool {
	host := hostOf(r.Host)
	for _, name := range g.names {
		if host == name {
			return true
		}
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && isOwn(addr, r)
}

func (g *guard) mayCommand(r *http.Request) bool {
	peer := peerOf(r)
	for _, p := range g.allow {
		if p.Contains(peer) {
			return true
		}
	}
	return isOwn(peer, r)
}

// hostOf returns the host in "host:port", "[address]:port" or either without a port, in lower case and without a final
// dot.
func hostOf(hostPort string) string {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostPort, "["), "]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// peerOf returns the address that a request comes from, the zero Addr if there is none.
func peerOf(r *http.Request) netip.Addr {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return peer.Addr().Unmap().WithZone("")
}

func localAddr(r *http.Request) net.Addr {
	addr, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return addr
}

func overUnix(r *http.Request) bool {
	addr := localAddr(r)
	return addr != nil && addr.Network() == "unix"
}

// isOwn reports whether an address belongs to this machine: loopback, the address that the request was sent to, or that
// of a network interface. Interfaces come and go, so they are listed for each request.
func isOwn(addr netip.Addr, r *http.Request) bool {
	addr = addr.Unmap().WithZone("")
	if addr.IsLoopback() {
		return true
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		all = nil // the address of the request remains
	}
	for _, a := range append(all, localAddr(r)) {
		var ip net.IP
		switch a := a.(type) {
		case *net.IPNet:
			ip = a.IP
		case *net.TCPAddr:
			ip = a.IP
		}
		if own, ok := netip.AddrFromSlice(ip); ok && own.Unmap() == addr {
			return true
		}
	}
	return false
}
