package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
)

// An accountProvider is a provider of OpenID Connect whose sign-in page has a button for each person. It checks the client,
// the redirect URI and PKCE, and gives each code once. It can go away and come back.
type accountProvider struct {
	t      testing.TB
	addr   string
	key    *ecdsa.PrivateKey
	server *http.Server
	people map[string]map[string]any // claims by the text of the button

	mu    sync.Mutex // guards what follows
	codes map[string]grantedCode
}

type grantedCode struct {
	person string
	asked  url.Values
}

const accountSecret = "the-secret-of-the-client"

// newAccountProvider starts a provider of some people.
func newAccountProvider(t testing.TB, people map[string]map[string]any) *accountProvider {
	t.Helper()
	p := &accountProvider{t: t, addr: "127.0.0.1:0", people: people, codes: map[string]grantedCode{}}
	var err error
	if p.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	p.comeBack()
	t.Cleanup(p.goAway)
	return p
}

func (p *accountProvider) issuer() string { return "http://" + p.addr }

// comeBack starts the provider at its address.
func (p *accountProvider) comeBack() {
	p.t.Helper()
	ln, err := net.Listen("tcp", p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	p.addr = ln.Addr().String()
	mux := http.NewServeMux()
	for pattern, h := range map[string]http.HandlerFunc{
		"GET /.well-known/openid-configuration": p.discover, "GET /keys": p.keys, "GET /authorize": p.page,
		"GET /allow": p.allow, "POST /token": p.token, "GET /logout": p.logout,
	} {
		mux.HandleFunc(pattern, h)
	}
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func(s *http.Server) { _ = s.Serve(ln) }(p.server)
}

func (p *accountProvider) goAway() { _ = p.server.Close() }

func answerJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func (p *accountProvider) discover(w http.ResponseWriter, _ *http.Request) {
	answerJSON(w, http.StatusOK, map[string]any{"issuer": p.issuer(), "authorization_endpoint": p.issuer() + "/authorize",
		"token_endpoint": p.issuer() + "/token", "jwks_uri": p.issuer() + "/keys", "end_session_endpoint": p.issuer() + "/logout",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{"ES256"}, "code_challenge_methods_supported": []string{"S256"}})
}

func base64url(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (p *accountProvider) keys(w http.ResponseWriter, _ *http.Request) {
	point, err := p.key.PublicKey.Bytes()
	if err != nil {
		p.t.Error(err)
		return
	}
	answerJSON(w, http.StatusOK, map[string]any{"keys": []any{map[string]string{"kty": "EC", "crv": "P-256", "kid": "1",
		"use": "sig", "alg": "ES256", "x": base64url(point[1:33]), "y": base64url(point[33:])}}})
}

var accountPage = template.Must(template.New("").Parse(`<!DOCTYPE html><html lang="en"><title>Acme accounts</title><main>
<h1>Who are you?</h1>{{range .People}}<p><a href="/allow?person={{.}}&amp;{{$.Asked}}">{{.}}</a></p>{{end}}</main>`))

func (p *accountProvider) page(w http.ResponseWriter, r *http.Request) {
	_ = accountPage.Execute(w, struct {
		People []string
		Asked  template.URL
	}{slices.Sorted(maps.Keys(p.people)), template.URL(r.URL.RawQuery)})
}

// allow sends the browser back with a code.
func (p *accountProvider) allow(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = grantedCode{q.Get("person"), q}
	p.mu.Unlock()
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.issuer()}}.Encode(),
		http.StatusSeeOther)
}

func (p *accountProvider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	}
	p.mu.Lock()
	granted := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	p.mu.Unlock()
	asked, sum := granted.asked, sha256.Sum256([]byte(r.FormValue("code_verifier")))
	switch {
	case id != "fingerpost" || secret != accountSecret:
		answerJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	case asked == nil || asked.Get("code_challenge_method") != "S256" || asked.Get("code_challenge") != base64url(sum[:]) ||
		asked.Get("redirect_uri") != r.FormValue("redirect_uri"):
		answerJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	claims := map[string]any{"iss": p.issuer(), "aud": "fingerpost", "nonce": asked.Get("nonce"), "iat": time.Now().Unix(),
		"exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(claims, p.people[granted.person])
	answerJSON(w, http.StatusOK, map[string]any{"access_token": "opaque", "token_type": "Bearer", "id_token": p.sign(claims)})
}

// sign makes a token of claims.
func (p *accountProvider) sign(claims map[string]any) string {
	body, err := json.Marshal(claims)
	if err != nil {
		p.t.Error(err)
	}
	text := base64url([]byte(`{"alg":"ES256","kid":"1"}`)) + "." + base64url(body)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, p.key, sum[:])
	if err != nil {
		p.t.Error(err)
	}
	return text + "." + base64url(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

func (p *accountProvider) logout(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, "<!DOCTYPE html><html lang=en><title>Acme accounts</title><main>You are signed out of Acme accounts.</main>")
}
