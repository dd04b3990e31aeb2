package dcv

import (
	"net/netip"
	"slices"
	"time"
)

// expiringBefore is how long before its end a certificate is "expiring".
const expiringBefore = 14 * day

// point decides about pointing.
func (st *State) point(p Policy, f *Pointing, now time.Time) {
	state := pointing(p, f)
	if state == "" {
		return
	}
	pt := &st.Pointing
	pt.Addresses = slices.Clone(cut(f.Addresses, maxValues))
	if pt.State != state {
		pt.State, pt.Since = state, now
	}
}

// certify decides about the certificate, after pointing.
func (st *State) certify(f *TLS, now time.Time) {
	state := certificate(f, st.Pointing.State, now)
	if state == "" {
		return
	}
	c := &st.Certificate
	c.Issuer, c.ExpiresAt = short(f.Issuer), f.NotAfter
	if c.State != state {
		c.State, c.Since = state, now
	}
}

// certificate returns the state that f stands for; "": nothing definite.
func certificate(f *TLS, pointing string, now time.Time) string {
	switch {
	case f.Connected && f.Error != "":
		return Wrong
	case f.Connected && f.NotAfter.IsZero():
		return ""
	case f.Connected && f.NotAfter.Sub(now) < expiringBefore:
		return Expiring
	case f.Connected:
		return Good
	case f.Refused:
		return NoCertificate
	case pointing == Elsewhere || pointing == Nowhere:
		return Unknown // whatever was found before, another server answers now, or none
	}
	return ""
}

// pointing returns the state that f stands for; "": nothing definite.
func pointing(p Policy, f *Pointing) string {
	if f.Loop {
		return Unknown
	}
	spreading := false
	for i := range f.Findings {
		spreading = spreading || f.Findings[i].Type == "CNAME" && halfThere(&f.Findings[i])
	}
	a, aWhole := p.family(f, "A")
	aaaa, aaaaWhole := p.family(f, "AAAA")
	both := [2]string{a, aaaa}
	switch has := func(state string) bool { return slices.Contains(both[:], state) }; {
	case spreading || has(Spreading):
		return Spreading
	case has(Elsewhere):
		return Elsewhere
	case has(Unknown):
		return Unknown
	case has(""):
		return ""
	case has(Here):
		return Here
	case aWhole && aaaaWhole:
		return Nowhere
	}
	return ""
}

// halfThere reports whether some servers have the record, and others have not.
func halfThere(f *Finding) bool {
	with, without := 0, 0
	for i := range f.Answers {
		switch a := &f.Answers[i]; {
		case !a.Definite():
		case len(a.Values) > 0:
			with++
		default:
			without++
		}
	}
	return with > 0 && without > 0
}

// family returns where the addresses of a family lead: Here, Elsewhere, Nowhere, Spreading, Unknown without targets, or
// "" for nothing definite. whole reports whether all servers have answered definitely.
func (p *Policy) family(f *Pointing, kind string) (state string, whole bool) {
	i := slices.IndexFunc(f.Findings, func(found Finding) bool { return found.Type == kind })
	if i < 0 || f.Findings[i].Error != "" {
		return "", false
	}
	whole = true
	for j := range f.Findings[i].Answers {
		answer := &f.Findings[i].Answers[j]
		if !answer.Definite() {
			whole = false
			continue
		}
		switch leads := p.leads(f, answer.Values); {
		case leads == "":
			return "", false
		case state == "":
			state = leads
		case state != leads:
			state = Spreading
		}
	}
	return state, whole
}

// leads returns where the addresses of one answer lead; "" while the addresses of a target are not known.
func (p *Policy) leads(f *Pointing, addresses []string) string {
	if len(addresses) == 0 {
		return Nowhere
	}
	if len(p.Hosts)+len(p.Prefixes) == 0 {
		return Unknown
	}
	for _, text := range addresses {
		addr, err := netip.ParseAddr(text)
		switch {
		case err == nil && p.isTarget(addr, f.TargetAddresses):
		case f.TargetError != "":
			return ""
		default:
			return Elsewhere
		}
	}
	return Here
}

// isTarget reports whether an address is a target's, of which those with host names have the addresses in hosts.
func (p *Policy) isTarget(addr netip.Addr, hosts []netip.Addr) bool {
	addr = addr.Unmap()
	return slices.Contains(hosts, addr) ||
		slices.ContainsFunc(p.Prefixes, func(prefix netip.Prefix) bool { return prefix.Contains(addr) })
}
