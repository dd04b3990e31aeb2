package gateway

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"time"

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

// token returns the bearer token of a request, nil if an optional one is not there. It may be malformed: verifying a
// good token reads its form anyway, and reading it twice costs 8 µs more. Gateways ask for many clients, so
// failed tokens are counted and not throttled.
func (a *API) token(h *fasthttp.RequestHeader, rule TokenRule) (token []byte, err error) {
	token, why := bearerText(h)
	switch {
	case why == good:
		return token, nil
	case rule == Optional && (why == missing || why == malformed && !hasBearer(h)):
		return nil, nil
	}
	return nil, a.failed(why)
}

// hasBearer reports whether the Authorization header has the scheme Bearer. Other schemes are between the client and
// the service behind the gateway.
func hasBearer(h *fasthttp.RequestHeader) bool {
	scheme, _, _ := bytes.Cut(h.Peek(fasthttp.HeaderAuthorization), []byte{' '})
	return bytes.EqualFold(scheme, []byte("bearer"))
}

// beforeDomain returns the error of a malformed token, which goes before those of the domain and the project, or err.
func (a *API) beforeDomain(token []byte, err error) error {
	if token != nil && !isToken(string(token)) {
		return a.failed(malformed)
	}
	return err
}

// identify verifies the token for the project of an answer.
func (a *API) identify(ctx *fasthttp.RequestCtx, answer *resolver.Answer, token []byte) (*Identity, error) {
	keys, err := a.Live.TokenKeys(answer)
	if err != nil {
		return nil, a.beforeDomain(token, err)
	}
	now, sum := ctx.Time(), sha256.Sum256(token)
	v := a.verifier(keys)
	if user := a.verified.find(&sum, answer.ProjectID, &v.identity, now); user != nil {
		return user, nil
	}
	user, err := v.verify(string(token), now)
	switch {
	case errors.Is(err, resolver.ErrNoTokenKeys):
		return nil, resolver.ErrNoTokenKeys
	case errors.Is(err, errUnknownKey) && v.set != nil:
		a.KeySets.NoteUnknown(answer.ProjectID, *keys.Rules.KeySetURL)
		return nil, a.failed(invalid)
	case errors.Is(err, errMalformed):
		return nil, a.failed(malformed)
	case err != nil:
		return nil, a.failed(invalid)
	}
	a.verified.store(&verified{Identity: user, sum: sum, by: v.identity}, now)
	return user, nil
}

// Known returns the user of an Authorization header whose token was verified before, nil if the handler has to verify.
func (a *API) Known(answer *resolver.Answer, authorization []byte, now time.Time) *Identity {
	token, why := bearerOf(authorization)
	if why != good {
		return nil
	}
	keys, err := a.Live.TokenKeys(answer)
	if err != nil {
		return nil
	}
	sum, v := sha256.Sum256(token), a.verifier(keys)
	return a.verified.find(&sum, answer.ProjectID, &v.identity, now)
}

// verifier returns what verifies a project's tokens now.
func (a *API) verifier(keys *resolver.TokenKeys) verifier {
	v := verifier{TokenKeys: keys, issuer: a.Issuer, identity: keysIdentity{own: keys.Identity}}
	if keys.Rules.Issuer != nil {
		v.issuer = *keys.Rules.Issuer
	}
	if url := keys.Rules.KeySetURL; url != nil && a.KeySets != nil {
		if v.set = a.KeySets.KeySet(*url); v.set != nil {
			v.identity.set = v.set.Identity
		}
	}
	return v
}

func (a *API) failed(why failure) *catalog.Error {
	a.failures[why].Add(1)
	return web.RefuseToken
}

// bearerText returns the credentials of the Authorization header (RFC 6750, 2.1), or the failure: no such header, more
// than one, or one of another kind. They may be no JWT.
func bearerText(h *fasthttp.RequestHeader) (token []byte, why failure) {
	values := h.PeekAll(fasthttp.HeaderAuthorization)
	switch {
	case len(values) == 0:
		return nil, missing
	case len(values) > 1:
		return nil, repeated
	}
	return bearerOf(values[0])
}

// bearerOf returns the credentials of an Authorization header, or that they are malformed.
func bearerOf(authorization []byte) (token []byte, why failure) {
	scheme, credentials, _ := bytes.Cut(authorization, []byte{' '})
	credentials = bytes.Trim(credentials, " \t")
	if !bytes.EqualFold(scheme, []byte("bearer")) || len(credentials) > maxTokenBytes || len(credentials) == 0 {
		return nil, malformed
	}
	return credentials, good
}
