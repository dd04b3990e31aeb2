package api_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// pageWith asks for a page with a Cookie header, over TLS or without.
func (r *consoleRig) pageWith(cookies string, secure bool) *http.Response {
	req := httptest.NewRequest(http.MethodGet, "/console/projects", nil)
	req.Header.Set("Cookie", cookies)
	if !secure {
		req.TLS = nil
	} else if req.TLS == nil {
		req.TLS = new(tls.ConnectionState)
	}
	w := httptest.NewRecorder()
	r.console.ServeHTTP(w, req)
	return w.Result()
}

// A session's cookie has one name for each scheme, and counts alone only: somebody who can set a cookie for the host
// cannot sign a person in as somebody else.
func TestConsoleSessionCookie(t *testing.T) {
	t.Parallel()
	reader, file := keyFile("reader", `allow = ["read"]`)
	r := newConsoleRig(t, newDesk(t, map[string]string{"reader.hcl": file}))
	own, foreign := r.signIn(t, reader), r.signIn(t, reader)
	secret := func(g *guest) string { return strings.TrimPrefix(g.cookie, "fingerpost=") }
	for name, c := range map[string]struct {
		cookies       string
		clear, secure bool // whether it is a session there
	}{
		"plain":             {"fingerpost=" + secret(own), true, false},
		"prefixed":          {"__Host-fingerpost=" + secret(own), false, true},
		"both":              {"fingerpost=" + secret(foreign) + "; __Host-fingerpost=" + secret(own), true, true},
		"two plain":         {"fingerpost=" + secret(own) + "; fingerpost=" + secret(foreign), false, false},
		"two prefixed":      {"__Host-fingerpost=" + secret(foreign) + "; __Host-fingerpost=" + secret(own), false, false},
		"a second, unknown": {"fingerpost=" + secret(own) + "; fingerpost=x", false, false},
		"others next to it": {"a=b; fingerpost=" + secret(own) + "; fingerpost-person=x", true, false},
		"none":              {"", false, false},
	} {
		for secure, want := range map[bool]bool{false: c.clear, true: c.secure} {
			res := r.pageWith(c.cookies, secure)
			if got := res.StatusCode == http.StatusOK; got != want {
				t.Errorf("%s, TLS %v: %d", name, secure, res.StatusCode)
			}
			if got := res.Header.Get("Strict-Transport-Security"); (got != "") != secure {
				t.Errorf("%s, TLS %v: Strict-Transport-Security %q", name, secure, got)
			}
		}
	}
}

// The cookie with name and address ends with the session.
func TestConsolePersonCookie(t *testing.T) {
	t.Parallel()
	reader, file := keyFile("reader", `allow = ["read"]`)
	r := newConsoleRig(t, newDesk(t, map[string]string{"reader.hcl": file}))
	g := r.signIn(t, reader)
	post := func(path string, form url.Values) map[string]int {
		req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Cookie", g.cookie)
		w := httptest.NewRecorder()
		r.console.ServeHTTP(w, req)
		ages := map[string]int{}
		for _, c := range w.Result().Cookies() {
			ages[c.Name] = c.MaxAge
		}
		return ages
	}
	in := post("/console/sign-in", url.Values{"key": {reader}, "name": {"Ada"}, "email": {"ada@example.com"}})
	if in["fingerpost"] == 0 || in["fingerpost-person"] != in["fingerpost"] {
		t.Errorf("signed in: %v", in)
	}
	g.send("/console/sessions", nil)
	sent, _ := g.controls("/console/sign-out")
	if out := post("/console/sign-out", sent); out["fingerpost"] >= 0 || out["fingerpost-person"] >= 0 {
		t.Errorf("signed out: %v", out)
	}
}

// One session cannot take all live pages, nor can all sessions of one key.
func TestConsoleStreams(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	one, file1 := keyFile("one", `allow = ["read"]`)
	other, file2 := keyFile("other", `allow = ["read"]`)
	r := newConsoleRig(t, newDesk(t, map[string]string{"one.hcl": file1, "other.hcl": file2}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// open opens live pages of a session until one is refused, and returns how many are open.
	open := func(g *guest) (n int) {
		for ; n < 300; n++ {
			req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/console/live/stream", nil)
			req.Header.Set("Cookie", g.cookie)
			w := &liveWriter{ctx, http.Header{}, make(chan int, 1), false}
			go func() {
				r.console.ServeHTTP(w, req)
				w.end()
			}()
			if status := <-w.status; status != http.StatusOK {
				return n
			}
		}
		return n
	}
	first := r.signIn(t, one)
	if n := open(first); n != 8 {
		t.Errorf("one session has %d live pages, want 8", n)
	}
	all := 8
	for range 12 {
		all += open(r.signIn(t, one))
	}
	if all != 64 {
		t.Errorf("one key has %d live pages, want 64", all)
	}
	g := r.signIn(t, other)
	if n := open(g); n != 8 {
		t.Errorf("another key has %d live pages, want 8", n)
	}
	cancel()
	ctx = t.Context()
	testrig.Eventually(t, "the places are free again", func() bool { return open(first) > 0 })
	r.console.Close()
}

// A liveWriter tells the status of a stream that does not end before its reader goes.
type liveWriter struct {
	ctx    context.Context
	header http.Header
	status chan int
	told   bool
}

func (w *liveWriter) Header() http.Header { return w.header }
func (w *liveWriter) WriteHeader(status int) {
	if !w.told {
		w.told = true
		w.status <- status
	}
}
func (w *liveWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return len(b), w.ctx.Err()
}
func (w *liveWriter) FlushError() error { return w.ctx.Err() }
func (w *liveWriter) end()              { w.WriteHeader(0) }

func idText(p *catalog.Project) string { return strconv.FormatInt(p.ID, 10) }

// A mail's preview opens no connection: what a browser follows in spite of every policy is left out of its frame.
func TestConsoleFrameConnectsNowhere(t *testing.T) {
	t.Parallel()
	writer, file := keyFile("writer", `allow = ["read", "write"]`)
	r := newConsoleRig(t, newDesk(t, map[string]string{"writer.hcl": file, "acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n}\n"}))
	p, err := r.resolver.ProjectBySlug("acme")
	if err != nil {
		t.Fatal(err)
	}
	g := r.signIn(t, writer)
	for _, body := range []string{
		`<link rel="preconnect" href="https://evil.example"><p>Hello</p>`,
		`<html><head><BASE href="https://evil.example"><meta http-equiv="refresh" content="0;url=https://evil.example"></head><body><p>Hello</p>`,
		`<p>Hello</p><svg><link rel=dns-prefetch href=//evil.example></svg><table><LINK rel=preload as=image href=//evil.example></table>`,
		`<style>p { color: red }</style><p>Hello</p><template><link rel=preconnect href=//evil.example></template>`,
		// what is text to the parser that takes elements out, and may be markup to a browser
		`<p>Hello</p><script><!--<! <script> </script><style></script><meta http-equiv=refresh content="0;url=//evil.example"><link rel=preconnect href=//evil.example></style>`,
		`<p>Hello</p><noscript><meta http-equiv=refresh content="0;url=//evil.example"></noscript>`,
		`<p>Hello</p><noembed></noembed><noembed><link rel=preconnect href=//evil.example></noembed><iframe><base href=//evil.example></iframe>`,
		`<p>Hello</p><math><mtext><table><mglyph><style><!--</style><link rel=preconnect href=//evil.example>--></style></mglyph></table></mtext></math>`,
		`<p>Hello</p><svg><style><link rel=preconnect href=//evil.example></style></svg><xmp><link rel=preconnect href=//evil.example></xmp>`,
	} {
		g.send("/console/sessions", nil)
		sent, _ := g.controls("/console/sign-out") // for its token
		for name, value := range map[string]string{"project": idText(p), "subjectTemplate": "Hi", "bodyHtml": body, "bodyText": "Hello"} {
			sent.Set(name, value)
		}
		g.send("/console/preview", sent)
		at := regexp.MustCompile(`/console/frames/[\w-]+`).FindString(g.page)
		if at == "" {
			t.Fatalf("no frame: %d %s", g.status, visibleText(g.page))
		}
		req := httptest.NewRequest(http.MethodGet, at, nil)
		req.Header.Set("Cookie", g.cookie)
		w := httptest.NewRecorder()
		r.console.ServeHTTP(w, req)
		page := w.Body.String()
		if strings.Contains(page, "evil") || !strings.Contains(page, "<p>Hello</p>") || strings.Contains(body, "red") != strings.Contains(page, "red") {
			t.Errorf("%s is shown as %s", body, page)
		}
		if got := w.Header().Get("X-DNS-Prefetch-Control"); got != "off" {
			t.Errorf("X-DNS-Prefetch-Control: %q", got)
		}
	}
}

// No path of the console leads out of it.
func TestConsolePathsStayInside(t *testing.T) {
	t.Parallel()
	reader, file := keyFile("reader", `allow = ["read"]`)
	r := newConsoleRig(t, newDesk(t, map[string]string{"reader.hcl": file}))
	g := r.signIn(t, reader)
	for _, path := range []string{"/console/../x", "/console/..", "/console//evil.example", "/console/./../../x", "/console/%2e%2e/x",
		"/console/projects/../../x", "//console/", "/console/sign-in/../..//evil.example"} {
		req := httptest.NewRequest(http.MethodGet, "/", nil)
		var err error
		if req.URL.Path, err = url.PathUnescape(path); err != nil {
			t.Fatal(err)
		}
		req.URL.RawPath = path
		req.Header.Set("Cookie", g.cookie)
		w := httptest.NewRecorder()
		r.console.ServeHTTP(w, req)
		if to := w.Header().Get("Location"); to != "" && !strings.HasPrefix(to, "/console/") || w.Code < 300 {
			t.Errorf("%s: %d to %q", path, w.Code, to)
		}
	}
}

// All sessions of a person end at once, but for the one that asks, and whatever their keys. Devices are told in words.
func TestConsoleEndsSessionsOfAPerson(t *testing.T) {
	t.Parallel()
	reader, file := keyFile("reader", `allow = ["read"]`)
	r := newConsoleRig(t, newDesk(t, map[string]string{"reader.hcl": file}))
	r.signIn(t, reader) // makes the key known
	begin := func(key, name string) *guest {
		g := &guest{consoleRig: r, t: t}
		g.send("/console/sign-in", url.Values{"key": {key}, "name": {name}, "email": {name + "@example.com"}})
		return g
	}
	admin := r.signIn(t, r.key)
	bobs := []*guest{begin(reader, "Bob"), begin(reader, "Bob"), begin(r.key, "Bob")}
	eve := begin(reader, "Eve")
	admin.send("/console/sessions", nil)
	if strings.Count(admin.page, "End all 3 of this person") != 3 || strings.Contains(admin.page, "End all 1") {
		t.Errorf("the list: %s", admin.page)
	}
	ids := regexp.MustCompile(`<input type="hidden" name="session" value="([^"]+)"><button class="plain" aria-label="End the session of Bob`).
		FindAllStringSubmatch(admin.page, -1)
	sent, _ := admin.controls("/console/sessions/" + ids[0][1])
	admin.send("/console/sessions/person", url.Values{"token": sent["token"], "session": {ids[0][1]}})
	if !strings.Contains(visibleText(admin.page), "have ended: 3") {
		t.Errorf("%d %s", admin.status, visibleText(admin.page))
	}
	for _, g := range bobs {
		if g.send("/console/projects", nil); !strings.HasPrefix(g.path, "/console/sign-in") {
			t.Errorf("Bob is still at %s", g.path)
		}
	}
	if eve.send("/console/projects", nil); eve.path != "/console/projects" {
		t.Errorf("Eve is at %s", eve.path)
	}
}
