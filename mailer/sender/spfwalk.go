package sender

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// The bounds of RFC 7208 4.6.4, beyond which a record is an error to receivers, and that of a walk.
const (
	mostLookups = 10
	mostVoids   = 2
	walkEnd     = 30 // look-ups
)

// A walk reads an SPF record with all that it includes.
type walk struct {
	dns      DNS
	lookups  int
	voids    int
	asked    []string       // domains whose records were read
	networks []netip.Prefix // that pass by a network of a record
	passes   bool           // some mechanism lets mail pass
	macros   bool           // some name depends on the mail, so it was not asked
	problem  string         // what makes the record an error
	unknown  string         // a question without an answer
}

// records returns the SPF records of a domain.
func (w *walk) records(domain string) (found []string, ok bool) {
	values, _, err := w.dns.Ask("TXT", domain)
	if err != nil {
		w.missed(domain, "TXT", err)
		return nil, false
	}
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return !isSPF(v) }), true
}

func (w *walk) missed(name, kind string, err error) {
	if w.unknown == "" {
		w.unknown = fmt.Sprintf("%s %s: %v", name, kind, err)
	}
}

func (w *walk) wrong(format string, args ...any) {
	if w.problem == "" {
		w.problem = fmt.Sprintf(format, args...)
	}
}

// follow reads the record of a domain that another one includes, or redirects to. path has the domains on the way.
func (w *walk) follow(domain string, path []string) {
	name := strings.ToLower(strings.TrimSuffix(domain, "."))
	switch {
	case slices.Contains(path, name):
		w.wrong("%s leads back to itself", strings.Join(append(path, name), ", "))
		return
	case w.lookups > walkEnd:
		return
	}
	found, ok := w.records(name)
	switch {
	case !ok:
	case len(found) == 0:
		w.voids++
		w.wrong("%s has no SPF record", name)
	case len(found) > 1:
		w.wrong("%s has %d SPF records, one is allowed", name, len(found))
	default:
		w.read(found[0], name, path)
	}
}

// read walks the terms of a domain's record.
func (w *walk) read(text, domain string, path []string) {
	w.asked = append(w.asked, domain)
	terms, problem := parseSPF(text)
	if problem != "" {
		w.wrong("%s: %s", domain, problem)
	}
	path = append(slices.Clip(path), domain)
	redirect := ""
	for _, t := range terms {
		w.passes = w.passes || t.qualifier == '+'
		switch t.name {
		case "all":
			return // what follows is never read
		case "redirect":
			if redirect != "" {
				w.wrong("%s redirects twice", domain)
			}
			redirect = t.value
		case "ip4", "ip6":
			if p, err := parseNetwork(t.name, t.value); err == nil && t.qualifier == '+' {
				w.networks = append(w.networks, p)
			}
		case "include", "a", "mx", "ptr", "exists":
			w.lookups++
			w.lookUp(t, domain, path)
		}
	}
	if redirect != "" {
		w.lookups++
		w.to(redirect, path)
	}
}

// to follows a name, unless it depends on the mail.
func (w *walk) to(name string, path []string) {
	if strings.Contains(name, "%") {
		w.macros = true
		return
	}
	w.follow(name, path)
}

// lookUp asks what a mechanism needs. Of a and mx it sees whether there is anything: addresses are not needed here.
func (w *walk) lookUp(t term, domain string, path []string) {
	name := t.value
	if name == "" {
		name = domain
	}
	switch {
	case t.name == "include":
		w.to(name, path)
	case strings.Contains(name, "%"):
		w.macros = true
	case w.lookups > walkEnd || t.name == "ptr" || t.name == "exists":
	default:
		kind := map[string]string{"a": "A", "mx": "MX"}[t.name]
		values, _, err := w.dns.Ask(kind, name)
		if err == nil && len(values) == 0 && kind == "A" {
			values, _, err = w.dns.Ask("AAAA", name)
		}
		switch {
		case err != nil:
			w.missed(name, kind, err)
		case len(values) == 0:
			w.voids++
		case kind == "MX" && len(values) > mostLookups:
			w.wrong("%s has more than %d MX records", name, mostLookups)
		}
	}
}

// spf reads the SPF record of the domain, and returns whether mail can pass by it. The envelope's sender is the address in
// From:, so what passes is aligned (RFC 7489 3.1.2).
func (e *examination) spf() can {
	w := &walk{dns: e.dns}
	found, ok := w.records(e.domain)
	switch {
	case !ok:
		e.say(Unknown, CheckSPF, "", "DNS did not answer for %s", w.unknown)
		return maybe
	case len(found) == 0:
		e.noSPF()
		return no
	case len(found) > 1:
		e.say(Warning, CheckSPF, txt(e.domain, merged(found)), "%s has %d SPF records, one is allowed: to receivers it has "+
			"none", e.domain, len(found))
		return no
	}
	w.read(found[0], e.domain, nil)
	return e.judgeSPF(w, found[0])
}

func (e *examination) noSPF() {
	include := "the name that your relay gives you"
	record := ""
	if e.sender.Include != "" {
		include = e.sender.Include
		record = txt(e.domain, "v=spf1 include:"+include+" ~all")
	}
	e.say(Warning, CheckSPF, record, "%s has no SPF record: it needs one that includes %s", e.domain, include)
}

func (e *examination) judgeSPF(w *walk, text string) (passes can) {
	before := len(e.lines)
	passes = yes
	switch {
	case w.problem != "":
		e.say(Warning, CheckSPF, "", "the SPF record is an error to receivers: %s", w.problem)
		passes = no
	case w.lookups > mostLookups:
		e.say(Warning, CheckSPF, "", "the SPF record needs %s look-ups, %d are allowed: to receivers it is an error; remove "+
			"includes of services that no longer send", lookupsOf(w), mostLookups)
		passes = maybe // what matches before the limit passes
	case w.voids > mostVoids:
		e.say(Warning, CheckSPF, "", "the SPF record names %d hosts that do not exist, %d are allowed", w.voids, mostVoids)
		passes = maybe
	case !w.passes && w.unknown == "":
		e.say(Warning, CheckSPF, "", "the SPF record lets no server send")
		passes = no
	}
	if !e.judgeAll(text) && passes == yes {
		passes = maybe
	}
	if missing := e.judgeInclude(w, text); missing {
		passes = no
	}
	switch {
	case w.unknown != "":
		e.say(Unknown, CheckSPF, "", "DNS did not answer for %s", w.unknown)
		passes = maybe
	case len(e.lines) == before:
		e.say(OK, CheckSPF, "", "the SPF record needs %s of %d look-ups", lookupsOf(w), mostLookups)
	}
	return passes
}

func lookupsOf(w *walk) string {
	if w.lookups > walkEnd {
		return fmt.Sprintf("more than %d", walkEnd)
	}
	return fmt.Sprint(w.lookups)
}

// judgeAll judges what the record says of all other servers, and reports whether that is sound.
func (e *examination) judgeAll(text string) bool {
	terms, _ := parseSPF(text)
	at := slices.IndexFunc(terms, func(t term) bool { return t.name == "all" })
	redirects := slices.ContainsFunc(terms, func(t term) bool { return t.name == "redirect" })
	switch {
	case at >= 0 && terms[at].qualifier == '+':
		words := strings.Fields(text)
		words[at+1] = "~all" // behind the version
		e.say(Warning, CheckSPF, txt(e.domain, strings.Join(words, " ")),
			"the SPF record ends with +all: everybody may send as %s", e.domain)
		return false
	case at >= 0 && at < len(terms)-1:
		e.say(Note, CheckSPF, "", "what follows %s in the SPF record is never read", terms[at].text)
	case at < 0 && !redirects:
		e.say(Note, CheckSPF, txt(e.domain, text+" ~all"), "the SPF record says nothing of other servers")
	}
	if slices.ContainsFunc(terms, func(t term) bool { return t.name == "ptr" }) {
		e.say(Note, CheckSPF, "", "the SPF record has ptr, which many receivers do not ask (RFC 7208 5.5)")
	}
	return true
}

// judgeInclude checks that the record has what the relay needs, and reports whether that is missing.
func (e *examination) judgeInclude(w *walk, text string) (missing bool) {
	include := strings.ToLower(strings.TrimSuffix(e.sender.Include, "."))
	switch {
	case include == "":
		e.say(Note, CheckSPF, "", "whether SPF lets the relay send is not known: set spf_include in smtp_config to the name "+
			"that the relay gives for SPF")
		return false
	case slices.Contains(w.asked, include), w.unknown != "", w.macros, w.lookups > walkEnd:
		return false
	}
	other := &walk{dns: e.dns}
	if other.follow(include, nil); other.unknown != "" {
		e.say(Unknown, CheckSPF, "", "DNS did not answer for %s", other.unknown)
		return false
	}
	if other.problem != "" {
		e.say(Warning, CheckSPF, "", "spf_include of smtp_config cannot be included: %s", other.problem)
		return false
	}
	if len(other.networks) > 0 && !slices.ContainsFunc(other.networks, func(p netip.Prefix) bool { return !w.covers(p) }) {
		e.say(Note, CheckSPF, txt(e.domain, withInclude(text, include)), "the SPF record has the networks of %s in place of "+
			"the include: valid, until they change", include)
		return false
	}
	e.say(Warning, CheckSPF, txt(e.domain, withInclude(text, include)), "the SPF record does not include %s, by which "+
		"the relay sends", include)
	return true
}

// covers reports whether a network is inside one that passes.
func (w *walk) covers(p netip.Prefix) bool {
	return slices.ContainsFunc(w.networks, func(q netip.Prefix) bool {
		return q.Bits() <= p.Bits() && q.Contains(p.Addr())
	})
}
