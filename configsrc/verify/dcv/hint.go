package dcv

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

// A hinter finds one thing that is wrong. It returns a sentence and the lines to set; "": all is well.
type hinter func(*sight) (message, line string)

// hinters are all hints, in the order in which they are shown.
var hinters = []struct {
	code string
	find hinter
}{
	{"NAME_TOO_LONG", nameTooLong},
	{"NAME_DOUBLED", nameDoubled},
	{"QUOTED_TWICE", quotedTwice},
	{"WRONG_LABEL", wrongLabel},
	{"AT_THE_NAME", atTheName},
	{"VALUE_SPOILT", valueSpoilt},
	{"OTHER_TOKEN", otherToken},
	{"OTHER_TOKEN", leftOver},
	{"NEGATIVE_CACHED", negativeCached},
	{"DNSSEC_BROKEN", dnssecBroken},
	{"LAME_SERVER", lameServer},
	{"CNAME_AT_APEX", cnameAtApex},
	{"PROXIED", proxied},
	{"AAAA_ELSEWHERE", aaaaElsewhere},
	{"CAA_FORBIDS", caaForbids},
}

// A sight is what hinters look at.
type sight struct {
	st      *State
	policy  Policy
	facts   *Facts // of the latest check
	ways    []Way
	tooLong []Way
	own     map[string]Scope // the subject's tokens
	proven  bool             // or trusted: nothing needs to be set as a proof
}

// hints returns what is wrong with a subject, of which st is known.
func hints(st *State, p Policy) []catalog.VerificationHint {
	s := &sight{st: st, policy: p, facts: &st.Last}
	s.ways, s.tooLong = allWays(st.Subject, p)
	s.own = ownTokens(st.Subject, slices.Concat(s.tooLong, s.ways))
	v, _, _ := judge(s.ways, s.facts.Proofs)
	s.proven = v == hit && !st.leftOver() || st.Ownership.State == Trusted || st.Ownership.State == Proven
	found := []catalog.VerificationHint{}
	for _, h := range hinters {
		if message, line := h.find(s); message != "" {
			found = append(found, catalog.VerificationHint{Code: h.code, Message: message, Line: line})
		}
	}
	return found
}

// recordLine is the line of the first record that proves the subject; "": there is none.
func (s *sight) recordLine() string {
	if len(s.ways) == 0 {
		return ""
	}
	return s.ways[0].line()
}

// zone is the name of the zone that has the name, or of the name itself where it is not known.
func (s *sight) zone() string {
	if s.facts.Zone.Apex != "" {
		return s.facts.Zone.Apex
	}
	return strings.TrimPrefix(s.st.Subject.Name, "*.")
}

func nameTooLong(s *sight) (message, line string) {
	if s.proven || len(s.tooLong) == 0 || s.tooLong[0].Type != "TXT" || s.tooLong[0].Scope == ScopeDomain {
		return "", ""
	}
	i := slices.IndexFunc(s.ways, func(w Way) bool { return w.Scope == ScopeDomain })
	if i < 0 {
		return "The name is so long that DNS has no room for a record that proves it. Use a shorter one.", ""
	}
	return "The name is so long that DNS has no room for its own record. A record for a domain above it proves it too.",
		s.ways[i].line()
}

func nameDoubled(s *sight) (message, line string) {
	if s.proven || len(s.ways) == 0 || s.provenBy(s.facts.Zone.Doubled) == nil {
		return "", ""
	}
	name := s.ways[0].Name
	return fmt.Sprintf("The record stands at %s.%s: the form adds %s by itself. Enter the name without it, as %s.",
		name, s.zone(), s.zone(), strings.TrimSuffix(name, "."+s.zone())), s.recordLine()
}

// provenBy returns the TXT way that one of the values proves; nil: none.
func (s *sight) provenBy(values []string) *Way {
	for i := range s.ways {
		if w := &s.ways[i]; w.Type == "TXT" && w.proves(values) {
			return w
		}
	}
	return nil
}

// txtValues calls visit for every value that a server has for a TXT record of a way, until visit returns true.
func (s *sight) txtValues(visit func(w *Way, value string) bool) bool {
	for i := range s.ways {
		w := &s.ways[i]
		f := find(s.facts.Proofs, w.Type, w.Name)
		if f == nil || w.Type != "TXT" {
			continue
		}
		for j := range f.Answers {
			for _, value := range f.Answers[j].Values {
				if visit(w, value) {
					return true
				}
			}
		}
	}
	return false
}

// unquote takes out of a TXT value what forms and copying add to it.
var unquote = strings.NewReplacer(`"`, " ", `\`, " ", "“", " ", "”", " ", "„", " ", "'", " ")

func quotedTwice(s *sight) (message, line string) {
	s.txtValues(func(w *Way, value string) bool {
		bare := unquote.Replace(value)
		if bare == value || !ProvesTXT(bare, w.Token) {
			return false
		}
		message = fmt.Sprintf("The value of %s has quotation marks of its own. Enter it without them: the form adds them.",
			w.Name)
		line = w.line()
		return true
	})
	return message, line
}

func wrongLabel(s *sight) (message, line string) {
	w, token := s.strayToken(func(token string) bool { return s.own[token] != "" })
	if w == nil {
		stray, way := s.strayAt(true)
		if way == nil {
			return "", ""
		}
		return fmt.Sprintf("The record stands at %s, which is the label of another scope.", stray.Name), way.line()
	}
	return fmt.Sprintf("The record at %s has a token of the scope %q, which has its own label.", w.Name, s.own[token]),
		s.recordLine()
}

func otherToken(s *sight) (message, line string) {
	w, _ := s.strayToken(func(token string) bool { return s.own[token] == "" && isToken(token) })
	if w == nil {
		return s.otherCNAME()
	}
	return fmt.Sprintf("The record at %s has a token of another project, or of a name or project that is gone.", w.Name),
		w.line()
}

func leftOver(s *sight) (message, line string) {
	v, _, by := judge(s.ways, s.facts.Proofs)
	if s.proven || v != hit {
		return "", ""
	}
	return fmt.Sprintf("The record at %s may have been left over by a project that was removed and had the same uuid. "+
		"Remove it, wait until a check has found it gone, and set it again.", by.Name), by.line()
}

// strayToken returns a TXT way that servers answer with a token of a kind that does not prove it, unless there is a proof.
func (s *sight) strayToken(is func(token string) bool) (way *Way, stray string) {
	if s.proven {
		return nil, ""
	}
	s.txtValues(func(w *Way, value string) bool {
		for _, field := range fields(value) {
			if token, ok := strings.CutPrefix(field, "token="); ok && token != w.Token && is(token) {
				way, stray = w, token
				return true
			}
		}
		return false
	})
	return way, stray
}

// ownTokens returns the tokens of the subject's name and of the domains above it, each with its scope.
func ownTokens(s Subject, ways []Way) map[string]Scope {
	name := strings.TrimPrefix(s.Name, "*.")
	tokens := map[string]Scope{}
	for _, scope := range []Scope{ScopeExact, ScopeWildcard} {
		tokens[Token(s.Project, scope, name)] = scope
	}
	for _, w := range ways {
		tokens[w.Token] = w.Scope
	}
	return tokens
}

// otherCNAME looks for a CNAME to a target with another token.
func (s *sight) otherCNAME() (message, line string) {
	if s.proven {
		return "", ""
	}
	for i := range s.ways {
		w := &s.ways[i]
		f := find(s.facts.Proofs, w.Type, w.Name)
		if f == nil || w.Type != "CNAME" {
			continue
		}
		for j := range f.Answers {
			for _, value := range f.Answers[j].Values {
				token, host, _ := strings.Cut(canonical(value), ".")
				if token+"."+host != w.Target && w.Token+"."+host == w.Target && isToken(token) {
					return fmt.Sprintf("The CNAME of %s has a token of another project, or of a project that is gone.",
						w.Name), w.line()
				}
			}
		}
	}
	return "", ""
}

// isToken reports whether a text has the form of a token.
func isToken(text string) bool {
	return len(text) == tokenLen && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

func negativeCached(s *sight) (message, line string) {
	z := &s.facts.Zone
	if len(s.ways) == 0 || !z.NegativeUntil.After(s.facts.At) || !z.Resolver.Definite() {
		return "", ""
	}
	w := &s.ways[0]
	with, without, _ := count(w, s.facts.Proofs)
	if with == 0 || without > 0 || w.proves(z.Resolver.Values) {
		return "", ""
	}
	return fmt.Sprintf("The record is in place. A resolver remembers its absence until %s; nothing is left to do.",
		z.NegativeUntil.UTC().Format(time.RFC3339)), w.line()
}

func dnssecBroken(s *sight) (message, line string) {
	if !s.facts.Zone.BrokenDNSSEC {
		return "", ""
	}
	return fmt.Sprintf("The signatures (DNSSEC) of %s are broken, so that resolvers refuse its records. "+
		"Have the zone signed again, or take its DS record out at the registrar.", s.zone()), s.zone() + ". DS"
}

func lameServer(s *sight) (message, line string) {
	var lame, lines []string
	for _, findings := range [][]Finding{s.facts.Proofs, s.facts.Pointing.Findings} {
		for i := range findings {
			for _, a := range findings[i].Answers {
				if (a.Error == Lame || a.Error == Refused) && !slices.Contains(lame, a.Server) {
					lame = append(lame, a.Server)
					lines = append(lines, record{s.zone(), "NS", canonical(a.Server)}.line())
				}
			}
		}
	}
	if lame == nil {
		return "", ""
	}
	return fmt.Sprintf("%s is named as a server of the zone and does not answer for it. Set it up, or take it out of the "+
		"zone and out of the registrar's list.", strings.Join(lame, ", ")), strings.Join(lines, "\n")
}

func cnameAtApex(s *sight) (message, line string) {
	if !s.facts.Zone.ApexCNAME {
		return "", ""
	}
	name := s.st.Subject.Name
	records := addressRecords(name, s.policy, s.facts)
	return fmt.Sprintf("%s is the top of its zone, where DNS has no CNAME. Use an ALIAS record, or addresses.", name),
		lines(records)
}

func lines(records []record) string {
	lines := make([]string, len(records))
	for i, r := range records {
		lines[i] = r.line()
	}
	return strings.Join(lines, "\n")
}

func proxied(s *sight) (message, line string) {
	state := s.st.Pointing.State
	if state == Here || state == "" {
		return "", ""
	}
	set := lines(pointingRecords(s.st.Subject, s.policy, s.facts))
	for _, addr := range s.facts.Pointing.Addresses {
		if net := cdnOf(addr); net != nil && !s.policy.isTarget(addr, s.facts.Pointing.TargetAddresses) {
			return fmt.Sprintf("%s is an address of %s, which hides where the name leads: %s.", addr, net.name, net.remedy), set
		}
	}
	for _, server := range s.facts.Zone.NameServers {
		if net := cdnOfServer(server); net != nil && state == Elsewhere {
			return fmt.Sprintf("The zone is at %s. If it is proxied there, it does not point here: %s.", net.name, net.remedy),
				set
		}
	}
	return "", ""
}

func aaaaElsewhere(s *sight) (message, line string) {
	f := &s.facts.Pointing
	here := func(addr netip.Addr) bool { return s.policy.isTarget(addr, f.TargetAddresses) }
	v4, v4Here := 0, 0
	var wrong []string
	for _, addr := range f.Addresses {
		switch addr = addr.Unmap(); {
		case addr.Is4():
			v4++
			if here(addr) {
				v4Here++
			}
		case !here(addr):
			wrong = append(wrong, addr.String())
		}
	}
	if v4 == 0 || v4Here < v4 || wrong == nil || f.TargetError != "" {
		return "", ""
	}
	remedy, name := "Take out the AAAA record", s.st.Subject.Name
	var set []record
	for _, r := range addressRecords(name, s.policy, s.facts) {
		if r.kind == "AAAA" {
			set = append(set, r)
			remedy = "Set the AAAA record to the address below"
		}
	}
	if set == nil {
		for _, addr := range wrong {
			set = append(set, record{name, "AAAA", addr})
		}
		remedy += " below"
	}
	return fmt.Sprintf("The IPv4 address is here, the IPv6 address %s is not, and many clients prefer it. %s.",
		strings.Join(wrong, ", "), remedy), lines(set)
}

func caaForbids(s *sight) (message, line string) {
	z := &s.facts.Zone
	if !z.CAAKnown || len(z.CAA) == 0 || len(s.policy.CAs) == 0 {
		return "", ""
	}
	for _, value := range z.CAA {
		issuer, _, _ := strings.Cut(value, ";")
		if slices.Contains(s.policy.CAs, canonical(strings.Trim(issuer, blanks))) {
			return "", ""
		}
	}
	name := z.CAAName
	if name == "" {
		name = s.zone()
	}
	return fmt.Sprintf("The CAA records of %s forbid certificates of %s.", name, strings.Join(s.policy.CAs, " and ")),
		fmt.Sprintf("%s. CAA 0 issue %q", name, s.policy.CAs[0])
}
