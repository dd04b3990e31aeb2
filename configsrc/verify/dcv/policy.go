package dcv

import (
	"net/netip"
	"time"

	"fingerpost/resolver/catalog"
)

// A Policy is the verification block of the files, prepared for decisions. The zero Policy is that of files without the
// block: nothing is required, and nothing counts as "here".
type Policy struct {
	Require  string         // catalog.RequireNone, …; "": none
	Hosts    []string       // the targets that are host names
	Prefixes []netip.Prefix // the other targets
	Block    bool           // a lost proof is written to the files
	Grace    time.Duration
	CAs      []string
}

// PolicyOf prepares v; nil: the files have no block.
func PolicyOf(v *catalog.Verification) Policy {
	if v == nil {
		return Policy{}
	}
	p := Policy{Require: v.Require, Block: v.OnLost == catalog.OnLostBlock, Grace: v.Grace, CAs: v.CAs}
	for _, target := range v.Targets {
		if prefix, err := netip.ParsePrefix(target); err == nil {
			p.Prefixes = append(p.Prefixes, prefix.Masked())
		} else if addr, err := netip.ParseAddr(target); err == nil {
			p.Prefixes = append(p.Prefixes, netip.PrefixFrom(addr, addr.BitLen()))
		} else {
			p.Hosts = append(p.Hosts, target)
		}
	}
	return p
}
