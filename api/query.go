package api

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

// eachParam calls yield with the raw name and value of each parameter of a query string.
func eachParam(query []byte, yield func(name, value []byte)) {
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

// unescape decodes percent-escapes and "+" strictly: a "%" without two hexadecimal digits is an error. It returns b
// itself if there is nothing to decode.
func unescape(b []byte) (decoded []byte, ok bool) {
	if !bytes.ContainsAny(b, "%+") {
		return b, true
	}
	text, err := url.QueryUnescape(string(b))
	return []byte(text), err == nil
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
	eachParam(raw, func(rawName, rawValue []byte) {
		name, ok := unescape(rawName)
		if !ok || !slices.Contains(known, string(name)) {
			return
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
	})
	return q
}

// A resolveQuery holds the parameters of resolve. domain is a part of the query string unless it had to be decoded.
type resolveQuery struct {
	domain, form, label          []byte
	domains, forms, labels       int
	domainBad, formBad, labelBad bool
}

// parseResolveQuery does for resolve what parseQuery does, without allocating.
func parseResolveQuery(raw []byte) (q resolveQuery) {
	eachParam(raw, func(name, value []byte) {
		// Most names have no escapes and need no decoding. A value with a "+" needs none either: no host name contains one.
		ok := true
		if bytes.IndexByte(name, '%') >= 0 {
			if name, ok = unescape(name); !ok {
				return
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
		case "labels":
			q.labels++
			q.label, ok = unescape(value)
			q.labelBad = q.labelBad || !ok
		}
	})
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
	ps = append(ps, q.formProblems()...)
	if len(ps) > 0 && q.domains == 1 && !q.domainBad {
		if err := catalog.CheckHost(q.domain); err != nil {
			ps = slices.Insert(ps, 0, catalog.Problem{Path: "domain", Message: err.Error()})
		}
	}
	return ps
}

// formProblems reports what is wrong with the parameters that choose the form.
func (q *resolveQuery) formProblems() (ps catalog.Problems) {
	switch {
	case q.forms > 1:
		ps.Addf("form", "must be given once")
	case q.formBad, q.forms == 1 && string(q.form) != "flat":
		ps.Addf("form", `must be "flat", or left out for the nested form`)
	}
	switch {
	case q.labels > 1:
		ps.Addf("labels", "must be given once")
	case q.labelBad, q.labels == 1 && string(q.label) != "1":
		ps.Addf("labels", `must be "1", or left out for an answer without labels`)
	}
	return ps
}

// text sets into to a parameter that must not be empty, if it is given.
func (q *query) text(name string, into *string) {
	v, given := q.values[name]
	if *into = v; given && v == "" {
		q.problems.Addf(name, "must not be empty; leave it out for all")
	}
}

// moment sets into to a parameter that is a time, if it is given.
func (q *query) moment(name string, into *time.Time) {
	v, given := q.values[name]
	if !given {
		return
	}
	var ok bool
	if *into, ok = parseMoment(v); !ok {
		q.problems.Addf(name, "must be a time in UTC such as 2026-01-31T09:30:00")
	}
}

// parseMoment reads a time in the format of answers, with or without a fraction and a final "Z".
func parseMoment(v string) (time.Time, bool) {
	t, err := time.ParseInLocation("2006-01-02T15:04:05", strings.TrimSuffix(v, "Z"), time.UTC)
	return t, err == nil && t.Year() >= 1970
}
