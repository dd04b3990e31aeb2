package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"fingerpost/cmd/testrig"
)

// Tokens at the gate: what /api/auth/me accepts, and nothing else.
func TestGateTokens(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	h := startAuth(t)
	good := bearer(hs256(t, shopSecret, claims(11)))
	f := func(auth, domain string, headers []string, status int, code string) *answer {
		t.Helper()
		a := h.ask("GET", gateCheckURL+"?domain="+domain+"&auth="+auth, h.onlyResolve, headers...)
		a.reason(t, auth+" "+domain, status, code)
		if code == "UNAUTHORIZED" && (a.Header.Get("WWW-Authenticate") != tokenError || a.Header.Get("X-Gate-Reason") != "UNAUTHORIZED: a valid token is required") {
			t.Errorf("%s %s: %v", auth, domain, a.Header)
		}
		if status == 200 && (a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("ETag") != "" || a.Header.Get("X-Auth") == "") {
			t.Errorf("%s %s: %v", auth, domain, a.Header)
		}
		return a
	}
	user := func(a *answer, want string) {
		t.Helper()
		if got := a.Header.Get("X-Project-Slug") + " " + a.Header.Get("X-User-Id") + " " + a.Header.Get("X-User-Email"); got != want {
			t.Errorf("found %q, want %q", got, want)
		}
	}
	for _, auth := range []string{"required", "optional"} {
		user(f(auth, "shop.example", []string{good}, 200, ""), "shop u-1 ada@example.com")
		user(f(auth, "a.b.shop.example", []string{good}, 200, ""), "shop u-1 ada@example.com")
		injected := claims(11, "sub", "a\r\nX-Project-Id: 12", "email", "b\u00fccher@example.com\x00")
		user(f(auth, "shop.example", []string{bearer(hs256(t, shopSecret, injected))}, 200, ""), "shop a%0D%0AX-Project-Id: 12 b%C3%BCcher@example.com%00")
		user(f(auth, "shop.example", []string{bearer(hs256(t, shopSecret, claims(11, "sub", drop, "email", drop)))}, 200, ""), "shop  ")
		for name, token := range map[string]string{
			"of another project": hs256(t, bankSecret, claims(12)),
			"another id":         hs256(t, shopSecret, claims(12)),
			"expired":            hs256(t, shopSecret, claims(11, "exp", time.Now().Unix()-60)),
			"another issuer":     hs256(t, shopSecret, claims(11, "iss", "evil")),
			"HS384":              sign(t, jwt.SigningMethodHS384, []byte(shopSecret), claims(11), nil),
			"none":               sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, claims(11), nil),
			"changed":            hs256(t, shopSecret, claims(11)) + "x",
			"malformed":          "x.y.z",
			"huge":               hs256(t, shopSecret, claims(11, "more", strings.Repeat("x", 6<<10))),
			"empty":              "",
		} {
			t.Log(name)
			f(auth, "shop.example", []string{bearer(token)}, 401, "UNAUTHORIZED")
		}
		f(auth, "shop.example", []string{good, good}, 401, "UNAUTHORIZED")
		f(auth, "shop.example", []string{"Authorization: Bearer"}, 401, "UNAUTHORIZED")
		f(auth, "unknown.example", []string{good}, 403, "NOT_FOUND")
		f(auth, "unknown.example&deny=404", []string{good}, 404, "NOT_FOUND")
		f(auth, "unknown.example", []string{bearer("x")}, 401, "UNAUTHORIZED") // the token's form is checked first
		for _, domain := range []string{"suspended.example", "disabled.example", "none.example", "127.0.0.1"} {
			f(auth, domain, []string{bearer("x.y.z")}, 401, "UNAUTHORIZED")
		}
		f(auth, "disabled.example", []string{bearer(hs256(t, shopSecret, claims(15)))}, 403, "AUTH_DISABLED")
		f(auth, "none.example", []string{bearer(hs256(t, shopSecret, claims(14)))}, 503, "UNAVAILABLE")
	}
	f("required", "shop.example", nil, 401, "UNAUTHORIZED")
	f("required", "shop.example", []string{"Authorization: Basic dTpw"}, 401, "UNAUTHORIZED")
	user(f("optional", "shop.example", nil, 200, ""), "shop  ")
	user(f("optional", "shop.example", []string{"Authorization: Basic dTpw"}, 200, ""), "shop  ")
	user(f("optional", "none.example", nil, 200, ""), "none  ")
	user(f("optional", "disabled.example", nil, 200, ""), "disabled  ")
	// Without auth, tokens are not read.
	h.ask("GET", gateCheckURL+"?domain=shop.example", h.all, bearer("x")).reason(t, "no auth", 200, "")
	// A token of almost 8 KiB is read. All failures came from one address, and none was throttled.
	long := hs256(t, shopSecret, claims(11, "more", strings.Repeat("x", 5800)))
	if len(long) < 7900 || len(long) > 8192 {
		t.Fatalf("the long token has %d bytes", len(long))
	}
	f("required", "shop.example", []string{bearer(long)}, 200, "")
	for range 50 {
		f("required", "shop.example", []string{bearer("x.y.z")}, 401, "UNAUTHORIZED")
	}
	if log := h.log.String(); strings.Contains(log, "eyJ") || strings.Contains(log, "/api/gate/") {
		t.Errorf("the log has a token or each question of a gateway: %s", log)
	}
}
