package doctor

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"

	"fingerpost/resolver/catalog"
)

// verification asks the resolver of --dns-resolver, or that of the system, as the checks of domains will, and looks up the
// host names to which domains should point.
func (p *patient) verification(ctx context.Context) (rs []Result) {
	v, file := p.policy()
	if v == nil {
		return nil
	}
	resolver, at := p.resolver()
	if err := answers(ctx, resolver, "example.com."); err != nil {
		return []Result{failure("start that resolver, or name another one with --dns-resolver",
			"%s does not answer: no domain can be proven (%v)", at, err)}
	}
	hosts := slices.DeleteFunc(slices.Clone(v.Targets), isAddress)
	for _, host := range hosts {
		if err := has(ctx, resolver, host); err != nil {
			rs = append(rs, warning("correct targets of verification in "+file+", or give the name its addresses",
				"target %s has no address, so no domain is seen to point there: %v", host, err))
		}
	}
	if len(v.Targets) == 0 {
		rs = append(rs, warning("say in targets of verification, in "+file+", where domains should point",
			"verification has no targets: whether a domain points here cannot be told"))
	}
	if rs == nil {
		rs = []Result{ok("%s answers; %s of verification", at, catalog.Count(len(v.Targets), "target"))}
	}
	return rs
}

// policy returns the verification block of the files with its file, nil if there is none.
func (p *patient) policy() (v *catalog.Verification, file string) {
	if p.checked == nil {
		return nil, ""
	}
	for i := range p.checked.Files {
		f := &p.checked.Files[i]
		if d := f.Declared.Defaults; d != nil && d.Verification != nil {
			return d.Verification, f.Display
		}
	}
	return nil, ""
}

// resolver returns what looks names up for the checks of domains, and how people call it.
func (p *patient) resolver() (r *net.Resolver, at string) {
	if !p.DNS.Resolver.IsValid() {
		return net.DefaultResolver, "the resolver of this machine (/etc/resolv.conf)"
	}
	to := p.DNS.Resolver.String()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, to)
	}}, "--dns-resolver " + to
}

// answers returns why a resolver does not answer. That a name does not exist is an answer.
func answers(ctx context.Context, r *net.Resolver, name string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := r.LookupNS(ctx, name)
	if dns, is := errors.AsType[*net.DNSError](err); is && dns.IsNotFound {
		return nil
	}
	return err
}

// has returns why a host name has no address.
func has(ctx context.Context, r *net.Resolver, host string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := r.LookupNetIP(ctx, "ip", host+".")
	return err
}

// isAddress reports whether a target is an address or a prefix.
func isAddress(target string) bool {
	_, notAddress := netip.ParseAddr(target)
	_, notPrefix := netip.ParsePrefix(target)
	return notAddress == nil || notPrefix == nil
}
