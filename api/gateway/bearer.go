package gateway

import (
	"bytes"
	"errors"

	"github.com/valyala/fasthttp"

	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A failure is the reason why a token was refused. It goes to the metrics, never to the client.
type failure uint8

const (
	good failure = iota
	missing
	repeated
	malformed
	invalid
	failures
)

var failureNames = [failures]string{"", "token_missing", "token_repeated", "token_malformed", "token_invalid"}

// token returns the bearer token of a request, "" if an optional one is not there. It may be malformed: verifying a
// good token reads its form anyway, and reading it twice costs 8 µs more. Gateways ask for many clients, so
// failed tokens are counted and not throttled.
func (a *API) token(h *fasthttp.RequestHeader, rule TokenRule) (token string, err error) {
	token, why := bearerText(h)
	switch {
	case why == good:
		return token, nil
	case rule == Optional && (why == missing || why == malformed && !hasBearer(h)):
		return "", nil
	}
	return "", a.failed(why)
}

// hasBearer reports whether the Authorization header has the scheme Bearer. Other schemes are between the client and
// the service behind the gateway.
func hasBearer(h *fasthttp.RequestHeader) bool {
	scheme, _, _ := bytes.Cut(h.Peek(fasthttp.HeaderAuthorization), []byte{' '})
	return bytes.EqualFold(scheme, []byte("bearer"))
}

// beforeDomain returns the error of a malformed token, which goes before those of the domain and the project, or err.
func (a *API) beforeDomain(token string, err error) error {
	if token != "" && !isToken(token) {
		return a.failed(malformed)
	}
	return err
}

// identify verifies the token for the project of an answer.
func (a *API) identify(ctx *fasthttp.RequestCtx, answer *resolver.Answer, token string) (*identity, error) {
	secret, err := a.Live.TokenSecret(answer)
	if err != nil {
		return nil, a.beforeDomain(token, err)
	}
	user, err := verify(token, secret, answer.ProjectID, a.Issuer, ctx.Time())
	switch {
	case errors.Is(err, errMalformed):
		return nil, a.failed(malformed)
	case err != nil:
		return nil, a.failed(invalid)
	}
	return user, nil
}

func (a *API) failed(why failure) *catalog.Error {
	a.failures[why].Add(1)
	return web.RefuseToken
}

// bearerText returns the credentials of the Authorization header (RFC 6750, 2.1), or the failure: no such header, more
// than one, or one of another kind. They may be no JWT.
func bearerText(h *fasthttp.RequestHeader) (token string, why failure) {
	values := h.PeekAll(fasthttp.HeaderAuthorization)
	switch {
	case len(values) == 0:
		return "", missing
	case len(values) > 1:
		return "", repeated
	}
	scheme, credentials, _ := bytes.Cut(values[0], []byte{' '})
	credentials = bytes.Trim(credentials, " \t")
	if !bytes.EqualFold(scheme, []byte("bearer")) || len(credentials) > maxTokenBytes || len(credentials) == 0 {
		return "", malformed
	}
	return string(credentials), good
}
