package api

import (
	"bytes"
	"slices"

	"fingerpost/resolver/catalog"
)

// eachParam calls yield with the raw name and value of each parameter of a query string until yield returns false.
func eachParam(query []byte, yield func(name, value []byte) bool) {
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		if len(pair) == 0 {
			continue
		}
		name, value, _ := bytes.Cut(pair, []byte{'='})
		if !yield(name, value) {
			return
		}
	}
}

// unescape decodes percent-escapes and "+" strictly: a "%" without two hexadecimal digits is an error. It returns b
// itself if there is nothing to decode.
func unescape(b []byte) (decoded []byte, ok bool) {
	if bytes.IndexByte(b, '%') < 0 && bytes.IndexByte(b, '+') < 0 {
		return b, true
	}
	decoded = make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch c {
		case '+':
			c = ' '
		case '%':
			if i+2 >= len(b) {
				return nil, false
			}
			high, low := hexDigit(b[i+1]), hexDigit(b[i+2])
			if high < 0 || low < 0 {
				return nil, false
			}
			c = byte(high<<4 | low)
			i += 2
		}
		decoded = append(decoded, c)
	}
	return decoded, true
}

// A query is a parsed query string. Its values are copies.
type query struct {
	values   map[string]string
	problems catalog.Problems // known parameters that are repeated or badly escaped
}

// parseQuery reads the parameters with the given names and ignores all others.
func parseQuery(raw []byte, known ...string) *query {
	q := &query{values: make(map[string]string, len(known))}
	bad := map[string]bool{}
	eachParam(raw, func(rawName, rawValue []byte) bool {
		name, ok := unescape(rawName)
		if !ok || !slices.Contains(known, string(name)) {
			return true
		}
		field := string(name)
		value, ok := unescape(rawValue)
		_, repeated := q.values[field]
		switch {
		case bad[field]:
		case repeated:
			bad[field] = true
			q.problems.Addf(field, "must be given once")
		case !ok:
			bad[field] = true
			q.problems.Addf(field, "has a %% that two hexadecimal digits do not follow")
		default:
			q.values[field] = string(value)
		}
		return true
	})
	return q
}

// A resolveQuery holds the parameters of resolve. domain is a part of the query string unless it had to be decoded.
type resolveQuery struct {
	domain, form       []byte
	domains, forms     int
	domainBad, formBad bool
}

// parseResolveQuery does for resolve what parseQuery does, without allocating.
func parseResolveQuery(raw []byte) (q resolveQuery) {
	for len(raw) > 0 {
		pair := raw
		if amp := bytes.IndexByte(raw, '&'); amp >= 0 {
			pair, raw = raw[:amp], raw[amp+1:]
		} else {
			raw = nil
		}
		name, value := pair, []byte(nil)
		if eq := bytes.IndexByte(pair, '='); eq >= 0 {
			name, value = pair[:eq], pair[eq+1:]
		}
		// Most names have no escapes and need no decoding. A value with a "+" needs none either: no host name contains one.
		ok := true
		if bytes.IndexByte(name, '%') >= 0 {
			if name, ok = unescape(name); !ok {
				continue
			}
		}
		switch string(name) {
		case "domain":
			q.domains++
			q.domain, ok = value, true
			if bytes.IndexByte(value, '%') >= 0 {
				q.domain, ok = unescape(value)
			}
			q.domainBad = q.domainBad || !ok
		case "form":
			q.forms++
			q.form, ok = unescape(value)
			q.formBad = q.formBad || !ok
		}
	}
	return q
}

// problems reports what is wrong with the parameters. The resolver checks whether domain is a host name, unless another
// parameter is wrong: an error has to name every field.
func (q *resolveQuery) problems() (ps catalog.Problems) {
	switch {
	case q.domains == 0:
		ps.Addf("domain", "is required: the host name to resolve")
	case q.domains > 1:
		ps.Addf("domain", "must be given once")
	case q.domainBad:
		ps.Addf("domain", "has a %% that two hexadecimal digits do not follow")
	}
	switch {
	case q.forms > 1:
		ps.Addf("form", "must be given once")
	case q.formBad, q.forms == 1 && string(q.form) != "flat":
		ps.Addf("form", `must be "flat", or left out for the nested form`)
	}
	if len(ps) > 0 && q.domains == 1 && !q.domainBad {
		if err := catalog.CheckHost(q.domain); err != nil {
			ps = slices.Insert(ps, 0, catalog.Problem{Path: "domain", Message: err.Error()})
		}
	}
	return ps
}

// hexDigit returns the value of c as a hexadecimal digit, or -1.
func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
