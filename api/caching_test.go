package api_test

import (
	"strings"
	"testing"
)

// Every answer that depends on a key says so to caches: none may keep it for another key.
func TestKeyedAnswersAreNotShared(t *testing.T) {
	h := start(t)
	const platform, mail = "X-PLATFORM-KEY", "X-Internal-Service-Token, X-Internal-Service-Name"
	for _, c := range []struct {
		method, path, key string
		status            int
		cache, vary       string
	}{
		{"GET", resolveURL + "?domain=globex.example", h.all, 200, "private, max-age=5", platform},
		{"HEAD", resolveURL + "?domain=globex.example", h.all, 200, "private, max-age=5", platform},
		{"GET", resolveURL + "?domain=globex.example&form=flat", h.all, 200, "private, max-age=5", platform},
		{"GET", resolveURL + "?domain=nobody.example", h.all, 404, "no-store", platform},
		{"GET", resolveURL + "?domain=initech.example", h.all, 403, "no-store", platform},
		{"GET", resolveURL + "?domain=globex.example", h.acme, 403, "no-store", platform},
		{"GET", resolveURL + "?domain=globex.example", "", 401, "no-store", platform},
		{"GET", resolveURL, h.all, 400, "no-store", platform},
		{"GET", "/api/platform/projects/1", h.all, 200, "private, no-cache", platform},
		{"GET", "/api/platform/projects/1/domains/1000", h.all, 200, "private, no-cache", platform},
		{"GET", "/api/platform/projects/1/auth-settings", h.all, 200, "private, no-cache", platform},
		{"GET", "/api/platform/projects/1", "", 401, "no-store", platform},
		{"GET", "/api/platform/projects/1", h.onlyMail, 403, "no-store", platform},
		{"GET", "/api/platform/projects/9", h.all, 404, "no-store", platform},
		{"GET", "/api/platform/projects", h.all, 200, "no-store", platform},
		{"GET", "/api/platform/projects?page=1", h.all, 200, "no-store", platform},
		{"GET", "/api/platform/projects/1/domains", h.acme, 200, "no-store", platform},
		{"HEAD", "/api/platform/events", h.all, 200, "no-store", platform},
		{"OPTIONS", "/api/platform/projects/1", h.all, 204, "no-store", platform},
		{"POST", "/api/platform/projects", h.all, 400, "no-store", platform},
		{"GET", "/api/mail/projects/1/templates", h.all, 200, "no-store", mail},
		{"GET", "/api/mail/projects/1/smtp-config", h.all, 404, "no-store", mail},
		{"GET", "/api/mail/projects/1/templates", "", 401, "no-store", mail},
		{"GET", "/api/platform/none", h.all, 404, "no-store", ""},
		{"POST", "/api/platform/projects/1", h.all, 405, "no-store", ""},
		{"GET", healthURL, "", 200, "", ""},
	} {
		key := strings.Split(strings.TrimSuffix(keyLines(c.path, c.key), "\r\n"), "\r\n")
		if c.key == "" {
			key = nil
		}
		a := h.ask(c.method, c.path, "", key...)
		got := [2]string{a.Header.Get("Cache-Control"), a.Header.Get("Vary")}
		if a.StatusCode != c.status || got != [2]string{c.cache, c.vary} || len(a.Header.Values("Vary")) > 1 || len(a.Header.Values("Cache-Control")) > 1 {
			t.Errorf("%s %s: %d %q, want %d %q %q", c.method, c.path, a.StatusCode, got, c.status, c.cache, c.vary)
		}
		if tag := a.Header.Get("ETag"); tag != "" && c.method == "GET" { // a 304 says the same (RFC 9110, 15.4.5)
			again := h.ask("GET", c.path, "", append(key, "If-None-Match: "+tag)...)
			if again.StatusCode != 304 || again.Header.Get("Vary") != c.vary || again.Header.Get("Cache-Control") != c.cache {
				t.Errorf("%s: %d %v", c.path, again.StatusCode, again.Header)
			}
		}
	}
	// The second request of a connection takes the fast path.
	w := h.dial()
	defer w.Close()
	for range 3 {
		w.send("GET " + resolveURL + "?domain=globex.example HTTP/1.1\r\nHost: x\r\n" + keyLines("", h.all) + "\r\n")
		if a := w.answer("GET"); a.Header.Get("Vary") != platform {
			t.Errorf("Vary: %q", a.Header.Get("Vary"))
		}
	}
}
