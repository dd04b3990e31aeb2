package login_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"fingerpost/api/login"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

const (
	publicURL   = "https://config.acme.example"
	callback    = publicURL + "/console/login/company/callback"
	secret      = "the-client-secret"
	accessToken = "the-access-token"
)

var loopback = &catalog.HTTPAllow{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

// callbacks are the redirect URIs that the provider knows.
var callbacks = []string{callback, publicURL + "/console/login/other/callback"}

type object = map[string]any

// A hostile is a provider that does what a test wants. As it begins it is an honest one: it checks the client, the redirect
// URI and PKCE, and gives each code once.
type hostile struct {
	*httptest.Server
	discoveries, tokens, userinfos atomic.Int64

	mu       sync.Mutex // guards what follows
	handlers map[string]http.HandlerFunc
	document object
	key      *ecdsa.PrivateKey
	kid      string
	claims   object                     // of ID tokens, over the usual ones; nil values are left out
	sign     func(claims string) string // nil: with key
	info     object                     // userinfo
	codes    map[string]url.Values      // the requests of people who have signed in
	auth     string                     // how the client has shown itself at last
}

func newHostile(t testing.TB) *hostile {
	t.Helper()
	p := &hostile{codes: map[string]url.Values{}, handlers: map[string]http.HandlerFunc{}, claims: object{}}
	p.rotate(t, "one")
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	p.begin(t)
	return p
}

func (p *hostile) begin(t testing.TB) {
	t.Cleanup(func() { p.CloseClientConnections(); p.Close() })
	p.document = object{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
		"jwks_uri": p.URL + "/keys", "userinfo_endpoint": p.URL + "/userinfo", "end_session_endpoint": p.URL + "/logout?a=b",
		"id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"}}
	p.info = object{"sub": "ada"}
}

// set changes the provider.
func (p *hostile) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// rotate gives the provider a new key.
func (p *hostile) rotate(t testing.TB, kid string) {
	t.Helper()
	p.set(func() { p.rotateLocked(t, kid) })
}

func (p *hostile) rotateLocked(t testing.TB, kid string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p.key, p.kid = key, kid
}

func (p *hostile) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	f := p.handlers[r.URL.Path]
	p.mu.Unlock()
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		p.discoveries.Add(1)
	case "/token":
		p.tokens.Add(1)
	case "/userinfo":
		p.userinfos.Add(1)
	}
	if f != nil {
		f(w, r)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		answer(w, 200, p.document)
	case "/keys":
		s := oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: p.key.Public(), KeyID: p.kid, Algorithm: oidc.ES256}}}
		s.SetIssuer(p.URL)
		s.ServeHTTP(w, r)
	case "/token":
		p.token(w, r)
	case "/userinfo":
		if r.Header.Get("Authorization") != "Bearer "+accessToken {
			answer(w, 401, object{})
			return
		}
		answer(w, 200, p.info)
	case "/authorize":
		if !slices.Contains(callbacks, r.FormValue("redirect_uri")) {
			w.WriteHeader(400)
		}
	default:
		w.WriteHeader(404)
	}
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func (p *hostile) token(w http.ResponseWriter, r *http.Request) {
	id, given, basic := r.BasicAuth()
	p.auth = "basic"
	if !basic {
		id, given, p.auth = r.FormValue("client_id"), r.FormValue("client_secret"), "post"
		if given == "" {
			given, p.auth = secret, "public"
		}
	}
	if id != "fingerpost" || given != secret {
		answer(w, 401, object{"error": "invalid_client", "error_description": "secret " + given + " is wrong"})
		return
	}
	asked := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if asked == nil || asked.Get("code_challenge_method") != "S256" ||
		asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) ||
		r.FormValue("redirect_uri") != asked.Get("redirect_uri") || !slices.Contains(callbacks, asked.Get("redirect_uri")) {
		answer(w, 400, object{"error": "invalid_grant"})
		return
	}
	claims := object{"iss": p.URL, "aud": "fingerpost", "sub": "ada", "nonce": asked.Get("nonce"), "iat": time.Now().Unix(),
		"exp": time.Now().Add(24 * time.Hour).Unix(), "name": "Ada", "email": "ada@acme.example", "groups": []string{"ops"}}
	maps.Copy(claims, p.claims)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	text, _ := json.Marshal(claims)
	sign := p.sign
	if sign == nil {
		sign = func(claims string) string { return signed(p.key, p.kid, oidc.ES256, claims) }
	}
	answer(w, 200, object{"access_token": accessToken, "token_type": "Bearer", "id_token": sign(string(text))})
}

func signed(key crypto.PrivateKey, kid, alg, claims string) string {
	return oidctest.SignIDToken(key, kid, alg, claims)
}

// signIn is a browser at the provider's page: it returns the query of the callback.
func (p *hostile) signIn(t testing.TB, address string) url.Values {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(address, p.URL+"/authorize?") {
		t.Fatalf("%v: the browser was sent to %s", err, address)
	}
	asked := u.Query()
	code := "code-" + asked.Get("state")
	p.set(func() { p.codes[code] = asked })
	return url.Values{"code": {code}, "state": {asked.Get("state")}}
}

// A rig is a desk with the login "company" at a provider.
type rig struct {
	*login.Desk
	t      testing.TB
	p      *hostile
	clock  testrig.Clock
	log    testrig.Log
	live   atomic.Pointer[[]catalog.Login]
	secret atomic.Pointer[string]
	ca     atomic.Pointer[[]byte]
}

func newRig(t testing.TB, p *hostile) *rig { return newRigWith(t, p, func(*login.Options) {}) }

func newRigWith(t testing.TB, p *hostile, change func(*login.Options)) *rig {
	t.Helper()
	r := &rig{t: t, p: p}
	r.secret.Store(new(string))
	*r.secret.Load() = secret
	r.ca.Store(new([]byte))
	r.declare(company(p.URL))
	o := login.Options{
		Logins: func() []catalog.Login { return *r.live.Load() },
		Secret: func(*catalog.Login) (string, error) {
			if s := r.secret.Load(); s != nil {
				return *s, nil
			}
			return "", errors.New("the file is gone")
		},
		ReadCA: func(*catalog.Login) ([]byte, error) {
			if ca := r.ca.Load(); ca != nil {
				return *ca, nil
			}
			return nil, errors.New("the file is gone")
		},
		PublicURL: publicURL, Allow: loopback, Version: "1.2.3", Now: r.clock.Now,
		Logger: slog.New(slog.NewTextHandler(&r.log, nil)), Timeout: testrig.Patience,
	}
	change(&o)
	r.Desk = login.New(o)
	t.Cleanup(r.checkLog)
	return r
}

func company(issuer string) catalog.Login {
	return catalog.Login{Name: "company", Issuer: issuer, ClientID: "fingerpost", Label: "Acme account",
		Rules: []catalog.LoginRule{{Claim: "groups", Value: "ops"}}}
}

func (r *rig) declare(all ...catalog.Login) { r.live.Store(&all) }

// checkLog looks for what must not be logged.
func (r *rig) checkLog() { noSecrets(r.t, r.log.String()) }

func noSecrets(t testing.TB, text string) {
	t.Helper()
	for _, bad := range []string{secret, accessToken, "eyJ", "code-", "code_verifier"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q is in %s", bad, text)
		}
	}
}

// begin begins a flow.
func (r *rig) begin() (address, cookie string) {
	r.t.Helper()
	address, cookie, err := r.Begin(r.t.Context(), login.Start{Login: "company", ReturnTo: "/console/acme?tab=1"})
	if err != nil {
		r.t.Fatal(err)
	}
	return address, cookie
}

// finish begins and finishes a flow.
func (r *rig) finish() (*login.Person, error) {
	r.t.Helper()
	address, cookie := r.begin()
	person, to, err := r.Finish(r.t.Context(), login.Callback{Login: "company", Query: r.p.signIn(r.t, address), Cookie: cookie})
	if (err == nil) != (person != nil) || err == nil && to != "/console/acme?tab=1" {
		r.t.Fatalf("%v, %v, to %q", person, err, to)
	}
	return person, err
}

// signedIn is finish of a sign-in that succeeds.
func (r *rig) signedIn() *login.Person {
	r.t.Helper()
	person, err := r.finish()
	if err != nil {
		r.t.Fatal(err)
	}
	return person
}

// wantError fails unless err has the status, and message and hint have the text.
func wantError(t testing.TB, err error, status int, text string) {
	t.Helper()
	var e *login.Error
	if !errors.As(err, &e) || e.Status != status || !strings.Contains(e.Message+" "+e.Hint, text) {
		t.Errorf("the error is %#v, want %d with %q", err, status, text)
	}
	if e != nil {
		noSecrets(t, e.Message+e.Hint)
	}
}

// say makes a handler that answers with a text.
func say(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}
