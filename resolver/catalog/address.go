package catalog

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"fingerpost/resolver/hostname"
)

// MaxAddressLen is the longest mail address, in octets of its canonical form (RFC 5321 4.5.3.1.3, without the
// brackets).
const MaxAddressLen = 254

const (
	maxLocalLen = 64 // RFC 5321 4.5.3.1.1
	oneAddress  = "one bare address such as hello@acme.example"
)

// ParseAddress returns the canonical form of one bare mail address (RFC 5321 Mailbox): all ASCII, the part before the @
// unchanged, the domain in the form of hostname.Parse. It contains nothing special to SMTP or to a header. An error completes
// the sentence "the address …" and does not quote the address.
//
// Some providers, such as docomo, have given out addresses with two dots in a row or a dot before the @. SMTP and mail
// headers have them in quotes (RFC 5321 4.1.2, RFC 5322 3.4.1), so that is their canonical form; they may be given with
// quotes or without.
func ParseAddress(s string) (string, error) {
	if err := checkAddressText(s); err != nil {
		return "", err
	}
	at := strings.LastIndexByte(s, '@')
	if at < 0 {
		return "", errors.New("has no @: it must be " + oneAddress)
	}
	local := s[:at]
	bare := strings.TrimSuffix(strings.TrimPrefix(local, `"`), `"`)
	if strings.HasSuffix(bare, ".") || strings.Contains(bare, "..") {
		if local != bare && local != `"`+bare+`"` {
			return "", errors.New("has one quote before the @: it must be " + oneAddress)
		}
		local = `"` + bare + `"`
	} else {
		bare = local // refused if it has quotes
	}
	if err := checkLocal(bare); err != nil {
		return "", err
	}
	domain := s[at+1:]
	if strings.TrimRight(domain, ".\u3002\uff0e\uff61") != domain {
		return "", errors.New("has a dot at its end: it must be " + oneAddress)
	}
	host, err := hostname.Parse(domain)
	if err != nil {
		return "", fmt.Errorf("has a bad domain after the @: it %w", err)
	}
	switch n := len(local) + 1 + len(host); {
	case len(s) > MaxAddressLen:
		return "", fmt.Errorf("has %d bytes, %d are allowed", len(s), MaxAddressLen)
	case n > MaxAddressLen:
		return "", fmt.Errorf("has %d bytes with its domain as A-labels, %d are allowed", n, MaxAddressLen)
	}
	return local + "@" + host, nil
}

// CheckAddress returns what is wrong with one bare mail address, see ParseAddress, or "".
func CheckAddress(s string) string {
	if _, err := ParseAddress(s); err != nil {
		return err.Error()
	}
	return ""
}

// checkAddressText finds the reason why s is not one address, for the message.
func checkAddressText(s string) error {
	switch {
	case s == "":
		return errors.New("must not be empty")
	case len(s) > 4*MaxAddressLen: // A-labels never shrink a domain by more; the exact check comes later
		return fmt.Errorf("has %d bytes, %d are allowed", len(s), MaxAddressLen)
	case !utf8.ValidString(s):
		return errors.New("is not valid UTF-8")
	case strings.ContainsAny(s, "<>"):
		return errors.New("must be without angle brackets and name: " + oneAddress)
	case strings.ContainsAny(s, ",;"):
		return errors.New("must not be a list: " + oneAddress)
	}
	for i, r := range s {
		switch {
		case unicode.IsControl(r):
			return fmt.Errorf("holds the control character %U at byte %d", r, i+1)
		case unicode.IsSpace(r):
			return fmt.Errorf("holds a space at byte %d: it must be %s", i+1, oneAddress)
		}
	}
	return nil
}

// checkLocal checks the part before the @, without quotes: atoms and dots (RFC 5321 4.1.2).
func checkLocal(local string) error {
	switch {
	case local == "":
		return errors.New("has nothing before the @: it must be " + oneAddress)
	case len(local) > maxLocalLen:
		return fmt.Errorf("has %d bytes before the @, %d are allowed", len(local), maxLocalLen)
	case local[0] == '.':
		return errors.New("begins with a dot: it must be " + oneAddress)
	}
	if _, after, opened := strings.Cut(local, "=?"); opened && strings.Contains(after, "?=") {
		// Legal, but some readers decode it as an encoded word (RFC 2047) and find another address in it.
		return errors.New("has an encoded word (=?…?=) before the @, which mail readers decode")
	}
	for _, r := range local {
		if r >= utf8.RuneSelf {
			return errors.New("must have an ASCII part before the @")
		}
		if r != '.' && !isAtext(byte(r)) {
			return fmt.Errorf("holds %q before the @, which no plain address has: it must be %s", r, oneAddress)
		}
	}
	return nil
}

// isAtext reports whether c may stand in an atom (RFC 5322 3.2.3).
func isAtext(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-/=?^_`{|}~",
		c) >= 0
}
