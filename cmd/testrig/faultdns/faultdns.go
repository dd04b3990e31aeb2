// Package faultdns is a small internet of name servers in the process of a test: a resolver at 127.0.0.1, the servers of
// the root and of the top-level domains example and net at 127.0.0.2, and those of the zones that a test adds at further
// addresses of 127.0.0.0/8, all at one port. Delegations with their glue follow from the zones. Each server may have records
// of its own, and a fault, for all questions or for those of one name.
//
// Only tests import it. It does not sign zones and caches nothing; the tests of package authdns use real servers for that.
package faultdns

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// ResolverAddr is the address of the resolver, rootAddr that of the servers above the zones of a test.
const (
	ResolverAddr = "127.0.0.1"
	rootAddr     = "127.0.0.2"
)

// A Net is a set of name servers that run until the test ends. It is safe for concurrent use.
type Net struct {
	Port uint16 // of all servers
	t    testing.TB

	mu      sync.Mutex // guards what follows
	servers map[string]*server
	zones   map[string][]host // apex → where the zone is delegated to
}

// A host is a name server as a delegation has it.
type host struct{ name, addr string }

// A server has zones, each with records by name in lower case.
type server struct {
	udp    net.PacketConn
	tcp    net.Listener
	zones  map[string][]dns.RR
	faults map[string]Fault // "": of all names
	asked  []string
}

// New starts a Net.
func New(t testing.TB) *Net { return start(t, 0) }

// New53 is New at port 53, for programs that know no other. It waits while another test has the port, and fails
// where a server of the machine has it. Only root may use it: the caller has called testrig.NeedRoot.
func New53(t testing.TB) *Net { return start(t, 53) }

func start(t testing.TB, port uint16) *Net {
	t.Helper()
	n := &Net{Port: port, t: t, servers: map[string]*server{}, zones: map[string][]host{}}
	t.Cleanup(n.close)
	n.listen(ResolverAddr)
	for _, apex := range []string{".", "example", "net"} {
		n.Zone(apex, "", rootAddr)
	}
	return n
}

// Resolver is the resolver's address with its port.
func (n *Net) Resolver() string {
	return netip.AddrPortFrom(netip.MustParseAddr(ResolverAddr), n.Port).String()
}

// Zone adds or replaces a zone at some servers. Records are lines such as "www 60 A 192.0.2.1", relative to the apex; the
// SOA record, the NS records and the addresses of the name servers are added. A server is an address, its name then is
// "ns3.APEX" for 127.0.0.3, or "NAME=ADDRESS", with a name whose address the test's zones have.
func (n *Net) Zone(apex, records string, servers ...string) {
	n.t.Helper()
	apex = dns.CanonicalName(apex)
	var hosts []host
	for _, s := range servers {
		name, addr, ok := strings.Cut(s, "=")
		if !ok {
			name, addr = "ns"+s[strings.LastIndexByte(s, '.')+1:]+"."+strings.TrimPrefix(apex, "."), s
		}
		hosts = append(hosts, host{dns.CanonicalName(name), addr})
		n.listen(addr)
	}
	n.mu.Lock()
	n.zones[apex] = hosts
	n.mu.Unlock()
	for _, h := range hosts {
		n.Set(h.addr, apex, records)
	}
}

// Set gives one server records of its own in a zone. The resolver with records of its own answers from these.
func (n *Net) Set(addr, apex, records string) {
	n.t.Helper()
	apex = dns.CanonicalName(apex)
	var rrs []dns.RR
	add := func(text string) {
		for p := dns.NewZoneParser(strings.NewReader(text), apex, ""); ; {
			rr, ok := p.Next()
			if !ok {
				if err := p.Err(); err != nil {
					n.t.Fatal(err)
				}
				return
			}
			rr.Header().Name = dns.CanonicalName(rr.Header().Name)
			rrs = append(rrs, rr)
		}
	}
	add("$TTL 60\n@ SOA ns.invalid. mail.invalid. 1 60 60 60 60\n" + records + "\n")
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, h := range n.zones[apex] {
		rrs = append(rrs, h.records(apex)...)
	}
	n.servers[addr].zones[apex] = rrs
}

// records are the NS record of a zone for a host, and the host's address if its name is in the zone.
func (h host) records(apex string) []dns.RR {
	rrs := []dns.RR{&dns.NS{Hdr: header(apex, dns.TypeNS), Ns: h.name}}
	if dns.IsSubDomain(apex, h.name) {
		rrs = append(rrs, &dns.A{Hdr: header(h.name, dns.TypeA), A: net.ParseIP(h.addr)})
	}
	return rrs
}

func header(name string, kind uint16) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: 60}
}

// Fault gives a server a fault for the questions of a name; "": for all. Healthy ends it.
func (n *Net) Fault(addr, name string, f Fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name != "" {
		name = dns.CanonicalName(name)
	}
	n.servers[addr].faults[name] = f
}

// Asked returns what a server was asked, each as "TXT www.acme.example", in order.
func (n *Net) Asked(addr string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.servers[addr].asked)
}

// listen starts a server, unless the address has one. The first one chooses the port of all.
func (n *Net) listen(addr string) {
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.servers[addr] != nil {
		return
	}
	s := &server{zones: map[string][]dns.RR{}, faults: map[string]Fault{}}
	var err error
	// TCP's port may be somebody's UDP port, and port 53 that of another test.
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		if s.tcp, err = net.Listen("tcp", net.JoinHostPort(addr, portText(n.Port))); err != nil {
			continue
		}
		at := s.tcp.Addr().(*net.TCPAddr).AddrPort()
		if s.udp, err = net.ListenPacket("udp", at.String()); err == nil {
			n.Port, n.servers[addr] = at.Port(), s
			go n.serveUDP(s)
			go n.serveTCP(s)
			return
		}
		_ = s.tcp.Close()
	}
	n.t.Fatal("start a name server: ", err)
}
