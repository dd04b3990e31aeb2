package sender

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// A term is a part of an SPF record (RFC 7208 4.6.1).
type term struct {
	text      string
	qualifier byte   // '+', '-', '~' or '?'; 0 of a modifier
	name      string // of the mechanism or modifier, in lower case
	value     string // what follows the colon, the slash or the equals sign
	slash     string // from the slash on, where a mechanism has one
}

var (
	mechanism = regexp.MustCompile(`^([-+~?]?)([A-Za-z][A-Za-z0-9._-]*)(?::([^/]*(?:%\{[^}]*\}[^/]*)*))?((?:/\d{1,3})?(?://\d{1,3})?)$`)
	network   = regexp.MustCompile(`^([-+~?]?)(ip4|ip6):(.+)$`)
	modifier  = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9._-]*)=(.*)$`)
)

// needsDomain are the mechanisms that are nothing without a domain.
var needsDomain = map[string]bool{"all": false, "a": false, "mx": false, "ptr": false, "include": true, "exists": true,
	"ip4": true, "ip6": true}

// isSPF reports whether a TXT record is one of SPF.
func isSPF(text string) bool {
	version, _, _ := strings.Cut(text, " ")
	return strings.EqualFold(version, "v=spf1")
}

// parseSPF splits a record into its terms. problem says what receivers do not understand: to them the whole record is
// none.
func parseSPF(text string) (terms []term, problem string) {
	for _, word := range strings.Fields(text)[1:] {
		t, wrong := parseTerm(word)
		if wrong != "" && problem == "" {
			problem = wrong
		}
		terms = append(terms, t)
	}
	return terms, problem
}

func parseTerm(word string) (t term, wrong string) {
	t = term{text: word, qualifier: '+'}
	lower := strings.ToLower(word)
	if m := network.FindStringSubmatch(lower); m != nil {
		t.name, t.value = m[2], m[3]
		if m[1] != "" {
			t.qualifier = m[1][0]
		}
		if _, err := parseNetwork(t.name, t.value); err != nil {
			return t, fmt.Sprintf("%q is no %s network", word, strings.ToUpper(t.name))
		}
		return t, ""
	}
	if m := mechanism.FindStringSubmatch(word); m != nil {
		t.name, t.value, t.slash = strings.ToLower(m[2]), m[3], m[4]
		if m[1] != "" {
			t.qualifier = m[1][0]
		}
		switch needs, known := needsDomain[t.name]; {
		case !known:
			return t, fmt.Sprintf("%q is no mechanism of SPF", word)
		case needs && t.value == "" || strings.Contains(word, ":") && t.value == "":
			return t, fmt.Sprintf("%q lacks what follows the colon", word)
		case t.name == "all" && t.value+t.slash != "":
			return t, fmt.Sprintf("%q: all stands alone", word)
		}
		return t, ""
	}
	if m := modifier.FindStringSubmatch(word); m != nil {
		t.qualifier, t.name, t.value = 0, strings.ToLower(m[1]), m[2]
		if t.value == "" && (t.name == "redirect" || t.name == "exp") {
			return t, fmt.Sprintf("%q lacks what follows the equals sign", word)
		}
		return t, ""
	}
	return t, fmt.Sprintf("%q is neither a mechanism nor a modifier of SPF", word)
}

func parseNetwork(kind, text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		var a netip.Addr
		if a, err = netip.ParseAddr(text); err == nil {
			p = netip.PrefixFrom(a, a.BitLen())
		}
	}
	if err == nil && p.Addr().Is4() != (kind == "ip4") || err == nil && p.Addr().Zone() != "" {
		err = fmt.Errorf("is not an address of %s", kind)
	}
	return p.Masked(), err
}

// withInclude returns the record with an include more, before what decides about all others.
func withInclude(text, include string) string {
	words := strings.Fields(text)
	at := len(words)
	for i, word := range words {
		if t, _ := parseTerm(word); i > 0 && (t.name == "all" || t.name == "redirect") {
			at = i
			break
		}
	}
	words = append(words[:at:at], append([]string{"include:" + include}, words[at:]...)...)
	return strings.Join(words, " ")
}

// merged returns one record for several: all of their terms, and the strictest all.
func merged(texts []string) string {
	words, seen, all := []string{"v=spf1"}, map[string]bool{}, "?all"
	strict := map[byte]int{'+': 0, '?': 1, '~': 2, '-': 3}
	for _, text := range texts {
		for _, word := range strings.Fields(text)[1:] {
			t, _ := parseTerm(word)
			switch {
			case t.name == "all" && strict[t.qualifier] >= strict[all[0]]:
				all = string(t.qualifier) + "all"
			case t.name == "all", seen[strings.ToLower(word)]:
			default:
				seen[strings.ToLower(word)] = true
				words = append(words, word)
			}
		}
	}
	return strings.Join(append(words, all), " ")
}
