package api_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"fingerpost/api"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// A signer signs with one algorithm. Its keys go by the names of secrets, which for HS256 they are.
type signer struct {
	name   string
	method jwt.SigningMethod
	pair   func() (crypto.Signer, error) // nil: HS256

	mu   sync.Mutex
	keys map[string]crypto.Signer
}

// signers lists one for each algorithm, HS256 first. Making keys of RSA takes a while, so they are shared.
var signers = sync.OnceValue(func() []*signer {
	return []*signer{
		{name: "HS256", method: jwt.SigningMethodHS256},
		{name: "RS256", method: jwt.SigningMethodRS256, pair: func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) }},
		{name: "ES256", method: jwt.SigningMethodES256, pair: func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }},
		{name: "EdDSA", method: jwt.SigningMethodEdDSA, pair: func() (crypto.Signer, error) {
			_, key, err := ed25519.GenerateKey(rand.Reader)
			return key, err
		}},
	}
})

func signerOf(t testing.TB, name string) *signer {
	t.Helper()
	for _, s := range signers() {
		if s.name == name {
			return s
		}
	}
	t.Fatalf("there is no signer %s", name)
	return nil
}

func (s *signer) key(secret string) any {
	if s.pair == nil {
		return []byte(secret)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[secret] == nil {
		key, err := s.pair()
		if err != nil {
			panic(err)
		}
		if s.keys == nil {
			s.keys = map[string]crypto.Signer{}
		}
		s.keys[secret] = key
	}
	return s.keys[secret]
}

// public returns the public key in PEM, "" for HS256.
func (s *signer) public(t testing.TB, secret string) string {
	t.Helper()
	key, asymmetric := s.key(secret).(crypto.Signer)
	if !asymmetric {
		return ""
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func (s *signer) sign(t testing.TB, secret string, c jwt.Claims, header map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(s.method, c)
	maps.Copy(token.Header, header)
	text, err := token.SignedString(s.key(secret))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// text makes a token of any header and claims.
func (s *signer) text(t testing.TB, secret, header, payload string) string {
	t.Helper()
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(payload))
	signature, err := s.method.Sign(text, s.key(secret))
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

const ownIssuer = "https://login.acme.example/"

// startRules serves a project, shop (11), with auth settings of its own, and what the defaults block says.
func startRules(t testing.TB, own, defaults func(a *catalog.AuthSettings), change ...func(*api.Options)) *house {
	h := start(t, change...)
	h.declareRules(own, defaults)
	return h
}

// declareRules replaces the settings of startRules.
func (h *house) declareRules(own, defaults func(a *catalog.AuthSettings)) {
	says := func(a *catalog.AuthSettings, change func(a *catalog.AuthSettings)) {
		builtIn := catalog.NewAuthSettings()
		if change != nil {
			change(a)
		}
		for i, f := range a.Fields() {
			if !f.Same(builtIn.Fields()[i]) {
				a.Said = a.Said.With(i)
			}
		}
	}
	p := project(11, "shop", "Shop", catalog.StatusActive, "shop.example")
	says(&p.Auth, own)
	d := &catalog.Declared{Projects: []catalog.ProjectConfig{p}}
	if defaults != nil {
		auth := catalog.NewAuthSettings()
		says(&auth, defaults)
		d.Defaults = &catalog.Defaults{Auth: &auth}
	}
	h.apply("auth.hcl", d)
}

// me asks about a token for shop.example.
func (h *house) me(token string) *answer {
	return h.ask("GET", mePath+"?domain=shop.example", "", bearer(token))
}

// Issuer and audience are the project's where it names them, for every algorithm. A token names the project unless the
// issuer, and the audience or the keys, are the project's own.
func TestTokenRules(t *testing.T) {
	issuer, audience := ownIssuer, "shop"
	own := []any{"iss", issuer}
	for _, s := range signers() {
		keys := func(a *catalog.AuthSettings) {
			a.Token.JWTSecret = catalog.Secret{Source: catalog.SecretPlain, Ref: shopSecret}
			if text := s.public(t, shopSecret); text != "" {
				a.Rules.Algorithms, a.Rules.Keys = []string{s.name}, []string{text}
			}
		}
		token := func(changes ...any) string { return s.sign(t, shopSecret, claims(11, append(own, changes...)...), nil) }
		f := func(name string, own, defaults func(a *catalog.AuthSettings), good, bad []string) {
			t.Helper()
			h := startRules(t, own, defaults)
			for i, token := range good {
				if a := h.me(token); a.StatusCode != 200 || !strings.Contains(string(a.body), `"projectId":11`) {
					t.Errorf("%s, %s: good token %d: %d %s", s.name, name, i, a.StatusCode, a.body)
				}
			}
			for i, token := range bad {
				refusedToken(t, s.name+", "+name+", bad token "+strconv.Itoa(i), h.me(token))
			}
		}
		withIssuer := func(a *catalog.AuthSettings) { keys(a); a.Rules.Issuer = &issuer }
		withBoth := func(a *catalog.AuthSettings) { withIssuer(a); a.Rules.Audience = &audience }
		other := s.sign(t, shopSecret, claims(11), nil)
		nameless := token("projectId", drop)
		if s.name == "HS256" {
			f("own issuer", withIssuer, nil, []string{token(), token("aud", "x")}, []string{other, nameless})
			f("own audience", withBoth, nil, []string{token("aud", "shop"), token("aud", []string{"x", "shop"})},
				[]string{token(), token("aud", "x"), token("aud", ""), token("aud", []string{}), token("aud", 5), token("aud", "shop", "projectId", drop)})
			continue
		}
		f("own issuer and keys", withIssuer, nil, []string{token(), nameless, token("projectId", "11"), token("aud", "x")},
			[]string{other, token("projectId", 12), token("projectId", nil), token("projectId", ""), token("projectId", drop, "iss", "auth-service")})
		f("own audience", withBoth, nil, []string{token("aud", "shop", "projectId", drop), token("aud", []string{"x", "shop"})},
			[]string{nameless, token(), token("aud", "Shop"), token("aud", "shop", "projectId", 12)})
		f("own issuer, keys of defaults", func(a *catalog.AuthSettings) { a.Rules.Issuer = &issuer }, keys,
			[]string{token()}, []string{nameless, other})
		f("own issuer and audience, keys of defaults", func(a *catalog.AuthSettings) { a.Rules.Issuer, a.Rules.Audience = &issuer, &audience }, keys,
			[]string{token("aud", "shop", "projectId", drop)}, []string{nameless})
		f("own keys, issuer of defaults", keys, func(a *catalog.AuthSettings) { a.Rules.Issuer = &issuer },
			[]string{token()}, []string{nameless})
		f("all of defaults", nil, withBoth, []string{token("aud", "shop")}, []string{token("aud", "shop", "projectId", drop)})
	}
}

// A kid narrows only where the token and the key have one; several keys and algorithms may be good at a time.
func TestTokenKid(t *testing.T) {
	ec, ed, rs := signerOf(t, "ES256"), signerOf(t, "EdDSA"), signerOf(t, "RS256")
	jwk := func(secret, kid string) string {
		key := ed.key(secret).(ed25519.PrivateKey).Public().(ed25519.PublicKey)
		text := `{"kty":"OKP","crv":"Ed25519","x":"` + base64.RawURLEncoding.EncodeToString(key) + `"`
		if kid != "" {
			text += `,"kid":"` + kid + `"`
		}
		return text + "}"
	}
	h := startRules(t, func(a *catalog.AuthSettings) {
		a.Token.JWTSecret = catalog.Secret{Source: catalog.SecretPlain, Ref: shopSecret}
		a.Rules.Algorithms = []string{"EdDSA", "ES256", "HS256"}
		a.Rules.Keys = []string{jwk("old", "old"), jwk("new", "new"), jwk("any", ""), ec.public(t, "ec")}
	}, nil)
	f := func(status int, token string) {
		t.Helper()
		h.me(token).check(t, status, map[int]string{401: "UNAUTHORIZED"}[status])
	}
	signed := func(s *signer, secret, kid string) string {
		header := map[string]any{}
		if kid != "" {
			header["kid"] = kid
		}
		return s.sign(t, secret, claims(11), header)
	}
	for _, secret := range []string{"old", "new", "any"} {
		f(200, signed(ed, secret, ""))
		f(200, signed(ed, secret, secret))
	}
	f(200, signed(ed, "any", "whatever"))
	f(200, signed(ec, "ec", "old"))
	f(200, hs256(t, shopSecret, claims(11)))
	f(401, signed(ed, "old", "new"))
	f(401, signed(ed, "new", "whatever"))
	f(401, signed(ed, "gone", ""))
	f(401, signed(ec, "old", ""))
	f(401, signed(rs, "rs", ""))
	f(401, hs256(t, jwk("any", ""), claims(11)))
	f(401, hs256(t, ec.public(t, "ec"), claims(11)))
}

// A verified token is good no longer than the rules and keys that it was verified with, also on the fast path's ways.
func TestVerifiedTokenRules(t *testing.T) {
	testrig.Thorough(t)
	issuer, other, audience := ownIssuer, "https://other.example/", "shop"
	for _, s := range signers()[1:] {
		var h *house
		declare := func(change func(r *catalog.TokenRules)) {
			own := func(a *catalog.AuthSettings) {
				a.Rules = catalog.TokenRules{Algorithms: []string{s.name}, Keys: []string{s.public(t, "one")}, Issuer: &issuer}
				change(&a.Rules)
			}
			if h == nil {
				h = startRules(t, own, nil)
			} else {
				h.declareRules(own, nil)
			}
		}
		token := s.sign(t, "one", claims(11, "iss", issuer, "projectId", drop), nil)
		as := func(status int, change func(r *catalog.TokenRules)) {
			t.Helper()
			declare(change)
			for range 3 {
				if a := h.me(token); a.StatusCode != status {
					t.Errorf("%s: %d %s, want %d", s.name, a.StatusCode, a.body, status)
				}
			}
		}
		same := func(*catalog.TokenRules) {}
		as(200, same)
		as(401, func(r *catalog.TokenRules) { r.Keys = []string{s.public(t, "two")} })
		as(200, func(r *catalog.TokenRules) { r.Keys = []string{s.public(t, "two"), s.public(t, "one")} })
		as(401, func(r *catalog.TokenRules) { r.Issuer = &other })
		as(401, func(r *catalog.TokenRules) { r.Audience = &audience })
		as(503, func(r *catalog.TokenRules) { *r = catalog.NewTokenRules() }) // there is no secret
		as(200, same)
	}
}
