package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

var tokenField = regexp.MustCompile(`name="token" value="([^"]+)"`)

// TestConsoleForms sends what a browser would not.
func TestConsoleForms(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	files, admin, _ := consoleFiles(25)
	leaver, leaverID := catalog.NewKeyText()
	files["key-leaver.hcl"] = `key "leaver" {
  id = "` + leaverID + `"
  hash = "` + catalog.HashKeyText(leaver) + `"
  allow = ["read", "write"]
}
`
	r := newRig(t, files)
	acme := r.projectID("acme")
	was := func() string {
		text, err := os.ReadFile(r.path("acme.hcl"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := was()
	v := newVisitor(t, r.url)
	v.signIn(admin)
	for _, c := range v.client.Jar.Cookies(mustURL(t, r.url+"/console/")) {
		if c.Value == admin {
			t.Error("the key is in a cookie")
		}
	}
	token := v.token()
	form := func(more ...string) url.Values {
		f := url.Values{"token": {token}, "kind": {"project"}, "project": {acme}, "name": {"Renamed"}, "slug": {"acme"}, "status": {"ACTIVE"},
			"description": {"Storefront and back office"}, "labels": {"plan=gold"}}
		for i := 0; i < len(more); i += 2 {
			f.Set(more[i], more[i+1])
		}
		return f
	}
	// A form without the token, with another one, and from another site.
	v.ask("/console/edit", form("token", ""))
	v.expects(http.StatusForbidden, "not of your session")
	other := newVisitor(t, r.url)
	other.signIn(admin)
	v.ask("/console/edit", form("token", other.token()))
	v.expects(http.StatusForbidden, "not of your session")
	v.ask("/console/edit", form(), "Sec-Fetch-Site", "same-site")
	v.expects(http.StatusForbidden, "sent by another site")
	v.ask("/console/edit", form(), "Sec-Fetch-Site", "", "Origin", "https://evil.example")
	v.expects(http.StatusForbidden, "sent by another site")
	v.ask("/console/sign-out", url.Values{"token": {"x"}})
	v.expects(http.StatusForbidden)

	// A draft is saved once, and by the session that has seen it.
	v.ask("/console/edit", form())
	v.expects(http.StatusOK, "what it changes")
	draft := v.res.Request.URL.Path
	other.ask(draft, nil)
	other.expects(http.StatusNotFound, "not waiting any more")
	other.ask(draft, url.Values{"token": {other.token()}, "do": {"save"}})
	other.expects(http.StatusNotFound)
	v.ask(draft, url.Values{"token": {token}, "do": {"whatever"}})
	v.expects(http.StatusBadRequest)
	if was() != before {
		t.Fatal("the file has changed without a save")
	}
	v.ask(draft, url.Values{"token": {token}, "do": {"save"}})
	v.expects(http.StatusOK, "Saved into the file, and live.")
	v.ask(draft, url.Values{"token": {token}, "do": {"save"}})
	v.expects(http.StatusNotFound, "not waiting any more")
	if !strings.Contains(was(), `"Renamed"`) {
		t.Error("the save is not in the file")
	}

	// Paths that lead out, forms of unknown things, and forms that are too large.
	for _, to := range []string{"https://evil.example/", "//evil.example/console/", `/\evil.example`, "/console//evil.example", "/api/platform/projects"} {
		x := newVisitor(t, r.url)
		x.ask("/console/sign-in", url.Values{"key": {admin}, "to": {to}})
		if at := x.res.Request.URL.String(); at != r.url+"/console/" {
			t.Errorf("to=%q leads to %s", to, at)
		}
	}
	v.ask("/console/edit?kind=nonsense&project="+acme, nil)
	v.expects(http.StatusNotFound)
	v.ask("/console/edit?kind=domain&project=../keys", nil)
	v.expects(http.StatusNotFound)
	v.ask("/console/keys/..%2f..%2fprojects", url.Values{"token": {token}, "do": {"revoke"}})
	v.expects(http.StatusBadRequest, "a key&#39;s name has")
	v.ask("/console/edit", form("description", strings.Repeat("x", 900<<10)))
	v.expects(http.StatusBadRequest, "Description")
	v.ask("/console/edit", form("description", strings.Repeat("x", 2<<20)))
	v.expects(http.StatusRequestEntityTooLarge)
	stranger := newVisitor(t, r.url)
	stranger.ask("/console/sign-in", url.Values{"key": {strings.Repeat("x", 8<<10)}})
	stranger.expects(http.StatusRequestEntityTooLarge)
	stranger.ask("/console/edit", form("description", strings.Repeat("x", 100<<10)))
	stranger.expects(http.StatusRequestEntityTooLarge)

	// A session ends with its key, and wherever somebody who may ends it.
	x := newVisitor(t, r.url)
	x.signIn(leaver)
	y := newVisitor(t, r.url)
	y.signIn(leaver)
	x.ask("/console/sessions", nil)
	m := regexp.MustCompile(`action="(/console/sessions/[^"]+)"`).FindAllStringSubmatch(x.body, -1)
	if len(m) < 2 {
		t.Fatalf("the other session is not listed: %s", x.body)
	}
	for _, s := range m {
		x.ask(s[1], url.Values{"token": {token}}) // of admin
		x.expects(http.StatusForbidden)
	}
	if err := os.Remove(r.path("key-leaver.hcl")); err != nil {
		t.Fatal(err)
	}
	if err := poll(testrig.Patience, func() error {
		if y.ask("/console/", nil); !strings.Contains(y.body, "Your key was revoked") {
			return errors.New("the session goes on")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}

	// Bad keys are throttled like those of the API.
	for range 40 {
		if stranger.ask("/console/sign-in", url.Values{"key": {r.keys["ghost"]}}); stranger.res.StatusCode == http.StatusTooManyRequests {
			break
		}
	}
	stranger.expects(http.StatusTooManyRequests, "Too many wrong keys")
	stranger.signIn(admin) // a good one is let in nevertheless

	// A key has no more than twenty sessions: the oldest ends.
	for range 20 {
		newVisitor(t, r.url).signIn(admin)
	}
	other.ask("/console/", nil)
	other.expects(http.StatusOK, "Sign in")
	v.signIn(admin)

	// What every page carries.
	v.ask("/console/", nil)
	for name, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin"} {
		if got := v.res.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if p := v.res.Header.Get("Content-Security-Policy"); !strings.Contains(p, "frame-ancestors 'none'") || strings.Contains(p, "unsafe") {
		t.Errorf("Content-Security-Policy: %s", p)
	}
}

// TestConsoleNow: the start page says what needs a person, to each key what concerns it, and is calm when nothing does.
func TestConsoleNow(t *testing.T) {
	t.Parallel()
	post := testrig.NewSink(t)
	post.Set(func(r *testrig.SinkRules) { r.User, r.Password = "ada", "secret" })
	files, admin, shopOnly := consoleFiles(post.Port())
	r := idleRig(t, t.TempDir(), files)
	r.flags = []string{"--smtp-allow", "127.0.0.0/8"}
	r.start()
	v, shop := newVisitor(t, r.url), newVisitor(t, r.url)
	v.signIn(admin)
	shop.signIn(shopOnly)
	v.expects(http.StatusOK, "All is well", "4 projects")
	shop.expects(http.StatusOK, "All is well with your projects")
	if strings.Contains(shop.body, "4 projects") {
		t.Error("a key of one project is told how many there are")
	}

	sees := func(v *visitor, want string) {
		t.Helper()
		if err := poll(testrig.Patience, func() error {
			if v.ask("/console/", nil); !strings.Contains(html.UnescapeString(v.body), want) {
				return fmt.Errorf("the page does not say %q", want)
			}
			return nil
		}); err != nil {
			t.Fatalf("%v: %s", err, cutMiddle(v.body, 3000))
		}
	}
	got := r.ask(http.MethodPost, "/api/mail/send/raw", admin, `{"domain":"shop.acme.example","toEmail":"eve@example.com","subject":"Hi","bodyText":"Hello"}`,
		"X-Internal-Service-Token: "+admin, "X-Internal-Service-Name: t", "Content-Type: application/json")
	if !strings.Contains(got.body, "SMTP_AUTH_REQUIRED") {
		t.Fatalf("send: %d %s", got.status, got.body)
	}
	sees(v, "No mail of Acme Shop is sent: the mail server wants a username.")
	v.expects(http.StatusOK, "Mend the SMTP config")
	sees(shop, "No mail of Acme Shop is sent")
	shop.expects(http.StatusOK, "See its mail") // it may not change the config

	broken := strings.Replace(files["acme.hcl"], `"ACTIVE"`, `"ACTIV"`, 1)
	r.put("acme.hcl", broken)
	sees(v, "The files have 1 error; what 1 file said before is served.")
	v.expects(http.StatusOK, "acme.hcl:5", "See where")
	shop.ask("/console/", nil)
	if strings.Contains(shop.body, "acme.hcl") {
		t.Error("a key of one project sees problems of the files")
	}
}

// TestConsoleAssets: they are small, packed, kept by browsers for as long as they are the same, and all that pages load.
func TestConsoleAssets(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r := newRig(t, nil)
	v := newVisitor(t, r.url)
	v.client.Transport.(*http.Transport).DisableCompression = true
	v.ask("/console/sign-in", nil)
	total := 0
	links := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(v.body, -1)
	if len(links) < 5 {
		t.Fatalf("%d links in %s", len(links), v.body)
	}
	seen := map[string]bool{}
	for _, m := range links {
		if seen[m[1]] || !strings.HasPrefix(m[1], "/console/assets/") {
			if strings.Contains(m[1], "//") {
				t.Errorf("a page loads %s", m[1])
			}
			continue
		}
		seen[m[1]] = true
		v.ask(m[1], nil)
		plain := v.body
		total += len(plain)
		tag := v.res.Header.Get("ETag")
		v.ask(m[1], nil, "Accept-Encoding", "gzip")
		zip, err := gzip.NewReader(strings.NewReader(v.body))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(zip); err != nil || !bytes.Equal(b, []byte(plain)) || v.res.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" {
			t.Errorf("%s packed: %v, %v", m[1], err, v.res.Header)
		}
		if v.ask(m[1], nil, "If-None-Match", tag); tag == "" || v.res.StatusCode != http.StatusNotModified {
			t.Errorf("%s with its ETag %s: %d", m[1], tag, v.res.StatusCode)
		}
	}
	if total == 0 || total > 180_000 {
		t.Errorf("the assets have %d bytes, at most 180,000 are allowed", total)
	}
}

// TestConsoleAddress: the console can have an address of its own, or none, and its cookie is bound to TLS where there is.
func TestConsoleAddress(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	files, admin, _ := consoleFiles(25)
	r := idleRig(t, t.TempDir(), files)
	r.flags = []string{"--console=false"}
	r.start()
	if got := r.ask(http.MethodGet, "/console/", "", ""); got.status != http.StatusNotFound {
		t.Errorf("with --console=false: %d", got.status)
	}
	r.halt()

	cert, key := newCA(t, "ca").issue("console", time.Now().Add(time.Hour))
	r.flags = []string{"--console-listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key}
	r.start()
	m := regexp.MustCompile(`(?m)^console on (https://\S+)/console/$`).FindStringSubmatch(r.announcement())
	if m == nil {
		t.Fatalf("no address of the console in %q", r.announcement())
	}
	v := newVisitor(t, m[1])
	v.signIn(admin)
	v.ask("/console/lookup?domain=shop.acme.example", nil)
	v.expects(http.StatusOK, m[1]+"/console/lookup?domain=shop.acme.example", r.url+"/api/platform/projects/resolve?domain=shop.acme.example")
	found := false
	for _, c := range v.client.Jar.(*cookiejar.Jar).Cookies(mustURL(t, m[1]+"/")) {
		found = found || c.Name == "__Host-fingerpost"
	}
	if !found {
		t.Error("the cookie has no __Host- prefix")
	}
	if status := v.ask("/api/platform/health", nil); status != http.StatusNotFound {
		t.Errorf("the API at the console's address: %d", status)
	}
	v.base = r.url
	if status := v.ask("/console/", nil); status != http.StatusNotFound {
		t.Errorf("the console at the API's address: %d", status)
	}
	r.halt()
	if out, code := r.run("serve", "--console=false", "--console-listen", "127.0.0.1:0"); code != 2 || !strings.Contains(out, "contradict") {
		t.Errorf("%d %s", code, out)
	}
}

// TestConsoleDemo: the shipped example signs in with one click, from this machine, by a name of this machine.
func TestConsoleDemo(t *testing.T) {
	t.Parallel()
	r := idleRig(t, t.TempDir(), nil)
	demo, err := os.ReadFile(filepath.Join("..", "..", "projects.d", "keys.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	r.put("keys.hcl", string(demo))
	r.start()
	if !strings.Contains(r.announcement(), "console on "+r.url+"/console/\n") {
		t.Errorf("the address of the console is not printed: %s", r.announcement())
	}
	v := newVisitor(t, r.url)
	v.ask("/console/sign-in", nil, "Host", "rebound.example")
	if strings.Contains(v.body, "demo key") {
		t.Error("the demo key is offered under a foreign name")
	}
	v.ask("/console/sign-in", url.Values{"demo": {"1"}}, "Host", "rebound.example", "Sec-Fetch-Site", "same-origin")
	v.expects(http.StatusUnauthorized)
	v.ask("/console/sign-in", nil)
	v.expects(http.StatusOK, "Sign in with the demo key")
	v.ask("/console/sign-in", url.Values{"demo": {"1"}})
	v.expects(http.StatusOK, "Look up anything")
}
