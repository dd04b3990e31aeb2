package login_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"fingerpost/api/login"
	"fingerpost/cmd/testrig"
)

// TestHostileTokens: an ID token that is not for this sign-in lets nobody in.
func TestHostileTokens(t *testing.T) {
	t.Parallel()
	p := newHostile(t)
	r := newRig(t, p)
	r.signedIn()
	f := func(name string, change func(), text string) {
		t.Helper()
		p.set(change)
		person, err := r.finish()
		if person != nil {
			t.Errorf("%s: %+v is in", name, person)
		}
		wantError(t, err, http.StatusBadGateway, text)
		p.set(func() { p.claims, p.sign, p.handlers = object{}, nil, map[string]http.HandlerFunc{} })
	}
	claim := func(name string, value any) func() { return func() { p.claims[name] = value } }
	sign := func(f func(claims string) string) func() { return func() { p.sign = f } }
	f("issuer", claim("iss", "https://evil.example"), "issuer in the block must be")
	f("issuer with a slash", claim("iss", p.URL+"/"), "issuer in the block must be")
	f("no issuer", claim("iss", nil), "issuer in the block must be")
	f("audience", claim("aud", "another"), "expected audience")
	f("audiences", claim("aud", []string{"a", "b"}), "expected audience")
	f("no audience", claim("aud", nil), "expected audience")
	f("nonce", claim("nonce", "another"), "nonce is not that")
	f("no nonce", claim("nonce", nil), "nonce is not that")
	f("expired", claim("exp", time.Now().Add(-time.Second).Unix()), "Compare the clock")
	f("no expiry", claim("exp", nil), "Compare the clock")
	f("not yet", claim("nbf", time.Now().Add(time.Hour).Unix()), "Compare the clock")
	f("no subject", claim("sub", nil), "sub")
	f("empty subject", claim("sub", ""), "sub must be")
	f("long subject", claim("sub", strings.Repeat("x", 256)), "sub must be")
	f("subject of two lines", claim("sub", "a\nb"), "sub must be")
	f("subject that is a number", claim("sub", 7), "sub")
	f("two subjects", claim("\u017fub", "eve"), "more than one sub")
	f("foreign party", claim("azp", "another"), "azp names another client")
	f("foreign party, own audience", func() { p.claims["aud"], p.claims["azp"] = []string{"fingerpost", "another"}, "another" }, "azp")
	f("party that is no text", claim("azp", []string{"fingerpost"}), "azp")
	f("empty party", claim("azp", ""), "azp")
	f("large", claim("x", strings.Repeat("x", 64<<10)), "more than 64 KiB")
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	f("alg none", sign(func(claims string) string { return part(`{"alg":"none"}`) + "." + part(claims) + "." }), "none")
	der, err := x509.MarshalPKIXPublicKey(p.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	for _, bytes := range [][]byte{der, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), []byte(secret + secret)} {
		f("HS256", sign(func(claims string) string { return signed(bytes, p.kid, "HS256", claims) }), "sign the ID tokens")
	}
	other := newHostile(t)
	f("another key", sign(func(claims string) string { return signed(other.key, p.kid, oidc.ES256, claims) }), "verify id token signature")
	f("no signature", sign(func(claims string) string { return part(`{"alg":"ES256"}`) + "." + part(claims) + "." }), "signature")
	f("no token", sign(func(string) string { return "" }), "scopes must name openid")
	f("no JWT", sign(func(string) string { return "eyJhbGciOiJFUzI1NiJ9" }), "malformed jwt")
	f("redirect", func() {
		p.handlers["/token"] = func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}
	}, "answered 307")
	f("HTML", func() { p.handlers["/token"] = say(200, "<html>") }, "gave no tokens")
	f("keys of 1 GiB", func() { p.rotateLocked(t, "two"); p.handlers["/keys"] = flood }, "more than 1 MiB")
	f("no keys", func() { p.handlers["/keys"] = say(200, `{"keys":[]}`) }, "verify")
	r.signedIn()
}

// hang never answers. Without the body, a server does not see that the client has gone.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// flood answers with 1 GiB, of which the desk reads little.
func flood(w http.ResponseWriter, _ *http.Request) {
	for chunk, i := make([]byte, 1<<20), 0; i < 1024; i++ {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
	panic("1 GiB was read")
}

// TestOtherParties: what go-oidc allows, and is right.
func TestOtherParties(t *testing.T) {
	t.Parallel()
	p := newHostile(t)
	p.claims = object{"aud": []string{"another", "fingerpost"}, "azp": "fingerpost"}
	newRig(t, p).signedIn()
}

// TestKeysRotate: a key that the provider has exchanged since the last sign-in is fetched, also under the same name.
func TestKeysRotate(t *testing.T) {
	t.Parallel()
	p := newHostile(t)
	r := newRig(t, p)
	for _, kid := range []string{"one", "two", "two", "three"} {
		p.rotate(t, kid)
		r.signedIn()
	}
	p.set(func() { p.handlers["/keys"] = say(503, "") })
	r.signedIn()
	p.rotate(t, "four")
	_, err := r.finish()
	wantError(t, err, http.StatusServiceUnavailable, "answered 503")
}

// TestHostileDiscovery: what is not the discovery of the issuer begins no sign-in, and is told in words that say nothing of
// the inside.
func TestHostileDiscovery(t *testing.T) {
	t.Parallel()
	document := func(change func(p *hostile)) func(p *hostile) { return change }
	answers := func(f http.HandlerFunc) func(p *hostile) {
		return func(p *hostile) { p.handlers["/.well-known/openid-configuration"] = f }
	}
	for name, c := range map[string]struct {
		change func(p *hostile)
		status int
		text   string
	}{
		"redirects": {answers(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }), 502, "answered 302"},
		"hangs":     {answers(hang), 503, "no answer within 1s"},
		"drips": {answers(func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(10 * time.Millisecond):
				case <-r.Context().Done():
				}
			}
		}), 503, "no answer within 1s"},
		"1 GiB":          {answers(flood), 502, "more than 1 MiB"},
		"huge header":    {answers(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }), 503, "no answer in HTTP"},
		"missing":        {answers(say(404, "")), 502, "answered 404"},
		"broken":         {answers(say(500, "")), 503, "answered 500"},
		"HTML":           {answers(say(200, "<html>")), 502, "gave no discovery document"},
		"no JSON object": {answers(say(200, "[]")), 502, "gave no discovery document"},
		"another issuer": {document(func(p *hostile) { p.document["issuer"] = "https://evil.example" }), 502, `issuer = "https://evil.example"`},
		"template": {document(func(p *hostile) { p.document["issuer"] = "https://login.microsoftonline.com/{tenantid}/v2.0" }), 502,
			"the id of your tenant"},
		"no endpoints": {document(func(p *hostile) { delete(p.document, "token_endpoint"); delete(p.document, "jwks_uri") }), 502,
			"it has no token_endpoint; it has no jwks_uri"},
		"http elsewhere": {document(func(p *hostile) { p.document["token_endpoint"] = "http://192.0.2.1/token" }), 502, "its token_endpoint must begin with https"},
		"a script": {document(func(p *hostile) { p.document["authorization_endpoint"] = "javascript:alert(1)" }), 502,
			"its authorization_endpoint must be an address"},
		"a script at the end": {document(func(p *hostile) { p.document["end_session_endpoint"] = "javascript:alert(1)" }), 502,
			"its end_session_endpoint must be an address"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newHostile(t)
			c.change(p)
			r := newRigWith(t, p, func(o *login.Options) {
				if strings.Contains(c.text, "within 1s") {
					o.Timeout = time.Second
				}
			})
			_, _, err := r.Begin(t.Context(), login.Start{Login: "company", ReturnTo: "/"})
			wantError(t, err, c.status, c.text)
			problem := r.Buttons()[0].Problem
			if problem == "" || !strings.Contains(err.Error(), problem) || strings.Contains(problem, "127.0.0.1") {
				t.Errorf("the button says %q, the error is %v", problem, err)
			}
		})
	}
}

// TestGuard: an address inside is refused at the connection, whatever name leads there, for the issuer and for each
// endpoint that discovery names.
func TestGuard(t *testing.T) {
	t.Parallel()
	p := newHostile(t)
	port := p.Listener.Addr().String()[strings.LastIndexByte(p.Listener.Addr().String(), ':'):]
	r := newRigWith(t, p, func(o *login.Options) { o.Allow = nil })
	for issuer, want := range map[string]string{p.URL: "must begin with https", "https://127.0.0.1" + port: "cannot be asked",
		"https://localhost.localdomain" + port: "cannot be asked", "https://169.254.169.254": "cannot be asked",
		"https://missing.invalid": "cannot be asked"} {
		r.declare(company(issuer))
		_, _, err := r.Begin(t.Context(), login.Start{Login: "company", ReturnTo: "/"})
		wantError(t, err, http.StatusServiceUnavailable, want)
	}
	if p.discoveries.Load() != 0 {
		t.Error("a refused address was asked")
	}
	for _, endpoint := range []string{"token_endpoint", "jwks_uri", "userinfo_endpoint"} {
		p := newHostile(t)
		p.document[endpoint] = "https://169.254.169.254/latest/meta-data"
		delete(p.claims, "name")
		p.claims["name"] = nil
		r := newRig(t, p)
		person, err := r.finish()
		if endpoint == "userinfo_endpoint" {
			if err != nil || len(person.Notes) != 1 || !strings.Contains(person.Notes[0], "cannot be asked") {
				t.Errorf("%v, %+v", err, person)
			}
			continue
		}
		wantError(t, err, http.StatusServiceUnavailable, "cannot be asked")
	}
}

// TestCallback: what a callback says counts only if it is of the issuer of the block (RFC 9207), and nothing twice.
func TestCallback(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(p *hostile, query url.Values)
		status int // 0: signs in
		text   string
	}{
		"iss":                 {func(p *hostile, q url.Values) { q.Set("iss", p.URL) }, 0, ""},
		"another iss":         {func(_ *hostile, q url.Values) { q.Set("iss", "https://evil.example") }, 502, "parameter iss"},
		"two iss":             {func(p *hostile, q url.Values) { q["iss"] = []string{p.URL, "https://evil.example"} }, 502, "parameter iss"},
		"an error of another": {func(_ *hostile, q url.Values) { q.Set("iss", "https://evil.example"); q.Set("error", "access_denied") }, 502, "parameter iss"},
		"no code":             {func(_ *hostile, q url.Values) { q.Del("code") }, 502, "neither a code"},
		"two codes":           {func(_ *hostile, q url.Values) { q.Add("code", "x") }, 502, "neither a code"},
		"another code":        {func(_ *hostile, q url.Values) { q.Set("code", "x") }, 502, "invalid_grant"},
		"refused":             {func(_ *hostile, q url.Values) { q.Set("error", "access_denied") }, 403, "has refused"},
		"refused in words": {func(_ *hostile, q url.Values) {
			q.Set("error", "x")
			q.Set("error_description", "line\nline"+strings.Repeat("x", 1000))
		}, 403, `"x" (line linexx`},
		"scope": {func(_ *hostile, q url.Values) { q.Set("error", "invalid_scope") }, 403, "no scope groups"},
		"redirect URI of Entra": {func(_ *hostile, q url.Values) {
			q.Set("error", "invalid_request")
			q.Set("error_description", "AADSTS50011: no match")
		}, 403, "Register the redirect URI"},
		"away": {func(_ *hostile, q url.Values) { q.Set("error", "temporarily_unavailable") }, 503, "temporarily_unavailable"},
		"wrong secret": {func(p *hostile, _ url.Values) {
			p.handlers["/token"] = func(w http.ResponseWriter, _ *http.Request) {
				answer(w, 401, object{"error": "invalid_client", "error_description": "not " + secret})
			}
		}, 502, "client_id and client_secret"},
		"a platform of Entra": {func(p *hostile, _ url.Values) {
			p.handlers["/token"] = func(w http.ResponseWriter, _ *http.Request) {
				answer(w, 401, object{"error": "invalid_request", "error_description": "AADSTS9002326: Cross-origin …"})
			}
		}, 502, "platform Web"},
		"tokens away":       {func(p *hostile, _ url.Values) { p.handlers["/token"] = say(502, "") }, 503, "answered 502"},
		"tokens with words": {func(p *hostile, _ url.Values) { p.handlers["/token"] = say(400, accessToken) }, 502, "answered 400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newHostile(t)
			r := newRig(t, p)
			address, cookie := r.begin()
			query := p.signIn(t, address)
			p.set(func() { c.change(p, query) })
			_, _, err := r.Finish(t.Context(), login.Callback{Login: "company", Query: query, Cookie: cookie})
			if c.status == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantError(t, err, c.status, c.text)
			_, _, err = r.Finish(t.Context(), login.Callback{Login: "company", Query: query, Cookie: cookie})
			wantError(t, err, http.StatusBadRequest, "")
		})
	}
	p := newHostile(t)
	p.document["authorization_response_iss_parameter_supported"] = true
	_, err := newRig(t, p).finish()
	wantError(t, err, http.StatusBadGateway, "parameter iss")
}

// TestSlowProvider: a provider that hangs after the person has been there ends the callback, not a worker.
func TestSlowProvider(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	for _, path := range []string{"/token", "/keys", "/userinfo"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			p := newHostile(t)
			p.handlers[path] = hang
			p.claims["name"] = nil // userinfo may have it
			person, err := newRigWith(t, p, func(o *login.Options) { o.Timeout = 3 * time.Second }).finish()
			if path == "/userinfo" {
				if err != nil || len(person.Notes) != 1 || !strings.Contains(person.Notes[0], "gave no userinfo") {
					t.Errorf("%v: %+v", err, person)
				}
				return
			}
			wantError(t, err, http.StatusServiceUnavailable, "The provider gave no")
		})
	}
}
