package api

import (
	"bytes"
	"errors"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gateway"
	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// gateToken returns the bearer token of a request, "" if an optional one is not there. It may be malformed: verifying a
// good token reads its form anyway, and reading it twice costs 8 µs more. Gateways ask for many clients, so
// failed tokens are counted and not throttled.
func (s *Server) gateToken(h *fasthttp.RequestHeader, rule gateway.TokenRule) (token string, err error) {
	token, failure := bearerText(h)
	switch {
	case failure == keyGood:
		return token, nil
	case rule == gateway.Optional && (failure == tokenMissing || failure == tokenMalformed && !hasBearer(h)):
		return "", nil
	}
	return "", s.failedToken(failure)
}

// hasBearer reports whether the Authorization header has the scheme Bearer. Other schemes are between the client and
// the service behind the gateway.
func hasBearer(h *fasthttp.RequestHeader) bool {
	scheme, _, _ := bytes.Cut(h.Peek(fasthttp.HeaderAuthorization), []byte{' '})
	return bytes.EqualFold(scheme, []byte("bearer"))
}

// beforeDomain returns the error of a malformed token, which goes before those of the domain and the project, or err.
func (s *Server) beforeDomain(token string, err error) error {
	if token != "" && !gateway.IsToken(token) {
		return s.failedToken(tokenMalformed)
	}
	return err
}

// identify verifies the token for the project of an answer.
func (s *Server) identify(ctx *fasthttp.RequestCtx, answer *resolver.Answer, token string) (*gateway.Identity, error) {
	secret, err := s.resolver.TokenSecret(answer)
	if err != nil {
		return nil, s.beforeDomain(token, err)
	}
	user, err := gateway.Verify(token, secret, answer.ProjectID, s.o.AuthIssuer, ctx.Time())
	switch {
	case errors.Is(err, gateway.ErrMalformed):
		return nil, s.failedToken(tokenMalformed)
	case err != nil:
		return nil, s.failedToken(tokenInvalid)
	}
	return user, nil
}

func (s *Server) failedToken(failure keyFailure) *catalog.Error {
	s.keys.failures[failure].Add(1)
	return web.RefuseToken
}

// bearerText returns the credentials of the Authorization header (RFC 6750, 2.1), or the failure: no such header, more
// than one, or one of another kind. They may be no JWT.
func bearerText(h *fasthttp.RequestHeader) (token string, failure keyFailure) {
	values := h.PeekAll(fasthttp.HeaderAuthorization)
	switch {
	case len(values) == 0:
		return "", tokenMissing
	case len(values) > 1:
		return "", tokenRepeated
	}
	scheme, credentials, _ := bytes.Cut(values[0], []byte{' '})
	credentials = bytes.Trim(credentials, " \t")
	if !bytes.EqualFold(scheme, []byte("bearer")) || len(credentials) > gateway.MaxTokenBytes || len(credentials) == 0 {
		return "", tokenMalformed
	}
	return string(credentials), keyGood
}
