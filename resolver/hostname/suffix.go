package hostname

import (
	"strings"

	"golang.org/x/net/publicsuffix"
)

// PublicSuffix reports whether a canonical name is a public suffix, such as co.uk, or a wildcard directly below one.
// listed is false if only the list's default rule applies, by which every single label is a public suffix: inside a
// network, localhost and *.internal are ordinary names.
func PublicSuffix(name string) (is, listed bool) {
	base, wildcard := strings.CutPrefix(name, "*.")
	names := []string{base}
	if wildcard {
		names = append(names, "a."+base) // the list may have the rule *.base
	}
	for _, name := range names {
		if suffix, icann := publicsuffix.PublicSuffix(name); suffix == name {
			return true, icann || strings.Contains(suffix, ".")
		}
	}
	return false, false
}

// RegistrableDomain returns the part of a canonical name that somebody has registered below a public suffix; "" if the
// name is a public suffix itself. A single label that is not listed counts as one.
func RegistrableDomain(name string) string {
	domain, err := publicsuffix.EffectiveTLDPlusOne(name)
	if err != nil {
		return ""
	}
	return domain
}
