package main

import (
	"fmt"
	"net/netip"
	"strings"

	"fingerpost/cmd/fingerpost/cli"

	"github.com/spf13/pflag"

)

// dnsFlags say how customers' domains are looked up.
type dnsFlags struct {
	resolver string
	allow    []string
}

func (f *dnsFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.resolver, "dns-resolver", "",
		"address (ADDR or ADDR:PORT) of the resolver for checks of customers' domains (default the system's)")
	fl.StringSliceVar(&f.allow, "dns-allow", nil,
		"networks (CIDR,…) that checks of customers' domains may ask although they are private, such as 10.0.0.0/8")
}

const portDNS = 53

// parse returns the resolver, zero for the system's, and the private networks that may be asked. The error has all problems.
func (f *dnsFlags) parse() (resolver netip.AddrPort, allow []netip.Prefix, err error) {
	allow, bad := cli.ParseNetworks("--dns-allow", f.allow)
	if f.resolver != "" {
		bare := strings.TrimSuffix(strings.TrimPrefix(f.resolver, "["), "]")
		if addr, err := netip.ParseAddr(bare); err == nil {
			resolver = netip.AddrPortFrom(addr, portDNS)
		} else if resolver, err = netip.ParseAddrPort(f.resolver); err != nil || resolver.Port() == 0 {
			bad = append(bad, fmt.Sprintf("--dns-resolver %q must be an address, such as 127.0.0.1 or [::1]:5353", f.resolver))
		}
	}
	return resolver, allow, cli.UsageAll(bad)
}
