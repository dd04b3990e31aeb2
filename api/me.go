package api

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gateway"
	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

const authMePath = "/api/auth/me"

var (
	headerProjectID   = []byte("X-Project-Id")
	headerProjectSlug = []byte("X-Project-Slug")
	headerUserID      = []byte("X-User-Id")
	headerUserEmail   = []byte("X-User-Email")
	headerAuth        = []byte("X-Auth")
)

// authMe answers GET /api/auth/me: whether the bearer token is valid for the domain, and for which user.
func (s *Server) authMe(r *web.Request) error {
	h := &r.Ctx.Response.Header
	h.SetCanonical(web.HeaderCacheControl, web.CacheNever)
	token, failure := bearerText(&r.Ctx.Request.Header)
	if failure != keyGood {
		return s.refuseFailed(r.Ctx, failure)
	}
	answer, secret, err := s.tokenTarget(r.Ctx)
	if err != nil {
		if !gateway.IsToken(token) { // goes first; verifying a good token reads its form anyway
			return s.refuseFailed(r.Ctx, tokenMalformed)
		}
		return err
	}
	who, err := gateway.Verify(token, secret, answer.ProjectID, s.o.AuthIssuer, r.Ctx.Time())
	switch {
	case errors.Is(err, gateway.ErrMalformed):
		return s.refuseFailed(r.Ctx, tokenMalformed)
	case err != nil:
		return s.refuseFailed(r.Ctx, tokenInvalid)
	}
	setIdentity(h, answer, who)
	r.Succeed("token verified", appendIdentity(nil, who))
	return nil
}

// tokenTarget returns the project for whose users a token must be, and the secret that signs it.
func (s *Server) tokenTarget(ctx *fasthttp.RequestCtx) (answer *resolver.Answer, secret []byte, err error) {
	domain, err := gatewayDomain(ctx)
	if err != nil {
		return nil, nil, err
	}
	if answer, err = s.resolver.Resolve(domain, resolver.Tokens); err != nil {
		return nil, nil, err
	}
	if answer.Code != "" {
		return nil, nil, web.RefusedCode(answer.Code)
	}
	secret, err = s.resolver.TokenSecret(answer)
	return answer, secret, err
}

// gatewayDomain returns the domain that a gateway asks about: that of the query, or else the first of X-Forwarded-Host,
// or else that of Host.
func gatewayDomain(ctx *fasthttp.RequestCtx) ([]byte, error) {
	q := parseResolveQuery(ctx.URI().QueryString())
	q.forms, q.formBad, q.labels, q.labelBad = 0, false, 0, false
	if q.domains > 0 {
		if problems := q.problems(); len(problems) > 0 {
			return nil, web.Invalid(problems...)
		}
		return q.domain, nil
	}
	if forwarded := gateway.ForwardedHost(&ctx.Request.Header); len(forwarded) > 0 {
		return forwarded, nil
	}
	return ctx.Host(), nil
}

// setIdentity sets the headers that a gateway passes on.
func setIdentity(h *fasthttp.ResponseHeader, answer *resolver.Answer, who *gateway.Identity) {
	h.SetCanonical(headerProjectID, strconv.AppendInt(nil, who.ProjectID, 10))
	h.SetCanonical(headerProjectSlug, []byte(answer.Slug))
	setUser(h, who)
}

// setUser sets the headers about the user, who may be nil. A claim that the token lacks becomes an empty header: for a
// missing header Caddy passes on the name of its placeholder or, in newer versions, what the client has sent.
func setUser(h *fasthttp.ResponseHeader, who *gateway.Identity) {
	if who == nil {
		who = new(gateway.Identity)
	}
	h.SetCanonical(headerUserID, appendHeaderText(nil, who.Subject))
	h.SetCanonical(headerUserEmail, appendHeaderText(nil, who.Email))
}

// setVerified sets X-Auth and the headers about the user, who may be nil. No header is empty: some gateways then pass
// on what their client has sent (api/README.md, Gateways).
func setVerified(h *fasthttp.ResponseHeader, who *gateway.Identity) {
	if who == nil {
		h.SetCanonical(headerAuth, []byte("none"))
		return
	}
	h.SetCanonical(headerAuth, []byte("good"))
	for _, claim := range []struct {
		header []byte
		text   *string
	}{{headerUserID, who.Subject}, {headerUserEmail, who.Email}} {
		if claim.text != nil && *claim.text != "" {
			h.SetCanonical(claim.header, appendHeaderText(nil, claim.text))
		}
	}
}

// appendHeaderText appends a claim as the value of a header: two users must never get the same header.
func appendHeaderText(dst []byte, text *string) []byte {
	if text == nil {
		return dst
	}
	return catalog.AppendHeaderText(dst, *text)
}

func appendIdentity(dst []byte, who *gateway.Identity) []byte {
	dst = appendTextOrNull(append(dst, `{"sub":`...), who.Subject)
	dst = appendTextOrNull(append(dst, `,"email":`...), who.Email)
	dst = fmt.Appendf(dst, `,"projectId":%d,"iat":`, who.ProjectID)
	if who.IssuedAt == nil {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, *who.IssuedAt, 10)
	}
	return fmt.Appendf(dst, `,"exp":%d}`, who.ExpiresAt)
}

func appendTextOrNull(dst []byte, text *string) []byte {
	if text == nil {
		return append(dst, "null"...)
	}
	return resolver.AppendString(dst, *text)
}
