package authdns

import (
	"encoding/binary"

	"fingerpost/configsrc/verify/dcv"
	"github.com/miekg/dns"
)

// ReadPacket returns what a packet says about a name to who asked a server of a zone ("": a resolver), and the zone below
// that it tells of. Nothing is returned for a packet that does not answer the question.
func ReadPacket(packet []byte, name string, kind uint16, zone string) (f dcv.Finding, alias dcv.Finding, cut string) {
	if len(packet) < 2 {
		return f, alias, ""
	}
	q := question{name: name, kind: kind}
	m, ours := q.parse(packet, binary.BigEndian.Uint16(packet))
	if !ours {
		return f, alias, ""
	}
	r := reply{err: "malformed"}
	if m != nil {
		r = q.read(m, zone)
	}
	f = dcv.Finding{Type: dns.TypeToString[kind], Name: plain(name)}
	f.Answers, alias, _ = split([]reply{r}, name)
	return f, alias, r.cut
}
