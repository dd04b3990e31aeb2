package authdns

import (
	"fmt"
	"net/netip"

	"github.com/miekg/dns"
)

// resolvConf is where the system says which resolvers it has.
const resolvConf = "/etc/resolv.conf"

// parseResolver reads "ADDR" or "ADDR:PORT".
func parseResolver(text string) (netip.AddrPort, error) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at, nil
	}
	bare := text
	if n := len(text); n > 1 && text[0] == '[' && text[n-1] == ']' {
		bare = text[1 : n-1]
	}
	addr, err := netip.ParseAddr(bare)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf(
			"read the address of the resolver: %q must be an address, with or without a port: 9.9.9.9, [2620:fe::fe]:53", text)
	}
	return netip.AddrPortFrom(addr, 53), nil
}

// resolverAddresses returns the configured resolver, or the system's. Without any it is the one of this machine, as for
// other programs.
func (c *Checker) resolverAddresses() (at []netip.AddrPort) {
	if c.resolver.IsValid() {
		return []netip.AddrPort{c.resolver}
	}
	conf, err := dns.ClientConfigFromFile(resolvConf)
	if err == nil {
		for _, text := range conf.Servers {
			if addr, err := netip.ParseAddr(text); err == nil {
				at = append(at, netip.AddrPortFrom(addr, 53))
			}
		}
	}
	if len(at) == 0 {
		at = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:53")}
	}
	return at
}

// resolve asks the resolvers one after another, until one answers definitely.
func (s *session) resolve(q question) (r reply) {
	q.recurse = true
	for _, at := range s.resolvers {
		r = s.exchangeTwice(at.String(), []netip.AddrPort{at}, q, "")
		if r.server = at.Addr().String(); r.err == "" {
			break
		}
	}
	return r
}
