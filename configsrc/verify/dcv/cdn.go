package dcv

import (
	"net/netip"
	"strings"
)

// A cdn is a content delivery network that hides where a name leads.
type cdn struct {
	name        string
	nameServers string // the end of the host names of its name servers; "": it has none
	prefixes    []netip.Prefix
	remedy      string
}

// cdns are the networks for the hint PROXIED. A missing one costs a hint and nothing else. The prefixes are those that
// the networks publish: www.cloudflare.com/ips, api.fastly.com/public-ip-list (as of October 2026).
var cdns = []cdn{
	{"Cloudflare", ".ns.cloudflare.com", prefixes(`
		173.245.48.0/20 103.21.244.0/22 103.22.200.0/22 103.31.4.0/22 141.101.64.0/18 108.162.192.0/18 190.93.240.0/20
		188.114.96.0/20 197.234.240.0/22 198.41.128.0/17 162.158.0.0/15 104.16.0.0/13 104.24.0.0/14 172.64.0.0/13
		131.0.72.0/22 2400:cb00::/32 2606:4700::/32 2803:f800::/32 2405:b500::/32 2405:8100::/32 2a06:98c0::/29
		2c0f:f248::/32`), `set the record to "DNS only" there`},
	{"Fastly", "", prefixes(`
		23.235.32.0/20 43.249.72.0/22 103.244.50.0/24 103.245.222.0/23 103.245.224.0/24 104.156.80.0/20
		140.248.64.0/18 140.248.128.0/17 146.75.0.0/17 151.101.0.0/16 157.52.64.0/18 167.82.0.0/17 167.82.128.0/20
		167.82.160.0/20 167.82.224.0/20 172.111.64.0/18 185.31.16.0/22 199.27.72.0/21 199.232.0.0/16 2a04:4e40::/32
		2a04:4e42::/32`), "point the name here without it"},
}

func prefixes(list string) (prefixes []netip.Prefix) {
	for _, prefix := range strings.Fields(list) {
		prefixes = append(prefixes, netip.MustParsePrefix(prefix))
	}
	return prefixes
}

// cdnOf returns the network that has the address; nil: none that is known.
func cdnOf(addr netip.Addr) *cdn {
	for i := range cdns {
		for _, prefix := range cdns[i].prefixes {
			if prefix.Contains(addr.Unmap()) {
				return &cdns[i]
			}
		}
	}
	return nil
}

// cdnOfServer returns the network that has the name server; nil: none that is known.
func cdnOfServer(host string) *cdn {
	for i := range cdns {
		if end := cdns[i].nameServers; end != "" && strings.HasSuffix(canonical(host), end) {
			return &cdns[i]
		}
	}
	return nil
}
