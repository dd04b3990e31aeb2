package authdns

import (
	"slices"
	"time"

	"fingerpost/configsrc/verify/dcv"
	"github.com/miekg/dns"
)

// The bounds of a chain of CNAMEs: its steps, and the names in it, of which each step may have several where servers
// disagree.
const (
	maxChain      = 8
	maxChainNames = 16
)

// The errors of chains without an end.
const (
	loop    = "CNAME loop"
	tooLong = "more than 8 CNAMEs"
)

// find asks for the records of a name, or of the end of its CNAMEs. The second result has the CNAMEs on the way.
func (s *session) find(q question) (f dcv.Finding, chain []dcv.Finding) {
	f = dcv.Finding{Type: dns.TypeToString[q.kind], Name: plain(q.name)}
	seen := []string{q.name}
	for step, names := 0, seen; len(names) > 0; step++ {
		var next []string
		for _, name := range names {
			q.name = name
			replies, word := s.ask(q)
			if word != "" {
				f.Error = word
			}
			answers, alias, targets := split(replies, name)
			f.Answers = append(f.Answers, answers...)
			if len(targets) > 0 {
				chain = append(chain, alias)
				next = append(next, targets...)
			}
		}
		slices.Sort(next)
		names = slices.Compact(next)
		if f.Error == "" {
			f.Error = chainError(step, seen, names)
		}
		if f.Error != "" {
			break
		}
		seen = append(seen, names...)
	}
	return f, chain
}

// split divides the replies to a question at a name into answers and CNAMEs.
func split(replies []reply, name string) (answers []dcv.Answer, alias dcv.Finding, targets []string) {
	alias = dcv.Finding{Type: "CNAME", Name: plain(name)}
	for _, r := range replies {
		a := dcv.Answer{Server: r.server, Error: r.err, At: time.Now()}
		if r.target == "" {
			alias.Answers = append(alias.Answers, a)
			a.Values = r.values
			answers = append(answers, a)
			continue
		}
		a.Values = []string{plain(r.target)}
		alias.Answers, targets = append(alias.Answers, a), append(targets, r.target)
	}
	return answers, alias, targets
}

// chainError says why a chain of CNAMEs is not followed to the next names.
func chainError(step int, seen, next []string) string {
	switch {
	case len(next) == 0:
		return ""
	case slices.ContainsFunc(next, func(name string) bool { return slices.Contains(seen, name) }):
		return loop
	case step == maxChain, len(seen)+len(next) > maxChainNames:
		return tooLong
	}
	return ""
}

// proofs asks for the records of the ways, each once, and stops after a hit.
func (s *session) proofs(ways []dcv.Way) (findings []dcv.Finding, hit bool) {
	for i, w := range ways {
		same := func(other dcv.Way) bool { return other.Type == w.Type && other.Name == w.Name }
		if slices.ContainsFunc(ways[:i], same) {
			continue
		}
		f, _ := s.find(question{name: dns.CanonicalName(w.Name), kind: dns.StringToType[w.Type]})
		f.Name = w.Name
		findings = append(findings, f)
		for _, way := range ways {
			if same(way) && isHit(way, f) {
				return findings, true
			}
		}
	}
	return findings, false
}

// isHit reports whether a server has the proof, and none says that it is not there.
func isHit(w dcv.Way, f dcv.Finding) (hit bool) {
	for _, a := range f.Answers {
		if a.Definite() {
			if hit = proves(w, a.Values); !hit {
				return false
			}
		}
	}
	return hit && f.Error == ""
}

// proves reports whether values have the proof.
func proves(w dcv.Way, values []string) bool {
	if w.Type == "CNAME" {
		return slices.Contains(values, w.Target)
	}
	return slices.ContainsFunc(values, func(v string) bool { return dcv.ProvesTXT(v, w.Token) })
}
