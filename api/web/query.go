package web

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"fingerpost/resolver/catalog"
)

// EachParam calls yield with the raw name and value of each parameter of a query string.
func EachParam(query []byte, yield func(name, value []byte)) {
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		if len(pair) == 0 {
			continue
		}
		name, value, _ := bytes.Cut(pair, []byte{'='})
		yield(name, value)
	}
}

// Unescape decodes percent-escapes and "+" strictly: a "%" without two hexadecimal digits is an error. It returns b
// itself if there is nothing to decode.
func Unescape(b []byte) (decoded []byte, ok bool) {
	if !bytes.ContainsAny(b, "%+") {
		return b, true
	}
	text, err := url.QueryUnescape(string(b))
	return []byte(text), err == nil
}

// A Query is a parsed query string. Its values are copies.
type Query struct {
	Values   map[string]string
	Problems catalog.Problems // known parameters that are repeated or badly escaped
}

// ParseQuery reads the parameters with the given names and ignores all others.
func ParseQuery(raw []byte, known ...string) *Query {
	q := &Query{Values: make(map[string]string, len(known))}
	bad := map[string]bool{}
	EachParam(raw, func(rawName, rawValue []byte) {
		name, ok := Unescape(rawName)
		if !ok || !slices.Contains(known, string(name)) {
			return
		}
		field := string(name)
		value, ok := Unescape(rawValue)
		_, repeated := q.Values[field]
		switch {
		case bad[field]:
		case repeated:
			bad[field] = true
			q.Problems.Addf(field, "must be given once")
		case !ok:
			bad[field] = true
			q.Problems.Addf(field, "has a %% that two hexadecimal digits do not follow")
		default:
			q.Values[field] = string(value)
		}
	})
	return q
}

// RefuseOthers adds a problem for each parameter that is not known. It is for lists in which a misspelt filter would
// select everything.
func (q *Query) RefuseOthers(raw []byte, known []string) {
	seen := map[string]bool{}
	EachParam(raw, func(rawName, _ []byte) {
		name, ok := Unescape(rawName)
		text := strings.ToValidUTF8(string(name), "\uFFFD")
		if ok && slices.Contains(known, text) || seen[text] || len(seen) == maxOtherParams {
			return
		}
		seen[text] = true
		q.Problems.Addf(text, "is no parameter of this call: it has %s", strings.Join(known, ", "))
	})
}

// maxOtherParams is how many parameters RefuseOthers names.
const maxOtherParams = 10

// Text sets into to a parameter that must not be empty, if it is given.
func (q *Query) Text(name string, into *string) {
	v, given := q.Values[name]
	if *into = v; given && v == "" {
		q.Problems.Addf(name, "must not be empty; leave it out for all")
	}
}

// maxSearchText is the most characters of q.
const maxSearchText = 256

// SearchText sets into to the parameter q, the text that a list is searched for, and reports whether it is given.
func (q *Query) SearchText(into *string) (given bool) {
	text, given := q.Values["q"]
	*into = text
	switch n := utf8.RuneCountInString(text); {
	case !given:
	case text == "":
		q.Problems.Addf("q", "must not be empty: leave it out to list everything")
	case !utf8.ValidString(text):
		q.Problems.Addf("q", "must be valid UTF-8")
	case n > maxSearchText:
		q.Problems.Addf("q", "has %d characters, %d are allowed", n, maxSearchText)
	case strings.ContainsFunc(text, unicode.IsControl):
		q.Problems.Addf("q", "must not hold control characters")
	}
	return given
}

// Moment sets into to a parameter that is a time, if it is given.
func (q *Query) Moment(name string, into *time.Time) {
	v, given := q.Values[name]
	if !given {
		return
	}
	var ok bool
	if *into, ok = ParseMoment(v); !ok {
		q.Problems.Addf(name, momentRule)
	}
}

// momentRule says what is right where a time is wrong.
const momentRule = "must be a time in UTC such as 2026-01-31T09:30:00"

// ParseMoment reads a time in the format of answers, with or without a fraction and a final "Z".
func ParseMoment(v string) (time.Time, bool) {
	t, err := catalog.ParseMoment(v)
	return t, err == nil && t.Year() >= 1970
}
