package dcv_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"fingerpost/configsrc/verify/dcv"
)

// pointed returns facts about pointing: the answers about A and AAAA, servers separated by "/", addresses by blanks; "-"
// is "no such record", and a word with a capital letter an error.
func pointed(now time.Time, a, aaaa string) dcv.Facts {
	f := dcv.Facts{At: now, Pointing: dcv.Pointing{Name: "shop.acme.example"}}
	seen := map[netip.Addr]bool{}
	for _, family := range [][2]string{{"A", a}, {"AAAA", aaaa}} {
		finding := dcv.Finding{Type: family[0], Name: "shop.acme.example"}
		for _, says := range strings.Split(family[1], "/") {
			answer := dcv.Answer{Server: "ns1.acme.example", At: now}
			for _, value := range strings.Fields(says) {
				if addr, err := netip.ParseAddr(value); err == nil {
					answer.Values = append(answer.Values, value)
					if !seen[addr] {
						f.Pointing.Addresses = append(f.Pointing.Addresses, addr)
					}
					seen[addr] = true
				} else if value != "-" {
					answer.Error = value
				}
			}
			finding.Answers = append(finding.Answers, answer)
		}
		f.Pointing.Findings = append(f.Pointing.Findings, finding)
	}
	f.Pointing.TargetAddresses = []netip.Addr{netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("2001:db8::1")}
	return f
}

func TestPointing(t *testing.T) {
	for _, c := range []struct{ a, aaaa, want string }{
		{"203.0.113.4", "-", dcv.Here},
		{"198.51.100.1", "2001:db8::1", dcv.Here},
		{"198.51.100.1 203.0.113.9", "-", dcv.Here},
		{"-", "2001:db8::1", dcv.Here},
		{"203.0.113.4/SERVFAIL", "SERVFAIL/-", dcv.Here}, // one server of two is down
		{"203.0.113.4/203.0.113.5", "-/-", dcv.Here},     // servers that give different addresses, all of them here
		{"198.51.100.2", "-", dcv.Elsewhere},
		{"203.0.113.4 198.51.100.2", "-", dcv.Elsewhere},
		{"203.0.113.4", "2001:db8::2", dcv.Elsewhere},
		{"198.51.100.2/SERVFAIL", "SERVFAIL/SERVFAIL", dcv.Elsewhere},
		{"-", "-", dcv.Nowhere},
		{"-/-", "-/-", dcv.Nowhere},
		{"203.0.113.4/198.51.100.2", "-/-", dcv.Spreading},
		{"203.0.113.4/-", "-/-", dcv.Spreading},
		{"-/-", "-/2001:db8::1", dcv.Spreading},
		// nothing definite: the state stays
		{"SERVFAIL", "SERVFAIL", ""},
		{"203.0.113.4", "SERVFAIL", ""},
		{"-", "SERVFAIL", ""},
		{"-/SERVFAIL", "-/-", ""},
	} {
		for _, before := range []string{"", dcv.Here, dcv.Elsewhere, dcv.Nowhere} {
			st := dcv.State{}
			st.Subject, st.Pointing = shop(""), dcv.PointingState{State: before, Since: start.Add(-time.Hour)}
			st, _ = dcv.Decide(st, shop(""), policy, pointed(start, c.a, c.aaaa), start)
			want, since := c.want, start
			if want == "" || want == before {
				want, since = before, start.Add(-time.Hour)
			}
			if st.Pointing.State != want || !st.Pointing.Since.Equal(since) {
				t.Errorf("%s and %s after %q: %q since %v, want %q", c.a, c.aaaa, before, st.Pointing.State, st.Pointing.Since, want)
			}
		}
	}
}

// TestPointingOpen: what keeps a definite answer from saying where the name leads.
func TestPointingOpen(t *testing.T) {
	f := func(name, a, want string, p dcv.Policy, change func(*dcv.Pointing)) {
		t.Helper()
		facts := pointed(start, a, "-")
		change(&facts.Pointing)
		if st, _ := dcv.Decide(dcv.State{}, shop(""), p, facts, start); st.Pointing.State != want {
			t.Errorf("%s: %q, want %q", name, st.Pointing.State, want)
		}
	}
	noTarget := func(p *dcv.Pointing) { p.TargetAddresses, p.TargetError = nil, dcv.TimedOut }
	f("the target's addresses are not known", "198.51.100.1", "", policy, noTarget)
	f("the same, and the address is another target", "203.0.113.4", dcv.Here, policy, noTarget)
	f("a loop", "203.0.113.4", dcv.Unknown, policy, func(p *dcv.Pointing) { p.Loop = true })
	f("no targets", "203.0.113.4", dcv.Unknown, dcv.Policy{}, func(*dcv.Pointing) {})
	f("no targets, no address", "-", dcv.Nowhere, dcv.Policy{}, func(*dcv.Pointing) {})
	f("not asked", "-", "", policy, func(p *dcv.Pointing) { p.Findings = nil })
	f("one family asked", "203.0.113.4", "", policy, func(p *dcv.Pointing) { p.Findings = p.Findings[:1] })
	f("the zone has no servers", "203.0.113.4", "", policy, func(p *dcv.Pointing) { p.Findings[1].Error = "no servers" })
	f("an address in IPv6 form", "::ffff:203.0.113.4", dcv.Here, policy, func(*dcv.Pointing) {})
	cname := func(values ...string) func(p *dcv.Pointing) {
		return func(p *dcv.Pointing) {
			finding := dcv.Finding{Type: "CNAME", Name: "shop.acme.example"}
			for _, value := range values {
				finding.Answers = append(finding.Answers, dcv.Answer{Values: strings.Fields(value)})
			}
			p.Findings = append([]dcv.Finding{finding}, p.Findings...)
		}
	}
	f("a CNAME", "203.0.113.4", dcv.Here, policy, cname("edge.example.net", "edge.example.net"))
	f("a CNAME at one of two servers", "203.0.113.4", dcv.Spreading, policy, cname("edge.example.net", ""))
}

func TestCertificate(t *testing.T) {
	end := start.Add(90 * 24 * time.Hour)
	answer := func(notAfter time.Time, err string) dcv.TLS {
		return dcv.TLS{Connected: true, NotAfter: notAfter, Error: err, Issuer: "R11"}
	}
	for _, c := range []struct {
		name, a string
		tls     dcv.TLS
		want    string
	}{
		{"good", "203.0.113.4", answer(end, ""), dcv.Good},
		{"14 days left", "203.0.113.4", answer(start.Add(14*24*time.Hour), ""), dcv.Good},
		{"less than 14 days left", "203.0.113.4", answer(start.Add(14*24*time.Hour-1), ""), dcv.Expiring},
		{"expired", "203.0.113.4", answer(start.Add(-1), "expired"), dcv.Wrong},
		{"of another name", "203.0.113.4", answer(end, "another name"), dcv.Wrong},
		{"refused", "203.0.113.4", dcv.TLS{Refused: true, Error: "connection refused"}, dcv.NoCertificate},
		{"time-out", "203.0.113.4", dcv.TLS{Error: dcv.TimedOut}, ""},
		{"not asked", "203.0.113.4", dcv.TLS{}, ""},
		{"not asked, as the name leads elsewhere", "198.51.100.2", dcv.TLS{}, dcv.Unknown},
		{"not asked, as the name leads nowhere", "-", dcv.TLS{}, dcv.Unknown},
		{"not asked, as no server answers", "SERVFAIL", dcv.TLS{}, ""},
	} {
		for _, before := range []string{"", dcv.Good, dcv.NoCertificate} {
			st := dcv.State{}
			st.Subject, st.Certificate.State = shop(""), before
			facts := pointed(start, c.a, "-")
			facts.TLS = c.tls
			st, _ = dcv.Decide(st, shop(""), policy, facts, start)
			want := c.want
			if want == "" {
				want = before
			}
			if st.Certificate.State != want {
				t.Errorf("%s after %q: %q, want %q", c.name, before, st.Certificate.State, want)
			}
		}
	}
}
