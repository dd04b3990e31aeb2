package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"fingerpost/cmd/testrig"
)

// TestTokensWithPublicKeys: keys in a file that an editor replaces and a person removes, and a key set whose provider is
// away at the first start, rotates, and is away at the next one.
func TestTokensWithPublicKeys(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	var answer atomic.Pointer[string] // of the provider; nil: it is away
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if text := answer.Load(); text != nil {
			_, _ = io.WriteString(w, *text)
			return
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer provider.Close()
	pairs := map[string]ed25519.PrivateKey{}
	public := func(kid string) ed25519.PublicKey {
		if pairs[kid] == nil {
			_, key, err := ed25519.GenerateKey(rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			pairs[kid] = key
		}
		return pairs[kid].Public().(ed25519.PublicKey)
	}
	pemOf := func(kid string) string {
		der, err := x509.MarshalPKIXPublicKey(public(kid))
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	}
	serve := func(kids ...string) {
		var keys []string
		for _, kid := range kids {
			keys = append(keys, fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","kid":%q,"x":%q}`, kid, base64.RawURLEncoding.EncodeToString(public(kid))))
		}
		text := `{"keys":[` + strings.Join(keys, ",") + `]}`
		answer.Store(&text)
	}
	r := idleRig(t, t.TempDir(), map[string]string{"tokens.hcl": `
project "shop" {
  id   = 11
  name = "Shop"
  domain "shop.example" {}
  service_settings { auth_enabled = true }
  auth_settings {
    jwt_algorithms = ["EdDSA"]
    jwks_url       = "` + provider.URL + `"
    jwt_issuer     = "https://login.example/"
    jwt_audience   = "shop"
  }
}
project "bank" {
  id   = 12
  name = "Bank"
  domain "bank.example" {}
  service_settings { auth_enabled = true }
  auth_settings {
    jwt_algorithms = ["EdDSA"]
    jwt_keys       = [file("bank.pem")]
    jwt_issuer     = "https://login.example/"
  }
}
`, "bank.pem": pemOf("file-one")})
	r.flags = []string{"--jwks-allow", "127.0.0.0/8"}
	r.start()
	ask := func(domain, kid string) int {
		t.Helper()
		token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{"iss": "https://login.example/", "aud": "shop", "sub": "u-1", "exp": time.Now().Unix() + 600})
		token.Header["kid"] = kid
		public(kid)
		text, err := token.SignedString(pairs[kid])
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequest("GET", r.url+"/api/gate/check?auth=required&domain="+domain, nil) // which is not throttled
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Platform-Key", r.keys["all"])
		req.Header.Set("Authorization", "Bearer "+text)
		res, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body)
		return res.StatusCode
	}
	becomes := func(domain, kid string, status int) {
		t.Helper()
		testrig.Eventually(t, fmt.Sprintf("%d for the key %s at %s", status, kid, domain), func() bool { return ask(domain, kid) == status })
	}
	told := func(text string) {
		t.Helper()
		testrig.Eventually(t, "/status tells of "+text, func() bool {
			status, err := fetch(r.ops + "/status")
			return err == nil && strings.Contains(string(status), text)
		})
	}
	if got := ask("shop.example", "set-one"); got != 503 {
		t.Errorf("before the first key it is %d", got)
	}
	told(`"key-set-missing"`)
	told("the provider answered 502")

	// The file is replaced as editors do it, and then removed.
	becomes("bank.example", "file-one", 200)
	path := filepath.Join(r.dir, "projects.d", "bank.pem")
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".tmp", []byte(pemOf("file-two")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		t.Fatal(err)
	}
	becomes("bank.example", "file-two", 200)
	if got := ask("bank.example", "file-one"); got != 401 {
		t.Errorf("the key that was replaced: %d", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	becomes("bank.example", "file-two", 503)
	told(`"jwtKeys"`)

	// The provider comes back, and the next start finds it away.
	serve("set-one")
	r.halt()
	r.start()
	becomes("shop.example", "set-one", 200)
	serve("set-one", "set-two")
	if got := ask("shop.example", "set-two"); got != 401 {
		t.Errorf("a token seen before its new key gets %d", got)
	}
	becomes("shop.example", "set-two", 200)
	answer.Store(nil)
	r.halt()
	r.start()
	for _, kid := range []string{"set-one", "set-two"} {
		if got := ask("shop.example", kid); got != 200 {
			t.Errorf("after a restart while the provider is away, %s gets %d", kid, got)
		}
	}
	if got := ask("shop.example", "file-two"); got != 401 {
		t.Errorf("another tenant's key: %d", got)
	}
}
