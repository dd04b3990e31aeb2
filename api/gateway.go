package api

import (
	"errors"
	"strings"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gateway"
	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// Gateways ask before they route a request (check), or before they fetch a certificate (ask): api/README.md, Gateways.
// The calls are the same on a gateway listener (gatelistener.go) and, with a key, on the main listener.

const (
	gatePath  = "/api/gate/"
	checkPath = gatePath + "check"
	askPath   = gatePath + "ask"
)

var (
	headerGateReason = []byte("X-Gate-Reason")
	varyCheck        = []byte("X-Original-URL, X-Forwarded-Host")
	varyKeyCheck     = []byte(web.VaryPlatformText + ", X-Original-URL, X-Forwarded-Host")

	refuseCertificate = &catalog.Error{Code: catalog.CodeForbidden,
		Message: "only a wildcard covers the name, or its record has certificates = false: set certificates = true for " +
			"the domain"}
)

// gateCheck answers GET /api/gate/check.
func (s *Server) gateCheck(r *web.Request) error {
	q, err := gateway.CheckQuery(r.Ctx)
	if err == nil {
		err = r.Permit()
	}
	if err != nil {
		return err
	}
	r.Ctx.Response.Header.SetCanonical(web.HeaderVary, varyKeyCheck)
	return s.check(r.Ctx, r.Key, q)
}

// gateAsk answers GET /api/gate/ask.
func (s *Server) gateAsk(r *web.Request) error {
	q, err := gateway.AskQuery(r.Ctx)
	if err == nil {
		err = r.Permit()
	}
	if err != nil {
		return err
	}
	return s.askCertificate(r.Ctx, r.Key, q)
}

// check answers whether a request for the domain may pass, with the headers that the gateway adds to it. A nil key
// covers every project.
func (s *Server) check(ctx *fasthttp.RequestCtx, key *resolver.Key, q gateway.Query) error {
	var token string
	if q.Rule != gateway.Ignored {
		var err error
		if token, err = s.gateToken(&ctx.Request.Header, q.Rule); err != nil {
			return err
		}
	}
	answer, denied, err := s.gateAnswer(ctx, key, &q)
	if err != nil || denied != nil {
		if malformed := s.beforeDomain(token, nil); malformed != nil {
			return malformed
		}
		return s.deny(ctx, &q, denied, err)
	}
	var user *gateway.Identity
	if token != "" {
		if user, err = s.identify(ctx, answer, token); err != nil {
			return err
		}
	}
	h := &ctx.Response.Header
	h.SetNoDefaultContentType(true)
	eachLine(answer.Data, h.SetCanonical)
	setVerified(h, user)
	if q.Rule != gateway.Ignored {
		h.SetCanonical(web.HeaderCacheControl, web.CacheNever)
		return nil
	}
	var tag [64]byte
	h.SetCanonical(web.HeaderETag, append(tag[:0], answer.ETag...))
	h.SetCanonical(web.HeaderCacheControl, s.cacheControl)
	return nil
}

// askCertificate answers whether a gateway may fetch a certificate for the domain.
func (s *Server) askCertificate(ctx *fasthttp.RequestCtx, key *resolver.Key, q gateway.Query) error {
	answer, denied, err := s.gateAnswer(ctx, key, &q)
	if denied == nil && err == nil && !answer.MayHaveCertificate(s.o.GateWildcards) {
		denied = refuseCertificate
	}
	if err != nil || denied != nil {
		return s.deny(ctx, &q, denied, err)
	}
	ctx.Response.Header.SetNoDefaultContentType(true)
	ctx.Response.Header.SetCanonical(web.HeaderCacheControl, web.CacheNever)
	return nil
}

// gateAnswer resolves the domain of a question. denied says why the domain gets no: it is no host name, unknown,
// inactive or suspended.
func (s *Server) gateAnswer(ctx *fasthttp.RequestCtx, key *resolver.Key, q *gateway.Query) (a *resolver.Answer,
	denied *catalog.Error, err error) {
	domain, denied := q.HeaderHost(ctx)
	if denied != nil {
		return nil, denied, nil
	}
	if a = connOf(ctx).asked.answer; a == nil { // on a gateway listener the fast path asks for nothing else
		a, err = s.resolver.Resolve(domain, resolver.Gateway)
	}
	if err != nil {
		if errors.As(err, &denied) && denied.Code == catalog.CodeValidation {
			return nil, denied, nil
		}
		return nil, nil, err
	}
	if key != nil && a.ProjectID != 0 && !key.Covers(a.ProjectID) {
		return nil, nil, web.RefuseProject
	}
	if a.Code != "" {
		return nil, web.RefusedCode(a.Code), nil
	}
	return a, nil, nil
}

// deny answers with the status that the question wants for denied domains, or returns err.
func (s *Server) deny(ctx *fasthttp.RequestCtx, q *gateway.Query, denied *catalog.Error, err error) error {
	if err == nil {
		failGateway(ctx, q.Denied, denied)
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

// isGatePath reports whether answers on the path have no body (api/README.md, Gateways).
func isGatePath(path string) bool { return strings.HasPrefix(path, gatePath) }

// forGateway reports whether a request belongs to a gateway. path is its own or that of its route.
func forGateway(ctx *fasthttp.RequestCtx, path string) bool {
	return connOf(ctx).services == Gateway || isGatePath(path)
}

// failGateway answers a gateway with an error: it has no body, and a header has the reason.
func failGateway(ctx *fasthttp.RequestCtx, status int, e *catalog.Error) {
	web.FailHead(&ctx.Response.Header, status, e)
	ctx.Response.ResetBody()
	ctx.Response.Header.SetNoDefaultContentType(true)
	ctx.Response.Header.SetCanonical(headerGateReason, catalog.AppendHeaderText(nil, web.Shortened(gateReason(e),
		web.MaxDetailMessage)))
}

func gateReason(e *catalog.Error) string {
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
