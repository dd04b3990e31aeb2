package faultdns

import (
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
)

func portText(port uint16) string { return strconv.Itoa(int(port)) }

// close ends all servers.
func (n *Net) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.servers {
		_ = s.udp.Close()
		_ = s.tcp.Close()
	}
}

func (n *Net) serveUDP(s *server) {
	b := make([]byte, 4096)
	for {
		size, from, err := s.udp.ReadFrom(b)
		if err != nil {
			return
		}
		packets, _ := n.respond(s, b[:size], false)
		for _, p := range packets {
			_, _ = s.udp.WriteTo(p, from)
		}
	}
}

func (n *Net) serveTCP(s *server) {
	for {
		conn, err := s.tcp.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			var length [2]byte
			if _, err := io.ReadFull(conn, length[:]); err != nil {
				return
			}
			b := make([]byte, binary.BigEndian.Uint16(length[:]))
			if _, err := io.ReadFull(conn, b); err != nil {
				return
			}
			packets, fault := n.respond(s, b, true)
			for _, p := range packets {
				p = append(binary.BigEndian.AppendUint16(nil, uint16(len(p))), p...)
				if fault == Drip {
					drip(conn, p)
				} else if _, err := conn.Write(p); err != nil {
					return
				}
			}
			_, _ = io.Copy(io.Discard, conn) // the client ends the connection
		}()
	}
}

// drip sends a byte at a time, and never the last one.
func drip(conn net.Conn, p []byte) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for _, b := range p[:len(p)-1] {
		if _, err := conn.Write([]byte{b}); err != nil {
			return
		}
		<-tick.C
	}
}

// respond returns what a server sends for a packet, and the fault that it has.
func (n *Net) respond(s *server, packet []byte, tcp bool) ([][]byte, Fault) {
	q := &dns.Msg{}
	if q.Unpack(packet) != nil || len(q.Question) != 1 {
		return nil, Healthy
	}
	name := dns.CanonicalName(q.Question[0].Name)
	n.mu.Lock()
	defer n.mu.Unlock()
	s.asked = append(s.asked, dns.TypeToString[q.Question[0].Qtype]+" "+strings.TrimSuffix(name, "."))
	fault, ok := s.faults[name]
	if !ok {
		fault = s.faults[""]
	}
	m := n.answer(s, q, name, fault)
	return faulty(m, q, fault, tcp), fault
}

// answer is that of a healthy server, but for a fault in what it knows.
func (n *Net) answer(s *server, q *dns.Msg, name string, fault Fault) *dns.Msg {
	m := &dns.Msg{}
	m.SetReply(q)
	kind := q.Question[0].Qtype
	if s == n.servers[ResolverAddr] {
		m.RecursionAvailable = true
		n.resolve(m, s, name, kind)
		return m
	}
	zone, ok := deepest(s.zones, name)
	if !ok {
		m.Rcode = dns.RcodeRefused
		return m
	}
	if below := n.cut(zone, name); below != "" && fault != NoReferral {
		for _, h := range n.zones[below] {
			for _, rr := range h.records(below) {
				if rr.Header().Rrtype == dns.TypeNS {
					m.Ns = append(m.Ns, rr)
				} else {
					m.Extra = append(m.Extra, rr)
				}
			}
		}
		return m
	}
	m.Authoritative = true
	fill(m, s.zones[zone], name, kind)
	return m
}

// cut returns the zone with the name that is delegated by a zone; "": none.
func (n *Net) cut(zone, name string) (below string) {
	for at, end := 0, name == "."; !end && name[at:] != zone; at, end = dns.NextLabel(name, at) {
		if _, ok := n.zones[name[at:]]; ok {
			below = name[at:]
		}
	}
	return below
}

// deepest returns the deepest of zones that has the name.
func deepest[V any](zones map[string]V, name string) (string, bool) {
	for at, end := 0, false; !end; at, end = dns.NextLabel(name, at) {
		if _, ok := zones[name[at:]]; ok {
			return name[at:], true
		}
	}
	_, ok := zones["."]
	return ".", ok
}

// fill answers from the records of a zone, and returns the target of a CNAME.
func fill(m *dns.Msg, rrs []dns.RR, name string, kind uint16) (target string) {
	found := false
	var soa, wild []dns.RR
	for _, rr := range rrs {
		h := rr.Header()
		found = found || dns.IsSubDomain(name, h.Name) // also an empty name in between
		if h.Rrtype == dns.TypeSOA {
			soa = append(soa, rr)
		}
		if star, ok := strings.CutPrefix(h.Name, "*."); ok && star != name && dns.IsSubDomain(star, name) {
			wild = append(wild, rr)
		}
		if h.Name == name && (h.Rrtype == kind || h.Rrtype == dns.TypeCNAME) {
			m.Answer = append(m.Answer, rr)
		}
	}
	for _, rr := range wild {
		if h := rr.Header(); !found && (h.Rrtype == kind || h.Rrtype == dns.TypeCNAME) {
			rr = dns.Copy(rr)
			rr.Header().Name = name
			m.Answer = append(m.Answer, rr)
		}
	}
	if len(m.Answer) == 0 {
		m.Ns = soa
		if !found && len(wild) == 0 {
			m.Rcode = dns.RcodeNameError
		}
		return ""
	}
	if alias, ok := m.Answer[len(m.Answer)-1].(*dns.CNAME); ok && kind != dns.TypeCNAME {
		return dns.CanonicalName(alias.Target)
	}
	return ""
}

// resolve answers as a resolver that knows all zones, each as its first server has it.
func (n *Net) resolve(m *dns.Msg, own *server, name string, kind uint16) {
	for range 10 {
		part := &dns.Msg{}
		rrs := []dns.RR(nil)
		if apex, ok := deepest(own.zones, name); ok {
			rrs = own.zones[apex]
		} else if apex, ok := deepest(n.zones, name); ok {
			rrs = n.servers[n.zones[apex][0].addr].zones[apex]
		}
		target := fill(part, rrs, name, kind)
		m.Answer, m.Ns, m.Rcode = append(m.Answer, part.Answer...), part.Ns, part.Rcode
		if name = target; name == "" {
			return
		}
	}
}

// faulty returns the packets of a server with a fault.
func faulty(m, q *dns.Msg, f Fault, tcp bool) [][]byte {
	whole := true
	switch f {
	case Silent:
		return nil
	case ServFail:
		return pack(code(q, dns.RcodeServerFailure))
	case Refused:
		return pack(code(q, dns.RcodeRefused))
	case Lame:
		m.Authoritative = false
	case Upward:
		m = code(q, dns.RcodeSuccess)
		m.Ns = []dns.RR{&dns.NS{Hdr: header(".", dns.TypeNS), Ns: "ns.invalid."}}
	case Truncated, TruncatedShut, Drip:
		whole = tcp
		if tcp && f == TruncatedShut {
			return nil
		}
	case WrongID:
		m.Id++
	case Strays:
		m.Id++
		return slices.Repeat(pack(m), 300)
	case WrongQuestion:
		m.Question[0].Name = "other.example."
	case Forged, Twice:
		forged := code(q, dns.RcodeNameError)
		forged.Authoritative = true
		if f == Twice {
			return append(pack(m), pack(forged)...)
		}
		forged.Id++
		return append(pack(forged), pack(m)...)
	case Malformed:
		return [][]byte{append(pack(code(q, dns.RcodeSuccess))[0][:12], 0xc0, 0x0c, 0xff)}
	case Short:
		p := pack(m)[0]
		binary.BigEndian.PutUint16(p[6:], binary.BigEndian.Uint16(p[6:])+1)
		return [][]byte{p}
	case NoEDNS:
		if q.IsEdns0() != nil {
			return pack(code(q, dns.RcodeFormatError))
		}
	case Bogus:
		if !q.CheckingDisabled {
			return pack(code(q, dns.RcodeServerFailure))
		}
	}
	if !whole || !tcp && m.Len() > 1232 {
		m.Truncated, m.Answer, m.Ns, m.Extra = true, nil, nil, nil
	}
	return pack(m)
}

func code(q *dns.Msg, rcode int) *dns.Msg {
	return (&dns.Msg{}).SetRcode(q, rcode)
}

func pack(m *dns.Msg) [][]byte {
	m.Compress = true
	b, err := m.Pack()
	if err != nil {
		panic("faultdns: an answer that cannot be encoded: " + err.Error()) // a test's records are too long
	}
	return [][]byte{b}
}
