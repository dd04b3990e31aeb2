package cli

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/pflag"
)

// DNSFlags say how customers' domains are looked up.
type DNSFlags struct {
	resolver string
	allow    []string
}

// Add adds the flags.
func (f *DNSFlags) Add(fl *pflag.FlagSet) {
	fl.StringVar(&f.resolver, "dns-resolver", "",
		"address (ADDR or ADDR:PORT) of the resolver for checks of customers' domains (default the system's)")
	fl.StringSliceVar(&f.allow, "dns-allow", nil,
		"networks (CIDR,…) that checks of customers' domains may ask although they are private, such as 10.0.0.0/8")
}

const portDNS = 53

// Parse returns the resolver, zero for the system's, and the private networks that may be asked. The error has all
// problems.
func (f *DNSFlags) Parse() (resolver netip.AddrPort, allow []netip.Prefix, err error) {
	allow, bad := ParseNetworks("--dns-allow", f.allow)
	if f.resolver != "" {
		bare := strings.TrimSuffix(strings.TrimPrefix(f.resolver, "["), "]")
		if addr, err := netip.ParseAddr(bare); err == nil {
			resolver = netip.AddrPortFrom(addr, portDNS)
		} else if resolver, err = netip.ParseAddrPort(f.resolver); err != nil || resolver.Port() == 0 {
			bad = append(bad, fmt.Sprintf("--dns-resolver %q must be an address, such as 127.0.0.1 or [::1]:5353", f.resolver))
		}
	}
	return resolver, allow, UsageAll(bad)
}
