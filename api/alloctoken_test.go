//go:build !race

package api

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"fingerpost/api/gateway/jwks"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

type noNotes struct{}

func (noNotes) SetNamed(map[string][]byte) error                              { return nil }
func (noNotes) EachNamed(string, func(name string, value []byte) error) error { return nil }

// TestTokenCheckAllocatesNothing: with each algorithm, and with the keys in the file or in a key set, a check with a
// token that was verified before allocates nothing.
func TestTokenCheckAllocatesNothing(t *testing.T) {
	rsaKey, err1 := rsa.GenerateKey(rand.Reader, 2048)
	ecKey, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	edPublic, edKey, err3 := ed25519.GenerateKey(rand.Reader)
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	point, err := ecKey.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	for _, c := range []struct {
		method jwt.SigningMethod
		key    any
		jwk    string
	}{
		{jwt.SigningMethodRS256, rsaKey, `{"kty":"RSA","n":"` + b64(rsaKey.N.Bytes()) + `","e":"` + b64(big.NewInt(int64(rsaKey.E)).Bytes()) + `"}`},
		{jwt.SigningMethodES256, ecKey, `{"kty":"EC","crv":"P-256","x":"` + b64(point[1:33]) + `","y":"` + b64(point[33:]) + `"}`},
		{jwt.SigningMethodEdDSA, edKey, `{"kty":"OKP","crv":"Ed25519","x":"` + b64(edPublic) + `"}`},
	} {
		provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"keys":[`+c.jwk+`]}`)
		}))
		defer provider.Close()
		keeper := jwks.New(jwks.Options{Notes: noNotes{}, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Logger: slog.New(slog.DiscardHandler)})
		go keeper.Run(t.Context())
		keeper.Put(jwks.Source{Project: 1, URL: provider.URL})
		testrig.Eventually(t, "the key set", func() bool { return keeper.KeySet(provider.URL) != nil })
		token, err := jwt.NewWithClaims(c.method, jwt.MapClaims{"iss": "https://login.example/", "sub": "u-1", "exp": 1 << 40}).SignedString(c.key)
		if err != nil {
			t.Fatal(err)
		}
		for name, rules := range map[string]catalog.TokenRules{
			"own key": {Algorithms: []string{c.method.Alg()}, Keys: []string{c.jwk}}, "key set": {Algorithms: []string{c.method.Alg()}, KeySetURL: &provider.URL},
		} {
			s, fill := fastServer(t)
			s.rooms.gateway.KeySets = keeper
			declareRules(t, s.resolver, rules)
			request := fill(checkOf("auth=required") + "Authorization: Bearer " + token + "\r\n\r\n")
			testrig.Eventually(t, "the answer in the cache and the token verified", func() bool {
				s.askLibrary(request, Gateway)
				return len(s.askGate(request, Gateway)) > 0
			})
			peer := &scriptedConn{requests: [][]byte{request}, done: func() {}}
			conn, p := s.admit(peer, true, Gateway), make([]byte, s.o.Limits.HeaderBytes)
			if n := testing.AllocsPerRun(10, func() {
				peer.left = 100
				if n, err := conn.Read(p); n != 0 || err == nil {
					t.Fatal(n, err)
				}
			}); n != 0 {
				t.Errorf("%s, %s: 100 checks allocate %v times", c.method.Alg(), name, n)
			}
		}
	}
}

// declareRules gives the project of hotServer rules of its own.
func declareRules(t *testing.T, r *resolver.Resolver, rules catalog.TokenRules) {
	t.Helper()
	p, _, err := r.ProjectConfig(1)
	if err != nil {
		t.Fatal(err)
	}
	issuer := "https://login.example/"
	rules.Issuer = &issuer
	p.Auth.Rules = rules
	for i, f := range p.Auth.Fields() {
		if f.Together != "" || f.Name == "jwtIssuer" {
			p.Auth.Said = p.Auth.Said.With(i)
		}
	}
	uuid := catalog.DeriveProjectUUID("acme")
	p.Domains = []catalog.Domain{{ID: 2, UUID: catalog.DeriveDomainUUID(uuid, "shop.acme.example"), ProjectID: 1, Name: "shop.acme.example", Active: true}}
	d := &catalog.Declared{Projects: []catalog.ProjectConfig{*p}}
	if _, err := r.Apply(&catalog.Change{Files: []catalog.FileChange{{Path: "a.hcl", Row: &catalog.FileRow{Refs: d.Refs()}, Declared: d}}}); err != nil {
		t.Fatal(err)
	}
}
