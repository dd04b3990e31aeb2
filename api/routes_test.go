package api_test

import (
	"fmt"
	"strings"
	"testing"

	"fingerpost/api"
)

func TestHealth(t *testing.T) {
	h := start(t)
	for path, want := range map[string]string{healthURL: `{"service":"platform-service"}`, "/api/mail/health": `{"service":"mail-service","status":"UP"}`} {
		a := h.ask("GET", path, "")
		a.check(t, 200, "")
		if !strings.Contains(string(a.body), `"data":`+want+`,"timestamp"`) || a.json["message"] == "" {
			t.Errorf("%s: %s", path, a.body)
		}
		h.ask("HEAD", path, "").check(t, 200, "")
	}
}

// Paths are matched as they are: nothing is cleaned up, decoded or redirected.
func TestUnknownPaths(t *testing.T) {
	h := start(t)
	for _, path := range []string{
		"/", "/api", "/api/platform", "/api/platform/", "/api/platform/health/", "/api/platform//health", "//api/platform/health",
		"/api/platform/./health", "/api/x/../platform/health", "/api/platform/%68ealth", "/API/platform/health", "/api/platform/Health",
		"/api/platform/projects/", "/api/platform/projects/1/", "/api/platform/projects/1/domains/", "/api/platform/projects/1/nothing",
		"/api/platform/projects/by-slug/acme/x", "/api/platform/projects/resolve/", "/*",
		"/api/platform/projects/by-slug/..%2f..%2fetc", "/api/platform/projects/by-slug/ACME", "/api/platform/projects/by-slug/%61cme",
		"/api/platform/health%00", "/api/platform\\health", "/api/platform/healthy", "/api/platform/health;x", "*", "/api/mailx/health", "/favicon.ico",
		"/api/platform/projects/by-slug/" + strings.Repeat("a", 5000),
	} {
		a := h.ask("GET", path, h.all)
		a.check(t, 404, "NOT_FOUND")
		if a.Header.Get("Location") != "" {
			t.Errorf("%s redirects to %s", path, a.Header.Get("Location"))
		}
		if _, mail := a.json["path"]; mail {
			t.Errorf("%s: error in the mail form", path)
		}
	}
	for _, path := range []string{"/api/mail", "/api/mail/", "/api/mail/health/", "/api/mail/none", "/api/mail/\"<&\xff\u2028"} {
		a := h.ask("GET", path, h.all)
		a.check(t, 404, "NOT_FOUND")
		e := a.json["error"].(map[string]any)
		details, ok := a.json["validationErrors"].([]any)
		if a.json["path"] != strings.ToValidUTF8(path, "\ufffd") || a.json["status"] != 404.0 || a.json["message"] != e["message"] || !ok || len(details) > 0 {
			t.Errorf("%s: not the mail form: %s", path, a.body)
		}
	}
}

func TestMethods(t *testing.T) {
	h := start(t)
	const read, create = "GET, HEAD, OPTIONS", "GET, HEAD, POST, OPTIONS"
	const change, set, do = "GET, HEAD, PUT, DELETE, OPTIONS", "GET, HEAD, PUT, OPTIONS", "POST, OPTIONS"
	for path, allow := range map[string]string{
		healthURL: read, "/api/mail/health": read, "/api/openapi.yaml": read, "/api/platform/projects": create, "/api/platform/projects/1": change,
		resolveURL: create, "/api/platform/projects/by-slug/acme": read, "/api/platform/projects/1/domains": create,
		"/api/platform/projects/1/domains/1000": change, "/api/platform/projects/1/service-settings": set, "/api/platform/projects/1/auth-settings": set,
		"/api/mail/send/template": do, "/api/mail/send/raw": do, "/api/mail/send/test-template": do, "/api/mail/projects/smtp-config/test": do,
		"/api/mail/projects/1/smtp-config/test": do,
		"/api/mail/projects/1/logs":             read, "/api/mail/projects/1/logs/1": read,
	} {
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "TRACE", "BREW", "CONNECT"} {
			if strings.Contains(allow, method) {
				continue
			}
			a := h.ask(method, path, "")
			a.check(t, 405, "METHOD_NOT_ALLOWED")
			if !sameWords(a.Header.Get("Allow"), allow) {
				t.Errorf("%s %s: Allow %q, want %q", method, path, a.Header.Get("Allow"), allow)
			}
		}
		mail := strings.HasPrefix(path, "/api/mail")
		headers := []string{}
		key := h.onlyMail
		if mail {
			headers, key = []string{"X-Internal-Service-Token: " + key, "X-Internal-Service-Name: auth.v1"}, ""
		}
		a := h.ask("OPTIONS", path, key, headers...)
		if a.StatusCode != 204 || a.Header.Get("Allow") != allow || len(a.body) > 0 || a.Header.Get("Content-Type") != "" {
			t.Errorf("OPTIONS %s: %d %v %q", path, a.StatusCode, a.Header, a.body)
		}
		h.ask("OPTIONS", path, "").check(t, 401, "UNAUTHORIZED")
	}
	h.ask("OPTIONS", "/none", h.all).check(t, 404, "NOT_FOUND")
}

func sameWords(a, b string) bool {
	count := map[string]int{}
	for _, w := range strings.Split(a, ", ") {
		count[w]++
	}
	for _, w := range strings.Split(b, ", ") {
		count[w]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// The mail service's two headers are both needed.
func TestMailHeaders(t *testing.T) {
	h := start(t)
	token := "X-Internal-Service-Token: "
	const name = "X-Internal-Service-Name: "
	for _, c := range []struct {
		headers []string
		status  int
	}{
		{[]string{token + h.onlyMail, name + "auth"}, 204},
		{[]string{token + h.onlyMail, name + strings.Repeat("a", 64)}, 204},
		{[]string{token + h.onlyMail}, 401},
		{[]string{name + "auth"}, 401},
		{[]string{token + h.onlyMail, name}, 401},
		{[]string{token + h.onlyMail, name + strings.Repeat("a", 65)}, 401},
		{[]string{token + h.onlyMail, name + "a b"}, 401},
		{[]string{token + h.onlyMail, name + "a", name + "a"}, 401},
		{[]string{token + h.onlyMail, token + h.onlyMail, name + "a"}, 401},
		{[]string{token + h.revoked, name + "a"}, 401},
		{[]string{"X-PLATFORM-KEY: " + h.onlyMail, name + "a"}, 401},
	} {
		a := h.ask("OPTIONS", "/api/mail/health", "", c.headers...)
		if a.StatusCode != c.status {
			t.Errorf("%q: %d, want %d", c.headers, a.StatusCode, c.status)
		}
		if c.status == 401 && a.json["status"] != 401.0 {
			t.Errorf("not the mail form: %s", a.body)
		}
	}
}

// HEAD is GET without the body, length and tag included.
func TestHead(t *testing.T) {
	h := start(t)
	for _, path := range []string{healthURL, "/api/platform/projects/1", resolveURL + "?domain=globex.example", "/api/platform/projects?page=1", "/api/platform/projects", resolveURL} {
		g, head := h.ask("GET", path, h.all), h.ask("HEAD", path, h.all)
		if head.StatusCode != g.StatusCode || head.ContentLength != g.ContentLength || len(head.body) > 0 || head.Header.Get("ETag") != g.Header.Get("ETag") {
			t.Errorf("%s: HEAD %d %d %v, GET %d %d %v", path, head.StatusCode, head.ContentLength, head.Header, g.StatusCode, g.ContentLength, g.Header)
		}
	}
}

func TestRequestID(t *testing.T) {
	h := start(t)
	for _, path := range []string{healthURL, "/none", "/api/platform/projects/1", resolveURL + "?domain=globex.example"} {
		for id, kept := range map[string]bool{
			"a": true, "A.b_c-9": true, strings.Repeat("x", 128): true, strings.Repeat("x", 129): false, "a b": false, "ä": false, "": false, "a,b": false, `"`: false,
		} {
			got := h.ask("GET", path, h.all, "X-Request-Id: "+id).Header.Get("X-Request-Id")
			if (got == id) != kept || got == "" {
				t.Errorf("%s: %q gave %q", path, id, got)
			}
		}
	}
	seen := map[string]bool{}
	for range 100 {
		id := h.ask("GET", healthURL, "").Header.Get("X-Request-Id")
		if seen[id] {
			t.Fatalf("%s came twice", id)
		}
		seen[id] = true
	}
}

// A listener offers its own services only.
func TestServicesOfAListener(t *testing.T) {
	h := start(t)
	for services, want := range map[api.Services][3]int{
		api.Platform: {200, 404, 200}, api.Mail: {404, 200, 404}, api.Platform | api.Mail: {200, 200, 200},
	} {
		at := *h
		at.addr = h.listen(services)
		for i, path := range []string{healthURL, "/api/mail/health", resolveURL + "?domain=globex.example"} {
			if got := at.ask("GET", path, h.all).StatusCode; got != want[i] {
				t.Errorf("services %v, %s: %d, want %d", services, path, got, want[i])
			}
			if got := at.ask("DELETE", path, h.all); (got.StatusCode == 405) != (want[i] == 200) || (got.Header.Get("Allow") != "") != (want[i] == 200) {
				t.Errorf("services %v, DELETE %s: %d, Allow %q", services, path, got.StatusCode, got.Header.Get("Allow"))
			}
		}
	}
}

// HTTP/1.0 clients get whole answers and no chunks.
func TestHTTP10(t *testing.T) {
	h := start(t)
	for _, path := range []string{healthURL, "/api/platform/projects", resolveURL + "?domain=globex.example"} {
		w := h.dial()
		w.send(fmt.Sprintf("GET %s HTTP/1.0\r\nX-PLATFORM-KEY: %s\r\n\r\n", path, h.all))
		a := w.answer("GET")
		a.check(t, 200, "")
		if len(a.TransferEncoding) > 0 || a.ContentLength < 0 {
			t.Errorf("%s: %v", path, a.Header)
		}
		w.closed()
		w.Close()
	}
}
