package catalog

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"fingerpost/resolver/hostname"
)

// An HTTPAllow says to which addresses an attribute may lead with http. Everything else needs https.
type HTTPAllow struct {
	Networks []netip.Prefix
	// Unsure says that the networks of the service are not known: an address outside of Networks is a warning.
	Unsure bool
}

// Allows are the HTTPAllow of each attribute with the address of another service. Nil: http to any literal address is
// right, for values that another node has accepted.
type Allows struct {
	Webhooks *HTTPAllow // --webhook-allow
	KeySets  *HTTPAllow // --jwks-allow
	Logins   *HTTPAllow // --login-allow
	// NoPublicURL says that the service has no --public-url: a template with a category is a warning. False also where that
	// is not known.
	NoPublicURL bool
}

// ParsePublicURL returns the address at which browsers and recipients of mail find the service as scheme and host, without
// the port that the scheme has anyway. wrong says what is wrong with it, "" for nothing.
func ParsePublicURL(text string) (address, wrong string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Opaque != "" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		strings.Trim(u.Path, "/") != "":
		return "", "must be an address alone, such as https://config.acme.example"
	case u.Scheme == "http" && isLoopback(u.Hostname()):
	case u.Scheme != "https":
		return "", "must begin with https: http is for this machine alone, such as http://127.0.0.1:8080"
	}
	if _, err := hostname.Parse(u.Hostname()); err != nil {
		if _, err := netip.ParseAddr(u.Hostname()); err != nil {
			return "", "must have a host name or an IP address"
		}
	}
	port := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]
	return u.Scheme + "://" + strings.TrimSuffix(strings.ToLower(u.Host), port), checkPort(u)
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// All points to each of them.
func (a *Allows) All() []**HTTPAllow { return []**HTTPAllow{&a.Webhooks, &a.KeySets, &a.Logins} }

// OrUnsure returns a with an unsure HTTPAllow where a has none.
func (a Allows) OrUnsure() Allows {
	for _, allow := range a.All() {
		if *allow == nil {
			*allow = &HTTPAllow{Unsure: true}
		}
	}
	return a
}

// List returns the networks; a may be nil.
func (a *HTTPAllow) List() []netip.Prefix {
	if a == nil {
		return nil
	}
	return a.Networks
}

func (a *HTTPAllow) allows(addr netip.Addr) bool {
	return slices.ContainsFunc(a.Networks, func(p netip.Prefix) bool {
		return p.Contains(addr) || p.Contains(addr.Unmap())
	})
}

const maxURLBytes = 2048

// A urlRule checks the address of another service, which the service connects to.
type urlRule struct {
	field   string
	flag    string // names the networks to which http is right
	example string
	noUser  string // why it has no user and no password
}

// check never quotes the address, which may be a secret.
func (r *urlRule) check(ps *Problems, text string, allow *HTTPAllow) {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.Scheme != "https" && u.Scheme != "http" ||
		strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		ps.Addf(r.field, "must be an address such as %s", r.example)
		return
	}
	if len(text) > maxURLBytes {
		ps.Addf(r.field, "has %d bytes, %d are allowed", len(text), maxURLBytes)
	}
	if u.User != nil {
		ps.Addf(r.field, "must not have a user or a password: %s", r.noUser)
	}
	if strings.Contains(text, "#") {
		ps.Addf(r.field, `must not have a "#": what follows one is never sent`)
	}
	if msg := checkPort(u); msg != "" {
		ps.Addf(r.field, "%s", msg)
	}
	addr, err := netip.ParseAddr(u.Hostname())
	switch literal := err == nil; {
	case !literal:
		if _, err := hostname.Parse(u.Hostname()); err != nil {
			ps.Addf(r.field, "must have a host name or an IP address: %v", err)
		} else if u.Scheme == "http" {
			ps.Addf(r.field, "must begin with https: http is for an IP address in a network that %s names", r.flag)
		}
	case u.Scheme == "https" || allow == nil || allow.allows(addr):
	case allow.Unsure:
		ps.Warnf(r.field, "begins with http: the service accepts that if its %s names a network with the address", r.flag)
	default:
		ps.Addf(r.field, "must begin with https: no %s names a network with this address", r.flag)
	}
}

func checkPort(u *url.URL) string {
	port := u.Port()
	if host := u.Host; port == "" && strings.HasSuffix(host, ":") {
		return "has a colon and no port"
	}
	if _, err := netip.ParseAddrPort("0.0.0.0:" + port); port != "" && err != nil || port == "0" {
		return "must have a port from 1 to 65535"
	}
	return ""
}
