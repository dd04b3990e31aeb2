// Package publicnet says which addresses belong to the public internet. A package that connects to an address that a
// stranger has chosen (of a mail server, a name server, a web server) asks a Guard right before the connection: a name in
// DNS then cannot lead the service to its own machine, to its network, or to the metadata of a cloud. An operator allows
// further networks by flags.
package publicnet

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// ErrNotAllowed is the refusal of an address; test with errors.Is.
var ErrNotAllowed = errors.New("the address is not allowed")

// CannotBeAsked is what everybody is told of an address that is private, missing or refused inside, and nothing else: a
// name that a stranger chooses must not tell what only the inside knows. The log has the address.
const CannotBeAsked = "cannot be asked"

// A Guard decides which addresses may be connected to. The zero Guard allows public addresses.
type Guard struct {
	allowed []netip.Prefix
}

// refused lists the networks without public servers: the special-purpose address registries of IANA (RFC 6890) as
// of 2026. In IPv6 everything but global unicast (2000::/3) is refused, which includes the unspecified address,
// loopback, IPv4-compatible ones, NAT64 (64:ff9b::/96 and 64:ff9b:1::/48), discard-only (100::/64), unique local
// (fc00::/7), link-local (fe80::/10), site-local (fec0::/10), multicast (ff00::/8) and segment routing (5f00::/16).
var refused = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // "this network", unspecified
	netip.MustParsePrefix("10.0.0.0/8"),      // private
	netip.MustParsePrefix("100.64.0.0/10"),   // carrier-grade NAT
	netip.MustParsePrefix("127.0.0.0/8"),     // loopback
	netip.MustParsePrefix("169.254.0.0/16"),  // link-local, and the metadata of clouds
	netip.MustParsePrefix("172.16.0.0/12"),   // private
	netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("192.88.99.0/24"),  // 6to4 relays
	netip.MustParsePrefix("192.168.0.0/16"),  // private
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("224.0.0.0/4"),     // multicast
	netip.MustParsePrefix("240.0.0.0/4"),     // reserved, and broadcast
	netip.MustParsePrefix("::/3"),            // everything below 2000::/3
	netip.MustParsePrefix("4000::/2"),        // and everything above it
	netip.MustParsePrefix("8000::/1"),
	netip.MustParsePrefix("2001::/23"),     // protocol assignments, Teredo, ORCHID
	netip.MustParsePrefix("2001:db8::/32"), // documentation
	netip.MustParsePrefix("2002::/16"),     // 6to4
	netip.MustParsePrefix("3fff::/20"),     // documentation
}

// Prefixes of IPv6 addresses that carry an IPv4 address.
var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

// New returns a Guard that also allows the given networks. They may be in IPv4-mapped form.
func New(allowed []netip.Prefix) Guard {
	g := Guard{allowed: slices.Clone(allowed)}
	for i, p := range g.allowed {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			g.allowed[i] = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
	}
	return g
}

// Allows reports whether a may be connected to. It treats an IPv4-mapped address as the IPv4 address. An address that a
// translator turns into an IPv4 address must be allowed in both forms: an operator who allows NAT64 does not mean
// 169.254.169.254 behind it.
func (g Guard) Allows(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	inside := func(p netip.Prefix) bool { return p.Contains(a) }
	if !slices.ContainsFunc(g.allowed, inside) && slices.ContainsFunc(refused, inside) {
		return false
	}
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return g.Allows(netip.AddrFrom4([4]byte(b[12:])))
	case sixToFour.Contains(a):
		return g.Allows(netip.AddrFrom4([4]byte(b[2:6])))
	}
	return true
}

// Control is for a net.Dialer: it returns an ErrNotAllowed for an address that must not be connected to. The dialer calls
// it for each connection, so that a second look-up of a name (DNS rebinding) cannot bring in another address.
func (g Guard) Control(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil || !g.Allows(ap.Addr()) {
		return fmt.Errorf("connect to %s: %w", address, ErrNotAllowed)
	}
	return nil
}
