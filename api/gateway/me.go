package gateway

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/valyala/fasthttp"

	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

var (
	headerProjectID   = []byte("X-Project-Id")
	headerProjectSlug = []byte("X-Project-Slug")
	headerUserID      = []byte("X-User-Id")
	headerUserEmail   = []byte("X-User-Email")
	headerAuth        = []byte("X-Auth")

	refuseRate = &catalog.Error{Code: catalog.CodeRateLimited,
		Message: "too many failed tokens from this address; try again later"}
)

// me answers GET /api/auth/me: whether the bearer token is valid for the domain, and for which user.
func (a *API) me(r *web.Request) error {
	h := &r.Ctx.Response.Header
	h.SetCanonical(web.HeaderCacheControl, web.CacheNever)
	token, why := bearerText(&r.Ctx.Request.Header)
	if why != good {
		return a.refuse(r, why)
	}
	answer, secret, err := a.tokenTarget(r.Ctx)
	if err != nil {
		if !isToken(token) { // goes first; verifying a good token reads its form anyway
			return a.refuse(r, malformed)
		}
		return err
	}
	who, err := verify(token, secret, answer.ProjectID, a.Issuer, r.Ctx.Time())
	switch {
	case errors.Is(err, errMalformed):
		return a.refuse(r, malformed)
	case err != nil:
		return a.refuse(r, invalid)
	}
	setIdentity(h, answer, who)
	r.Succeed("token verified", appendIdentity(nil, who))
	return nil
}

// tokenTarget returns the project for whose users a token must be, and the secret that signs it.
func (a *API) tokenTarget(ctx *fasthttp.RequestCtx) (answer *resolver.Answer, secret []byte, err error) {
	domain, err := gatewayDomain(ctx)
	if err != nil {
		return nil, nil, err
	}
	if answer, err = a.Live.Resolve(domain, resolver.Tokens); err != nil {
		return nil, nil, err
	}
	if answer.Code != "" {
		return nil, nil, web.RefusedCode(answer.Code)
	}
	secret, err = a.Live.TokenSecret(answer)
	return answer, secret, err
}

// gatewayDomain returns the domain that a gateway asks about: that of the query, or else the first of X-Forwarded-Host,
// or else that of Host.
func gatewayDomain(ctx *fasthttp.RequestCtx) ([]byte, error) {
	q := web.ParseQuery(ctx.URI().QueryString(), "domain")
	if len(q.Problems) > 0 {
		return nil, web.Invalid(q.Problems...)
	}
	if domain, given := q.Values["domain"]; given {
		return []byte(domain), nil
	}
	if forwarded := forwardedHost(&ctx.Request.Header); len(forwarded) > 0 {
		return forwarded, nil
	}
	return ctx.Host(), nil
}

// refuse counts a failed token and returns 401, or 429 after too many failures from the client's address. Requests
// without a token, or with two, guess nothing and are not throttled.
func (a *API) refuse(r *web.Request, why failure) *catalog.Error {
	refused := a.failed(why)
	if why == missing || why == repeated {
		return refused
	}
	if wait := a.Throttle(r.Conn.Peer()); wait > 0 {
		web.RetryAfter(r.Ctx, wait)
		return refuseRate
	}
	return refused
}

// setIdentity sets the headers that a gateway passes on.
func setIdentity(h *fasthttp.ResponseHeader, answer *resolver.Answer, who *identity) {
	h.SetCanonical(headerProjectID, strconv.AppendInt(nil, who.ProjectID, 10))
	h.SetCanonical(headerProjectSlug, []byte(answer.Slug))
	setUser(h, who)
}

// setUser sets the headers about the user, who may be nil. A claim that the token lacks becomes an empty header: for a
// missing header Caddy passes on the name of its placeholder or, in newer versions, what the client has sent.
func setUser(h *fasthttp.ResponseHeader, who *identity) {
	if who == nil {
		who = new(identity)
	}
	h.SetCanonical(headerUserID, appendHeaderText(nil, who.Subject))
	h.SetCanonical(headerUserEmail, appendHeaderText(nil, who.Email))
}

// setVerified sets X-Auth and the headers about the user, who may be nil. No header is empty: some gateways then pass
// on what their client has sent (api/README.md, Gateways).
func setVerified(h *fasthttp.ResponseHeader, who *identity) {
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

func appendIdentity(dst []byte, who *identity) []byte {
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
