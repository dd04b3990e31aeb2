package api_test

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"fingerpost/api"
	"fingerpost/api/gateway/jwks"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// An issuer serves the keys of a signer as a JWK set.
type issuer struct {
	*httptest.Server
	asked  atomic.Int64
	answer atomic.Pointer[string] // nil: it is away
}

func newIssuer(t testing.TB) *issuer {
	i := new(issuer)
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		i.asked.Add(1)
		text := i.answer.Load()
		if text == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, *text)
	}))
	t.Cleanup(i.Close)
	return i
}

// serve serves the keys with these names, which are their kids too.
func (i *issuer) serve(t testing.TB, s *signer, names ...string) {
	t.Helper()
	var keys []string
	for _, name := range names {
		der, err := x509.MarshalPKIXPublicKey(s.key(name).(crypto.Signer).Public())
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, jwkOf(t, s, der, name))
	}
	text := `{"keys":[` + strings.Join(keys, ",") + `]}`
	i.answer.Store(&text)
}

// jwkOf writes a key of ES256 or EdDSA, whose bytes are the end of its DER.
func jwkOf(t testing.TB, s *signer, der []byte, kid string) string {
	t.Helper()
	b64 := base64.RawURLEncoding.EncodeToString
	jwk := map[string]string{"kid": kid, "use": "sig", "alg": s.name}
	switch s.name {
	case "EdDSA":
		jwk["kty"], jwk["crv"], jwk["x"] = "OKP", "Ed25519", b64(der[len(der)-32:])
	case "ES256":
		jwk["kty"], jwk["crv"], jwk["x"], jwk["y"] = "EC", "P-256", b64(der[len(der)-64:len(der)-32]), b64(der[len(der)-32:])
	default:
		t.Fatalf("no JWK of %s", s.name)
	}
	text, err := json.Marshal(jwk)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// memory keeps notes for a keeper.
type memory struct{ sync.Map }

func (m *memory) SetNamed(values map[string][]byte) error {
	for name, value := range values {
		m.Store(name, value)
	}
	return nil
}

func (m *memory) EachNamed(_ string, f func(name string, value []byte) error) (err error) {
	m.Range(func(name, value any) bool {
		if b := value.([]byte); b != nil {
			err = f(name.(string), b)
		}
		return err == nil
	})
	return err
}

// runKeeper runs a keeper that may ask this machine.
func runKeeper(t testing.TB) *jwks.Keeper {
	k := jwks.New(jwks.Options{Notes: new(memory), Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { k.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return k
}

// TestKeySets: tokens are verified with the keys at an address; before there are any it is 503. A rotation costs a token
// of the new key one 401, and tokens of a key that is gone are refused at once, verified before or not. The tokens of
// another tenant with the same kid are refused.
func TestKeySets(t *testing.T) {
	for _, name := range []string{"ES256", "EdDSA"} {
		s, i, theirs, k := signerOf(t, name), newIssuer(t), newIssuer(t), runKeeper(t)
		claimed := ownIssuer
		h := startRules(t, func(a *catalog.AuthSettings) {
			a.Token.JWTSecret = catalog.Secret{Source: catalog.SecretPlain, Ref: shopSecret}
			a.Rules = catalog.TokenRules{Algorithms: []string{"HS256", name}, KeySetURL: &i.URL, Issuer: &claimed}
		}, nil, func(o *api.Options) { o.Config.KeySets = k })
		token := func(key, kid string, changes ...any) string {
			return s.sign(t, key, claims(11, append([]any{"iss", ownIssuer, "projectId", drop}, changes...)...), map[string]any{"kid": kid})
		}
		f := func(status int, token string) {
			t.Helper()
			a := h.ask("GET", "/api/gate/check?domain=shop.example&auth=required", h.all, bearer(token)) // which is not throttled
			if a.StatusCode != status {
				t.Errorf("%s: %d %s, want %d", name, a.StatusCode, a.Header.Get("X-Gate-Reason"), status)
			}
		}
		f(503, token("one", "one"))
		refusedToken(t, "malformed", h.me("x"))
		f(200, hs256(t, shopSecret, claims(11, "iss", ownIssuer)))
		k.Declare([]jwks.Source{{Project: 11, Slug: "shop", URL: i.URL}, {Project: 12, Slug: "bank", URL: theirs.URL}})
		testrig.Eventually(t, "a fetch", func() bool { return i.asked.Load() > 0 })
		f(503, token("one", "one"))
		i.serve(t, s, "one")
		theirs.serve(t, s, "two")
		testrig.Eventually(t, "the set", func() bool { k.NoteUnknown(11, i.URL); return k.KeySet(i.URL) != nil })
		for range 2 {
			f(200, token("one", "one"))
			f(200, token("one", "one", "projectId", 11))
			f(401, token("two", "one"))
			f(401, token("one", "one", "projectId", 12))
			f(401, token("one", "one", "iss", "auth-service"))
			f(401, token("two", "two")) // another tenant's
			f(401, hs256(t, s.public(t, "one"), claims(11, "iss", ownIssuer)))
		}
		asked := i.asked.Load()
		for range 15 {
			f(401, token("three", fmt.Sprint("flood-", len(token("three", "x")))))
			f(200, token("one", "one"))
		}
		if n := i.asked.Load(); n > asked+1 {
			t.Errorf("%s: %d fetches during a flood of kids", name, n-asked)
		}
	}
}
