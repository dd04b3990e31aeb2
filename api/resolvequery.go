package api

import (
	"bytes"
	"slices"

	"fingerpost/api/web"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
)

// A resolveQuery holds the parameters of resolve. domain is a part of the query string unless it had to be decoded.
type resolveQuery struct {
	domain, form, label          []byte
	domains, forms, labels       int
	domainBad, formBad, labelBad bool
}

// parseResolveQuery does for resolve what web.ParseQuery does, without allocating.
func parseResolveQuery(raw []byte) (q resolveQuery) {
	web.EachParam(raw, func(name, value []byte) {
		// Most names have no escapes and need no decoding. A value with a "+" needs none either: no host name contains one.
		var ok bool
		if bytes.IndexByte(name, '%') >= 0 {
			if name, ok = web.Unescape(name); !ok {
				return
			}
		}
		switch string(name) {
		case "domain":
			q.domains++
			q.domain, ok = value, true
			if bytes.IndexByte(value, '%') >= 0 {
				q.domain, ok = web.Unescape(value)
			}
			q.domainBad = q.domainBad || !ok
		case "form":
			q.forms++
			q.form, ok = web.Unescape(value)
			q.formBad = q.formBad || !ok
		case "labels":
			q.labels++
			q.label, ok = web.Unescape(value)
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
		if err := hostname.Check(q.domain); err != nil {
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
