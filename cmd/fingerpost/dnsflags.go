package main

import (
	"fmt"
	"net/netip"
	"strings"

	"fingerpost/cmd/fingerpost/cli"

	"github.com/spf13/pflag"

	"fingerpost/cmd/fingerpost/node"
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

// parse parses the flags, and reports all their problems.
func (f *dnsFlags) parse() (o node.DNS, err error) {
	var bad []string
	o.Allow, bad = cli.ParseNetworks("--dns-allow", f.allow)
	if f.resolver != "" {
		bare := strings.TrimSuffix(strings.TrimPrefix(f.resolver, "["), "]")
		if addr, err := netip.ParseAddr(bare); err == nil {
			o.Resolver = netip.AddrPortFrom(addr, portDNS)
		} else if o.Resolver, err = netip.ParseAddrPort(f.resolver); err != nil || o.Resolver.Port() == 0 {
			bad = append(bad, fmt.Sprintf("--dns-resolver %q must be an address, such as 127.0.0.1 or [::1]:5353", f.resolver))
		}
	}
	return o, cli.UsageAll(bad)
}
