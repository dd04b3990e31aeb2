package hostname

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// MaxLen is the longest canonical name, in octets (RFC 1035, without the trailing dot).
const MaxLen = 253

const maxLabelLen = 63

// The possible errors of a host name. The texts complete the sentence "the domain …".
var (
	errHostEmpty    = errors.New("must not be empty")
	errHostLong     = errors.New("is longer than 253 octets")
	errLabelEmpty   = errors.New("has an empty label: two dots in a row, or one at the beginning")
	errLabelLong    = errors.New("has a label of more than 63 octets")
	errLabelHyphen  = errors.New("has a label that begins or ends with a hyphen")
	errHostChar     = errors.New("holds a character that no host name has")
	errHostURL      = errors.New("is a URL")
	errHostUTF8     = errors.New("is not valid UTF-8")
	errHostIP       = errors.New("is an IP address; a host name is needed")
	errHostPort     = errors.New("has a bad port after the colon")
	errHostHasPort  = errors.New("must not carry a port")
	errHostWildcard = errors.New("must not be a wildcard here")
	errWildcard     = errors.New(`may have one "*" only, as the whole first label: "*.acme.example"`)
	errHostIDNA     = errors.New("is no valid internationalised name (IDNA, UTS 46)")
)

// lookup is UTS 46 as browsers apply it to user input: mapped, not transitional, with the bidi and joiner rules.
var lookup = idna.Lookup

// Append appends the canonical form of a host as a client sends it to dst: lower case, without port and trailing
// dot, checked. It does not allocate if dst has room for MaxLen bytes, and returns a slice of dst's array.
//
// idn reports that the name has labels beyond plain ASCII or with the prefix "xn--"; they are appended as they came
// (lower-cased if ASCII), and FinishIDN must turn the result into the canonical name.
//
// Labels that begin or end with a hyphen are no host names of RFC 1123, but names that DNS has and wildcards cover. They
// are answered as any name; Parse refuses them in files and bodies.
func Append(dst, raw []byte) (host []byte, idn bool, err error) {
	whole := raw
	if colon := bytes.IndexByte(raw, ':'); colon >= 0 {
		port := raw[colon+1:]
		switch {
		case bytes.IndexByte(port, ':') >= 0 || raw[0] == '[': // IPv6
			return nil, false, hintHost(whole, errHostIP)
		case !isPort(port):
			return nil, false, hintHost(whole, errHostPort)
		}
		raw = raw[:colon]
	}
	raw, dotted := bytes.CutSuffix(raw, []byte{'.'})
	if len(raw) == 0 {
		return nil, false, errHostEmpty
	}
	if len(raw) > 4*MaxLen {
		return nil, false, errHostLong
	}
	start := len(dst)
	for _, c := range raw {
		switch class[c] {
		case charOK:
		case charUpper:
			c += 'a' - 'A'
		case charHigh:
			idn = true
		case charStar:
			return nil, false, errHostWildcard
		case charColon:
			return nil, false, errHostIP
		default:
			return nil, false, hintHost(whole, errHostChar)
		}
		dst = append(dst, c)
	}
	if idn {
		if dotted {
			dst = append(dst, '.') // FinishIDN drops one full stop of any kind, and must see that this was it
		}
		return dst[start:], true, nil
	}
	host = dst[start:]
	idn, err = checkASCII(host)
	return host, idn, err
}

// hintHost adds the host in raw to err, if raw is a URL or a host with a path.
func hintHost(raw []byte, err error) error {
	rest := raw
	if _, after, ok := bytes.Cut(raw, []byte("://")); ok {
		err, rest = errHostURL, after
	}
	end := bytes.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	if end == len(raw) {
		return err
	}
	if host, _, bad := Append(nil, rest[:end]); bad == nil {
		return fmt.Errorf("%w: give the host alone, %q", err, string(host)) // a copy: the caller's buffer must not escape
	}
	return err
}

// FinishIDN returns the canonical form of a name for which Append reported idn.
func FinishIDN(host []byte) (string, error) {
	if !utf8.Valid(host) {
		return "", errHostUTF8
	}
	name := ideographicDots.Replace(string(host))
	name = strings.TrimSuffix(name, ".")
	labels := strings.Split(name, ".")
	for i, label := range labels {
		plain, encoded := isASCII(label), strings.HasPrefix(strings.ToLower(label), "xn--")
		if plain && !encoded {
			labels[i] = strings.ToLower(label)
			continue
		}
		if encoded && !plain {
			return "", errHostIDNA
		}
		// Label by label: the profile forbids underscores, which other labels of the name may have.
		ascii, err := lookup.ToASCII(label)
		if err != nil || ascii == "" {
			return "", errHostIDNA
		}
		// A label that does not decode to what it encodes would give one name two spellings.
		u, err := lookup.ToUnicode(ascii)
		if err != nil || !joinersStand(u) {
			return "", errHostIDNA
		}
		if back, err := lookup.ToASCII(u); err != nil || back != ascii {
			return "", errHostIDNA
		}
		labels[i] = ascii
	}
	name = strings.Join(labels, ".")
	for i := range len(name) {
		if class[name[i]] != charOK {
			return "", errHostIDNA
		}
	}
	if _, err := checkASCII([]byte(name)); err != nil {
		return "", err
	}
	return name, nil
}

// joinersStand reports whether a letter follows each zero width non-joiner that does not stand behind a virama (RFC 5892,
// A.1). x/net/idna takes one before a digit or a hyphen, with which no browser and no TypeScript client can ask.
func joinersStand(label string) bool {
	for before, after, found := strings.Cut(label, "\u200c"); found; before, after, found = strings.Cut(after, "\u200c") {
		last, _ := utf8.DecodeLastRuneInString(before)
		if unicode.IsMark(last) && !unicode.In(last, unicode.Inherited, unicode.Arabic, unicode.Syriac) {
			continue // a virama: any other mark there has been refused
		}
		next, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(after, unicode.IsMark))
		if !unicode.IsLetter(next) {
			return false
		}
	}
	return true
}

// Check returns what is wrong with a host as a client sends it; nil if it can be resolved.
func Check(raw []byte) error {
	host, idn, err := Append(nil, raw)
	if err == nil && idn {
		_, err = FinishIDN(host)
	}
	return err
}

// ideographicDots maps the full stops that UTS 46 treats as a dot.
var ideographicDots = strings.NewReplacer("\u3002", ".", "\uff0e", ".", "\uff61", ".")

// Parse returns the canonical form of a name in a file or a request body: no port, no wildcard.
func Parse(s string) (string, error) {
	if strings.IndexByte(s, ':') >= 0 {
		err := errHostIP
		if strings.Count(s, ":") == 1 {
			err = errHostHasPort
		}
		return "", hintHost([]byte(s), err)
	}
	name, err := Canonical(s)
	if edge := "." + name + "."; err == nil && (strings.Contains(edge, ".-") || strings.Contains(edge, "-.")) {
		return "", errLabelHyphen
	}
	return name, err
}

// Canonical returns the canonical form of a host as a client sends it.
func Canonical(s string) (string, error) {
	host, idn, err := Append(nil, []byte(s))
	if err != nil {
		return "", err
	}
	if idn {
		return FinishIDN(host)
	}
	return string(host), nil
}

// ParseDomain is Parse for a domain record, where one leading "*." is allowed and kept.
func ParseDomain(s string) (string, error) {
	base, wildcard := strings.CutPrefix(s, "*.")
	if strings.IndexByte(base, '*') >= 0 {
		return "", errWildcard
	}
	name, err := Parse(base)
	if err == nil && wildcard {
		if name = "*." + name; len(name) > MaxLen {
			err = errHostLong
		}
	}
	if err != nil {
		return "", err
	}
	return name, nil
}

// NextWildcard returns the part of host after its first dot: "*." and that part is the next wildcard that may match,
// the longest first. ok is false when host has no dot left.
func NextWildcard(host []byte) (suffix []byte, ok bool) {
	dot := bytes.IndexByte(host, '.')
	if dot < 0 {
		return nil, false
	}
	return host[dot+1:], true
}

// isPort reports whether port is a number up to 65535, in at most five digits.
func isPort(port []byte) bool {
	if len(port) > 5 { // RFC 3986 3.2.3: it may be empty
		return false
	}
	n := 0
	for _, c := range port {
		if c < '0' || c > '9' {
			return false
		}
		n = n*10 + int(c-'0')
	}
	return n <= 65535
}

// checkASCII checks lengths and labels of a lower-cased ASCII name and reports whether it has an "xn--" label.
func checkASCII(host []byte) (idn bool, err error) {
	if len(host) > MaxLen {
		return false, errHostLong
	}
	for rest := host; ; {
		label := rest
		dot := bytes.IndexByte(rest, '.')
		if dot >= 0 {
			label, rest = rest[:dot], rest[dot+1:]
		}
		switch {
		case len(label) == 0:
			return false, errLabelEmpty
		case len(label) > maxLabelLen:
			return false, errLabelLong
		case len(label) >= 4 && string(label[:4]) == "xn--":
			if idn = true; label[len(label)-1] == '-' {
				return false, errLabelHyphen
			}
		}
		if dot < 0 {
			// URL parsers take a name for an IPv4 address if its last label is a number.
			number, hex := bytes.CutPrefix(label, []byte("0x"))
			for _, c := range number {
				if !(c >= '0' && c <= '9' || hex && c >= 'a' && c <= 'f') {
					return idn, nil
				}
			}
			return false, errHostIP
		}
	}
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

const (
	charBad = iota
	charOK
	charUpper
	charHigh
	charStar
	charColon
)

// class classifies the bytes of a host name.
var class = func() (t [256]uint8) {
	for c := range 256 {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.':
			t[c] = charOK
		case c >= 'A' && c <= 'Z':
			t[c] = charUpper
		case c >= 0x80:
			t[c] = charHigh
		case c == '*':
			t[c] = charStar
		case c == ':':
			t[c] = charColon
		}
	}
	return t
}()
