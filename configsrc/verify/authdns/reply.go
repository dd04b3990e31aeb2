package authdns

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"fingerpost/configsrc/verify/dcv"
	"github.com/miekg/dns"
)

// The bounds of what is kept of an answer, in bytes of all its values and of one.
const (
	maxValues = 8 << 10
	maxValue  = 2 << 10
)

// A question is for one server.
type question struct {
	name      string // canonical, with the trailing dot
	kind      uint16
	recurse   bool // for the resolver
	unchecked bool // for the resolver: without DNSSEC (CD)
	one       bool // one definite answer is enough
}

// A reply is what a server said, as far as the walk and the facts use it.
type reply struct {
	server string // its host name
	err    string // why it is not definite
	values []string
	target string // of a CNAME instead of values
	absent bool   // there is no such name
	// cut is a zone below the one that was asked, and has the name. Its hosts are unknown if the server has both zones.
	cut   string
	hosts []string
	glue  map[string][]netip.Addr
	soa   string        // of a negative answer: the zone that says no
	ttl   time.Duration // of values, or of the negative answer
}

// message returns the question on the wire.
func (q question) message(id uint16, edns bool) ([]byte, error) {
	m := dns.Msg{MsgHdr: dns.MsgHdr{Id: id, RecursionDesired: q.recurse, CheckingDisabled: q.unchecked},
		Question: []dns.Question{{Name: q.name, Qtype: q.kind, Qclass: dns.ClassINET}}}
	if edns {
		m.SetEdns0(1232, false)
	}
	return m.Pack()
}

// parse returns the message in a packet, and whether it belongs to the question. A packet of somebody else, or for
// another question, is no message; one of the server that cannot be read is nil.
func (q question) parse(packet []byte, id uint16) (m *dns.Msg, ours bool) {
	if len(packet) < 12 || binary.BigEndian.Uint16(packet) != id || packet[2]>>7 == 0 {
		return nil, false
	}
	m = &dns.Msg{}
	if m.Unpack(packet) != nil || m.Opcode != dns.OpcodeQuery {
		return nil, true
	}
	count := func(at int) int { return int(binary.BigEndian.Uint16(packet[at:])) }
	if count(6) != len(m.Answer) || count(8) != len(m.Ns) { // the library takes fewer records than the header promises
		return nil, true
	}
	if len(m.Question) == 0 && m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError {
		return m, true // a server that could not read the question need not repeat it
	}
	if len(m.Question) != 1 {
		return nil, true
	}
	asked := m.Question[0]
	return m, asked.Qtype == q.kind && asked.Qclass == dns.ClassINET && strings.EqualFold(asked.Name, q.name)
}

// read returns what a message says. zone is the one that the server is asked for, "" if the server is a resolver.
func (q question) read(m *dns.Msg, zone string) reply {
	if m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError {
		if word, ok := dns.RcodeToString[m.Rcode]; ok {
			return reply{err: word}
		}
		return reply{err: fmt.Sprint("code ", m.Rcode)}
	}
	r := reply{absent: m.Rcode == dns.RcodeNameError}
	if !r.answer(m, q, zone == "") {
		return reply{err: "malformed"}
	}
	r.authority(m, q.name, zone)
	if q.kind == dns.TypeSOA && len(r.values) > 0 && zone != "" && q.name != zone {
		r.cut, r.values = q.name, nil
	}
	switch referral := r.cut != "" && len(r.values) == 0 && r.target == ""; {
	case zone == "" || m.Authoritative:
	case referral && m.Rcode == dns.RcodeSuccess && r.hosts != nil:
	default:
		return reply{err: dcv.Lame}
	}
	// A server that says no for a zone above is not responsible for this one.
	if zone != "" && r.soa != "" && !dns.IsSubDomain(zone, r.soa) {
		return reply{err: dcv.Lame}
	}
	return r.bounded(q.kind)
}

// answer takes values or the CNAME from the answer section; of a resolver's answer those at the end of the chain.
func (r *reply) answer(m *dns.Msg, q question, chain bool) bool {
	name := q.name
	for range maxChain + 1 {
		var target string
		for _, rr := range m.Answer {
			h := rr.Header()
			if h.Class != dns.ClassINET || !strings.EqualFold(h.Name, name) {
				continue
			}
			if h.Rrtype == q.kind {
				r.values = append(r.values, valueOf(rr))
				r.lives(h.Ttl)
			} else if alias, ok := rr.(*dns.CNAME); ok {
				if next := dns.CanonicalName(alias.Target); target != "" && target != next {
					return false
				} else {
					target = next
				}
			}
		}
		if len(r.values) > 0 || target == "" {
			return len(r.values) == 0 || target == ""
		}
		if r.target = target; !chain {
			return true
		}
		name = target
	}
	return true
}

// lives lowers the time for which the reply is valid.
func (r *reply) lives(ttl uint32) {
	if d := time.Duration(ttl) * time.Second; r.ttl == 0 || d < r.ttl {
		r.ttl = max(d, time.Second)
	}
}

// authority takes the zone that says no, and a zone below the one that was asked, from the authority section.
func (r *reply) authority(m *dns.Msg, name, zone string) {
	for _, rr := range m.Ns {
		owner := dns.CanonicalName(rr.Header().Name)
		if !dns.IsSubDomain(owner, name) {
			continue
		}
		below := zone != "" && owner != zone && dns.IsSubDomain(zone, owner)
		switch rr := rr.(type) {
		case *dns.SOA:
			if len(r.values) > 0 || zone != "" && r.target != "" {
				continue
			}
			r.soa, r.ttl = owner, time.Duration(min(rr.Hdr.Ttl, rr.Minttl))*time.Second
			if below && r.cut == "" {
				r.cut = owner
			}
		case *dns.NS:
			if below && (r.hosts == nil || owner == r.cut) {
				r.cut, r.hosts = owner, append(r.hosts, dns.CanonicalName(rr.Ns))
			}
		}
	}
	if r.hosts == nil {
		return
	}
	r.glue = map[string][]netip.Addr{}
	for _, rr := range m.Extra {
		// The servers of a zone know the addresses below it, and no others.
		if host := dns.CanonicalName(rr.Header().Name); dns.IsSubDomain(zone, host) {
			if addr, err := netip.ParseAddr(valueOf(rr)); err == nil && len(r.glue[host]) < maxAddresses {
				r.glue[host] = append(r.glue[host], addr)
			}
		}
	}
}

// valueOf returns a record's value as facts have it, "" for other types.
func valueOf(rr dns.RR) string {
	switch rr := rr.(type) {
	case *dns.TXT:
		return text(strings.Join(rr.Txt, ""))
	case *dns.CNAME:
		return plain(rr.Target)
	case *dns.NS:
		return plain(rr.Ns)
	case *dns.PTR:
		return plain(rr.Ptr)
	case *dns.MX:
		return fmt.Sprint(rr.Preference, " ", plain(rr.Mx))
	case *dns.CAA:
		return printable(rr.Tag + " " + rr.Value)
	case *dns.A:
		addr, _ := netip.AddrFromSlice(rr.A.To4())
		return addr.String()
	case *dns.AAAA:
		addr, _ := netip.AddrFromSlice(rr.AAAA.To16())
		return addr.String()
	}
	return ""
}

// plain returns a name as facts have it: in lower case, without the trailing dot.
func plain(name string) string { return strings.TrimSuffix(dns.CanonicalName(name), ".") }

// text is the value of a TXT record, which the library escapes, for people. Tabs become blanks; what is not printable
// stays escaped as \DDD, because values are shown in terminals.
func text(escaped string) string {
	raw := make([]byte, 0, len(escaped))
	for i := 0; i < len(escaped); i++ {
		if escaped[i] == '\\' && i+1 < len(escaped) {
			i++
			if code, err := strconv.ParseUint(escaped[i:min(i+3, len(escaped))], 10, 8); err == nil {
				raw = append(raw, byte(code))
				i += 2
				continue
			}
		}
		raw = append(raw, escaped[i])
	}
	return printable(string(raw))
}

// printable escapes what a terminal would not print.
func printable(s string) string {
	var b strings.Builder
	for i, c := range s {
		switch _, size := utf8.DecodeRuneInString(s[i:]); {
		case c == '\t':
			b.WriteByte(' ')
		case unicode.IsPrint(c) && (c != utf8.RuneError || size > 1):
			b.WriteRune(c)
		default:
			for _, octet := range []byte(s[i : i+size]) {
				fmt.Fprintf(&b, "\\%03d", octet)
			}
		}
	}
	return b.String()
}

// asksFor reports whether a TXT record may be one that is asked for: a proof, or SPF's.
func asksFor(v string) bool {
	return strings.Contains(v, "token=") || len(v) >= 6 && strings.EqualFold(v[:6], "v=spf1")
}

// bounded sorts the values and keeps them within the bounds. TXT records that are not asked for are left out first.
func (r reply) bounded(kind uint16) reply {
	slices.Sort(r.values)
	r.values = slices.Compact(r.values)
	if kind == dns.TypeTXT {
		slices.SortStableFunc(r.values, func(a, b string) int {
			return btoi(asksFor(b)) - btoi(asksFor(a))
		})
	}
	total := 0
	for i, v := range r.values {
		if len(v) > maxValue {
			v = v[:max(0, strings.LastIndexByte(v[:maxValue], ' '))] // not within a field
			r.values[i] = v
		}
		if total += len(v); total <= maxValues {
			continue
		}
		if kind != dns.TypeTXT || asksFor(v) {
			return reply{err: "too long"}
		}
		r.values = slices.Clip(r.values[:i])
		break
	}
	return r
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
