package authdns_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig/faultdns"
	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// TestEveryHint: each hint has a zone that provokes it, from the servers to what people see.
func TestEveryHint(t *testing.T) {
	t.Parallel()
	project, other := catalog.DeriveProjectUUID("acme"), catalog.DeriveProjectUUID("globex")
	policy := dcv.Policy{Require: catalog.RequireAll, Hosts: []string{"edge.example.net"}, CAs: []string{"ca.example"},
		Prefixes: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Grace: time.Hour}
	token := func(project catalog.UUID, scope dcv.Scope) string {
		return " TXT token=" + dcv.Token(project, scope, name) + "\n"
	}
	const label = "_fingerpost-challenge.shop"
	good := label + token(project, dcv.ScopeExact)
	const here = "shop A 192.0.2.1\n"
	value := dcv.Token(project, dcv.ScopeExact, name)
	for _, row := range []struct {
		code, domain, records string
		faults                func(*faultdns.Net)
	}{
		{"", name, good + here, nil},
		{"NAME_TOO_LONG", strings.Repeat("long.", 45) + "acme.example", here, nil},
		{"NAME_DOUBLED", name, label + ".acme.example" + token(project, dcv.ScopeExact) + here, nil},
		{"QUOTED_TWICE", name, label + ` TXT "“token=` + dcv.Token(project, dcv.ScopeExact, name) + "”\"\n" + here, nil},
		{"WRONG_LABEL", name, label + token(project, dcv.ScopeDomain) + here, nil},
		{"WRONG_LABEL", name, "_fingerpost-wildcard-challenge.shop TXT token=" + value + "\n" + here, nil},
		{"WRONG_LABEL", name, "_fingerpost-wildcard-challenge.shop" + token(project, dcv.ScopeDomain) + here, nil},
		{"WRONG_LABEL", "*.shop.acme.example", label + token(project, dcv.ScopeWildcard), nil},
		{"AT_THE_NAME", name, "shop TXT \"token=" + value + " expiry=never\"\n" + here, nil},
		{"AT_THE_NAME", name, "@ TXT \"token=" + value + "\"\n" + here, nil},
		{"AT_THE_NAME", name, "fingerpost-challenge.shop TXT \"token=" + value + "\"\n" + here, nil},
		{"AT_THE_NAME", name, "_fingerpost-challenge TXT \"token=" + value + "\"\n" + here, nil},
		{"AT_THE_NAME", "*.shop.acme.example", "shop" + token(project, dcv.ScopeWildcard), nil},
		{"VALUE_SPOILT", name, label + " TXT token=" + value[:20] + "\n" + here, nil},
		{"VALUE_SPOILT", name, label + " TXT " + value + "\n" + here, nil},
		{"VALUE_SPOILT", name, label + " TXT token=" + strings.ToUpper(value) + "\n" + here, nil},
		{"VALUE_SPOILT", name, label + " TXT token:" + value + "\n" + here, nil},
		{"VALUE_SPOILT", name, label + " TXT \"token=" + value + ", expiry=never\"\n" + here, nil},
		{"VALUE_SPOILT", name, label + " TXT token=" + value + ".\n" + here, nil},
		{"VALUE_SPOILT", name, label + " TXT \"token = " + value + "\"\n" + here, nil},
		{"OTHER_TOKEN", name, label + token(other, dcv.ScopeExact) + here, nil},
		{"CNAME_AT_APEX", "acme.example", "@ CNAME edge.example.net.", nil},
		{"PROXIED", name, good + "shop A 104.16.1.1", nil},
		{"AAAA_ELSEWHERE", name, good + here + "shop AAAA 2001:db8::1", nil},
		{"CAA_FORBIDS", name, good + here + "@ CAA 0 issue other.example", nil},
		{"NEGATIVE_CACHED", name, good + here, func(n *faultdns.Net) {
			n.Set(faultdns.ResolverAddr, "acme.example", "")
		}},
		{"DNSSEC_BROKEN", name, here, func(n *faultdns.Net) { n.Fault(faultdns.ResolverAddr, challenge, faultdns.Bogus) }},
		{"LAME_SERVER", name, good + here, func(n *faultdns.Net) { n.Fault("127.0.0.4", "", faultdns.Lame) }},
	} {
		code := row.code
		n := faultdns.New(t)
		n.Zone("acme.example", row.records, "127.0.0.3", "127.0.0.4")
		n.Zone("edge.example.net", "@ A 192.0.2.9", "127.0.0.5")
		if row.faults != nil {
			row.faults(n)
		}
		s := dcv.Subject{Project: project, Name: row.domain, Verified: catalog.VerifiedPending}
		facts, err := newChecker(t, n, nil).Check(t.Context(), s, policy, dcv.Ways(s, policy))
		if err != nil {
			t.Fatal(err)
		}
		state, _ := dcv.Decide(dcv.State{}, s, policy, facts, facts.At)
		var codes []string
		for _, hint := range dcv.Show(s, state, policy).Hints {
			codes = append(codes, hint.Code)
		}
		if code == "" && codes != nil || code != "" && !slices.Equal(codes, []string{code}) {
			t.Errorf("%q: hints %v; %+v", code, codes, facts)
		}
	}
}
