package authdns_test

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig/faultdns"
	"fingerpost/configsrc/verify/authdns"
	"fingerpost/configsrc/verify/dcv"
)

// TestFreshDelegation: a domain that has moved to other servers is asked there, whatever the resolver has cached.
func TestFreshDelegation(t *testing.T) {
	t.Parallel()
	n := faultdns.New(t)
	n.Zone("acme.example", "", "127.0.0.3")
	n.Zone("acme.example", record, "127.0.0.4")
	n.Set(faultdns.ResolverAddr, "acme.example", "@ NS ns3\nns3 A 127.0.0.3")
	facts := check(t, newChecker(t, n, nil), dcv.Policy{}, exact)
	if got, want := says(facts.Proofs[0]), "ns4=token="+token+" expiry=never/"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	if asked := n.Asked("127.0.0.3"); asked != nil {
		t.Errorf("the old server was asked %v", asked)
	}
}

// TestZoneCuts: a zone below the customer's, with servers elsewhere, with a server of both zones, and with another one.
func TestZoneCuts(t *testing.T) {
	t.Parallel()
	for _, servers := range [][]string{{"127.0.0.5"}, {"127.0.0.3", "127.0.0.5"}, {"127.0.0.3", "127.0.0.4", "127.0.0.5"}} {
		n := faultdns.New(t)
		n.Zone("acme.example", "", "127.0.0.3", "127.0.0.4")
		n.Zone(name, `_fingerpost-challenge TXT "token=`+token+`"`, servers...)
		facts := check(t, newChecker(t, n, nil), dcv.Policy{}, domain, exact)
		for i, addr := range servers {
			f := facts.Proofs[1]
			if a := f.Answers[max(0, len(f.Answers)-len(servers)+i)]; a.Server != "ns"+addr[8:]+"."+name || len(a.Values) != 1 {
				t.Errorf("%v: %+v", servers, f)
			}
		}
		if facts.Zone.Apex != name {
			t.Errorf("%v: %+v", servers, facts.Zone)
		}
		if got := says(facts.Proofs[0]); got != "ns3=/ ns4=/" {
			t.Errorf("the zone above: %q", got)
		}
	}
}

// TestOneServerRefers: a zone below that one of two servers knows does not silence the other one.
func TestOneServerRefers(t *testing.T) {
	t.Parallel()
	for silent, want := range map[faultdns.Fault]string{
		faultdns.NoReferral: "ns3=/ ns5.shop=token=" + token + "/",
		faultdns.ServFail:   "ns5.shop=token=" + token + "/",
	} {
		n := faultdns.New(t)
		n.Zone("acme.example", "", "127.0.0.3", "127.0.0.4")
		n.Zone(name, `_fingerpost-challenge TXT "token=`+token+`"`, "127.0.0.5")
		n.Fault("127.0.0.3", "", silent)
		if got := says(check(t, newChecker(t, n, nil), dcv.Policy{}, exact).Proofs[0]); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// TestGluelessDelegation: the addresses of name servers in other zones come from the resolver, and are kept for later
// checks, as the servers of the top-level domain are.
func TestGluelessDelegation(t *testing.T) {
	t.Parallel()
	n := faultdns.New(t)
	n.Zone("dns.net", "a A 127.0.0.3\nb AAAA ::1", "127.0.0.6")
	n.Zone("acme.example", record, "a.dns.net=127.0.0.3", "c.dns.net=127.0.0.4")
	c := newChecker(t, n, nil)
	want := "a.dns.net=token=" + token + " expiry=never/ c.dns.net=/cannot be asked"
	if got := says(check(t, c, dcv.Policy{}, exact).Proofs[0]); got != want {
		t.Errorf("%q, not %q", got, want)
	}
	before := n.Asked(faultdns.ResolverAddr)
	check(t, c, dcv.Policy{}, exact)
	if again := n.Asked(faultdns.ResolverAddr)[len(before):]; slices.Contains(again, "A a.dns.net") || slices.Contains(again, "NS example") {
		t.Errorf("the resolver was asked again for %v", again)
	}
}

// TestInnerZone: a zone that only the resolver knows is asked where the resolver says, whatever the public servers say.
func TestInnerZone(t *testing.T) {
	t.Parallel()
	for _, fault := range []faultdns.Fault{faultdns.Healthy, faultdns.Refused} {
		n := faultdns.New(t)
		n.Zone("provider.net", record, "127.0.0.3")
		n.Set("127.0.0.3", "acme.example", "@ NS ns3\nns3 A 127.0.0.3\n"+record)
		n.Set(faultdns.ResolverAddr, "acme.example", "@ NS ns3\nns3 A 127.0.0.3")
		n.Fault("127.0.0.2", "", fault)
		if fault != faultdns.Healthy { // nor does the resolver know anything above
			n.Fault(faultdns.ResolverAddr, "example", fault)
			n.Fault(faultdns.ResolverAddr, ".", fault)
		}
		facts := check(t, newChecker(t, n, nil), dcv.Policy{}, exact)
		if got, want := says(facts.Proofs[0]), "ns3=token="+token+" expiry=never/"; got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// TestNoResolver: without a resolver nothing is definite, and the reason stands where the servers would.
func TestNoResolver(t *testing.T) {
	t.Parallel()
	for fault, word := range map[faultdns.Fault]string{faultdns.ServFail: "SERVFAIL", faultdns.Refused: "REFUSED", faultdns.Malformed: "malformed"} {
		n := faultdns.New(t)
		n.Zone("acme.example", record, "127.0.0.3")
		n.Fault(faultdns.ResolverAddr, "", fault)
		facts := check(t, newChecker(t, n, nil), dcv.Policy{Hosts: []string{"edge.example.net"}}, exact, domain, alias)
		for _, f := range slices.Concat(facts.Proofs, facts.Pointing.Findings) {
			if f.Error != "the resolver: "+word || f.Answers != nil {
				t.Errorf("%v: %+v", fault, f)
			}
		}
		if want := "edge.example.net: the resolver: " + word; facts.Pointing.TargetError != want {
			t.Errorf("%q, not %q", facts.Pointing.TargetError, want)
		}
		if asked := n.Asked(faultdns.ResolverAddr); len(asked) > 40 {
			t.Errorf("%d questions to a resolver that does not answer", len(asked))
		}
	}
}

// TestInnerSecrets: no answer tells what only the inside knows: a name server and a zone that are private, missing or
// refused inside give the same facts, and none has an address. The log has the addresses.
func TestInnerSecrets(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	facts := func(host, zone, inner string) string {
		n := faultdns.New(t)
		n.Zone("acme.example", record, host+"=127.0.0.3")
		n.Zone("public.net", "", "127.0.0.3")
		n.Zone("dns.net", "private A 10.3.4.5\nsix AAAA fd00::5", "127.0.0.3")
		if inner != "" {
			n.Set(faultdns.ResolverAddr, zone, inner)
		}
		n.Fault(faultdns.ResolverAddr, "refused.dns.net", faultdns.Refused)
		n.Fault(faultdns.ResolverAddr, "failing.dns.net", faultdns.ServFail)
		c := newChecker(t, n, func(o *authdns.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		all := check(t, c, dcv.Policy{}, exact, dcv.Way{Scope: dcv.ScopeExact, Type: "TXT", Name: "_x.host." + zone, Token: token})
		words := strings.ReplaceAll(says(all.Proofs[0])+" / "+says(all.Proofs[1]), host, "HOST")
		if strings.Contains(words, "10.3.4.5") || strings.Contains(words, "fd00") || strings.Contains(words, "inside") {
			t.Errorf("%s, %s: %s", host, zone, words)
		}
		return words
	}
	same := facts("missing.dns.net", "public.net", "")
	if !strings.HasPrefix(same, "HOST=/cannot be asked") {
		t.Errorf("a server without an address: %s", same)
	}
	for _, host := range []string{"private.dns.net", "six.dns.net", "refused.dns.net", "failing.dns.net"} {
		if got := facts(host, "public.net", ""); got != same {
			t.Errorf("%s: %q, not %q", host, got, same)
		}
	}
	for _, host := range []string{"private.dns.net", "10.3.4.5", "fd00::5"} {
		if !strings.Contains(log.String(), host) {
			t.Errorf("the log lacks %s: %s", host, &log)
		}
	}
	for _, zone := range []string{"corp.internal", "corp.example"} {
		missing := facts("missing.dns.net", zone, "")
		private := facts("missing.dns.net", zone, "@ NS ns1.inside\nns1.inside A 10.3.4.5\nhost A 10.3.4.6")
		if missing != private {
			t.Errorf("%s: missing %q, private %q", zone, missing, private)
		}
	}
}

// TestInnerAddresses: delegations and glue cannot lead the checker to addresses that are not public.
func TestInnerAddresses(t *testing.T) {
	t.Parallel()
	n := faultdns.New(t)
	n.Zone("acme.example", record, "127.0.0.3", "a.dns.net=127.0.0.4", "b.dns.net=127.0.0.5")
	n.Zone("dns.net", "a A 127.0.0.4\nb A 169.254.169.254\nb AAAA ::ffff:10.1.2.3", "127.0.0.2")
	c := newChecker(t, n, func(o *authdns.Options) { o.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")} })
	want := "a.dns.net=/cannot be asked b.dns.net=/cannot be asked ns3=/cannot be asked"
	if got := says(check(t, c, dcv.Policy{}, exact).Proofs[0]); got != want {
		t.Errorf("%q, not %q", got, want)
	}
	for _, addr := range []string{"127.0.0.3", "127.0.0.4", "127.0.0.5"} {
		if asked := n.Asked(addr); asked != nil {
			t.Errorf("%s was asked %v", addr, asked)
		}
	}
}

// TestFloods: a zone cannot make a check ask without end: too many servers, CNAMEs that differ from server to server, a
// name with very many labels.
func TestFloods(t *testing.T) {
	t.Parallel()
	var servers []string
	for i := range 17 {
		servers = append(servers, fmt.Sprintf("127.0.0.%d", 10+i))
	}
	n := faultdns.New(t)
	n.Zone("acme.example", record, servers...)
	facts := check(t, newChecker(t, n, nil), dcv.Policy{}, exact)
	if got, want := says(facts.Proofs[0]), "acme.example has more than 16 name servers"; got != want {
		t.Errorf("%q, not %q", got, want)
	}

	n = faultdns.New(t)
	n.Zone("acme.example", "", servers[:16]...)
	for i, addr := range servers[:16] {
		var b strings.Builder
		b.WriteString("* CNAME " + fmt.Sprintf("c%d", i) + ".acme.example.\n")
		for j := range 16 {
			fmt.Fprintf(&b, "c%d CNAME d%d-%d\n", j, i, j)
		}
		n.Set(addr, "acme.example", b.String())
	}
	check(t, newChecker(t, n, nil), dcv.Policy{}, exact, domain, alias)
	total := 0
	for _, addr := range append(servers[:16:16], "127.0.0.1", "127.0.0.2") {
		total += len(n.Asked(addr))
	}
	if total > 200 {
		t.Errorf("%d questions", total)
	}

	n = faultdns.New(t)
	n.Fault(faultdns.ResolverAddr, "", faultdns.ServFail)
	deep := exact
	deep.Name = "_fingerpost-challenge." + strings.Repeat("a.", 90) + "example"
	check(t, newChecker(t, n, nil), dcv.Policy{}, deep)
	if asked := n.Asked(faultdns.ResolverAddr); len(asked) > 30 {
		t.Errorf("%d questions to the resolver", len(asked))
	}
	deep.Name = "_fingerpost-challenge." + strings.Repeat("a.", 120) + "example"
	if f := check(t, newChecker(t, n, nil), dcv.Policy{}, deep).Proofs[0]; f.Error != "the name is too long" {
		t.Errorf("%+v", f)
	}
}

// TestLargeAnswers: of 64 KiB a few are kept, proofs first; without room for those the answer is not definite.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	run := func(what, records, want string) {
		t.Helper()
		n := faultdns.New(t)
		n.Zone("acme.example", records, "127.0.0.3")
		a := check(t, newChecker(t, n, nil), dcv.Policy{}, exact).Proofs[0].Answers[0]
		if a.Error != want || want == "" && !strings.HasPrefix(a.Values[0], "token="+token) {
			t.Errorf("%s: %.300q", what, a)
		}
		if size := len(strings.Join(a.Values, "")); size > 8<<10 {
			t.Errorf("%s: %d bytes", what, size)
		}
	}
	var many, tokens strings.Builder
	for i := range 200 {
		fmt.Fprintf(&many, "_fingerpost-challenge.shop TXT \"%03d%s\"\n", i, strings.Repeat("x", 250))
		fmt.Fprintf(&tokens, "_fingerpost-challenge.shop TXT \"token=%03d%s\"\n", i, strings.Repeat("x", 250))
	}
	long := "_fingerpost-challenge.shop TXT" + strings.Repeat(` "`+strings.Repeat("y", 250)+`"`, 220)
	run("many records", many.String()+record, "")
	run("a long record", long+"\n"+record, "")
	run("many proofs", tokens.String(), "too long")
}

// TestPrintable: values cannot send control sequences to a terminal, and keep quotes and backslashes.
func TestPrintable(t *testing.T) {
	t.Parallel()
	n := faultdns.New(t)
	n.Zone("acme.example", `_fingerpost-challenge.shop TXT "\027[2J\009a\"\\\200“é\226\128\174"`, "127.0.0.3")
	if got := says(check(t, newChecker(t, n, nil), dcv.Policy{}, exact).Proofs[0]); got != `ns3=\027[2J a"\\200“é\226\128\174/` {
		t.Errorf("%s", got)
	}
}

// TestRate: all checks together ask no faster than the limit.
func TestRate(t *testing.T) {
	t.Parallel()
	n := faultdns.New(t)
	n.Zone("acme.example", record, "127.0.0.3")
	c := newChecker(t, n, func(o *authdns.Options) { o.Rate = 100 })
	began := time.Now()
	done := make(chan error, 4)
	for range cap(done) {
		go func() {
			_, err := c.Check(t.Context(), subject, dcv.Policy{}, []dcv.Way{exact})
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	total := 0
	for _, addr := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"} {
		total += len(n.Asked(addr))
	}
	if took := time.Since(began); total < 12 || took < time.Duration(total-1)*10*time.Millisecond {
		t.Errorf("%d questions in %v", total, took)
	}
}
