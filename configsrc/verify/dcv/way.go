package dcv

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
)

// maxAncestors bounds the questions about a name of many labels: the name itself and those next to the registrable
// domain are asked.
const maxAncestors = 8

// labels has the first label of the name of a TXT record, for each scope.
var labels = map[Scope]string{
	ScopeExact:    "_fingerpost-challenge.",
	ScopeWildcard: "_fingerpost-wildcard-challenge.",
	ScopeDomain:   "_fingerpost-domain-challenge.",
}

// checkLabel is the label below a wildcard that stands for all of its names.
const checkLabel = "fingerpost-check."

// tokenLen gives 130 bits, and fits into a label.
const tokenLen = 26

// Token returns the token by which a record proves that a name, canonical and without "*.", is the project's. It depends
// on nothing else, so that everybody can compute it (configsrc/verify/README.md, Proofs).
func Token(project catalog.UUID, scope Scope, name string) string {
	sum := sha256.Sum256([]byte("fingerpost-dcv-v1\n" + project.String() + "\n" + string(scope) + "\n" + name))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))[:tokenLen]
}

// Ways returns the records that prove s, of which one is enough, in the order in which they are shown: the one for the
// name alone, CNAMEs, and those for the name or an ancestor with everything below. Records with a name that is too long
// for DNS are not among them, so there may be none.
func Ways(s Subject, p Policy) []Way {
	ways, _ := allWays(s, p)
	return ways
}

// allWays also returns the ways whose record has too long a name.
func allWays(s Subject, p Policy) (ways, tooLong []Way) {
	add := func(w Way) {
		if len(w.Name) > hostname.MaxLen || len(w.Target) > hostname.MaxLen {
			tooLong = append(tooLong, w)
		} else {
			ways = append(ways, w)
		}
	}
	txt := func(scope Scope, name string) {
		add(Way{Scope: scope, Type: "TXT", Name: labels[scope] + name, Token: Token(s.Project, scope, name)})
	}
	name, wildcard := strings.CutPrefix(s.Name, "*.")
	if wildcard {
		txt(ScopeWildcard, name)
	} else {
		txt(ScopeExact, name)
		token := Token(s.Project, ScopeExact, name)
		for _, host := range p.Hosts {
			add(Way{Scope: ScopeExact, Type: "CNAME", Name: name, Token: token, Target: token + "." + host})
		}
	}
	for _, ancestor := range ancestors(name) {
		txt(ScopeDomain, ancestor)
	}
	return ways, tooLong
}

// ancestors returns the name and the names above it, up to the registrable domain: nobody proves a public suffix.
func ancestors(name string) (names []string) {
	top := hostname.RegistrableDomain(name)
	if top == "" {
		return nil
	}
	for names = []string{name}; name != top; names = append(names, name) {
		_, name, _ = strings.Cut(name, ".")
	}
	if more := len(names) - maxAncestors; more > 0 {
		names = append(names[:1], names[1+more:]...)
	}
	return names
}

// PointingName returns the name whose addresses and certificate are checked. It is "" for a wildcard with so long a name
// that there is none.
func PointingName(s Subject) string {
	name, wildcard := strings.CutPrefix(s.Name, "*.")
	if wildcard {
		name = checkLabel + name
	}
	if len(name) > hostname.MaxLen {
		return ""
	}
	return name
}
