package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/fingerpost/node"
)

func (f *serveFlags) addGate(fl *pflag.FlagSet) {
	fl.StringVar(&f.Listen.Gate, "gate-listen", "",
		"address where gateways ask without a key, in clear HTTP; unix:/path works")
	fl.StringSliceVar(&f.gateAllow, "gate-allow", nil,
		"networks (CIDR,…) beyond this machine whose gateways may ask at --gate-listen, such as 10.0.0.0/8")
	fl.BoolVar(&f.Listen.Gateway.Wildcards, "gate-wildcards", false,
		"let gateways fetch certificates for names that only a wildcard covers")
}

// parseGate parses the networks. An address that other machines can reach needs some: it is the only credential.
func (f *serveFlags) parseGate() error {
	var bad []string
	f.Listen.Gateway.Allow, bad = cli.ParseNetworks("--gate-allow", f.gateAllow)
	switch {
	case f.Listen.Gate == "" && len(f.gateAllow) > 0:
		bad = append(bad, "--gate-allow needs --gate-listen ADDR, the address where gateways ask")
	case f.Listen.Gate != "" && len(f.gateAllow) == 0 && node.BeyondLoopback(f.Listen.Gate):
		bad = append(bad, fmt.Sprintf("--gate-listen %s: gateways need no key there, and other machines can reach it: "+
			"name the networks of the gateways, as in --gate-allow 10.0.0.0/8, or listen on 127.0.0.1 or unix:/path",
			f.Listen.Gate))
	}
	return cli.UsageAll(bad)
}
