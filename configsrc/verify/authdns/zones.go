package authdns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fingerpost/resolver/publicnet"
	"github.com/miekg/dns"
	"golang.org/x/net/publicsuffix"
)

// How long what was found serves later checks of other domains.
const (
	keepStart     = 10 * time.Minute // the servers of a public suffix
	keepHost      = time.Hour        // the addresses of a name server, if their TTL is not shorter
	keepHostLeast = 30 * time.Second
	keepTold      = time.Hour // that the log has the address of a host
)

// maxClimb is the number of names at which the resolver is asked for a zone.
const maxClimb = 6

// nearest returns the deepest zone that is known to have the name. Where none is known, the walk begins.
func (s *session) nearest(name string) (zone, string) {
	for at := name; at != "."; at = parent(at) {
		if z, ok := s.zones[at]; ok {
			return z, ""
		}
	}
	z, word := s.start(name)
	if word == "" {
		s.zones[z.apex] = z
	}
	return z, word
}

// start returns the zone of the name's public suffix, or, if the resolver knows none, the zone of the name.
func (s *session) start(name string) (zone, string) {
	suffix, _ := publicsuffix.PublicSuffix(plain(name))
	suffix = dns.Fqdn(suffix)
	s.cached.Lock()
	z, ok := s.starts.lookup(suffix)
	s.cached.Unlock()
	if ok {
		return z, ""
	}
	if word := s.lost[suffix]; word != "" {
		return zone{}, word
	}
	z, word := s.enclosing(suffix)
	if word != "" {
		z, word = s.enclosing(name)
		s.lost[suffix] = word
		return z, word
	}
	z.public = true
	s.cached.Lock()
	s.starts.keep(suffix, z, keepStart)
	s.cached.Unlock()
	return z, ""
}

// enclosing asks the resolver for the zone that has the name.
func (s *session) enclosing(name string) (zone, string) {
	word := "the resolver knows no name servers for " + plain(name)
	for range maxClimb {
		r := s.resolve(question{name: name, kind: dns.TypeNS, unchecked: true})
		if r.err == "" && r.target == "" && len(r.values) > 0 {
			z, word := newZone(name, r.values, nil)
			if word != "" || slices.ContainsFunc(z.servers, s.canAsk) {
				return z, word
			}
			// An inner zone gets the answer of one that does not exist: nobody learns which ones this network has.
		}
		if r.err != "" {
			word = "the resolver: " + r.err
		}
		switch {
		case name == ".":
			return zone{}, word
		case r.soa != "" && r.soa != name && dns.IsSubDomain(r.soa, name):
			name = r.soa
		default:
			name = parent(name)
		}
	}
	return zone{}, word
}

// below returns the zone below z of which a reply tells.
func (s *session) below(z zone, r reply) (zone, string) {
	hosts := r.hosts
	if hosts == nil { // the server has both zones
		i := slices.IndexFunc(z.servers, func(to server) bool { return plain(to.host) == r.server })
		answer := s.askServer(zone{apex: r.cut}, z.servers[i], question{name: r.cut, kind: dns.TypeNS})
		if hosts = answer.values; len(hosts) == 0 {
			return zone{}, fmt.Sprintf("the servers of %s are not known: %s", plain(r.cut), answer.err)
		}
	}
	sub, word := newZone(r.cut, hosts, r.glue)
	if word == "" {
		s.zones[sub.apex] = sub
	}
	return sub, word
}

// innerZone asks the resolver for a zone below a public suffix whose own servers do not know the name: an inner one.
func (s *session) innerZone(z zone, name string, replies []reply) (zone, bool) {
	known := func(r reply) bool { return len(r.values) > 0 || r.target != "" }
	if !z.public || slices.ContainsFunc(replies, known) {
		return zone{}, false
	}
	child := name
	for at := name; at != z.apex && at != "."; at = parent(at) {
		child = at
	}
	if s.inner[child] {
		return zone{}, false
	}
	s.inner[child] = true
	inner, word := s.enclosing(name)
	if word != "" || inner.apex == z.apex || !dns.IsSubDomain(z.apex, inner.apex) {
		return zone{}, false
	}
	s.zones[inner.apex] = inner
	return inner, true
}

// newZone returns a zone with its servers in a fixed order.
func newZone(apex string, hosts []string, glue map[string][]netip.Addr) (zone, string) {
	z := zone{apex: apex}
	for _, host := range hosts {
		host = dns.CanonicalName(host)
		z.servers = append(z.servers, server{host, glue[host]})
	}
	slices.SortFunc(z.servers, func(a, b server) int { return strings.Compare(a.host, b.host) })
	z.servers = slices.CompactFunc(z.servers, func(a, b server) bool { return a.host == b.host })
	if len(z.servers) > maxServers {
		return zone{}, fmt.Sprintf("%s has more than %d name servers", plain(apex), maxServers)
	}
	return z, ""
}

// addresses are those of a name server, or why they are not known.
type addresses struct {
	of   []netip.Addr
	word string
}

// reachable returns where a server may be asked. The last result says why nowhere.
func (s *session) reachable(to server) ([]netip.AddrPort, string) {
	found := addresses{of: to.glue}
	if len(found.of) == 0 {
		found = s.addresses(to.host)
	}
	var at []netip.AddrPort
	var refused netip.Addr
	for _, addr := range found.of {
		if !s.guard.Allows(addr) {
			refused = addr
		} else if len(at) < maxAddresses {
			at = append(at, netip.AddrPortFrom(addr, s.o.DNSPort))
		}
	}
	switch {
	case found.word != "":
		return nil, found.word
	case len(at) == 0:
		return nil, s.notPublic(to.host, refused)
	}
	return at, ""
}

func (s *session) canAsk(to server) bool {
	at, _ := s.reachable(to)
	return len(at) > 0
}

// notPublic returns the word for an address that may not be connected to, which only the log has.
func (c *Checker) notPublic(host string, addr netip.Addr) string {
	c.cached.Lock()
	_, told := c.told.lookup(host)
	c.told.keep(host, addr, keepTold)
	c.cached.Unlock()
	if !told {
		c.o.Logger.Info("a check of domains asks no address that is not public (--dns-allow)",
			"host", plain(host), "address", addr)
	}
	return publicnet.CannotBeAsked
}

// addresses asks the resolver for the addresses of a name server, IPv4 first.
func (s *session) addresses(host string) addresses {
	s.mu.Lock()
	known, ok := s.found[host]
	s.mu.Unlock()
	if ok {
		return known
	}
	s.cached.Lock()
	of, ok := s.hosts.lookup(host)
	s.cached.Unlock()
	if ok {
		return addresses{of: of}
	}
	lives := keepHost
	for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
		r := s.resolve(question{name: host, kind: kind, unchecked: true})
		known.of = append(known.of, parseAddrs(r.values)...)
		if r.err != "" {
			known.word = publicnet.CannotBeAsked
		} else if len(r.values) > 0 {
			lives = min(lives, max(r.ttl, keepHostLeast))
		}
	}
	switch {
	case len(known.of) > 0:
		known.word = ""
		s.cached.Lock()
		s.hosts.keep(host, known.of, lives)
		s.cached.Unlock()
	case known.word == "":
		known.word = publicnet.CannotBeAsked
	}
	s.mu.Lock()
	s.found[host] = known
	s.mu.Unlock()
	return known
}

func parseAddrs(values []string) (addrs []netip.Addr) {
	for _, v := range values {
		if addr, err := netip.ParseAddr(v); err == nil {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// parent returns the name without its first label; "." of a top-level domain.
func parent(name string) string {
	next, end := dns.NextLabel(name, 0)
	if end {
		return "."
	}
	return name[next:]
}
