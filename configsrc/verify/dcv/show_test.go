package dcv_test

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// TestReady: all three axes, and nothing that was never checked.
func TestReady(t *testing.T) {
	for _, c := range []struct {
		verified, a, tls string
		want             bool
	}{
		{"", "203.0.113.4", "", true},
		{"2026-11-01", "203.0.113.4", "", true},
		{"pending", "203.0.113.4", "", false},
		{"lost", "203.0.113.4", "", false},
		{"", "198.51.100.2", "", false},
		{"", "203.0.113.4", "another name", false},
	} {
		facts := pointed(start, c.a, "-")
		facts.TLS = dcv.TLS{Connected: true, NotAfter: start.Add(30 * 24 * time.Hour), Error: c.tls}
		st, _ := dcv.Decide(dcv.State{}, shop(c.verified), policy, facts, start)
		if got := dcv.Show(shop(c.verified), st, policy).Ready; got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
		if dcv.Show(shop(c.verified), dcv.State{}, policy).Ready {
			t.Errorf("%+v: ready without a check", c)
		}
	}
}

// rows are the records of a view, each as a line.
func rows(records []catalog.RecordView) (rows []string) {
	for _, r := range records {
		row := r.Purpose + " " + r.Type + " " + r.Name + " " + r.Value
		if r.Alternative {
			row += " or"
		}
		rows = append(rows, row)
	}
	return rows
}

func TestRecords(t *testing.T) {
	token := func(scope dcv.Scope, name string) string { return dcv.Token(acme, scope, name) }
	single := dcv.Policy{Prefixes: []netip.Prefix{netip.MustParsePrefix("203.0.113.4/32"),
		netip.MustParsePrefix("203.0.113.5/32"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("2001:db8::4/128")}}
	two := dcv.Policy{Hosts: []string{"a.example.net", "b.example.net"}}
	for _, c := range []struct {
		name   string
		policy dcv.Policy
		facts  dcv.Facts
		want   []string
	}{
		{"shop.acme.example", two, dcv.Facts{}, []string{
			"ownership TXT _fingerpost-challenge.shop.acme.example token=" + token(dcv.ScopeExact, "shop.acme.example") + " expiry=never",
			"ownership CNAME shop.acme.example " + token(dcv.ScopeExact, "shop.acme.example") + ".a.example.net or",
			"ownership CNAME shop.acme.example " + token(dcv.ScopeExact, "shop.acme.example") + ".b.example.net or",
			"ownership TXT _fingerpost-domain-challenge.shop.acme.example token=" + token(dcv.ScopeDomain, "shop.acme.example") + " expiry=never or",
			"ownership TXT _fingerpost-domain-challenge.acme.example token=" + token(dcv.ScopeDomain, "acme.example") + " expiry=never or",
			"pointing CNAME shop.acme.example a.example.net",
			"pointing CNAME shop.acme.example b.example.net or",
		}},
		{"*.acme.example", single, dcv.Facts{}, []string{
			"ownership TXT _fingerpost-wildcard-challenge.acme.example token=" + token(dcv.ScopeWildcard, "acme.example") + " expiry=never",
			"ownership TXT _fingerpost-domain-challenge.acme.example token=" + token(dcv.ScopeDomain, "acme.example") + " expiry=never or",
			"pointing A *.acme.example 203.0.113.4",
			"pointing A *.acme.example 203.0.113.5",
			"pointing AAAA *.acme.example 2001:db8::4",
		}},
		{"acme.example", two, dcv.Facts{}, []string{ // no CNAME at the top of a zone
			"ownership TXT _fingerpost-challenge.acme.example token=" + token(dcv.ScopeExact, "acme.example") + " expiry=never",
			"ownership TXT _fingerpost-domain-challenge.acme.example token=" + token(dcv.ScopeDomain, "acme.example") + " expiry=never or",
			"pointing ALIAS acme.example a.example.net",
			"pointing ALIAS acme.example b.example.net",
		}},
		{"shop.acme.example", two, dcv.Facts{Zone: dcv.Zone{Apex: "shop.acme.example"}, Pointing: dcv.Pointing{
			TargetAddresses: []netip.Addr{netip.MustParseAddr("198.51.100.1")}}}, []string{
			"ownership TXT _fingerpost-challenge.shop.acme.example token=" + token(dcv.ScopeExact, "shop.acme.example") + " expiry=never",
			"ownership TXT _fingerpost-domain-challenge.shop.acme.example token=" + token(dcv.ScopeDomain, "shop.acme.example") + " expiry=never or",
			"ownership TXT _fingerpost-domain-challenge.acme.example token=" + token(dcv.ScopeDomain, "acme.example") + " expiry=never or",
			"pointing A shop.acme.example 198.51.100.1",
		}},
		{"localhost", dcv.Policy{}, dcv.Facts{}, []string{
			"ownership TXT _fingerpost-challenge.localhost token=" + token(dcv.ScopeExact, "localhost") + " expiry=never",
		}},
	} {
		got := rows(dcv.Records(dcv.Subject{Project: acme, Name: c.name}, c.policy, c.facts))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestHosts: each record has the part of its name that DNS forms want: within the zone that was found, or the domain that
// somebody has registered.
func TestHosts(t *testing.T) {
	f := func(name, apex string, want ...string) {
		t.Helper()
		s := shop(catalog.VerifiedPending)
		s.Name = name
		var hosts []string
		for _, r := range dcv.Records(s, policy, dcv.Facts{Zone: dcv.Zone{Apex: apex}}) {
			if !slices.Contains(hosts, r.Host) {
				hosts = append(hosts, r.Host)
			}
		}
		for _, host := range want {
			if !slices.Contains(hosts, host) {
				t.Errorf("%s in %q: %q, want %q", name, apex, hosts, want)
			}
		}
	}
	f("shop.acme.example", "", "_fingerpost-challenge.shop", "shop")
	f("shop.acme.example", "shop.acme.example", "_fingerpost-challenge", "@")
	f("acme.co.uk", "", "_fingerpost-challenge", "@")
	f("acme.example", "other.example", "_fingerpost-challenge", "@")
	f("*.shop.acme.example", "acme.example", "*.shop")
}

// TestFound: each record has what the servers said about it, errors too.
func TestFound(t *testing.T) {
	s := shop(catalog.VerifiedPending)
	f := pointed(start, "203.0.113.4/SERVFAIL", "-")
	f.Proofs = facts(s, policy, start, 0, answers{"yes", "no", dcv.TimedOut}).Proofs
	f.Proofs[2].Answers, f.Proofs[2].Error = nil, "no servers"
	f.Pointing.Findings = append([]dcv.Finding{{Type: "CNAME", Name: s.Name, Answers: []dcv.Answer{
		{Server: "ns1.acme.example", Values: []string{"edge.example.net"}, At: start}}}}, f.Pointing.Findings...)
	st, _ := dcv.Decide(dcv.State{}, s, policy, f, start)
	b, err := json.Marshal(dcv.Show(s, st, policy))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`{"server":"ns1.acme.example","values":["token=472jyvfzitf2yjjkzwbfndvlst expiry=never","v=spf1 -all"],"error":null,"at":"2026-11-27T09:00:00.000000"}`,
		`{"server":"ns2.acme.example","values":["v=spf1 -all"],"error":null,"at":"2026-11-27T09:00:00.000000"}`,
		`{"server":"ns3.acme.example","values":[],"error":"time-out","at":"2026-11-27T09:00:00.000000"}`,
		`"found":[{"server":"","values":[],"error":"no servers","at":"2026-11-27T09:00:00.000000"}]`,
		`"value":"edge.example.net","alternative":false,"found":[{"server":"ns1.acme.example","values":["edge.example.net"],"error":null`,
		`"ownership":{"state":"pending","since":"2026-11-27T09:00:00.000000","spreading":true,"misses":0}`,
		`"addresses":["203.0.113.4"]`, `"hints":[]`, `"nextCheckAt":"2026-11-27T09:00:30.000000"`,
		`"certificate":{"state":"unknown","since":null,"issuer":null,"expiresAt":null}`,
	} {
		if !strings.Contains(string(b), part) {
			t.Errorf("no %s in\n%s", part, b)
		}
	}
}

// TestShowNeverChecked: without a check there are records to set, and nothing is null that is a list.
func TestShowNeverChecked(t *testing.T) {
	b, err := json.Marshal(dcv.Show(shop(catalog.VerifiedPending), dcv.State{}, dcv.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"ready":false,"ownership":{"state":"pending","since":null,"spreading":false,"misses":0}`,
		`"pointing":{"state":"unknown","since":null,"addresses":[]}`, `"found":[]`, `"hints":[]`, `"checkedAt":null,"nextCheckAt":null`} {
		if !strings.Contains(string(b), part) {
			t.Errorf("no %s in\n%s", part, b)
		}
	}
}

// TestShowGoesByFiles: what a person has written since the latest check is seen at once.
func TestShowGoesByFiles(t *testing.T) {
	s := newStory(t, catalog.VerifiedPending, policy)
	s.check(0, "yes")
	for verified, want := range map[string]string{"": dcv.Trusted, catalog.VerifiedPending: dcv.Pending,
		catalog.VerifiedLost: dcv.Lost, "2026-11-01": dcv.Proven, "2026-11-27": dcv.Proven} {
		v := dcv.Show(shop(verified), s.state, policy)
		if v.Ownership.State != want || (v.Ownership.Since == nil) != (verified != "2026-11-27") {
			t.Errorf("%q: %+v", verified, v.Ownership)
		}
	}
}
