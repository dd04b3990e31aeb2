package main

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/spf13/pflag"
)

// gateFlags are the flags of serve about gateways.
type gateFlags struct {
	gate          string
	gateAllow     []string
	gateWildcards bool
}

func (f *gateFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.gate, "gate-listen", "", "address where gateways ask without a key, in clear HTTP; unix:/path works")
	fl.StringSliceVar(&f.gateAllow, "gate-allow", nil,
		"networks (CIDR,…) beyond this machine whose gateways may ask at --gate-listen, such as 10.0.0.0/8")
	fl.BoolVar(&f.gateWildcards, "gate-wildcards", false,
		"let gateways fetch certificates for names that only a wildcard covers")
}

// parse returns the networks. An address that other machines can reach needs some: it is the only credential.
func (f *gateFlags) parse() (allow []netip.Prefix, err error) {
	allow, bad := parseNetworks("--gate-allow", f.gateAllow)
	switch {
	case f.gate == "" && len(f.gateAllow) > 0:
		bad = append(bad, "--gate-allow needs --gate-listen ADDR, the address where gateways ask")
	case f.gate != "" && len(f.gateAllow) == 0 && beyondLoopback(f.gate):
		bad = append(bad, fmt.Sprintf("--gate-listen %s: gateways need no key there, and other machines can reach it: "+
			"name the networks of the gateways, as in --gate-allow 10.0.0.0/8, or listen on 127.0.0.1 or unix:/path", f.gate))
	}
	return allow, usageAll(bad)
}

// beyondLoopback reports whether other machines can reach an address. listen reports those that cannot be looked up.
func beyondLoopback(addr string) bool {
	if strings.HasPrefix(addr, "unix:") {
		return false
	}
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	return err == nil && !tcp.IP.IsLoopback()
}
