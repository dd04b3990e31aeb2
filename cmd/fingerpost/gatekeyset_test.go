package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"fingerpost/cmd/testrig"
)

// An es256Provider is an identity provider that signs with ES256 and publishes the keys of its set.
type es256Provider struct {
	t    *testing.T
	keys map[string]*ecdsa.PrivateKey // by kid
	set  atomic.Pointer[string]
	*httptest.Server
}

func startES256Provider(t *testing.T) *es256Provider {
	p := &es256Provider{t: t, keys: map[string]*ecdsa.PrivateKey{}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, *p.set.Load())
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *es256Provider) key(kid string) *ecdsa.PrivateKey {
	if p.keys[kid] == nil {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(p.t, err)
		p.keys[kid] = key
	}
	return p.keys[kid]
}

// publish replaces the key set.
func (p *es256Provider) publish(kids ...string) {
	keys := make([]string, len(kids))
	for i, kid := range kids {
		point, err := p.key(kid).PublicKey.Bytes() // 4, x, y
		must(p.t, err)
		x, y := base64.RawURLEncoding.EncodeToString(point[1:33]), base64.RawURLEncoding.EncodeToString(point[33:])
		keys[i] = fmt.Sprintf(`{"kty":"EC","crv":"P-256","use":"sig","alg":"ES256","kid":%q,"x":%q,"y":%q}`, kid, x, y)
	}
	text := `{"keys":[` + strings.Join(keys, ",") + `]}`
	p.set.Store(&text)
}

// token signs a token for the audience with the key of a kid.
func (p *es256Provider) token(kid, audience string) string {
	token := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{"iss": "https://login.example/", "aud": audience, "sub": "u-1",
		"exp": time.Now().Unix() + 600})
	token.Header["kid"] = kid
	text, err := token.SignedString(p.key(kid))
	must(p.t, err)
	return text
}

// TestGateKeySet: behind the lines for nginx, tokens of the project's own identity provider pass with their user, and those
// of a new key pass once the provider has published it. No other token does, and the client's headers never.
func TestGateKeySet(t *testing.T) {
	t.Parallel()
	testrig.Need(t, "nginx") // before anything is started
	p := startES256Provider(t)
	p.publish("one")
	project := func(id int, name, audience string) string {
		return fmt.Sprintf("project %q {\n  id = %d\n  name = %q\n  domain \"%s.example\" {}\n  auth_settings {\n    jwt_algorithms = [\"ES256\"]\n"+
			"    jwks_url       = %q\n    jwt_issuer     = \"https://login.example/\"\n    jwt_audience   = %q\n  }\n}\n", name, id, name, name, p.URL, audience)
	}
	r := idleRig(t, t.TempDir(), map[string]string{"shop.hcl": project(11, "shop", "shop"), "bank.hcl": project(12, "bank", "bank")})
	gate := "unix:" + filepath.Join(shortDir(t), "gate") // the same address after a restart
	r.flags = []string{"--gate-listen", gate, "--jwks-allow", "127.0.0.0/8"}
	r.start()
	g := &gated{t: t}
	g.client = runNginx(t, "127.0.0.1:8081", gate, g.startUpstream(), "check?auth=optional", "check?auth=required")
	ask := func(host, token string) int {
		t.Helper()
		req, err := http.NewRequest("GET", "http://"+host+"/", nil)
		must(t, err)
		req.Header.Set("X-User-Id", "root")
		req.Header.Set("X_User_Id", "root")
		req.Header.Set("X-Auth", "good")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		before := g.reached.Load()
		res, err := g.client.Do(req)
		must(t, err)
		text, err := io.ReadAll(res.Body)
		must(t, err)
		res.Body.Close()
		id := map[string]string{"shop.example": "11", "bank.example": "12"}[host]
		if want := fmt.Sprintf("GET %s project=%s user=u-1 plan= body=0", host, id); res.StatusCode == 200 && string(text) != want {
			t.Errorf("the application has %s, want %s", text, want)
		}
		if res.StatusCode != 200 && g.reached.Load() != before {
			t.Errorf("%s: %d, and the application was reached", host, res.StatusCode)
		}
		return res.StatusCode
	}
	becomes := func(host, token string) {
		t.Helper()
		testrig.Eventually(t, "a good token passes at "+host, func() bool { return ask(host, token) == 200 })
	}
	refused := func(what, host, token string) {
		t.Helper()
		if got := ask(host, token); got != 401 {
			t.Errorf("%s at %s: %d, want 401", what, host, got)
		}
	}
	becomes("shop.example", p.token("one", "shop"))
	becomes("bank.example", p.token("one", "bank"))
	refused("no token", "shop.example", "")
	refused("a token of another project", "shop.example", p.token("one", "bank"))
	refused("a token of another project", "bank.example", p.token("one", "shop"))
	good := p.token("one", "shop")
	refused("a token without its signature", "shop.example", good[:strings.LastIndex(good, ".")+1])
	stranger := startES256Provider(t)
	refused("a key of that name of somebody else", "shop.example", stranger.token("one", "shop"))
	hmac, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"iss": "https://login.example/", "aud": "shop", "sub": "u-1",
		"exp": time.Now().Unix() + 600}).SignedString([]byte(*p.set.Load()))
	must(t, err)
	refused("a token of HS256 with the public keys", "shop.example", hmac)

	// The provider rotates: both keys are good meanwhile.
	p.publish("one", "two")
	refused("a token seen before its new key", "shop.example", p.token("two", "shop"))
	becomes("shop.example", p.token("two", "shop"))
	becomes("shop.example", p.token("one", "shop"))
	// The old key goes. While the gate is down nothing passes, and at the start the set is fetched.
	p.publish("two")
	r.halt()
	if got := ask("shop.example", p.token("two", "shop")); got < 500 {
		t.Errorf("while the gate is down: %d", got)
	}
	r.start()
	testrig.Eventually(t, "the old key is refused", func() bool { return ask("shop.example", p.token("one", "shop")) == 401 })
	becomes("shop.example", p.token("two", "shop"))
}
