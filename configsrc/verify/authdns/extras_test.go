package authdns_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig/faultdns"
	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// TestCAA: the records in force stand at the name or at the next name above it that has some, also behind a CNAME.
func TestCAA(t *testing.T) {
	t.Parallel()
	run := func(what, records, want string) {
		t.Helper()
		n := faultdns.New(t)
		n.Zone("acme.example", records, "127.0.0.3")
		n.Zone("cdn.net", "shop CAA 0 issue \"cdn.example\"", "127.0.0.4")
		z := check(t, newChecker(t, n, nil), dcv.Policy{CAs: []string{"ca.example"}}, exact).Zone
		if got := fmt.Sprintf("%q %s %v", z.CAA, z.CAAName, z.CAAKnown); got != want {
			t.Errorf("%s: %s, not %s", what, got, want)
		}
	}
	run("none", "", `[]  true`)
	run("above", "@ CAA 0 issue \"CA.example; validationmethods=http-01\"\n@ CAA 0 iodef \"mailto:a@b\"", `["ca.example"] acme.example true`)
	run("nearer", "@ CAA 0 issue \"ca.example\"\nshop CAA 0 issue \"other.example\"\nshop CAA 128 ISSUE \"third.example\"", `["other.example" "third.example"] shop.acme.example true`)
	run("nobody", "shop CAA 0 issue \";\"", `[""] shop.acme.example true`)
	run("other properties", "@ CAA 0 issue \"ca.example\"\nshop CAA 0 issuewild \"other.example\"", `[] shop.acme.example true`)
	run("alias", "@ CAA 0 issue \"ca.example\"\nshop CNAME shop.cdn.net.", `["cdn.example"] shop.acme.example true`)

	n := faultdns.New(t)
	n.Zone("acme.example", record, "127.0.0.3")
	n.Fault("127.0.0.3", name, faultdns.ServFail)
	if z := check(t, newChecker(t, n, nil), dcv.Policy{CAs: []string{"ca.example"}}, exact).Zone; z.CAAKnown {
		t.Errorf("%+v", z)
	}
}

// TestMissingProof: what is asked for hints when the proof was not found.
func TestMissingProof(t *testing.T) {
	t.Parallel()
	n := faultdns.New(t)
	n.Zone("acme.example", "_fingerpost-challenge.shop.acme.example TXT twice", "127.0.0.3", "127.0.0.4")
	c := newChecker(t, n, nil)
	facts := check(t, c, dcv.Policy{}, exact)
	z := facts.Zone
	if fmt.Sprint(z.Doubled) != "[twice]" || z.BrokenDNSSEC || z.CAAKnown || z.ApexCNAME {
		t.Errorf("%+v", z)
	}
	if until := z.NegativeUntil.Sub(z.Resolver.At); until != time.Minute {
		t.Errorf("the resolver's no ends in %v", until)
	}

	n.Fault(faultdns.ResolverAddr, challenge, faultdns.Bogus)
	if z := check(t, c, dcv.Policy{}, exact).Zone; z.Resolver.Error != dcv.ServFail || !z.BrokenDNSSEC {
		t.Errorf("%+v", z)
	}
	n.Fault(faultdns.ResolverAddr, challenge, faultdns.ServFail)
	if z := check(t, c, dcv.Policy{}, exact).Zone; z.Resolver.Error != dcv.ServFail || z.BrokenDNSSEC {
		t.Errorf("%+v", z)
	}
}

// TestNegativeCached: while the domain waits for its proof, the resolver is asked also after a hit.
func TestNegativeCached(t *testing.T) {
	t.Parallel()
	n := faultdns.New(t)
	n.Zone("acme.example", record, "127.0.0.3")
	n.Set(faultdns.ResolverAddr, "acme.example", "")
	z := check(t, newChecker(t, n, nil), dcv.Policy{}, exact).Zone
	if len(z.Resolver.Values) > 0 || z.NegativeUntil.IsZero() || z.Resolver.Server != faultdns.ResolverAddr {
		t.Errorf("%+v", z)
	}
}

// TestApex: a CNAME at the apex of a zone.
func TestApex(t *testing.T) {
	t.Parallel()
	for records, want := range map[string]bool{"@ CNAME edge.example.net.": true, "@ A 192.0.2.1": false} {
		n := faultdns.New(t)
		n.Zone(name, records, "127.0.0.3")
		z := check(t, newChecker(t, n, nil), dcv.Policy{}, exact).Zone
		if z.Apex != name || z.ApexCNAME != want {
			t.Errorf("%s: %+v", records, z)
		}
	}
}

// TestTrusted: a domain that needs no proof is not asked for one.
func TestTrusted(t *testing.T) {
	t.Parallel()
	n := faultdns.New(t)
	n.Zone("acme.example", "shop A 192.0.2.1", "127.0.0.3")
	facts, err := newChecker(t, n, nil).Check(t.Context(), dcv.Subject{Name: name}, dcv.Policy{}, []dcv.Way{exact})
	if err != nil || facts.Proofs != nil || len(facts.Pointing.Addresses) != 1 {
		t.Errorf("%v %+v", err, facts)
	}
	if asked := strings.Join(n.Asked("127.0.0.3"), " "); strings.Contains(asked, "TXT") {
		t.Errorf("asked %s", asked)
	}
}

// TestQuestions: how many questions a check asks, about a zone with two servers.
func TestQuestions(t *testing.T) {
	t.Parallel()
	policy := dcv.Policy{Require: catalog.RequireAll, Hosts: []string{"edge.example.net"}, CAs: []string{"ca.example"}}
	run := func(what, verified, records string, warm bool, want int) {
		t.Helper()
		n := faultdns.New(t)
		n.Zone("acme.example", records, "127.0.0.3", "127.0.0.4")
		n.Zone("edge.example.net", "@ A 192.0.2.9", "127.0.0.5")
		asked := func() (total int) {
			for i := range 5 {
				total += len(n.Asked(fmt.Sprintf("127.0.0.%d", i+1)))
			}
			return total
		}
		s := dcv.Subject{Project: catalog.DeriveProjectUUID("acme"), Name: name, Verified: verified}
		c := newChecker(t, n, nil)
		before := 0
		for range map[bool]int{false: 1, true: 2}[warm] {
			before = asked()
			if _, err := c.Check(t.Context(), s, policy, dcv.Ways(s, policy)); err != nil {
				t.Fatal(err)
			}
		}
		if got := asked() - before; got > want {
			t.Errorf("%s: %d questions, more than %d", what, got, want)
		}
	}
	proof := "_fingerpost-challenge.shop TXT token=" + dcv.Token(catalog.DeriveProjectUUID("acme"), dcv.ScopeExact, name)
	run("the first check, without a proof", catalog.VerifiedPending, "shop A 192.0.2.1", false, 32) // 5 of them for slips, see dcv.StrayNames
	run("the daily check", "2026-11-24", proof+"\nshop A 192.0.2.1", true, 10)
}
