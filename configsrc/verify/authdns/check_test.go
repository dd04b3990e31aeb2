package authdns_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/cmd/testrig/faultdns"
	"fingerpost/configsrc/verify/authdns"
	"fingerpost/configsrc/verify/dcv"
)

func TestMain(m *testing.M) { testrig.Main(m) }

// What most tests check: a name with a token of its own.
const (
	name      = "shop.acme.example"
	challenge = "_fingerpost-challenge.shop.acme.example"
	token     = "abcdefghijklmnopqrstuvwxyz"
	record    = `_fingerpost-challenge.shop TXT "token=` + token + ` expiry=never"`
)

var (
	subject  = dcv.Subject{Name: name, Verified: "pending"}
	exact    = dcv.Way{Scope: dcv.ScopeExact, Type: "TXT", Name: challenge, Token: token}
	domain   = dcv.Way{Scope: dcv.ScopeDomain, Type: "TXT", Name: "_fingerpost-domain-challenge.acme.example", Token: "other"}
	alias    = dcv.Way{Scope: dcv.ScopeExact, Type: "CNAME", Name: name, Token: token, Target: token + ".edge.example.net"}
	loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
)

func newChecker(t testing.TB, n *faultdns.Net, change func(*authdns.Options)) *authdns.Checker {
	t.Helper()
	o := authdns.Options{Resolver: n.Resolver(), DNSPort: n.Port, Allow: loopback, Rate: 100_000,
		Limit: testrig.Patience, CheckLimit: testrig.Patience} // the limits of slow servers are for tests of these
	if change != nil {
		change(&o)
	}
	c, err := authdns.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func check(t testing.TB, c *authdns.Checker, policy dcv.Policy, ways ...dcv.Way) dcv.Facts {
	t.Helper()
	facts, err := c.Check(t.Context(), subject, policy, ways)
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

// says returns what servers say as "server=values/error", without the zone's name.
func says(f dcv.Finding) string {
	var parts []string
	for _, a := range f.Answers {
		parts = append(parts, fmt.Sprintf("%s=%s/%s", strings.TrimSuffix(a.Server, ".acme.example"), strings.Join(a.Values, "|"), a.Error))
	}
	return strings.TrimSpace(strings.Join(parts, " ") + " " + f.Error)
}

// TestFaults: one of two servers has a fault; the other's answer stands next to the word for it.
func TestFaults(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	const found = "token=" + token + " expiry=never/"
	for fault, want := range map[faultdns.Fault]string{
		faultdns.Healthy:       found,
		faultdns.Silent:        "/time-out",
		faultdns.ServFail:      "/SERVFAIL",
		faultdns.Refused:       "/REFUSED",
		faultdns.Lame:          "/lame",
		faultdns.Upward:        "/lame",
		faultdns.Truncated:     found,
		faultdns.TruncatedShut: "/time-out",
		faultdns.Drip:          "/time-out",
		faultdns.WrongID:       "/wrong id",
		faultdns.WrongQuestion: "/wrong id",
		faultdns.Strays:        "/wrong id",
		faultdns.Forged:        found,
		faultdns.Twice:         found,
		faultdns.Malformed:     "/malformed",
		faultdns.Short:         "/malformed",
		faultdns.NoEDNS:        found,
	} {
		t.Run(fmt.Sprint(fault), func(t *testing.T) {
			t.Parallel()
			n := faultdns.New(t)
			n.Zone("acme.example", record, "127.0.0.3", "127.0.0.4")
			n.Fault("127.0.0.4", "", fault)
			c := newChecker(t, n, func(o *authdns.Options) { o.Limit = limitOf(want) })
			got, want := "", "ns3="+found+" ns4="+want
			ask := func() bool {
				before := len(n.Asked("127.0.0.4"))
				got = says(check(t, c, dcv.Policy{}, exact).Proofs[0])
				if asked := n.Asked("127.0.0.4")[before:]; count(asked, "TXT "+challenge) > 4 {
					t.Errorf("asked %v", asked)
				}
				return got == want
			}
			if ask() {
				return
			}
			if limitOf(want) == testrig.Patience {
				t.Fatalf("%q, not %q", got, want)
			}
			testrig.Eventually(t, "a good server answers within its limit, and there is "+want, ask)
		})
	}
}

// limitOf is the limit of questions in tests of a fault: a short one where a server never answers, which a good
// server on a busy machine may miss, so that such a test asks again; and a long one elsewhere.
func limitOf(want string) time.Duration {
	if strings.HasSuffix(want, dcv.TimedOut) || strings.HasSuffix(want, "wrong id") {
		return time.Second
	}
	return testrig.Patience
}

func count(list []string, what string) (n int) {
	for _, s := range list {
		if s == what {
			n++
		}
	}
	return n
}

// TestNegative: NXDOMAIN and NODATA are answers without values; servers that disagree are all shown.
func TestNegative(t *testing.T) {
	t.Parallel()
	n := faultdns.New(t)
	n.Zone("acme.example", "shop A 192.0.2.1", "127.0.0.3", "127.0.0.4", "127.0.0.5")
	n.Set("127.0.0.4", "acme.example", "_fingerpost-challenge.shop A 192.0.2.1")
	n.Set("127.0.0.5", "acme.example", record+"\n"+`_fingerpost-challenge.shop TXT "tok" "en=b"`)
	facts := check(t, newChecker(t, n, nil), dcv.Policy{}, exact)
	if got, want := says(facts.Proofs[0]), "ns3=/ ns4=/ ns5=token="+token+" expiry=never|token=b/"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

// TestWays: after a hit the other ways are not asked, and neither is anything for hints. Where a server says no, the
// others are asked.
func TestWays(t *testing.T) {
	t.Parallel()
	n := faultdns.New(t)
	n.Zone("acme.example", record, "127.0.0.3", "127.0.0.4")
	c := newChecker(t, n, nil)
	proven := dcv.Subject{Name: name, Verified: "2026-11-24"}
	facts, err := c.Check(t.Context(), proven, dcv.Policy{}, []dcv.Way{exact, domain, alias})
	if err != nil || len(facts.Proofs) != 1 {
		t.Fatalf("%v %+v", err, facts.Proofs)
	}
	if asked := n.Asked("127.0.0.3"); len(asked)+len(n.Asked("127.0.0.4")) != 7 { // TXT, A, AAAA, and SOA at one of them
		t.Errorf("the first server was asked %v", asked)
	}
	n.Set("127.0.0.4", "acme.example", "shop CNAME "+alias.Target+".")
	facts = check(t, c, dcv.Policy{}, exact, domain, alias)
	if got, want := says(facts.Proofs[0]), "ns3=token="+token+" expiry=never/ ns4=/"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	if got, want := says(facts.Proofs[2]), "ns3=/ ns4="+alias.Target+"/"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	if z := facts.Zone; z.Apex != "acme.example" || !slices.Equal(z.NameServers, []string{"ns3.acme.example", "ns4.acme.example"}) {
		t.Errorf("%+v", z)
	}
}

// TestChains: CNAMEs are followed across zones, for eight steps; longer chains and loops are errors.
func TestChains(t *testing.T) {
	t.Parallel()
	chain := func(length int) string {
		var b strings.Builder
		fmt.Fprintf(&b, "_fingerpost-challenge.shop CNAME c1.other.example.\n")
		for i := 1; i < length; i++ {
			fmt.Fprintf(&b, "c%d CNAME c%d.other.example.\n", i, i+1)
		}
		fmt.Fprintf(&b, "c%d TXT \"token=%s\"\n", length, token)
		return b.String()
	}
	run := func(what, acme, other, want string) {
		t.Helper()
		n := faultdns.New(t)
		n.Zone("acme.example", acme, "127.0.0.3")
		n.Zone("other.example", other, "127.0.0.4")
		facts := check(t, newChecker(t, n, nil), dcv.Policy{}, exact)
		if got := says(facts.Proofs[0]); got != want {
			t.Errorf("%s: %q, not %q", what, got, want)
		}
	}
	const start = "_fingerpost-challenge.shop CNAME c1.other.example."
	run("one", start, chain(1), "ns4.other.example=token="+token+"/")
	run("eight", start, chain(8), "ns4.other.example=token="+token+"/")
	run("nine", start, chain(9), "more than 8 CNAMEs")
	run("a loop", start, "c1 CNAME _fingerpost-challenge.shop.acme.example.", "CNAME loop")
	run("to itself", "_fingerpost-challenge.shop CNAME _fingerpost-challenge.shop", "", "CNAME loop")
	run("to nowhere", "_fingerpost-challenge.shop CNAME a.missing.example.", "", "ns2.example=/")
}

// TestContext: an ended context ends a check at once, and is its error.
func TestContext(t *testing.T) {
	t.Parallel()
	n := faultdns.New(t)
	n.Zone("acme.example", record, "127.0.0.3")
	n.Fault("127.0.0.3", "", faultdns.Silent)
	c := newChecker(t, n, func(o *authdns.Options) { o.Limit, o.Open = testrig.Patience, 3 })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 10)
	for range cap(done) {
		go func() {
			_, err := c.Check(ctx, subject, dcv.Policy{}, []dcv.Way{exact})
			done <- err
		}()
	}
	testrig.Eventually(t, "two questions are open: one project has no more of three", func() bool { return len(n.Asked("127.0.0.3")) == 2 })
	cancel()
	for range cap(done) {
		if err := <-done; err != context.Canceled {
			t.Error(err)
		}
	}
	if asked := n.Asked("127.0.0.3"); len(asked) != 2 {
		t.Errorf("asked %v although two questions were open", asked)
	}
}

// TestCheckLimit: what a check has no time for is a time-out, and is part of the facts.
func TestCheckLimit(t *testing.T) {
	t.Parallel()
	n := faultdns.New(t)
	n.Zone("acme.example", record, "127.0.0.3")
	n.Fault("127.0.0.3", "", faultdns.Silent)
	c := newChecker(t, n, func(o *authdns.Options) { o.CheckLimit, o.Limit = 200*time.Millisecond, testrig.Patience })
	facts := check(t, c, dcv.Policy{}, exact, domain)
	for _, f := range slices.Concat(facts.Proofs, facts.Pointing.Findings) {
		if !strings.HasSuffix(says(f), "time-out") { // of that server, or, on a busy machine, of one before it
			t.Errorf("%+v", f)
		}
	}
}

// TestPort53: without options but the resolver's address and its network, servers are asked at port 53.
func TestPort53(t *testing.T) {
	testrig.Thorough(t) // a machine with a name server of its own has the port taken
	testrig.NeedRoot(t)
	t.Parallel()
	n := faultdns.New53(t)
	n.Zone("acme.example", record, "127.0.0.3")
	c, err := authdns.New(authdns.Options{Resolver: faultdns.ResolverAddr, Allow: loopback})
	if err != nil {
		t.Fatal(err)
	}
	testrig.Eventually(t, "servers answer within the limit", func() bool {
		return says(check(t, c, dcv.Policy{}, exact).Proofs[0]) == "ns3=token="+token+" expiry=never/"
	})
}

// TestOptions: addresses of resolvers.
func TestOptions(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"", "9.9.9.9", "9.9.9.9:5353", "2620:fe::fe", "[2620:fe::fe]", "[2620:fe::fe]:53"} {
		if _, err := authdns.New(authdns.Options{Resolver: good}); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"dns.example", "9.9.9", "9.9.9.9:", "9.9.9.9:port", "[]", "1.1.1.1,9.9.9.9"} {
		if _, err := authdns.New(authdns.Options{Resolver: bad}); err == nil || !strings.Contains(err.Error(), "must be an address") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
