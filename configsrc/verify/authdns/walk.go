package authdns

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"

	"fingerpost/configsrc/verify/dcv"
	"github.com/miekg/dns"
)

// The bounds of one check. A usual one asks 10 to 40 questions.
const (
	maxQuestions = 200
	maxServers   = 16 // of a zone
	maxAddresses = 4  // of a server
	maxSome      = 3  // servers of which one answer is enough
)

// A session is one check: what it has learned of zones and servers, and how many questions it has asked.
type session struct {
	*Checker
	ctx       context.Context
	tenant    string // whose share of the questions it uses
	resolvers []netip.AddrPort

	zones  map[string]zone
	within map[string]string // names → the apex that a server has confirmed
	inner  map[string]bool   // names for which the resolver was asked for a zone
	lost   map[string]string // public suffixes → why the resolver gave no zone to begin at

	mu     sync.Mutex // guards the fields below; several servers are asked at once
	asked  int
	found  map[string]addresses
	silent map[string]string // the error of a server that is asked no more
}

// A zone and its authoritative servers.
type zone struct {
	apex    string // with the trailing dot
	servers []server
	public  bool // the zone of a public suffix, where walks begin
}

type server struct {
	host string // with the trailing dot
	glue []netip.Addr
}

// ask asks the servers of a name's zone and returns their replies, or why there are none. Servers of a zone above that do
// not know of the zone below are heard, too: one server of several cannot lead a check to servers of its choice and have
// the others passed over.
func (s *session) ask(q question) (replies []reply, word string) {
	if !fits(q.name) {
		return nil, nameTooLong
	}
	var above []reply
	z, word := s.nearest(q.name)
	for word == "" { // each turn goes down
		here, cut := s.askZone(z, q)
		teller := reply{}
		if cut >= 0 {
			teller = here[cut]
		} else {
			teller = s.hiddenCut(z, q, here)
		}
		if teller.cut != "" {
			if !z.public { // whose servers are trusted with delegations
				above = append(above, here...)
			}
			z, word = s.below(z, teller)
			continue
		}
		below, ok := s.innerZone(z, q.name, here)
		if !ok {
			return merge(above, here), ""
		}
		z = below
	}
	return nil, word
}

// merge returns the replies of a zone, after the definite ones of other servers above it.
func merge(above, here []reply) []reply {
	above = slices.DeleteFunc(above, func(r reply) bool {
		same := func(other reply) bool { return other.server == r.server }
		return r.server == "" || r.err != "" || r.cut != "" || slices.ContainsFunc(here, same)
	})
	return append(above, here...)
}

// askZone asks all servers of a zone. The second result is the index of a reply that tells of a zone below, or -1. Where
// one answer is enough, and where the zone of a public suffix tells of one below, few servers are asked.
func (s *session) askZone(z zone, q question) ([]reply, int) {
	replies := make([]reply, len(z.servers))
	asked := make([]bool, len(z.servers))
	if z.public || q.one {
		order := rand.Perm(len(z.servers))
		for _, i := range order[:min(len(order), maxSome)] {
			replies[i], asked[i] = s.askServer(z, z.servers[i], q), true
			if replies[i].cut != "" {
				return replies, i
			}
			if replies[i].err == "" {
				if q.one {
					return replies[i : i+1], -1
				}
				break
			}
		}
		if q.one {
			return slices.DeleteFunc(replies, func(r reply) bool { return r.server == "" }), -1
		}
	}
	var wg sync.WaitGroup
	for i := range replies {
		if !asked[i] {
			wg.Go(func() { replies[i] = s.askServer(z, z.servers[i], q) })
		}
	}
	wg.Wait()
	return replies, slices.IndexFunc(replies, func(r reply) bool { return r.cut != "" })
}

// hiddenCut finds a zone below z of which an answer with data does not tell, because a server has both zones: the zone
// below may have more servers. A name that is in a zone has all names between it and the apex in the same zone.
func (s *session) hiddenCut(z zone, q question, replies []reply) reply {
	i := slices.IndexFunc(replies, func(r reply) bool { return len(r.values) > 0 || r.target != "" })
	if i < 0 || q.one {
		return reply{}
	}
	name := q.name
	if replies[i].target != "" { // which is the answer to every question, and does not stand at an apex
		name = parent(name)
	}
	if name == z.apex || !dns.IsSubDomain(z.apex, name) || s.within[name] == z.apex {
		return reply{}
	}
	for at := name; at != z.apex; at = parent(at) {
		s.within[at] = z.apex
	}
	to := slices.IndexFunc(z.servers, func(to server) bool { return plain(to.host) == replies[i].server })
	return s.askServer(z, z.servers[to], question{name: name, kind: dns.TypeSOA})
}

// askServer asks one server of a zone.
func (s *session) askServer(z zone, to server, q question) reply {
	at, word := s.reachable(to)
	r := reply{err: word}
	if word == "" {
		r = s.exchangeTwice(to.host, at, q, z.apex)
	}
	r.server = plain(to.host)
	return r
}

// exchangeTwice asks a server, and once more, without EDNS and at its next address, if no usable answer came. A server
// that was silent is not asked again.
func (s *session) exchangeTwice(server string, at []netip.AddrPort, q question, zone string) reply {
	s.mu.Lock()
	word, silent := s.silent[server]
	s.mu.Unlock()
	if silent {
		return reply{err: word}
	}
	r, sent := reply{err: "unreachable"}, 0
	for _, addr := range append(slices.Clip(at), at[0]) {
		if !s.mayAsk() {
			return reply{err: "too many questions"}
		}
		answer := s.exchange(addr, q, zone, sent == 0)
		if answer.err == "unreachable" { // this machine may lack IPv6
			continue
		}
		if r, sent = answer, sent+1; sent == 2 || !worthAnother(r.err) {
			break
		}
	}
	if r.err == dcv.TimedOut || r.err == "unreachable" || r.err == "wrong id" {
		s.mu.Lock()
		s.silent[server] = r.err
		s.mu.Unlock()
	}
	return r
}

func worthAnother(word string) bool {
	switch word {
	case dcv.TimedOut, "malformed", "wrong id", "hung up", "FORMERR", "NOTIMP":
		return true
	}
	return false
}

// mayAsk counts a question.
func (s *session) mayAsk() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return s.asked <= maxQuestions
}
