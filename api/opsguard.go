package api

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
)

// An opsGuard decides which requests the ops listener answers (cmd/fingerpost/README.md). A page that a browser on this machine has
// open can reach the listener under a name of its own, whose address its owner chooses (DNS rebinding); its Host gives it
// away. Another machine may read the status, and send commands only if it is in allow. A Unix socket has permissions.
type opsGuard struct {
	allow []netip.Prefix
	names []string // of this machine, in lower case
}

// newOpsGuard knows the machine by the hosts of the addresses that are listened on, by its host name, and as localhost.
func newOpsGuard(listen []string, allow []netip.Prefix) *opsGuard {
	g := &opsGuard{allow: allow, names: []string{"localhost"}}
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

// told lets requests through that name this machine as their Host.
func (g *opsGuard) told(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !overUnix(r) && !g.isThisMachine(r) {
			refuseOps(w, fmt.Sprintf("the Host of the request, %.80q, is no address or name of this machine: ask for http://127.0.0.1 or the address of --ops-listen", r.Host))
			return
		}
		next(w, r)
	})
}

// command lets requests through that also come from this machine, or from where --ops-allow says.
func (g *opsGuard) command(next http.HandlerFunc) http.Handler {
	return g.told(func(w http.ResponseWriter, r *http.Request) {
		if !overUnix(r) && !g.mayCommand(r) {
			refuseOps(w, fmt.Sprintf("commands and profiles are for this machine only, and this request comes from %s: serve --ops-allow CIDR lets others in", opsPeer(r)))
			return
		}
		next(w, r)
	})
}

func refuseOps(w http.ResponseWriter, why string) {
	writeJSON(w, http.StatusForbidden, map[string]string{"error": why})
}

func (g *opsGuard) isThisMachine(r *http.Request) bool {
	host := hostOf(r.Host)
	for _, name := range g.names {
		if host == name {
			return true
		}
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && isOwn(addr, r)
}

func (g *opsGuard) mayCommand(r *http.Request) bool {
	peer := opsPeer(r)
	for _, p := range g.allow {
		if p.Contains(peer) {
			return true
		}
	}
	return isOwn(peer, r)
}

// hostOf is the host in "host:port", "[address]:port" or either without a port, in lower case and without a final dot.
func hostOf(hostPort string) string {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostPort, "["), "]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// opsPeer is the address that a request comes from, the zero Addr where it has none.
func opsPeer(r *http.Request) netip.Addr {
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

// isOwn reports whether an address is one of this machine's: loopback, the one that the request was sent to, or one of a
// network interface, which may come and go.
func isOwn(addr netip.Addr, r *http.Request) bool {
	addr = addr.Unmap().WithZone("")
	if addr.IsLoopback() {
		return true
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		all = nil // then the address of the request has to do
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
