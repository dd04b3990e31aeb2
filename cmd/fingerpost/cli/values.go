package cli

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

// NamesNothing reports whether the list of a flag is empty or contains an empty name, as an unset variable makes it. A
// flag that was left out is nil.
func NamesNothing(list []string) bool {
	return list != nil && len(list) == 0 || slices.Contains(list, "")
}

// ParseLifetime parses a length of time that is not zero, see catalog.ParseSpan.
func ParseLifetime(s string) (time.Duration, error) {
	d, err := catalog.ParseSpan(s)
	if err == nil && d == 0 {
		err = fmt.Errorf("%q must be a length of time such as 90d, 2w, 12h or 30m", s)
	}
	return d, err
}

// ParseNetworks parses the networks of a flag, and reports the problem of each.
func ParseNetworks(flag string, texts []string) (networks []netip.Prefix, bad []string) {
	for _, text := range texts {
		network, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err == nil && network == network.Masked() {
			networks = append(networks, network)
			continue
		}
		problem := "is no network in CIDR form such as 10.0.0.0/8 or fd00::/8"
		if err == nil {
			problem = fmt.Sprintf("has bits beyond its length: did you mean %s?", network.Masked())
		} else if a, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil && a.Zone() == "" {
			problem = fmt.Sprintf("is an address: did you mean %s/%d?", a, a.BitLen())
		}
		bad = append(bad, fmt.Sprintf("%s: %q %s", flag, text, problem))
	}
	return networks, bad
}
