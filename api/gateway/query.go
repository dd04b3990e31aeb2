package gateway

import (
	"bytes"
	"net/http"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gate"
	"fingerpost/api/web"
	"fingerpost/resolver/catalog"
)

// headerOriginalURL is the header field in which a gateway names what its client asked for.
const headerOriginalURL = "X-Original-URL"

// A Query is what a gateway asks.
type Query struct {
	Prefix bool // the target is the client's own behind a prefix, so that only Host has the domain
	Denied int  // the status for a domain that gets no
	Rule   TokenRule

	domain []byte // nil: the headers have it
}

// A TokenRule says what check does with the bearer token of a request.
type TokenRule uint8

// The rules.
const (
	Ignored  TokenRule = iota // check does not read it
	Optional                  // a request without one passes
	Required
)

// A param is one parameter as it was given.
type param struct {
	value []byte
	times int
	bad   bool // badly escaped
}

func (p *param) add(raw []byte) {
	value, ok := web.Unescape(raw)
	p.value, p.times, p.bad = value, p.times+1, p.bad || !ok
}

// problem reports what is wrong with how the parameter was given.
func (p *param) problem(ps *catalog.Problems, name string) {
	switch {
	case p.times > 1:
		ps.Addf(name, "must be given once")
	case p.bad:
		ps.Addf(name, "has a %% that two hexadecimal digits do not follow")
	}
}

// Params are the parameters of a question. All others are problems: a typo in "auth" must not let everybody in, and
// a gateway that passes on the query of its client must not be found out by an attacker first.
type Params struct {
	domain, deny, auth, other param
}

// ReadParams reads a query string.
func ReadParams(raw []byte) (p Params) {
	web.EachParam(raw, func(name, value []byte) {
		switch string(name) {
		case "domain":
			p.domain.add(value)
		case "deny":
			p.deny.add(value)
		case "auth":
			p.auth.add(value)
		default:
			p.other = param{value: name, times: 1}
		}
	})
	return p
}

// checkQuery reads the parameters of check.
func checkQuery(ctx *fasthttp.RequestCtx) (Query, error) {
	p := ReadParams(ctx.URI().QueryString())
	return p.Query(http.StatusForbidden, targetProblems(ctx))
}

// targetProblems reports a "#" in the target, which the library takes for the end of the query.
func targetProblems(ctx *fasthttp.RequestCtx) (ps catalog.Problems) {
	if bytes.IndexByte(ctx.RequestURI(), '#') >= 0 {
		ps.Addf("target", "has a #, and what follows would be lost")
	}
	return ps
}

// askQuery reads the parameters of ask.
func askQuery(ctx *fasthttp.RequestCtx) (Query, error) {
	p := ReadParams(ctx.URI().QueryString())
	problems := targetProblems(ctx)
	if p.domain.times == 0 {
		problems.Addf("domain", "is required: the host name that the certificate is for")
	}
	if p.auth.times > 0 {
		p.other = param{value: []byte("auth"), times: 1}
		p.auth = param{}
	}
	return p.Query(http.StatusNotFound, problems)
}

// prefixQuery reads the parameters of "/check/orders?page=2" and "/check;auth=required/orders?page=2". Envoy puts a
// prefix before the path of its client, so only what comes before the next slash is the operator's. The query is the
// client's, and so is every header but Host.
func prefixQuery(ctx *fasthttp.RequestCtx, rest []byte) (Query, error) {
	options, _, _ := bytes.Cut(rest, []byte{'/'})
	p := ReadParams(bytes.ReplaceAll(options, []byte{';'}, []byte{'&'}))
	if p.domain.times > 0 {
		p.other = param{value: []byte("domain"), times: 1}
	}
	q, err := p.Query(http.StatusForbidden, targetProblems(ctx))
	q.Prefix, q.domain = true, nil
	return q, err
}

// Query returns what the parameters say, or all their problems, behind the given ones.
func (p *Params) Query(denied int, problems catalog.Problems) (q Query, err error) {
	q.Denied = denied
	if p.domain.times > 0 {
		if q.domain = p.domain.value; q.domain == nil {
			q.domain = []byte{} // "?domain" has an empty one
		}
	}
	p.domain.problem(&problems, "domain")
	p.deny.problem(&problems, "deny")
	p.auth.problem(&problems, "auth")
	switch string(p.deny.value) {
	case "403":
		q.Denied = http.StatusForbidden
	case "404":
		q.Denied = http.StatusNotFound
	default:
		if p.deny.times == 1 {
			problems.Addf("deny", "must be 403 or 404")
		}
	}
	switch string(p.auth.value) {
	case "optional":
		q.Rule = Optional
	case "required":
		q.Rule = Required
	default:
		if p.auth.times == 1 {
			problems.Addf("auth", "must be required or optional, or left out")
		}
	}
	if p.other.times > 0 {
		problems.Addf(web.Shortened(string(p.other.value), web.MaxDetailField),
			"is no parameter of this call; the query of the gateway's client must not be passed on")
	}
	if len(problems) > 0 {
		return q, web.Invalid(problems...)
	}
	return q, nil
}

// headerHost returns the domain that a gateway asks about, see Host.
func (q *Query) headerHost(ctx *fasthttp.RequestCtx) (domain []byte, denied *catalog.Error) {
	if q.domain != nil || q.Prefix {
		domain, _ = q.Host(nil, nil, ctx.Host())
		return domain, nil
	}
	var original []byte
	switch originals := ctx.Request.Header.PeekAll(headerOriginalURL); len(originals) {
	case 0:
	case 1:
		original = originals[0]
	default:
		return nil, web.InvalidField(headerOriginalURL, "must be given once")
	}
	domain, ok := q.Host(original, forwardedHost(&ctx.Request.Header), ctx.Host())
	if !ok {
		return nil, web.InvalidField(headerOriginalURL, "must be an absolute URL without user information")
	}
	return domain, nil
}

// Host returns the domain of the query, or else the host of X-Original-URL, or else X-Forwarded-Host, or else Host;
// false if X-Original-URL counts and has none.
func (q *Query) Host(original, forwarded, host []byte) (domain []byte, ok bool) {
	switch {
	case q.domain != nil:
		return q.domain, true
	case len(original) > 0:
		return urlHost(original)
	case len(forwarded) > 0:
		return forwarded, true
	}
	return host, true
}

// urlHost returns host and port of an absolute URL. It refuses user information: "http://shop.example\@bank.example"
// has one host or the other, depending on who reads it.
func urlHost(url []byte) (host []byte, ok bool) {
	scheme, rest, ok := bytes.Cut(url, []byte("://"))
	if end := bytes.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return rest, ok && gate.Word(scheme) && len(rest) > 0 && bytes.IndexByte(rest, '@') < 0
}

// forwardedHost returns the first value of the first X-Forwarded-Host, empty if there is none.
func forwardedHost(h *fasthttp.RequestHeader) []byte {
	return FirstHost(h.Peek(fasthttp.HeaderXForwardedHost))
}

// FirstHost returns the first value of an X-Forwarded-Host.
func FirstHost(forwarded []byte) []byte {
	forwarded, _, _ = bytes.Cut(forwarded, []byte{','})
	return bytes.Trim(forwarded, " \t")
}
