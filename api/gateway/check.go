package gateway

import (
	"errors"
	"strings"

	"github.com/valyala/fasthttp"

	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

var (
	// VaryCheck is the Vary of a check without a key.
	VaryCheck        = []byte("X-Original-URL, X-Forwarded-Host")
	varyKeyCheck     = []byte(web.VaryPlatformText + ", X-Original-URL, X-Forwarded-Host")
	headerGateReason = []byte("X-Gate-Reason")

	refuseCertificate = &catalog.Error{Code: catalog.CodeForbidden,
		Message: "only a wildcard covers the name, or its record has certificates = false: set certificates = true for " +
			"the domain"}
)

// A question is what a gateway asks, and who asks.
type question struct {
	Query
	key *resolver.Key // nil: all projects are covered
}

// checkWithKey answers GET /api/gate/check.
func (a *API) checkWithKey(r *web.Request) error {
	q, err := checkQuery(r.Ctx)
	if err == nil {
		err = r.Permit()
	}
	if err != nil {
		return err
	}
	r.Ctx.Response.Header.SetCanonical(web.HeaderVary, varyKeyCheck)
	return a.check(r.Ctx, &question{Query: q, key: r.Key})
}

// askWithKey answers GET /api/gate/ask.
func (a *API) askWithKey(r *web.Request) error {
	q, err := askQuery(r.Ctx)
	if err == nil {
		err = r.Permit()
	}
	if err != nil {
		return err
	}
	return a.ask(r.Ctx, &question{Query: q, key: r.Key})
}

// check answers whether a request for the domain may pass, with the headers that the gateway adds to it.
func (a *API) check(ctx *fasthttp.RequestCtx, q *question) error {
	var token []byte
	if q.Rule != Ignored {
		var err error
		if token, err = a.token(&ctx.Request.Header, q.Rule); err != nil {
			return err
		}
	}
	answer, denied, err := a.answer(ctx, q)
	if err != nil || denied != nil {
		if malformed := a.beforeDomain(token, nil); malformed != nil {
			return malformed
		}
		return deny(ctx, &q.Query, denied, err)
	}
	var user *Identity
	if token != nil {
		if user, err = a.identify(ctx, answer, token); err != nil {
			return err
		}
	}
	h := &ctx.Response.Header
	h.SetNoDefaultContentType(true)
	eachLine(answer.Data, h.SetCanonical)
	eachLine(string(user.AppendLines(nil)), h.SetCanonical)
	if q.Rule != Ignored {
		h.SetCanonical(web.HeaderCacheControl, web.CacheNever)
		return nil
	}
	var tag [64]byte
	h.SetCanonical(web.HeaderETag, append(tag[:0], answer.ETag...))
	h.SetCanonical(web.HeaderCacheControl, a.CacheControl)
	return nil
}

// ask answers whether a gateway may fetch a certificate for the domain.
func (a *API) ask(ctx *fasthttp.RequestCtx, q *question) error {
	answer, denied, err := a.answer(ctx, q)
	if denied == nil && err == nil && !answer.MayHaveCertificate(a.Wildcards) {
		denied = refuseCertificate
	}
	if err != nil || denied != nil {
		return deny(ctx, &q.Query, denied, err)
	}
	ctx.Response.Header.SetNoDefaultContentType(true)
	ctx.Response.Header.SetCanonical(web.HeaderCacheControl, web.CacheNever)
	return nil
}

// answer resolves the domain of a question. denied says why the domain gets no: it is no host name, unknown, inactive or
// suspended.
func (a *API) answer(ctx *fasthttp.RequestCtx, q *question) (answer *resolver.Answer, denied *catalog.Error, err error) {
	domain, denied := q.headerHost(ctx)
	if denied != nil {
		return nil, denied, nil
	}
	if answer, err = a.Live.Resolve(ctx, domain, resolver.Gateway); err != nil {
		if errors.As(err, &denied) && denied.Code == catalog.CodeValidation {
			return nil, denied, nil
		}
		return nil, nil, err
	}
	if q.key != nil && answer.ProjectID != 0 && !q.key.Covers(answer.ProjectID) {
		return nil, nil, web.RefuseProject
	}
	if answer.Code != "" {
		return nil, web.RefusedCode(answer), nil
	}
	return answer, nil, nil
}

// deny answers with the status that the question wants for denied domains, or returns err.
func deny(ctx *fasthttp.RequestCtx, q *Query, denied *catalog.Error, err error) error {
	if err == nil {
		Fail(ctx, q.Denied, denied)
	}
	return err
}

// eachLine calls set with the name and the value of each header line.
func eachLine(lines string, set func(name, value []byte)) {
	for len(lines) > 0 {
		var line string
		line, lines, _ = strings.Cut(lines, "\r\n")
		name, value, _ := strings.Cut(line, ": ")
		set([]byte(name), []byte(value))
	}
}

// IsPath reports whether answers on a path of the main listener have no body (api/gateway/README.md, What the gate
// answers).
func IsPath(path string) bool { return strings.HasPrefix(path, pathPrefix) }

// Fail answers a gateway with an error: it has no body, and a header has the reason.
func Fail(ctx *fasthttp.RequestCtx, status int, e *catalog.Error) {
	web.FailHead(&ctx.Response.Header, status, e)
	ctx.Response.ResetBody()
	ctx.Response.Header.SetNoDefaultContentType(true)
	ctx.Response.Header.SetCanonical(headerGateReason, catalog.AppendHeaderText(nil, web.Shortened(reason(e),
		web.MaxDetailMessage)))
}

func reason(e *catalog.Error) string {
	text := e.Message
	if len(e.Problems) > 0 {
		all := make([]string, len(e.Problems))
		for i, p := range e.Problems {
			all[i] = p.Path + " " + p.Message
		}
		text = strings.Join(all, "; ")
	}
	return string(e.Code) + ": " + text
}
