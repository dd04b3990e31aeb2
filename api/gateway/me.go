package gateway

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gate"
	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// MeMessage is the message of an answer of me.
const MeMessage = "token verified"

var (
	headerProjectID   = []byte("X-Project-Id")
	headerProjectSlug = []byte("X-Project-Slug")
	headerUserID      = []byte("X-User-Id")
	headerUserEmail   = []byte("X-User-Email")

	refuseRate = &catalog.Error{Code: catalog.CodeRateLimited,
		Message: "too many failed tokens from this address; try again later"}
)

// me answers GET /api/auth/me: whether the bearer token is valid for the domain, and for which user.
func (a *API) me(r *web.Request) error {
	h := &r.Ctx.Response.Header
	h.SetCanonical(web.HeaderCacheControl, web.CacheNever)
	token, why := bearerText(&r.Ctx.Request.Header)
	switch why {
	case good:
	case missing, repeated: // they guess nothing
		return a.failed(why)
	default:
		return a.throttled(r, a.failed(why))
	}
	answer, err := a.tokenProject(r.Ctx)
	if err != nil {
		return a.throttled(r, a.beforeDomain(token, err))
	}
	who, err := a.identify(r.Ctx, answer, token)
	if err != nil {
		return a.throttled(r, err)
	}
	setIdentity(h, answer, who)
	r.Succeed(MeMessage, who.data)
	return nil
}

// tokenProject returns the project for whose users a token must be.
func (a *API) tokenProject(ctx *fasthttp.RequestCtx) (*resolver.Answer, error) {
	domain, err := gatewayDomain(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := a.Live.Resolve(ctx, domain, resolver.Tokens)
	if err == nil && answer.Code != "" {
		err = web.RefusedCode(answer)
	}
	return answer, err
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

// PlainDomain returns the domain that a question to me is about, as gatewayDomain does. It reads a query that is empty, or
// that is a domain and nothing else without escapes; plain is false for any other.
func PlainDomain(c *gate.Check) (domain []byte, plain bool) {
	domain, named := bytes.CutPrefix(c.Query, []byte("domain="))
	switch {
	case named:
		return domain, len(domain) > 0 && !bytes.ContainsAny(domain, "%+&#;")
	case len(c.Query) > 0:
		return nil, false
	}
	if domain = FirstHost(c.Forwarded); len(domain) == 0 {
		domain = c.Host
	}
	return domain, true
}

// throttled returns err, or 429 if it is that of a failed token and too many have come from the client's address.
func (a *API) throttled(r *web.Request, err error) error {
	if !errors.Is(err, web.RefuseToken) {
		return err
	}
	if wait := a.Throttle(r.Conn.Peer()); wait > 0 {
		web.RetryAfter(r.Ctx, wait)
		return refuseRate
	}
	return err
}

// setIdentity sets the headers that a gateway passes on.
func setIdentity(h *fasthttp.ResponseHeader, answer *resolver.Answer, who *Identity) {
	h.SetCanonical(headerProjectID, strconv.AppendInt(nil, who.ProjectID, 10))
	h.SetCanonical(headerProjectSlug, []byte(answer.Slug))
	setUser(h, who)
}

// AppendMeLines appends the header lines that setIdentity sets, for a project with a slug.
func (i *Identity) AppendMeLines(dst []byte, slug string) []byte {
	dst = strconv.AppendInt(append(dst, "X-Project-Id: "...), i.ProjectID, 10)
	dst = append(append(dst, "\r\nX-Project-Slug: "...), slug...)
	dst = appendHeaderText(append(dst, "\r\nX-User-Id: "...), i.Subject)
	dst = appendHeaderText(append(dst, "\r\nX-User-Email: "...), i.Email)
	return append(dst, "\r\n"...)
}

// Data returns the user as me answers it, in JSON. It must not be changed.
func (i *Identity) Data() []byte { return i.data }

// setUser sets the headers about the user, who may be nil. A claim that the token lacks becomes an empty header: for a
// missing header Caddy passes on the name of its placeholder or, in newer versions, what the client has sent.
func setUser(h *fasthttp.ResponseHeader, who *Identity) {
	if who == nil {
		who = new(Identity)
	}
	h.SetCanonical(headerUserID, appendHeaderText(nil, who.Subject))
	h.SetCanonical(headerUserEmail, appendHeaderText(nil, who.Email))
}

// AppendLines appends the header lines of a check about the user, who may be nil. No header is empty: some gateways then
// pass on what their client has sent (api/gateway/README.md, What the gate answers).
func (i *Identity) AppendLines(dst []byte) []byte {
	if i == nil {
		return append(dst, "X-Auth: none\r\n"...)
	}
	dst = append(dst, "X-Auth: good\r\n"...)
	if i.Subject != nil && *i.Subject != "" {
		dst = append(appendHeaderText(append(dst, "X-User-Id: "...), i.Subject), "\r\n"...)
	}
	if i.Email != nil && *i.Email != "" {
		dst = append(appendHeaderText(append(dst, "X-User-Email: "...), i.Email), "\r\n"...)
	}
	return dst
}

// appendHeaderText appends a claim as the value of a header: two users must never get the same header.
func appendHeaderText(dst []byte, text *string) []byte {
	if text == nil {
		return dst
	}
	return catalog.AppendHeaderText(dst, *text)
}
