package gateway

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"fingerpost/api/gateway/jwks"
	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// maxTokenBytes is the length of the longest token that is read.
const maxTokenBytes = 8 << 10

const tokenLeeway = 30 * time.Second // between our clock and the auth service's

// errMalformed is the error of verify for a text that is no JWT.
var errMalformed = jwt.ErrTokenMalformed

// An Identity is the content of a verified token, as me answers it.
type Identity struct {
	Subject   *string `json:"sub"` // nil where the token has none, as is Email
	Email     *string `json:"email"`
	ProjectID int64   `json:"projectId"`
	IssuedAt  *int64  `json:"iat"` // Unix seconds, as is ExpiresAt
	ExpiresAt int64   `json:"exp"`

	from, until time.Time // when the token is valid: until is excluded, and both have the leeway
	data        []byte    // what me answers
}

// validAt reports whether the times of the token allow it.
func (i *Identity) validAt(now time.Time) bool { return !now.Before(i.from) && now.Before(i.until) }

// isToken reports whether the text has the form of a JWT: readable header and claims, and a signature, in base64url.
func isToken(text string) bool {
	_, _, err := jwt.NewParser(jwt.WithStrictDecoding()).ParseUnverified(text, new(tokenClaims))
	return !errors.Is(err, jwt.ErrTokenMalformed)
}

// A keysIdentity changes with everything that decides whether a token is good, but the time.
type keysIdentity struct {
	own [sha256.Size]byte // of what the project declares
	set [sha256.Size]byte // of the key set
}

// A verifier verifies the tokens of a project.
type verifier struct {
	*resolver.TokenKeys
	issuer   string
	set      *jwks.Set // nil: the project names none, or there was none yet
	identity keysIdentity
}

// errUnknownKey is the error of verify for a token whose kid no key has.
var errUnknownKey = errors.New("no key has the kid of the token")

// verify verifies a token: signed with an algorithm and a key of the project, by the issuer, for the audience and the
// project, and valid now. The error says what is wrong, for tests; clients do not see it. It wraps
// resolver.ErrNoTokenKeys if there is no key yet for the token's algorithm.
func (v *verifier) verify(token string, now time.Time) (*Identity, error) {
	options := []jwt.ParserOption{
		jwt.WithValidMethods(v.Rules.Algorithms), jwt.WithStrictDecoding(),
		jwt.WithIssuer(v.issuer), jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(tokenLeeway),
		jwt.WithTimeFunc(func() time.Time { return now }),
	}
	if v.Rules.Audience != nil {
		options = append(options, jwt.WithAudience(*v.Rules.Audience))
	}
	claims := &tokenClaims{identity: Identity{ProjectID: v.ProjectID}}
	_, err := jwt.NewParser(options...).ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		if _, critical := t.Header["crit"]; critical { // RFC 7515, 4.1.11: we support none, and the library does not check
			return nil, errors.New("the header has crit")
		}
		algorithm := t.Method.Alg()
		claims.anyProject = v.OwnRules && algorithm != catalog.AlgorithmHS256
		return v.keysFor(algorithm, t.Header["kid"])
	})
	if err != nil {
		return nil, err
	}
	user := new(Identity)
	*user = claims.identity // without the other claims: it may be kept
	if user.data, err = web.EncodeJSON(user); err != nil {
		return nil, err
	}
	return user, nil
}

// keysFor returns the keys of the type that an algorithm needs. A kid narrows them where the token and the key have one.
func (v *verifier) keysFor(algorithm string, kid any) (any, error) {
	if algorithm == catalog.AlgorithmHS256 {
		if v.Secret == nil {
			return nil, resolver.ErrNoTokenKeys
		}
		return v.Secret, nil
	}
	id, isText := kid.(string)
	if kid != nil && !isText {
		return nil, errors.New("kid is not a string")
	}
	public := v.Public
	switch {
	case v.set != nil:
		public = v.set.Keys
	case v.Rules.KeySetURL != nil, len(public) == 0:
		return nil, resolver.ErrNoTokenKeys
	}
	var keys jwt.VerificationKeySet
	for _, k := range public {
		if k.Algorithm == algorithm && (id == "" || k.ID == "" || k.ID == id) {
			keys.Keys = append(keys.Keys, k.Key)
		}
	}
	if len(keys.Keys) == 0 {
		return nil, errUnknownKey
	}
	return keys, nil
}

// tokenClaims are the claims of one token. Their names are case-sensitive, and no name may occur twice.
type tokenClaims struct {
	jwt.MapClaims
	identity   Identity // ProjectID is what the claim must say; Validate fills in the rest
	anyProject bool     // the claim may be missing
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *tokenClaims) UnmarshalJSON(b []byte) error {
	o, err := web.DecodeBody(b)
	if err == nil {
		c.MapClaims = o.Values
	}
	return err
}

// Validate implements jwt.ClaimsValidator. The library calls it after it has verified the signature.
func (c *tokenClaims) Validate() (err error) {
	if id, named := c.MapClaims["projectId"]; (named || !c.anyProject) && !isProject(id, c.identity.ProjectID) {
		return errors.New("projectId is not that of the project")
	}
	if c.identity.Subject, err = c.text("sub"); err != nil {
		return err
	}
	if c.identity.Email, err = c.text("email"); err != nil {
		return err
	}
	notBefore, err := unixSeconds(c.GetNotBefore())
	if err != nil {
		return err
	}
	if c.identity.IssuedAt, err = unixSeconds(c.GetIssuedAt()); err != nil {
		return err
	}
	for _, begin := range []*int64{notBefore, c.identity.IssuedAt} {
		if begin != nil && time.Unix(*begin, 0).Add(-tokenLeeway).After(c.identity.from) {
			c.identity.from = time.Unix(*begin, 0).Add(-tokenLeeway)
		}
	}
	expires, err := unixSeconds(c.GetExpirationTime())
	if err == nil && expires != nil { // the library reports a missing one
		c.identity.ExpiresAt = *expires
		c.identity.until = time.Unix(*expires, 0).Add(tokenLeeway)
	}
	return err
}

// isProject reports whether a claim is the project's id, as a number or in decimal digits.
func isProject(claim any, id int64) bool {
	switch claim.(type) {
	case json.Number, string:
		return fmt.Sprint(claim) == strconv.FormatInt(id, 10)
	}
	return false
}

func (c *tokenClaims) text(name string) (*string, error) {
	switch v := c.MapClaims[name].(type) {
	case nil:
		return nil, nil
	case string:
		return &v, nil
	}
	return nil, errors.New(name + " is not a string")
}

// unixSeconds rejects times out of range, for which the library's conversion has no defined result.
func unixSeconds(date *jwt.NumericDate, err error) (*int64, error) {
	if err != nil || date == nil {
		return nil, err
	}
	seconds := date.Unix()
	if seconds < 0 || seconds >= 1<<53 {
		return nil, errors.New("a time is out of range")
	}
	return &seconds, nil
}
