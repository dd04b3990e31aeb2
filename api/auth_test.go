package api_test

import (
	"fmt"
	"hash/crc32"
	"regexp"
	"strings"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// badKeys are the ways to have no good key.
func badKeys(h *house) map[string][]string {
	flip := func(key string) string { return key[:20] + string(key[20]^1) + key[21:] }
	other, id := catalog.NewKeyText()
	known, _ := catalog.KeyTextID([]byte(h.all))
	return map[string][]string{
		"none":               nil,
		"empty":              {"X-PLATFORM-KEY:"},
		"short":              {"X-PLATFORM-KEY: fpk_"},
		"no key":             {"X-PLATFORM-KEY: secret"},
		"long":               {"X-PLATFORM-KEY: " + strings.Repeat("a", 4000)},
		"cut":                {"X-PLATFORM-KEY: " + h.all[:len(h.all)-1]},
		"extended":           {"X-PLATFORM-KEY: " + h.all + "a"},
		"flipped":            {"X-PLATFORM-KEY: " + flip(h.all)},
		"upper case":         {"X-PLATFORM-KEY: " + strings.ToUpper(h.all)},
		"quoted":             {`X-PLATFORM-KEY: "` + h.all + `"`},
		"bearer":             {"X-PLATFORM-KEY: Bearer " + h.all},
		"list":               {"X-PLATFORM-KEY: " + h.all + ", " + h.all},
		"unknown id":         {"X-PLATFORM-KEY: " + other},
		"another's secret":   {"X-PLATFORM-KEY: " + withCheck(strings.Replace(other, id, string(known), 1))},
		"expired":            {"X-PLATFORM-KEY: " + h.expired},
		"two":                {"X-PLATFORM-KEY: " + h.all, "X-PLATFORM-KEY: " + h.all},
		"two, other case":    {"X-PLATFORM-KEY: " + h.all, "x-platform-key: " + h.onlyRead},
		"good and empty":     {"X-PLATFORM-KEY: " + h.all, "X-PLATFORM-KEY:"},
		"other header":       {"X-SERVICE-TOKEN: " + h.all, "X-PROJECT-ID: 1"},
		"authorization":      {"Authorization: Bearer " + h.all},
		"mail's header":      {"X-Internal-Service-Token: " + h.all, "X-Internal-Service-Name: auth"},
		"underscores":        {"X_PLATFORM_KEY: " + h.all},
		"in a cookie":        {"Cookie: X-PLATFORM-KEY=" + h.all},
		"forwarded as local": {"X-Forwarded-For: 127.0.0.1"},
	}
}

// withCheck gives a key's text a new checksum.
func withCheck(key string) string {
	const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	body := key[:len(key)-6]
	check := ""
	for sum := crc32.ChecksumIEEE([]byte(body)); len(check) < 6; sum /= 62 {
		check = string(base62[sum%62]) + check
	}
	return body + check
}

// A key in Authorization is answered with the name of the right header, whether the key is good or not, and without it.
func TestKeyInAuthorization(t *testing.T) {
	h := start(t)
	f := func(path, authorization, want string, more ...string) {
		t.Helper()
		a := h.ask("GET", path, "", append(more, "Authorization: "+authorization)...)
		e, _ := a.json["error"].(map[string]any)
		message, _ := e["message"].(string)
		if a.StatusCode != 401 || message != want || a.Header.Get("WWW-Authenticate") == "" ||
			strings.Contains(string(a.body)+fmt.Sprint(a.Header), "fpk_") {
			t.Errorf("%s, %s: %d %v %s", path, authorization, a.StatusCode, a.Header, a.body)
		}
	}
	const platform = "the key is in the header Authorization, which is not read: send it as X-PLATFORM-KEY"
	const mail = "the key is in the header Authorization, which is not read: send it as X-Internal-Service-Token, and the " +
		"name of the caller as X-Internal-Service-Name"
	const list, logs, usual = "/api/platform/projects", "/api/mail/projects/1/logs", "a valid key is required, as X-PLATFORM-KEY, " +
		"or for the mail API as X-Internal-Service-Token with X-Internal-Service-Name"
	for _, key := range []string{h.all, h.revoked, h.expired, "fpk_", "fpk_" + strings.Repeat("x", 5000)} {
		f(list, "Bearer "+key, platform)
		f(list, key, platform)
	}
	f(list, "bearer  "+h.all+" ", platform)
	f(resolveURL+"?domain=globex.example", "Bearer "+h.all, platform)
	f(logs, "Bearer "+h.all, mail)
	f(logs, h.all, mail, "X-Internal-Service-Name: shop")
	f(list, "Bearer "+strings.ReplaceAll(h.all, "fpk_", "fpx_"), usual)
	f(list, "Basic dXNlcjpwYXNz", usual)
	f(list, "", usual)
	f(list, "Bearer "+h.all, usual, "X-PLATFORM-KEY: "+h.revoked) // the key that is read is no good
	if strings.Contains(h.log.String(), "fpk_") {
		t.Error("a key is in the log")
	}
}

// Every other way to have no good key gives the same 401.
func TestUnauthorized(t *testing.T) {
	var first string
	h := start(t)
	for name := range badKeys(h) {
		if name == "authorization" {
			continue // see TestKeyInAuthorization
		}
		h := start(t) // fewer failures than the throttle's burst in each
		for _, path := range []string{"/api/platform/projects", resolveURL + "?domain=globex.example", "/api/platform/projects/1"} {
			a := h.ask("GET", path, "", badKeys(h)[name]...)
			if a.StatusCode != 401 {
				t.Errorf("%s, %s: %d", name, path, a.StatusCode)
			}
			body := regexp.MustCompile(`"timestamp":"[^"]+"`).ReplaceAllString(string(a.body), "")
			if first == "" {
				first = body
			}
			if body != first || a.Header.Get("WWW-Authenticate") == "" || !strings.Contains(body, "X-PLATFORM-KEY") ||
				!strings.Contains(body, "X-Internal-Service-Token") {
				t.Errorf("%s, %s: %s %v, want %s", name, path, body, a.Header, first)
			}
			h.ask("GET", path, h.all).check(t, 200, "")
		}
	}
}

func TestKeyPermissions(t *testing.T) {
	h := start(t)
	keys := map[string]string{
		"all": h.all, "resolve": h.onlyResolve, "read": h.onlyRead, "write": h.onlyWrite, "mail": h.onlyMail, "acme": h.acme, "acme-resolve": h.acmeResolve,
	}
	for _, c := range []struct{ path, ok string }{
		{"/api/platform/projects", "all read acme"},
		{"/api/platform/projects/1", "all read acme"},
		{"/api/platform/projects/2", "all read"},
		{"/api/platform/projects/by-slug/acme", "all read acme"},
		{"/api/platform/projects/by-slug/globex", "all read"},
		{"/api/platform/projects/1/domains", "all read acme"},
		{"/api/platform/projects/2/domains", "all read"},
		{"/api/platform/projects/1/domains/1000", "all read acme"},
		{"/api/platform/projects/2/domains/2000", "all read"},
		{"/api/platform/projects/1/service-settings", "all read acme"},
		{"/api/platform/projects/2/service-settings", "all read"},
		{"/api/platform/projects/1/auth-settings", "all read acme"},
		{"/api/platform/projects/2/auth-settings", "all read"},
		{resolveURL + "?domain=shop.acme.example", "all resolve read acme acme-resolve"},
		{resolveURL + "?domain=globex.example", "all resolve read"},
		{resolveURL + "?domain=off.globex.example", ""}, // 403 for all, of one kind or another
		{resolveURL + "?domain=initech.example", ""},
	} {
		for name, key := range keys {
			a := h.ask("GET", c.path, key)
			want := 403
			if contains(c.ok, name) {
				want = 200
			}
			if a.StatusCode != want {
				t.Errorf("%s with %s: %d, want %d: %s", c.path, name, a.StatusCode, want, a.body)
			}
			if strings.HasPrefix(name, "acme") && !strings.Contains(c.path, "acme") && want == 403 && a.code() != "FORBIDDEN" {
				t.Errorf("%s with %s shows more than it should: %s", c.path, name, a.body)
			}
		}
	}
}

func contains(list, word string) bool {
	for _, w := range strings.Fields(list) {
		if w == word {
			return true
		}
	}
	return false
}

// The order of errors is 401, 400, 403, 404.
func TestErrorOrder(t *testing.T) {
	h := start(t)
	for _, c := range []struct {
		path, key string
		status    int
	}{
		{"/api/platform/projects/none/x", "", 404},
		{"/api/platform/projects/x", "", 401},
		{"/api/platform/projects/x", h.onlyMail, 400},
		{"/api/platform/projects/999", h.onlyMail, 403},
		{"/api/platform/projects/999", h.onlyRead, 404},
		{"/api/platform/projects/999", h.acme, 404},
		{"/api/platform/projects?page=0", h.onlyMail, 400},
		{resolveURL, h.onlyMail, 400},
		{resolveURL + "?domain=a..b", h.onlyMail, 400},
		{resolveURL + "?domain=nobody.example", h.onlyMail, 403},
		{resolveURL + "?domain=nobody.example", h.acmeResolve, 404},
		{resolveURL + "?domain=off.acme.example", h.acmeResolve, 403},
	} {
		if a := h.ask("GET", c.path, c.key); a.StatusCode != c.status {
			t.Errorf("%s: %d, want %d: %s", c.path, a.StatusCode, c.status, a.body)
		}
	}
}

// A reload that takes a key away or gives it an end stops it at once, also on an open connection.
func TestRevocation(t *testing.T) {
	h := start(t)
	d := &catalog.Declared{}
	key := h.newKey(d, "later", catalog.MayResolve)
	h.apply("keys.hcl", d)
	request := "GET " + resolveURL + "?domain=globex.example HTTP/1.1\r\nHost: x\r\nX-PLATFORM-KEY: " + key + "\r\n\r\n"
	w := h.dial()
	defer w.Close()
	ask := func(status int) {
		t.Helper()
		w.send(request)
		if a := w.answer("GET"); a.StatusCode != status {
			t.Errorf("got %d, want %d", a.StatusCode, status)
		}
	}
	ask(200)
	ask(200)
	d.Keys[0].ExpiresAt = time.Now().Add(-time.Minute)
	h.apply("keys.hcl", d)
	ask(401)
	d.Keys[0].ExpiresAt = time.Now().Add(time.Hour)
	h.apply("keys.hcl", d)
	ask(200)
	h.apply("keys.hcl", &catalog.Declared{})
	ask(401)
}

// A key expires by the clock, without a reload.
func TestExpiry(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	h := start(t)
	d := &catalog.Declared{}
	key := h.newKey(d, "soon", catalog.MayResolve)
	d.Keys[0].ExpiresAt = time.Now().Add(2 * time.Second)
	h.apply("keys.hcl", d)
	url := resolveURL + "?domain=globex.example"
	h.ask("GET", url, key).check(t, 200, "")
	testrig.Eventually(t, "the key to expire", func() bool { return h.ask("GET", url, key).StatusCode == 401 })
}

func TestBlockedKey(t *testing.T) {
	h := start(t, func(o *api.Options) { o.BlockedKeyIDs = map[string]bool{} })
	id, _ := catalog.KeyTextID([]byte(h.all))
	blocked := start(t, func(o *api.Options) { o.BlockedKeyIDs = map[string]bool{string(id): true}; o.Resolver = h.resolver })
	h.ask("GET", "/api/platform/projects/1", h.all).check(t, 200, "")
	blocked.ask("GET", "/api/platform/projects/1", h.all).check(t, 401, "UNAUTHORIZED")
	blocked.ask("GET", "/api/platform/projects/1", h.onlyRead).check(t, 200, "")
}

// Bad keys from one address are throttled; good ones from there never are, nor are requests without any.
func TestThrottle(t *testing.T) {
	h := start(t)
	const path = "/api/platform/projects/1"
	limited := 0
	for i := range 40 {
		bad, _ := catalog.NewKeyText()
		a := h.ask("GET", path, bad, "X-Forwarded-For: 10.0.0."+itoa(i))
		switch a.StatusCode {
		case 401:
			if limited > 0 {
				t.Errorf("request %d: 401 after 429", i)
			}
		case 429:
			limited++
			a.check(t, 429, "RATE_LIMITED")
			if a.Header.Get("Retry-After") == "" {
				t.Error("429 without Retry-After")
			}
		default:
			t.Errorf("got %d", a.StatusCode)
		}
		h.ask("GET", path, h.all).check(t, 200, "")
	}
	if limited < 19 || limited > 20 {
		t.Errorf("%d of 40 were limited, want 20 (19 on a slow machine)", limited)
	}
	h.ask("GET", path, "").check(t, 401, "UNAUTHORIZED")
}

// The planned headers have no effect.
func TestPlannedHeaders(t *testing.T) {
	h := start(t)
	h.ask("GET", "/api/platform/projects/1", h.acme, "X-SERVICE-TOKEN: nonsense", "X-PROJECT-ID: 2").check(t, 200, "")
	h.ask("GET", "/api/platform/projects/2", h.acme, "X-SERVICE-TOKEN: "+h.all, "X-PROJECT-ID: 2").check(t, 403, "FORBIDDEN")
}

// Nothing of a key or of what was asked for gets into the log.
func TestLogHoldsNoSecrets(t *testing.T) {
	h := start(t, func(o *api.Options) { o.AccessLogResolve = true })
	h.ask("GET", resolveURL+"?domain=globex.example&canary=canary-1", h.all, "X-A: canary-2").check(t, 200, "")
	h.ask("GET", "/canary-3", h.all).check(t, 404, "NOT_FOUND")
	h.ask("GET", "/api/platform/projects/1", "canary-4").check(t, 401, "UNAUTHORIZED")
	for _, message := range []string{"GET /canary-5 HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\ncanary-6\r\n\r\n", "CANARY-7 / HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nX-Platform-Key: canary-8\x01\r\n\r\n"} {
		w := h.dial()
		w.send(message)
		w.answer("GET")
		w.Close()
	}
	log := h.log.String()
	if strings.Contains(strings.ToLower(log), "canary") || strings.Contains(log, h.all) {
		t.Errorf("the log holds what it must not:\n%s", log)
	}
	id, _ := catalog.KeyTextID([]byte(h.all))
	for _, want := range []string{`"path":"` + resolveURL + `"`, `"status":404`, `"key":"` + string(id) + `"`, `"request_id":"`, `"duration_ms":`} {
		if !strings.Contains(log, want) {
			t.Errorf("the access log lacks %s:\n%s", want, log)
		}
	}
}
