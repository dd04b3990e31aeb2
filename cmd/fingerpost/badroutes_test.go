package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// mailRefused checks the mail service's form of a failure.
func mailRefused(t testing.TB, what string, got reply, status int, code, path string) {
	t.Helper()
	sound(t, what, got)
	var body struct {
		Success          *bool                          `json:"success"`
		Error            struct{ Code, Message string } `json:"error"`
		Message          string                         `json:"message"`
		Path             string                         `json:"path"`
		Status           int                            `json:"status"`
		ValidationErrors []any                          `json:"validationErrors"`
		Timestamp        string                         `json:"timestamp"`
	}
	err := json.Unmarshal([]byte(got.body), &body)
	switch {
	case err != nil, got.status != status, body.Success == nil, *body.Success, body.Error.Code != code, body.Status != status, body.Path != path,
		body.Message == "", body.Message != body.Error.Message, body.ValidationErrors == nil, len(body.ValidationErrors) != 0, !stampOf.MatchString(got.body):
		t.Errorf("%s: %d %s\nwant %d %s in the mail form with path %s", what, got.status, got.body, status, code, path)
	}
}

// badRoutes: a path that is not exactly a known one is 404, never normalised into one and never a redirect.
func badRoutes(r *rig) {
	const projects = "/api/platform/projects"
	for _, target := range []string{
		"/", "/?x", "/api", "/api/", "/api/platform", "/api/platform/", "/favicon.ico", "/robots.txt", "/.git/config", "/" + strings.Repeat("a/", 2000),
		projects + "/", projects + "/resolve/?domain=shop.acme.example", projects + "/resolve/x", projects + "/by-slug/", projects + "/by-slug/acme/", projects + "/by-slug/acme/x",
		projects + "/1/", projects + "/1/nothing", projects + "/1/domains/", projects + "/1/domains/1/", projects + "/1/service-settings/", projects + "/1/auth-settings/x",
		"//api/platform/projects", "/api//platform/projects", "/api/platform//projects", projects + "//resolve?domain=shop.acme.example", "///", "//evil.example/..",
		"/./api/platform/projects", "/api/./platform/projects", "/x/../api/platform/projects", "/api/platform/x/../projects", projects + "/x/../resolve?domain=shop.acme.example",
		"/%2e/api/platform/projects", "/api/platform/%2e%2e/platform/projects", "/api/platform/x/%2E%2E/projects", "/..%2f..%2fetc/passwd", projects + "/%2e%2e/%2e%2e/health",
		"/api%2fplatform/projects", "/api/platform%2Fprojects", projects + "%2fresolve?domain=shop.acme.example", projects + "%00", projects + "%20",
		projects + "/by-slug/..%2f..%2fetc", projects + "/by-slug/%2e%2e", projects + "/by-slug/nothing", projects + "/by-slug/ACME", projects + "/by-slug/acme%00", projects + "/by-slug/" + strings.Repeat("a", 5000),
		"/API/platform/projects", "/api/Platform/projects", "/api/platform/Projects", projects + ";x=1", projects + ".json",
		"/metrics", "/status", "/livez", "/readyz", "/debug/pprof/", "/debug/pprof/heap", "/api/platform/health/", "/api/platform/health/x", "/api\\platform\\projects", "/api/mailx",
	} {
		refused(r.t, "GET "+cutMiddle(target, 80), r.get(target), 404, "NOT_FOUND")
	}
	for _, id := range []string{"by-slug", "..", ".", "Resolve", "resolve%00", "resolve%0a", "resolve;x", "resolve%20", "resolve%2f"} { // what stands where an id belongs is a bad id
		refused(r.t, "id "+id, r.get(projects+"/"+id+"?domain=shop.acme.example"), 400, "VALIDATION_ERROR", "id")
	}
	for _, path := range []string{"/api/mail/nothing", "/api/mail/health/", "/api/mail/projects/1/nothing", "/api/mail/send", "/api/mail/Health"} {
		mailRefused(r.t, path, r.get(path+"?x=1&y=%zz"), 404, "NOT_FOUND", path)
		mailRefused(r.t, path, r.ask("BREW", path, "", ""), 404, "NOT_FOUND", path)
	}
	for _, path := range []string{"/api/mail//health", "/api/mail/./health", "/api/mail/x/../health", "/api/mail/%2e%2e/platform/health", "/api/mail/../platform/health", "/api/mail%2fhealth"} {
		if got := r.get(path); got.status != 404 || !strings.Contains(got.body, `"code":"NOT_FOUND"`) {
			r.t.Errorf("%s: %d %s", path, got.status, got.body)
		} else {
			sound(r.t, path, got)
		}
	}
	if got := r.ask("GET", "/api/platform/health?x=%zz", "", ""); !strings.Contains(granted(r.t, "health", got), `{"service":"platform-service"}`) {
		r.t.Errorf("health: %s", got.body)
	}
}

// badMethods: 405 with Allow if the path is known; HEAD works where GET does; OPTIONS needs a key.
func badMethods(r *rig) {
	id := r.projectID("acme")
	known := []string{"/api/platform/health", "/api/platform/projects", resolvePath + "shop.acme.example", "/api/platform/projects/by-slug/acme", "/api/platform/projects/" + id,
		"/api/platform/projects/" + id + "/domains", "/api/platform/projects/" + id + "/service-settings", "/api/platform/projects/" + id + "/auth-settings"}
	r.from = "127.0.1.2"
	for _, target := range known {
		for _, method := range []string{"PATCH", "TRACE", "PROPFIND", "BREW", "X-" + strings.Repeat("Y", 100)} {
			got := r.ask(method, target, r.keys["all"], "")
			refused(r.t, method+" "+target, got, 405, "METHOD_NOT_ALLOWED")
			allow := strings.Split(strings.ReplaceAll(strings.Join(got.header.Values("Allow"), ","), " ", ""), ",")
			if !slices.Contains(allow, "GET") || !slices.Contains(allow, "HEAD") || slices.Contains(allow, method) {
				r.t.Errorf("%s %s: Allow %q", method, target, allow)
			}
			if posts := strings.HasPrefix(target, resolvePath); posts && !slices.Contains(allow, "POST") {
				r.t.Errorf("%s %s: Allow %q lacks POST", method, target, allow)
			}
		}
		if got := r.ask("OPTIONS", target, r.keys["all"], ""); got.status != 200 && got.status != 204 || !strings.Contains(got.header.Get("Allow"), "GET") {
			r.t.Errorf("OPTIONS %s: %d %v %s", target, got.status, got.header, got.body)
		}
		refused(r.t, "OPTIONS without a key "+target, r.ask("OPTIONS", target, "", ""), 401, "UNAUTHORIZED")
	}
	mailRefused(r.t, "PATCH mail", r.ask("PATCH", "/api/mail/health?x", "", ""), 405, "METHOD_NOT_ALLOWED", "/api/mail/health")
	for _, target := range append(known, resolvePath+"..", resolvePath+"nowhere.example", "/nothing", "/api/mail/nothing", "/api/platform/projects?page=1", "/api/platform/projects/x") {
		get, head := r.get(target), r.ask("HEAD", target, r.keys["all"], "")
		sound(r.t, "HEAD "+target, head)
		if head.body != "" || head.status != get.status {
			r.t.Errorf("HEAD %s: %d %q, and GET %d", target, head.status, head.body, get.status)
		}
		for _, h := range []string{"Content-Type", "Etag", "Cache-Control", "X-Config-Generation"} {
			if head.header.Get(h) != get.header.Get(h) {
				r.t.Errorf("HEAD %s: %s %q, and GET %q", target, h, head.header.Get(h), get.header.Get(h))
			}
		}
	}
	refused(r.t, "HEAD's key", func() reply {
		got := r.ask("HEAD", known[2], "", "")
		got.body = r.ask("GET", known[2], "", "").body
		return got
	}(), 401, "UNAUTHORIZED")
}

// projectID returns the id of a project, from the API.
func (r *rig) projectID(slug string) string {
	r.t.Helper()
	var p struct{ ID json.Number }
	data := granted(r.t, slug, r.get("/api/platform/projects/by-slug/"+slug))
	if err := json.Unmarshal([]byte(data), &p); err != nil {
		r.t.Fatalf("%s: %v", data, err)
	}
	return p.ID.String()
}

// badFraming: a message with an ambiguous end or version gets one 400, and the connection is closed, whatever follows.
func badFraming(r *rig) {
	key := "X-PLATFORM-KEY: " + r.keys["all"] + "\r\n"
	second := "GET /api/platform/health HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n"
	const post, get = "POST /api/platform/projects/resolve HTTP/1.1\r\nHost: a\r\n", "GET /api/platform/health HTTP/1.1\r\nHost: a\r\n"
	for why, text := range map[string]string{
		"length and chunks":   post + key + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"chunks and length":   post + key + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
		"two lengths":         post + key + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
		"two equal lengths":   post + key + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
		"list of lengths":     post + key + "Content-Length: 2, 2\r\n\r\n{}",
		"signed length":       post + key + "Content-Length: +2\r\n\r\n{}",
		"negative length":     post + key + "Content-Length: -2\r\n\r\n{}",
		"hexadecimal length":  post + key + "Content-Length: 0x2\r\n\r\n{}",
		"endless length":      post + key + "Content-Length: 99999999999999999999999\r\n\r\n{}",
		"empty length":        post + key + "Content-Length:\r\n\r\n{}",
		"unknown coding":      post + key + "Transfer-Encoding: gzip\r\n\r\n{}",
		"two codings":         post + key + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"odd chunk":           post + key + "Transfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n",
		"chunk that overlaps": post + key + "Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
		"chunks in HTTP/1.0":  "POST /api/platform/projects/resolve HTTP/1.0\r\nHost: a\r\n" + key + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"folded header":       get + "X-A: b\r\n c\r\n\r\n",
		"space before colon":  get + "Content-Length : 0\r\n\r\n",
		"header without name": get + ": b\r\n\r\n",
		"no colon":            get + "nonsense\r\n\r\n",
		"bare LF":             "GET /api/platform/health HTTP/1.1\nHost: a\n\n",
		"bare LF in a header": get + "X-A: b\nX-B: c\r\n\r\n",
		"bare CR":             get + "X-A: b\rX-B: c\r\n\r\n",
		"NUL in a header":     get + "X-A: b\x00c\r\n\r\n",
		"HTTP/9.9":            "GET /api/platform/health HTTP/9.9\r\nHost: a\r\n\r\n",
		"HTTP/1.10":           "GET /api/platform/health HTTP/1.10\r\nHost: a\r\n\r\n",
		"HTTP/0.9":            "GET /api/platform/health\r\n\r\n",
		"no version":          "GET /api/platform/health x\r\n\r\n",
		"HTTP/2 preface":      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"TLS hello":           "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\xaa", 500) + "\r\n\r\n",
		"not HTTP":            "\x00\x01\x02\r\n\r\n",
		"raw control target":  "GET /api/platform/health\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
		"space in the target": "GET /api/platform/health x HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		all := r.wire("GET", text+second)
		if len(all) != 1 {
			r.t.Errorf("%s: %d answers, want 1: %v", why, len(all), all)
			continue
		}
		refused(r.t, why, all[0], 400, "VALIDATION_ERROR")
	}
	all := r.wire("GET", get+"X-A: "+strings.Repeat("a", 17<<10)+"\r\n\r\n"+second)
	if len(all) != 1 {
		r.t.Fatalf("17 KiB of header: %d answers", len(all))
	}
	refused(r.t, "17 KiB of header", all[0], 431, "HEADERS_TOO_LARGE")
	all = r.wire("GET", get+strings.Repeat("X-A: a\r\n", 5000)+"\r\n"+second)
	if len(all) != 1 {
		r.t.Fatalf("5,000 headers: %d answers", len(all))
	}
	refused(r.t, "5,000 headers", all[0], 431, "HEADERS_TOO_LARGE")
	all = r.wire("GET", "GET /"+strings.Repeat("a", 20<<10)+" HTTP/1.1\r\nHost: a\r\n\r\n"+second)
	if len(all) != 1 || all[0].status != 414 && all[0].status != 431 || !platformError.MatchString(all[0].body) {
		r.t.Errorf("20 KiB of target: %v", all)
	}
	good := strings.Repeat(get+"\r\n", 20) // pipelined, then nonsense: each good one is answered first
	if all = r.wire("GET", good+"nonsense\r\n\r\n"+second); len(all) != 21 || all[19].status != 200 || all[20].status != 400 {
		r.t.Errorf("pipelined requests before nonsense: %s", fmt.Sprint(len(all), all))
	}
	if all = r.wire(http.MethodGet, "\r\n\r\n"+second); len(all) != 1 {
		r.t.Errorf("empty lines before a request: %d answers", len(all)) // RFC 9112 2.2 lets a server take or refuse them
	}
}
