package dcv_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// A scene is a subject and what its latest check found.
type scene struct {
	subject dcv.Subject
	policy  dcv.Policy
	facts   dcv.Facts
}

// newScene is a pending subject without a proof, which leads elsewhere: nothing that a hint explains.
func newScene() *scene {
	s := &scene{subject: shop(catalog.VerifiedPending), policy: policy}
	s.policy.CAs = []string{"letsencrypt.org"}
	s.facts = pointed(start, "192.0.2.7", "-")
	s.facts.Proofs = facts(s.subject, s.policy, start, 0, answers{"no", "no"}).Proofs
	s.facts.Zone = dcv.Zone{Apex: "acme.example", NameServers: []string{"ns1.acme.example", "ns2.acme.example"}, CAAKnown: true}
	return s
}

// answer makes all servers answer with values about a way of the subject.
func (s *scene) answer(way int, values ...string) {
	w := dcv.Ways(s.subject, s.policy)[way]
	for i := range s.facts.Proofs {
		if f := &s.facts.Proofs[i]; f.Type == w.Type && f.Name == w.Name {
			for j := range f.Answers {
				f.Answers[j].Values = values
			}
		}
	}
}

// lead sets the addresses of the subject.
func (s *scene) lead(a, aaaa string) { s.facts.Pointing = pointed(start, a, aaaa).Pointing }

// rename sets the subject's name and asks again.
func (s *scene) rename(name string) {
	s.subject.Name = name
	s.facts.Proofs = facts(s.subject, s.policy, start, 0, answers{"no", "no"}).Proofs
}

func (s *scene) view() catalog.VerificationView {
	st, _ := dcv.Decide(dcv.State{}, s.subject, s.policy, s.facts, start)
	return dcv.Show(s.subject, st, s.policy)
}

const record = `_fingerpost-challenge.shop.acme.example. TXT "token=472jyvfzitf2yjjkzwbfndvlst expiry=never"`

// hintCases have facts that provoke a hint, with its lines, and facts next to them that do not.
var hintCases = []struct {
	code          string
	provoke, near func(*scene)
	line          string
}{
	{"CNAME_AT_APEX", func(s *scene) {
		s.rename("acme.example")
		s.facts.Zone.ApexCNAME = true
	}, func(s *scene) { s.rename("acme.example") }, "acme.example. A 198.51.100.1\nacme.example. AAAA 2001:db8::1"},
	{"CNAME_AT_APEX", func(s *scene) { // where the target's addresses are not known
		s.rename("acme.example")
		s.facts.Zone.ApexCNAME, s.facts.Pointing.TargetAddresses = true, nil
	}, nil, "acme.example. ALIAS edge.example.net."},
	{"PROXIED", func(s *scene) { s.lead("104.16.1.1 104.17.1.1", "2606:4700::1") },
		func(s *scene) { s.lead("104.32.1.1", "-") }, "shop.acme.example. CNAME edge.example.net."},
	{"PROXIED", func(s *scene) { s.lead("151.101.1.1", "-") },
		func(s *scene) { // the target itself is at the network
			s.policy.Prefixes = []netip.Prefix{netip.MustParsePrefix("151.101.0.0/16")}
			s.lead("151.101.1.1", "-")
		}, "shop.acme.example. CNAME edge.example.net."},
	{"PROXIED", func(s *scene) { s.facts.Zone.NameServers = []string{"amy.NS.cloudflare.com."} },
		func(s *scene) { // at the network, and not proxied
			s.facts.Zone.NameServers = []string{"amy.ns.cloudflare.com"}
			s.lead("203.0.113.4", "-")
		}, "shop.acme.example. CNAME edge.example.net."},
	{"CAA_FORBIDS", func(s *scene) { s.facts.Zone.CAA, s.facts.Zone.CAAName = []string{"other.example"}, "acme.example" },
		func(s *scene) {
			s.facts.Zone.CAA = []string{"other.example", " LetsEncrypt.org ; validationmethods=http-01"}
		}, `acme.example. CAA 0 issue "letsencrypt.org"`},
	{"CAA_FORBIDS", func(s *scene) { s.facts.Zone.CAA, s.facts.Zone.CAAName = []string{";"}, "shop.acme.example" },
		func(s *scene) { s.facts.Zone.CAA, s.policy.CAs = []string{";"}, nil },
		`shop.acme.example. CAA 0 issue "letsencrypt.org"`},
	{"CAA_FORBIDS", func(s *scene) { s.facts.Zone.CAA = []string{"notletsencrypt.org"} },
		func(s *scene) { s.facts.Zone.CAA, s.facts.Zone.CAAKnown = []string{"other.example"}, false },
		`acme.example. CAA 0 issue "letsencrypt.org"`},
	{"NAME_DOUBLED", func(s *scene) { s.facts.Zone.Doubled = []string{"v=spf1", "token=472jyvfzitf2yjjkzwbfndvlst"} },
		func(s *scene) { s.facts.Zone.Doubled = []string{"v=spf1", "token=bbbbbbbbbbbbbbbbbbbbbbbbbb"} }, record},
	{"QUOTED_TWICE", func(s *scene) { s.answer(0, `\"token=472jyvfzitf2yjjkzwbfndvlst\"`) },
		func(s *scene) { s.answer(0, `\"token=bbbb\"`) }, record},
	{"QUOTED_TWICE", func(s *scene) { s.answer(0, `"token=472jyvfzitf2yjjkzwbfndvlst" "expiry=never"`) },
		func(s *scene) { s.answer(0, "token=472jyvfzitf2yjjkzwbfndvlst") }, record},
	{"QUOTED_TWICE", func(s *scene) { s.answer(0, `"token=472jyvfzitf2yjjkzwbfndvlst"`) }, nil, record}, // proves as well
	{"AT_THE_NAME", func(s *scene) {
		s.facts.Zone.Strays = []dcv.Stray{{Name: "acme.example", Values: []string{"v=spf1", "token=472jyvfzitf2yjjkzwbfndvlst"}}}
	}, func(s *scene) { // proven by another record
		s.facts.Zone.Strays = []dcv.Stray{{Name: "acme.example", Values: []string{"token=472jyvfzitf2yjjkzwbfndvlst"}}}
		s.answer(0, "token=472jyvfzitf2yjjkzwbfndvlst")
	}, record},
	{"WRONG_LABEL", func(s *scene) {
		s.facts.Zone.Strays = []dcv.Stray{{Name: "_fingerpost-wildcard-challenge.shop.acme.example",
			Values: []string{"token=472jyvfzitf2yjjkzwbfndvlst"}}}
	}, nil, record},
	{"VALUE_SPOILT", func(s *scene) { s.answer(0, "token=472jyvfzitf2yjjk") },
		func(s *scene) { s.answer(0, "token=472jyv") }, record}, // too little of it
	{"AAAA_ELSEWHERE", func(s *scene) { s.lead("203.0.113.4", "2001:db8::2") },
		func(s *scene) { s.lead("203.0.113.4", "2001:db8::1") }, "shop.acme.example. AAAA 2001:db8::1"},
	{"AAAA_ELSEWHERE", func(s *scene) {
		s.lead("203.0.113.4", "2001:db8::2")
		s.facts.Pointing.TargetAddresses = nil
	}, func(s *scene) { s.lead("192.0.2.7", "2001:db8::2") }, "shop.acme.example. AAAA 2001:db8::2"},
	{"DNSSEC_BROKEN", func(s *scene) { s.facts.Zone.BrokenDNSSEC = true },
		func(s *scene) { s.facts.Zone.Resolver = dcv.Answer{Error: dcv.ServFail} }, "acme.example. DS"},
	{"LAME_SERVER", func(s *scene) { s.facts.Proofs[0].Answers[1] = dcv.Answer{Server: "ns2.acme.example", Error: dcv.Lame} },
		func(s *scene) { s.facts.Proofs[0].Answers[1].Error = dcv.TimedOut }, "acme.example. NS ns2.acme.example."},
	{"LAME_SERVER", func(s *scene) { s.facts.Pointing.Findings[1].Answers[0].Error = dcv.Refused },
		func(s *scene) { s.facts.Pointing.Findings[1].Answers[0].Error = dcv.ServFail }, "acme.example. NS ns1.acme.example."},
	{"NEGATIVE_CACHED", func(s *scene) {
		s.answer(0, "token=472jyvfzitf2yjjkzwbfndvlst")
		s.facts.Zone.NegativeUntil = start.Add(time.Hour)
	}, func(s *scene) { s.facts.Zone.NegativeUntil = start.Add(time.Hour) }, record}, // no server has it
	{"NEGATIVE_CACHED", func(s *scene) {
		s.answer(0, "token=472jyvfzitf2yjjkzwbfndvlst")
		s.facts.Zone.Resolver, s.facts.Zone.NegativeUntil = dcv.Answer{Values: []string{"v=spf1"}}, start.Add(1)
	}, func(s *scene) {
		s.answer(0, "token=472jyvfzitf2yjjkzwbfndvlst")
		s.facts.Zone.NegativeUntil = start // over
	}, record},
	{"WRONG_LABEL", func(s *scene) { s.answer(0, "token="+dcv.Token(acme, dcv.ScopeWildcard, "shop.acme.example")) },
		func(s *scene) { s.answer(0, "token="+dcv.Token(acme, dcv.ScopeWildcard, "acme.example")) }, record},
	{"WRONG_LABEL", func(s *scene) { s.answer(0, "token="+dcv.Token(acme, dcv.ScopeDomain, "acme.example")) },
		func(s *scene) { s.answer(3, "token="+dcv.Token(acme, dcv.ScopeDomain, "acme.example")) }, record}, // where it belongs
	{"WRONG_LABEL", func(s *scene) { s.answer(3, "token=472jyvfzitf2yjjkzwbfndvlst") },
		func(s *scene) { s.answer(3, "472jyvfzitf2yjjkzwbfndvlst") }, record},
	{"OTHER_TOKEN", func(s *scene) {
		s.answer(0, "token="+dcv.Token(catalog.DeriveProjectUUID("globex"), dcv.ScopeExact, "shop.acme.example"))
	}, func(s *scene) { s.answer(0, "token=notatoken1notatoken1notato") }, record},
	{"OTHER_TOKEN", func(s *scene) { s.answer(1, "BBBBBBBBBBBBBBBBBBBBBBBBBB.edge.example.net.") },
		func(s *scene) { s.answer(1, "bbbbbbbbbbbbbbbbbbbbbbbbbb.other.example") },
		"shop.acme.example. CNAME 472jyvfzitf2yjjkzwbfndvlst.edge.example.net."},
	{"OTHER_TOKEN", func(s *scene) { s.answer(0, "token=bbbbbbbbbbbbbbbbbbbbbbbbbb") },
		func(s *scene) { // another project's next to the proof
			s.answer(0, "token=bbbbbbbbbbbbbbbbbbbbbbbbbb", "token=472jyvfzitf2yjjkzwbfndvlst")
		}, record},
	{"OTHER_TOKEN", func(s *scene) { // perhaps the former project's
		s.subject.Reused = true
		s.answer(0, "token=472jyvfzitf2yjjkzwbfndvlst")
	}, func(s *scene) { s.subject.Reused = true }, record},
	{"NAME_TOO_LONG", func(s *scene) { s.rename(strings.Repeat("aaaaaaaaa.", 22) + "acme.example") },
		func(s *scene) { s.rename(strings.Repeat("aaaaaaaaa.", 21) + "acme.example") },
		"_fingerpost-domain-challenge." + strings.Repeat("aaaaaaaaa.", 6) + "acme.example. TXT " +
			`"token=` + dcv.Token(acme, dcv.ScopeDomain, strings.Repeat("aaaaaaaaa.", 6)+"acme.example") + ` expiry=never"`},
}

func TestHints(t *testing.T) {
	if hints := newScene().view().Hints; len(hints) > 0 {
		t.Errorf("without a fault: %+v", hints)
	}
	for _, c := range hintCases {
		s := newScene()
		c.provoke(s)
		hints := s.view().Hints
		i := slices.IndexFunc(hints, func(h catalog.VerificationHint) bool { return h.Code == c.code })
		if i < 0 || len(hints) > 1 {
			t.Errorf("%s: %+v", c.code, hints)
		} else if h := hints[i]; h.Line != c.line || !strings.HasSuffix(h.Message, ".") && !strings.HasSuffix(h.Message, "it.") {
			t.Errorf("%s: %q, line\n%s\nwant\n%s", c.code, h.Message, h.Line, c.line)
		}
		if c.near != nil {
			s = newScene()
			c.near(s)
			for _, h := range s.view().Hints {
				if h.Code == c.code {
					t.Errorf("%s without its cause: %+v", c.code, h)
				}
			}
		}
	}
}

// TestHintsOfTrusted: without a need for a proof nothing is said about one.
func TestHintsOfTrusted(t *testing.T) {
	for _, c := range hintCases {
		s := newScene()
		c.provoke(s)
		s.subject.Verified, s.facts.Proofs = "", nil
		for _, h := range s.view().Hints {
			if slices.Contains([]string{"NAME_TOO_LONG", "NAME_DOUBLED", "WRONG_LABEL", "OTHER_TOKEN", "QUOTED_TWICE"}, h.Code) {
				t.Errorf("%s: %+v", c.code, h)
			}
		}
	}
}
