package authdns

import (
	"net/netip"
	"slices"
	"time"

	"fingerpost/configsrc/verify/dcv"
	"github.com/miekg/dns"
)

// keepTarget is how long the addresses of a target serve the checks of all domains.
const keepTarget = time.Minute

// pointing asks for the addresses of a subject, and for those of the policy's targets.
func (s *session) pointing(subject dcv.Subject, policy dcv.Policy) dcv.Pointing {
	p := dcv.Pointing{Name: dcv.PointingName(subject)}
	if p.Name != "" {
		p.Findings, p.Addresses, _ = s.addressesOf(p.Name)
	}
	for _, f := range p.Findings {
		p.Loop = p.Loop || f.Error == loop || f.Error == tooLong
	}
	for _, host := range policy.Hosts {
		at := s.targetOf(host)
		p.TargetAddresses = append(p.TargetAddresses, at.of...)
		if at.word != "" && p.TargetError == "" {
			p.TargetError = host + ": " + at.word
		}
	}
	p.TargetAddresses = sorted(p.TargetAddresses)
	return p
}

// addressesOf asks for A and AAAA. The last result says why some addresses may be missing.
func (s *session) addressesOf(name string) (findings []dcv.Finding, addrs []netip.Addr, word string) {
	for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
		f, chain := s.find(question{name: dns.CanonicalName(name), kind: kind})
		for _, alias := range chain {
			known := func(g dcv.Finding) bool { return g.Type == alias.Type && g.Name == alias.Name }
			if !slices.ContainsFunc(findings, known) {
				findings = append(findings, alias)
			}
		}
		findings = append(findings, f)
		definite := false
		for _, a := range f.Answers {
			if a.Definite() {
				definite = true
				addrs = append(addrs, parseAddrs(a.Values)...)
			} else if word == "" {
				word = a.Server + ": " + a.Error
			}
		}
		if definite {
			word = ""
		}
		if f.Error != "" {
			word = f.Error
		}
	}
	return findings, sorted(addrs), word
}

// targetOf returns the addresses of a target that is a host name.
func (s *session) targetOf(host string) addresses {
	s.cached.Lock()
	known, ok := s.targets.lookup(host)
	s.cached.Unlock()
	if ok {
		return known
	}
	_, known.of, known.word = s.addressesOf(host)
	if known.word == "" && len(known.of) == 0 {
		known.word = "it has no address"
	}
	if s.ctx.Err() == nil {
		s.cached.Lock()
		s.targets.keep(host, known, keepTarget)
		s.cached.Unlock()
	}
	return known
}

func sorted(addrs []netip.Addr) []netip.Addr {
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Compact(addrs)
}
