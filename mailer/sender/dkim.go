package sender

import (
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"slices"
	"strings"
)

// dkim checks the keys of the relay's selectors, and returns whether mail can be signed by one.
func (e *examination) dkim() can {
	if len(e.sender.Selectors) == 0 {
		e.say(Note, CheckDKIM, "", "whether the relay can sign for %s is not known: set dkim_selectors in smtp_config to "+
			"the selectors that the relay gives for DKIM", e.domain)
		return maybe
	}
	can, edwards, others := no, 0, 0
	for _, selector := range e.sender.Selectors {
		signs, kind := e.selector(selector)
		if signs == yes || signs == maybe && can == no {
			can = signs
		}
		if signs != no && kind == "ed25519" {
			edwards++
		} else if signs != no {
			others++
		}
	}
	if edwards > 0 && others == 0 {
		e.say(Note, CheckDKIM, "", "all keys are of ed25519, which some receivers cannot read: a key of RSA next to them is "+
			"read by all")
	}
	return can
}

// oneClick says what the relay must sign. DNS does not tell whether the relay does: a received mail does, see Received.
func (e *examination) oneClick() {
	if e.sender.OneClick {
		e.say(Note, CheckDKIM, "", "mail of a category can be unsubscribed from with one click only if the relay's DKIM "+
			"signature covers %s and %s: send yourself one, and give its headers to this check", unsubscribe, unsubscribePost)
	}
}

// selector checks the key of one.
func (e *examination) selector(selector string) (signs can, kind string) {
	name := selector + "._domainkey." + e.domain
	values, _, err := e.dns.Ask("TXT", name)
	if err != nil {
		e.unknown(CheckDKIM, "TXT", name, err)
		return maybe, ""
	}
	if len(values) == 0 {
		e.say(Warning, CheckDKIM, name+`. TXT "v=DKIM1; k=rsa; p=…"`, "the DKIM key %s is missing: publish the record that the "+
			"relay gives for this selector", selector)
		return no, ""
	}
	if len(values) > 1 {
		e.say(Warning, CheckDKIM, "", "there are %d records at %s: which of them receivers take is undefined", len(values),
			name)
		return no, ""
	}
	return e.key(selector, name, values[0])
}

// key judges a key record (RFC 6376 3.6.1).
func (e *examination) key(selector, name, text string) (signs can, kind string) {
	bad := func(format string, args ...any) (can, string) {
		e.say(Warning, CheckDKIM, "", "the DKIM key "+selector+" "+format, args...)
		return no, kind
	}
	tags, first, ok := parseTags(text)
	p, has := tags["p"]
	p = strings.Join(strings.Fields(p), "")
	hashes, services := tags["h"], tags["s"]
	switch version, said := tags["v"]; {
	case !ok || !has:
		return bad("cannot be read: %q", cut(text))
	case said && (version != "DKIM1" || first != "v"):
		return bad("does not begin with v=DKIM1")
	case p == "":
		return bad("is revoked: its p= is empty")
	case hashes != "" && !slices.Contains(splitTrim(hashes), "sha256"):
		return bad("allows no sha256, which is all that receivers take")
	case services != "" && !slices.Contains(splitTrim(services), "*") && !slices.Contains(splitTrim(services), "email"):
		return bad("is not for mail (s=%s)", services)
	}
	if tags["t"] != "" && slices.Contains(splitTrim(tags["t"]), "y") {
		e.say(Note, CheckDKIM, txt(name, withoutTest(text)), "the DKIM key %s is marked as a test (t=y): some receivers "+
			"ignore its signatures", selector)
	}
	switch kind = strings.ToLower(tags["k"]); kind {
	case "", "rsa":
		return e.rsaKey(selector, p)
	case "ed25519":
		if raw, err := base64.StdEncoding.DecodeString(p); err != nil || len(raw) != ed25519.PublicKeySize {
			return bad("is no key of ed25519")
		}
		e.say(OK, CheckDKIM, "", "the DKIM key %s is good", selector)
		return yes, kind
	}
	return bad("is of a kind that receivers do not know: %q", cut(kind))
}

func (e *examination) rsaKey(selector, p string) (can, string) {
	bits := rsaBits(p)
	switch {
	case bits == 0:
		e.say(Warning, CheckDKIM, "", "the DKIM key %s is no RSA key: it may be cut off, or have blanks or quotes inside",
			selector)
		return no, "rsa"
	case bits < 1024:
		e.say(Warning, CheckDKIM, "", "the DKIM key %s has %d bits: receivers take no signature with less than 1024",
			selector, bits)
		return no, "rsa"
	case bits < 2048:
		e.say(Note, CheckDKIM, "", "the DKIM key %s has %d bits: 2048 are usual", selector, bits)
	default:
		e.say(OK, CheckDKIM, "", "the DKIM key %s is good: %d bits", selector, bits)
	}
	return yes, "rsa"
}

// rsaBits returns the size of an RSA key, in either of the forms that are in use; 0 if it is none.
func rsaBits(p string) int {
	raw, err := base64.StdEncoding.DecodeString(p)
	if err != nil {
		return 0
	}
	if key, err := x509.ParsePKIXPublicKey(raw); err == nil {
		if key, is := key.(*rsa.PublicKey); is {
			return key.N.BitLen()
		}
		return 0
	}
	if key, err := x509.ParsePKCS1PublicKey(raw); err == nil {
		return key.N.BitLen()
	}
	return 0
}

// splitTrim splits a list at colons.
func splitTrim(list string) (parts []string) {
	for part := range strings.SplitSeq(list, ":") {
		parts = append(parts, strings.ToLower(strings.TrimSpace(part)))
	}
	return parts
}

// withoutTest returns a key record without its mark as a test.
func withoutTest(text string) string {
	var kept []string
	for part := range strings.SplitSeq(text, ";") {
		if name, _, _ := strings.Cut(part, "="); strings.TrimSpace(name) != "t" && strings.TrimSpace(part) != "" {
			kept = append(kept, strings.TrimSpace(part))
		}
	}
	return strings.Join(kept, "; ")
}

// cut shortens a text of DNS for a message.
func cut(text string) string {
	if len(text) > 80 {
		return strings.ToValidUTF8(text[:80], "") + "…"
	}
	return text
}
