package api

import (
	"bytes"
	"strconv"

	"github.com/valyala/fasthttp"

	"fingerpost/resolver"
)

const authMePath = "/api/auth/me"

var (
	headerProjectID   = []byte("X-Project-Id")
	headerProjectSlug = []byte("X-Project-Slug")
	headerUserID      = []byte("X-User-Id")
	headerUserEmail   = []byte("X-User-Email")
	noStore           = []byte("no-store")
)

// authMe answers GET /api/auth/me: whether the bearer token is valid for the domain, and for which user.
func (s *Server) authMe(r *request) error {
	h := &r.ctx.Response.Header
	h.SetCanonical(headerCacheControl, noStore)
	token, failure := bearerToken(&r.ctx.Request.Header)
	if failure != keyGood {
		return s.refuseFailed(r.ctx, failure)
	}
	domain, err := gatewayDomain(r.ctx)
	if err != nil {
		return err
	}
	answer, err := s.resolver.Resolve(domain, resolver.Tokens)
	if err != nil {
		return err
	}
	if refused := refusedCode(answer.Code); refused != nil {
		return refused
	}
	secret, err := s.resolver.TokenSecret(answer)
	if err != nil {
		return err
	}
	who, err := verifyToken(token, secret, answer.ProjectID, s.authIssuer, r.ctx.Time())
	if err != nil {
		return s.refuseFailed(r.ctx, tokenInvalid)
	}
	setIdentity(h, answer, who)
	s.succeed(r.ctx, "token verified", appendIdentity(nil, who))
	return nil
}

// gatewayDomain returns the domain that a gateway asks about: that of the query, or else the first of X-Forwarded-Host,
// or else that of Host.
func gatewayDomain(ctx *fasthttp.RequestCtx) ([]byte, error) {
	q := parseResolveQuery(ctx.URI().QueryString())
	q.forms = 0
	if q.domains > 0 {
		if problems := q.problems(); len(problems) > 0 {
			return nil, invalid(problems...)
		}
		return q.domain, nil
	}
	forwarded, _, _ := bytes.Cut(ctx.Request.Header.Peek(fasthttp.HeaderXForwardedHost), []byte{','})
	if forwarded = bytes.Trim(forwarded, " \t"); len(forwarded) > 0 {
		return forwarded, nil
	}
	return ctx.Host(), nil
}

// setIdentity sets the headers that a gateway passes on. A claim that the token lacks becomes an empty header: for a
// missing header Caddy passes on the name of its placeholder or, in newer versions, what the client has sent.
func setIdentity(h *fasthttp.ResponseHeader, answer *resolver.Answer, who *identity) {
	h.SetCanonical(headerProjectID, strconv.AppendInt(nil, who.projectID, 10))
	h.SetCanonical(headerProjectSlug, []byte(answer.Slug))
	h.SetCanonical(headerUserID, appendHeaderText(nil, who.subject))
	h.SetCanonical(headerUserEmail, appendHeaderText(nil, who.email))
}

// appendHeaderText percent-encodes all but printable ASCII, and blanks at either end, which receivers drop. It encodes
// "%" too: two users must never get the same header.
func appendHeaderText(dst []byte, text *string) []byte {
	if text == nil {
		return dst
	}
	for i := range len(*text) {
		c := (*text)[i]
		if c > ' ' && c < 0x7f && c != '%' || c == ' ' && i > 0 && i < len(*text)-1 {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', "0123456789ABCDEF"[c>>4], "0123456789ABCDEF"[c&15])
		}
	}
	return dst
}

func appendIdentity(dst []byte, who *identity) []byte {
	text := func(s *string) {
		if s == nil {
			dst = append(dst, "null"...)
		} else {
			dst = resolver.AppendString(dst, *s)
		}
	}
	dst = append(dst, `{"sub":`...)
	text(who.subject)
	dst = append(dst, `,"email":`...)
	text(who.email)
	dst = append(dst, `,"projectId":`...)
	dst = strconv.AppendInt(dst, who.projectID, 10)
	dst = append(dst, `,"iat":`...)
	if who.issuedAt == nil {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, *who.issuedAt, 10)
	}
	dst = append(dst, `,"exp":`...)
	dst = strconv.AppendInt(dst, who.expiresAt, 10)
	return append(dst, '}')
}
