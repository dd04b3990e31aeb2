package authdns

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
	"github.com/miekg/dns"
	"golang.org/x/net/publicsuffix"
)

// maxCAA is the number of names at which CAA records are asked for.
const maxCAA = 8

// extras finds out what else the hints need. Where all is well, it asks nothing.
func (s *session) extras(subject dcv.Subject, policy dcv.Policy, ways []dcv.Way, facts *dcv.Facts, hit bool) (z dcv.Zone) {
	name := dns.CanonicalName(strings.TrimPrefix(subject.Name, "*."))
	missing := len(ways) > 0 && !hit
	if known, ok := s.known(name); ok {
		z.Apex = plain(known.apex)
		for _, to := range known.servers {
			z.NameServers = append(z.NameServers, plain(to.host))
		}
		z.ApexCNAME = z.Apex == subject.Name && hasCNAME(subject.Name, facts)
	}
	if bad := !facts.TLS.Connected || facts.TLS.Error != ""; len(policy.CAs) > 0 && (missing || bad) {
		z.CAA, z.CAAName, z.CAAKnown = s.caa(dns.CanonicalName(cmp.Or(facts.Pointing.Name, name)))
	}
	if missing && z.Apex != "" {
		f, _ := s.find(question{name: dns.CanonicalName(ways[0].Name + "." + z.Apex), kind: dns.TypeTXT, one: true})
		for _, a := range f.Answers {
			z.Doubled = append(z.Doubled, a.Values...)
		}
	}
	if missing {
		for _, at := range dcv.StrayNames(subject, z.Apex, ways) {
			f, _ := s.find(question{name: dns.CanonicalName(at), kind: dns.TypeTXT, one: true})
			stray := dcv.Stray{Name: at}
			for _, a := range f.Answers {
				stray.Values = append(stray.Values, a.Values...)
			}
			if len(stray.Values) > 0 {
				z.Strays = append(z.Strays, stray)
			}
		}
	}
	waiting := subject.Verified == catalog.VerifiedPending || subject.Verified == catalog.VerifiedLost
	if len(ways) > 0 && (missing || waiting) {
		s.askResolver(&z, ways[0])
	}
	return z
}

// known returns the zone that has a name, if the walk came to one below a public suffix.
func (s *session) known(name string) (zone, bool) {
	z, word := s.nearest(name)
	return z, word == "" && !z.public
}

func hasCNAME(name string, facts *dcv.Facts) bool {
	has := func(a dcv.Answer) bool { return len(a.Values) > 0 }
	return slices.ContainsFunc(slices.Concat(facts.Pointing.Findings, facts.Proofs), func(f dcv.Finding) bool {
		return f.Type == "CNAME" && f.Name == name && slices.ContainsFunc(f.Answers, has)
	})
}

// caa returns the issuers that the CAA records in force for a name allow: those of the name or of the next name above it
// that has any, up to the registrable domain (RFC 8659, without public suffixes). "" allows none.
func (s *session) caa(name string) (issuers []string, at string, known bool) {
	suffix, _ := publicsuffix.PublicSuffix(plain(name))
	for i := range maxCAA {
		if plain(name) == suffix && i > 0 || name == "." {
			return nil, "", true
		}
		f, _ := s.find(question{name: name, kind: dns.TypeCAA, one: true})
		definite := false
		var values []string
		for _, a := range f.Answers {
			definite, values = definite || a.Definite(), append(values, a.Values...)
		}
		if !definite || f.Error != "" {
			return nil, "", false
		}
		for _, v := range values {
			if tag, value, _ := strings.Cut(v, " "); strings.EqualFold(tag, "issue") {
				domain, _, _ := strings.Cut(value, ";")
				issuers = append(issuers, strings.ToLower(strings.TrimSpace(domain)))
			}
		}
		if slices.Sort(issuers); len(values) > 0 {
			return issuers, plain(name), true
		}
		name = parent(name)
	}
	return nil, "", false
}

// askResolver asks for a way's record as other programs of this machine do, with their caches and with DNSSEC.
func (s *session) askResolver(z *dcv.Zone, w dcv.Way) {
	q := question{name: dns.CanonicalName(w.Name), kind: dns.StringToType[w.Type]}
	r := s.resolve(q)
	z.Resolver = dcv.Answer{Server: r.server, Values: r.values, Error: r.err, At: time.Now()}
	if r.err == "" && len(r.values) == 0 && r.ttl > 0 {
		z.NegativeUntil = z.Resolver.At.Add(r.ttl)
	}
	if r.err == dcv.ServFail {
		q.unchecked = true
		z.BrokenDNSSEC = s.resolve(q).err == ""
	}
}
