package sender_test

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"math/big"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig/faultdns"
	"fingerpost/configsrc/verify/authdns"
	"fingerpost/mailer/sender"
)

// rsaKey returns the p= of a key with so many bits.
func rsaKey(bits uint) string {
	der, err := x509.MarshalPKIXPublicKey(publicKey(bits))
	if err != nil {
		panic(err) // a test's own key
	}
	return base64.StdEncoding.EncodeToString(der)
}

func publicKey(bits uint) *rsa.PublicKey {
	n := new(big.Int).Lsh(big.NewInt(1), bits-1)
	return &rsa.PublicKey{N: n.Add(n, big.NewInt(12345)), E: 65537}
}

// text returns a text as a zone file has it, in strings of 255 bytes at most.
func text(s string) string {
	var b strings.Builder
	for len(s) > 250 {
		fmt.Fprintf(&b, "%q ", s[:250])
		s = s[250:]
	}
	fmt.Fprintf(&b, "%q", s)
	return b.String()
}

// The parts of a zone in which all is well.
var parts = map[string]string{
	"mx":    "@ MX 10 mx\nmx A 9.9.9.9",
	"spf":   `@ TXT "v=spf1 include:_spf.provider.net -all"`,
	"dkim":  "s1._domainkey TXT " + text("v=DKIM1; k=rsa; p="+rsaKey(2048)),
	"dmarc": `_dmarc TXT "v=DMARC1; p=reject"`,
}

// provider is the zone of the relay's provider.
const provider = `_spf TXT "v=spf1 ip4:9.9.8.0/24 ip6:2620:fe::/48 ~all"
two TXT "v=spf1 -all"
two TXT "v=spf1 ~all"
loop TXT "v=spf1 include:loop.provider.net -all"
bad TXT "v=spf1 ipv4:1.2.3.4 -all"
deep TXT "v=spf1 include:_spf.provider.net a:h1.provider.net a:h2.provider.net a:h3.provider.net -all"
redirected TXT "v=spf1 redirect=_spf.provider.net"
h1 A 9.9.9.1
h2 A 9.9.9.2
h3 AAAA 2620:fe::3
key._domainkey TXT "v=DKIM1; p="`

// A zoneCase is a zone with a fault, and the lines that follow from it.
type zoneCase struct {
	name   string
	change map[string]string // of parts; "" leaves one out
	sender func(s *sender.Sender)
	fault  string   // a name that the resolver does not answer for
	want   []string // "level check a part of the message or record", of all lines that are not ok
	state  string   // "": ok
}

func zoneCases() []zoneCase {
	spf := func(record string) map[string]string { return map[string]string{"spf": "@ TXT " + text(record)} }
	dkim := func(record string) map[string]string {
		return map[string]string{"dkim": "s1._domainkey TXT " + text(record)}
	}
	dmarc := func(record string) map[string]string { return map[string]string{"dmarc": "_dmarc TXT " + text(record)} }
	with := func(a, b map[string]string) map[string]string {
		both := map[string]string{}
		for _, m := range []map[string]string{a, b} {
			for k, v := range m {
				both[k] = v
			}
		}
		return both
	}
	noInclude := func(s *sender.Sender) { s.Include = "" }
	eleven := "v=spf1 include:_spf.provider.net"
	for i := range 10 {
		eleven += fmt.Sprintf(" a:h%d.provider.net", i%3+1)
	}
	none := map[string]string{"spf": "", "dkim": ""}
	warn, bad, unknown := sender.Warning, sender.Error, sender.Unknown
	return []zoneCase{
		{name: "all is well"},
		{name: "the domain does not exist", sender: func(s *sender.Sender) { s.From = "a@missing.net" },
			want: []string{"error from missing.net of From: does not exist"}, state: bad},
		{name: "the address has no domain", sender: func(s *sender.Sender) { s.From = "a@-x.example" }, want: []string{"error from has no domain"}, state: bad},

		{name: "no MX, and an address", change: map[string]string{"mx": "@ A 9.9.9.9"}, want: []string{"note mx acme.example. MX 10 mail.acme.example."}},
		{name: "no MX, no address", change: map[string]string{"mx": ""}, want: []string{"warning mx neither a mail server nor an address"}, state: warn},
		{name: "no MX, and an address inside", change: map[string]string{"mx": "@ A 10.1.2.3"}, want: []string{"warning mx neither a mail server nor an address"}, state: warn},
		{name: "null MX", change: map[string]string{"mx": "@ MX 0 ."}, want: []string{"warning mx takes no mail"}, state: warn},
		{name: "MX without an address", change: map[string]string{"mx": "@ MX 10 gone"}, want: []string{"warning mx no mail server of acme.example has an address"}, state: warn},
		{name: "second MX has one", change: map[string]string{"mx": "@ MX 20 mx\n@ MX 10 gone\nmx AAAA 2620:fe::9"}},

		{name: "no SPF", change: map[string]string{"spf": ""}, want: []string{`warning spf acme.example. TXT "v=spf1 include:_spf.provider.net ~all"`}, state: warn},
		{name: "no SPF, no include said", change: map[string]string{"spf": ""}, sender: noInclude, want: []string{"warning spf the name that your relay gives you"}, state: warn},
		{name: "two SPF records", change: map[string]string{"spf": "@ TXT \"v=spf1 a -all\"\n@ TXT \"v=spf1 include:_spf.provider.net ~all\""},
			want: []string{`warning spf acme.example. TXT "v=spf1 a include:_spf.provider.net -all"`}, state: warn},
		{name: "other TXT records are none", change: map[string]string{"spf": parts["spf"] + "\n@ TXT \"v=spf10 x\"\n@ TXT \"spf1\""}},
		{name: "SPF in other letters", change: spf("V=SPF1 Include:_SPF.Provider.Net -ALL")},
		{name: "over 10 look-ups", change: spf(eleven + " -all"), want: []string{"warning spf needs 11 look-ups, 10 are allowed"}, state: warn},
		{name: "over 10 in includes", change: spf("v=spf1 include:deep.provider.net a:h1.provider.net include:deep.provider.net a:h2.provider.net -all"),
			want: []string{"warning spf needs 12 look-ups"}, state: warn},
		{name: "10 look-ups", change: spf(eleven[:strings.LastIndex(eleven, " ")] + " -all")},
		{name: "include missing", change: spf("v=spf1 mx -all"),
			want: []string{`warning spf acme.example. TXT "v=spf1 mx include:_spf.provider.net -all"`}, state: warn},
		{name: "include after all", change: spf("v=spf1 mx -all include:_spf.provider.net"),
			want: []string{"note spf is never read", "warning spf does not include _spf.provider.net"}, state: warn},
		{name: "include inside another", change: spf("v=spf1 include:deep.provider.net -all")},
		{name: "include by redirect", change: spf("v=spf1 redirect=redirected.provider.net")},
		{name: "networks in place of the include", change: spf("v=spf1 ip4:9.9.8.0/23 ip6:2620:fe::/32 -all"),
			want: []string{"note spf valid, until they change"}},
		{name: "some of the networks", change: spf("v=spf1 ip4:9.9.8.0/24 -all"), want: []string{"warning spf does not include"}, state: warn},
		{name: "networks that do not pass", change: spf("v=spf1 ~ip4:9.9.8.0/23 ~ip6:2620:fe::/32 mx -all"), want: []string{"warning spf does not include"}, state: warn},
		{name: "no include said", sender: noInclude, want: []string{"note spf set spf_include"}},
		{name: "the include said is none", sender: func(s *sender.Sender) { s.Include = "missing.provider.net" },
			want: []string{"warning spf missing.provider.net has no SPF record"}, state: warn},
		{name: "+all", change: spf("v=spf1 include:_spf.provider.net +all"), want: []string{`warning spf "v=spf1 include:_spf.provider.net ~all"`}, state: warn},
		{name: "all without a sign", change: spf("v=spf1 exists:small.provider.net include:_spf.provider.net all"),
			want: []string{`warning spf "v=spf1 exists:small.provider.net include:_spf.provider.net ~all"`}, state: warn},
		{name: "no all", change: spf("v=spf1 include:_spf.provider.net"), want: []string{"note spf says nothing of other servers"}},
		{name: "nobody may send", change: spf("v=spf1 -all"), sender: noInclude, want: []string{"warning spf lets no server send", "note spf set spf_include"}, state: warn},
		{name: "a misspelt mechanism", change: spf("v=spf1 include:_spf.provider.net ipv4:1.2.3.4 -all"), want: []string{`warning spf "ipv4:1.2.3.4"`}, state: warn},
		{name: "a bad network", change: spf("v=spf1 include:_spf.provider.net ip4:1.2.3.400 -all"), want: []string{"warning spf is no IP4 network"}, state: warn},
		{name: "an include without a name", change: spf("v=spf1 include: -all"), sender: noInclude, want: []string{"warning spf lacks what follows", "note spf set spf_include"}, state: warn},
		{name: "an include without a record", change: spf("v=spf1 include:_spf.provider.net include:h1.provider.net -all"),
			want: []string{"warning spf h1.provider.net has no SPF record"}, state: warn},
		{name: "an include with two records", change: spf("v=spf1 include:_spf.provider.net include:two.provider.net -all"),
			want: []string{"warning spf two.provider.net has 2 SPF records"}, state: warn},
		{name: "an include that is wrong", change: spf("v=spf1 include:_spf.provider.net include:bad.provider.net -all"), want: []string{"warning spf bad.provider.net: "}, state: warn},
		{name: "a loop", change: spf("v=spf1 include:_spf.provider.net include:loop.provider.net -all"), want: []string{"warning spf leads back to itself"}, state: warn},
		{name: "three hosts that do not exist", change: spf("v=spf1 include:_spf.provider.net a:x1.provider.net a:x2.provider.net mx:x3.provider.net -all"),
			want: []string{"warning spf names 3 hosts that do not exist"}, state: warn},
		{name: "ptr", change: spf("v=spf1 include:_spf.provider.net ptr -all"), want: []string{"note spf has ptr"}},
		{name: "macros", change: spf("v=spf1 exists:%{i}._spf.provider.net -all")},
		{name: "two redirects", change: spf("v=spf1 redirect=_spf.provider.net redirect=deep.provider.net"), want: []string{"warning spf redirects twice"}, state: warn},

		{name: "no selectors said", sender: func(s *sender.Sender) { s.Selectors = nil }, want: []string{"note dkim set dkim_selectors"}},
		{name: "a key missing", change: map[string]string{"dkim": ""}, want: []string{"warning dkim s1._domainkey.acme.example. TXT"}, state: warn},
		{name: "a key behind a CNAME is revoked", change: map[string]string{"dkim": "s1._domainkey CNAME key._domainkey.provider.net."}, want: []string{"warning dkim is revoked"}, state: warn},
		{name: "a short key", change: dkim("v=DKIM1; p=" + rsaKey(768)), want: []string{"warning dkim has 768 bits"}, state: warn},
		{name: "1024 bits", change: dkim("v=DKIM1; p=" + rsaKey(1024)), want: []string{"note dkim has 1024 bits"}},
		{name: "a key in the other form", change: dkim("k=rsa; p=" + base64.StdEncoding.EncodeToString(x509.MarshalPKCS1PublicKey(publicKey(4096))))},
		{name: "blanks in a key", change: dkim("v=DKIM1; t=s; p=" + rsaKey(2048)[:40] + " " + rsaKey(2048)[40:] + ";")},
		{name: "a key cut off", change: dkim("v=DKIM1; p=" + rsaKey(2048)[:255]), want: []string{"warning dkim is no RSA key"}, state: warn},
		{name: "ed25519 alone", change: dkim("v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(make([]byte, 32))), want: []string{"note dkim ed25519"}},
		{name: "ed25519 next to RSA", change: map[string]string{"dkim": parts["dkim"] + "\ns2._domainkey TXT \"v=DKIM1; k=ed25519; p=" +
			base64.StdEncoding.EncodeToString(make([]byte, 32)) + `"`}, sender: func(s *sender.Sender) { s.Selectors = []string{"s1", "s2"} }},
		{name: "a short ed25519 key", change: dkim("v=DKIM1; k=ed25519; p=AAAA"), want: []string{"warning dkim is no key of ed25519"}, state: warn},
		{name: "another kind", change: dkim("v=DKIM1; k=dsa; p=AAAA"), want: []string{"warning dkim of a kind that receivers do not know"}, state: warn},
		{name: "two keys at a selector", change: map[string]string{"dkim": parts["dkim"] + "\ns1._domainkey TXT \"v=DKIM1; p=\""}, want: []string{"warning dkim there are 2 records"}, state: warn},
		{name: "no key record", change: dkim("hello"), want: []string{"warning dkim cannot be read"}, state: warn},
		{name: "another version", change: dkim("v=DKIM2; p=" + rsaKey(2048)), want: []string{"warning dkim does not begin with v=DKIM1"}, state: warn},
		{name: "sha1 alone", change: dkim("v=DKIM1; h=sha1; p=" + rsaKey(2048)), want: []string{"warning dkim allows no sha256"}, state: warn},
		{name: "not for mail", change: dkim("v=DKIM1; s=other; p=" + rsaKey(2048)), want: []string{"warning dkim is not for mail"}, state: warn},
		{name: "a test key", change: dkim("v=DKIM1; t=y; p=" + rsaKey(2048)), want: []string{"note dkim marked as a test"}},

		{name: "mail with one-click links", sender: func(s *sender.Sender) { s.OneClick = true },
			want: []string{"note dkim covers List-Unsubscribe and List-Unsubscribe-Post"}},

		{name: "no DMARC", change: map[string]string{"dmarc": ""}, want: []string{`warning dmarc _dmarc.acme.example. TXT "v=DMARC1; p=none"`}, state: warn},
		{name: "two DMARC records", change: map[string]string{"dmarc": "_dmarc TXT \"v=DMARC1; p=none\"\n_dmarc TXT \"v=DMARC1; p=reject\""},
			want: []string{"warning dmarc there are 2 DMARC records"}, state: warn},
		{name: "no policy", change: dmarc("v=DMARC1; rua=mailto:a@acme.example"), want: []string{"warning dmarc no policy that receivers know"}, state: warn},
		{name: "a misspelt policy", change: dmarc("v=DMARC1; p=rejct"), want: []string{"warning dmarc p=rejct"}, state: warn},
		{name: "DMARC only watches", change: dmarc("v=DMARC1; p=none"), want: []string{"note dmarc only watches"}},
		{name: "DMARC for a part", change: dmarc("v=DMARC1;p=quarantine;pct=20"), want: []string{"note dmarc 20 %"}},
		{name: "DMARC of the organisation", sender: func(s *sender.Sender) { s.From = "a@news.acme.example" },
			change: map[string]string{"spf": strings.Replace(parts["spf"], "@", "news", 1), "mx": "news MX 10 mx\nmx A 9.9.9.9",
				"dkim": strings.Replace(parts["dkim"], "_domainkey", "_domainkey.news", 1), "dmarc": `_dmarc TXT "v=DMARC1; p=none; sp=quarantine"`},
			want: []string{"note dmarc the policy of DMARC, quarantine, is that of _dmarc.acme.example"}},
		{name: "DMARC rejects, and neither can align", change: none,
			want: []string{"warning spf no SPF record", "warning dkim missing", "error dmarc neither SPF nor DKIM can pass"}, state: bad},
		{name: "DMARC rejects, the include is missing, the key is revoked", change: with(spf("v=spf1 mx -all"), dkim("p=")),
			want: []string{"warning spf does not include", "warning dkim revoked", "error dmarc reject"}, state: bad},
		{name: "DMARC rejects, and one can align", change: map[string]string{"spf": ""}, want: []string{"warning spf no SPF record"}, state: warn},
		{name: "DMARC rejects, and the keys are not known", change: map[string]string{"spf": ""}, sender: func(s *sender.Sender) { s.Selectors = nil },
			want: []string{"warning spf no SPF record", "note dkim not known"}, state: warn},
		{name: "DMARC has it put into the junk folder", change: with(none, dmarc("v=DMARC1; p=quarantine")),
			want: []string{"warning spf no SPF record", "warning dkim missing", "warning dmarc junk folder"}, state: warn},

		{name: "DNS does not answer for SPF", fault: "acme.example",
			want: []string{"unknown from DNS did not answer", "unknown mx DNS", "unknown spf DNS"}, state: unknown},
		{name: "DNS does not answer for the include", fault: "_spf.provider.net", want: []string{"unknown spf _spf.provider.net"}, state: unknown},
		{name: "DNS does not answer for a key", fault: "s1._domainkey.acme.example", want: []string{"unknown dkim DNS did not answer"}, state: unknown},
		{name: "DNS does not answer for DMARC", fault: "_dmarc.acme.example", want: []string{"unknown dmarc DNS did not answer"}, state: unknown},
		{name: "DNS does not answer for a key, and there is no SPF", change: map[string]string{"spf": ""}, fault: "s1._domainkey.acme.example",
			want: []string{"warning spf no SPF record", "unknown dkim DNS"}, state: warn},

		{name: "an address that SPF has", sender: func(s *sender.Sender) { s.Address = netip.MustParseAddr("9.9.8.7") }},
		{name: "an address that SPF lacks", sender: func(s *sender.Sender) { s.Address = netip.MustParseAddr("9.9.7.7") },
			want: []string{"warning spf does not let 9.9.7.7 send: the verdict is fail", "note ptr has no name"}, state: warn},
		{name: "a name that leads elsewhere", sender: func(s *sender.Sender) { s.Address = netip.MustParseAddr("2620:fe::5") },
			want: []string{"note ptr h1.provider.net, does not have that address"}},
	}
}

// start serves the zone of a case, and returns a DNS that asks it, and the port of its resolver.
func (c *zoneCase) start(t *testing.T) (dns sender.DNS, s sender.Sender, port string) {
	t.Helper()
	n := faultdns.New(t)
	var zone strings.Builder
	for name, part := range parts {
		if changed, is := c.change[name]; is {
			part = changed
		}
		zone.WriteString(part + "\n")
	}
	n.Zone("acme.example", zone.String(), "127.0.0.3")
	n.Zone("provider.net", provider, "127.0.0.4")
	n.Zone("arpa", "7.8.9.9.in-addr PTR relay.arpa.\nrelay A 9.9.8.7\n"+
		"5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.e.f.0.0.0.2.6.2.ip6 PTR h1.provider.net.", "127.0.0.5")
	if c.fault != "" {
		n.Fault(faultdns.ResolverAddr, c.fault, faultdns.ServFail)
	}
	checker, err := authdns.New(authdns.Options{Resolver: n.Resolver(), Rate: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	lookup, end := checker.Lookup(t.Context(), "acme", 30*time.Second)
	t.Cleanup(end)
	s = sender.Sender{From: "hello@acme.example", Include: "_spf.provider.net", Selectors: []string{"s1"}}
	if c.sender != nil {
		c.sender(&s)
	}
	return lookup, s, strconv.Itoa(int(n.Port))
}

// TestZones: zones with known faults, asked of a real name server, have these verdicts and no others.
func TestZones(t *testing.T) {
	t.Parallel()
	for _, c := range zoneCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dns, s, _ := c.start(t)
			lines := sender.Examine(dns, s)
			var got []string
			for _, l := range lines {
				if l.Level != sender.OK {
					record := ""
					if l.Record != nil {
						record = *l.Record
					}
					got = append(got, l.Level+" "+l.Check+" "+l.Message+" | "+record)
				}
			}
			for i, want := range c.want {
				head := strings.Join(strings.SplitN(want, " ", 3)[:2], " ") + " "
				if i >= len(got) || !strings.HasPrefix(got[i], head) || !strings.Contains(got[i], strings.TrimPrefix(want, head)) {
					t.Errorf("line %d is not %q", i, want)
				}
			}
			if len(got) != len(c.want) {
				t.Errorf("%d lines, not %d", len(got), len(c.want))
			}
			if state := sender.StateOf(lines); state != c.state && (c.state != "" || state != sender.OK) {
				t.Errorf("the state is %s", state)
			}
			if t.Failed() {
				t.Logf("%s", strings.Join(got, "\n"))
			}
		})
	}
}
