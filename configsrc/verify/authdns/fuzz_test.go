package authdns_test

import (
	"strings"
	"testing"
	"unicode"

	"fingerpost/configsrc/verify/authdns"
	"fingerpost/configsrc/verify/dcv"
	"github.com/miekg/dns"
)

// FuzzAnswer: whatever a server sends, an answer is definite only if it claims authority and is whole, a zone below is
// below, and what is kept is short and printable.
func FuzzAnswer(f *testing.F) {
	const owner, zone = challenge + ".", "acme.example."
	kinds := []uint16{dns.TypeTXT, dns.TypeCNAME, dns.TypeA, dns.TypeAAAA, dns.TypeNS, dns.TypeCAA, dns.TypeSOA}
	for i, text := range []string{
		owner + ` 60 IN TXT "token=a" "\"\\\200;"`, owner + " 60 IN CNAME other.example.", owner + " 60 IN A 192.0.2.1",
		owner + " 60 IN AAAA ::ffff:1.2.3.4", owner + " 60 IN NS a.b.", owner + ` 60 IN CAA 0 issue "ca.example"`,
		owner + " 60 IN SOA a. b. 1 2 3 4 5", "shop." + zone + " 60 IN NS ns.shop." + zone, "example. 60 IN SOA a. b. 1 2 3 4 5",
	} {
		rr, err := dns.NewRR(text)
		if err != nil {
			f.Fatal(err)
		}
		for section := range 2 {
			m := new(dns.Msg).SetQuestion(owner, kinds[i%len(kinds)])
			m.Response, m.Authoritative = true, section == 0
			if section == 0 {
				m.Answer = []dns.RR{rr}
			} else {
				m.Ns = []dns.RR{rr}
			}
			packet, err := m.Pack()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(packet, byte(i))
		}
	}
	f.Fuzz(func(t *testing.T, packet []byte, kind byte) {
		found, alias, cut := authdns.ReadPacket(packet, owner, kinds[int(kind)%len(kinds)], zone)
		if cut != "" && (cut == zone || !dns.IsSubDomain(zone, cut) || !dns.IsSubDomain(cut, owner)) {
			t.Errorf("the zone %q is not between %q and %q", cut, zone, owner)
		}
		for _, a := range append(found.Answers, alias.Answers...) {
			authority, code := packet[2]&0x84 == 0x84, packet[3]&0xf
			if a.Definite() && cut == "" && (!authority || code != dns.RcodeSuccess && code != dns.RcodeNameError) {
				t.Errorf("definite: %+v", a)
			}
			bounded(t, a)
		}
		found, alias, _ = authdns.ReadPacket(packet, owner, kinds[int(kind)%len(kinds)], "")
		for _, a := range append(found.Answers, alias.Answers...) {
			bounded(t, a)
		}
	})
}

// bounded checks that an answer is short and printable.
func bounded(t *testing.T, a dcv.Answer) {
	t.Helper()
	all := strings.Join(a.Values, "") + a.Error
	if len(all) > 9<<10 || !a.Definite() && len(a.Values) > 0 {
		t.Errorf("%d bytes of values, error %q", len(all), a.Error)
	}
	if i := strings.IndexFunc(all, func(c rune) bool { return !unicode.IsPrint(c) }); i >= 0 {
		t.Errorf("not printable at %d: %q", i, all)
	}
}
