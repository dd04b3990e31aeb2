package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// A visitor uses the console without a browser: a jar of cookies, and what it was told last.
type visitor struct {
	t      *testing.T
	base   string
	client *http.Client
	res    *http.Response
	body   string
}

func newVisitor(t *testing.T, base string) *visitor {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t: t, base: base, client: &http.Client{Jar: jar, Timeout: testrig.Patience,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}}
}

// ask sends a request; a form is posted. It follows redirects, as browsers do.
func (v *visitor) ask(path string, form url.Values, headers ...string) (status int) {
	v.t.Helper()
	method, body := http.MethodGet, io.Reader(nil)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	req, err := http.NewRequest(method, v.base+path, body)
	if err != nil {
		v.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	if v.res, err = v.client.Do(req); err != nil {
		v.t.Fatal(err)
	}
	defer v.res.Body.Close()
	b, err := io.ReadAll(v.res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	v.body = string(b)
	return v.res.StatusCode
}

// expects checks the answer to the last request.
func (v *visitor) expects(status int, texts ...string) {
	v.t.Helper()
	if v.res.StatusCode != status {
		v.t.Errorf("%s: %d, want %d: %s", v.res.Request.URL.Path, v.res.StatusCode, status, cutMiddle(v.body, 600))
	}
	for _, want := range texts {
		if !strings.Contains(v.body, want) {
			v.t.Errorf("%s does not say %q: %s", v.res.Request.URL.Path, want, cutMiddle(v.body, 1500))
		}
	}
}

var tokenField = regexp.MustCompile(`name="token" value="([^"]+)"`)

// token returns the token of the session's forms.
func (v *visitor) token() string {
	v.t.Helper()
	v.ask("/console/sessions", nil)
	m := tokenField.FindStringSubmatch(v.body)
	if m == nil {
		v.t.Fatalf("no form on the page: %s", cutMiddle(v.body, 800))
	}
	return m[1]
}

func (v *visitor) signIn(key string) {
	v.t.Helper()
	v.ask("/console/sign-in", url.Values{"key": {key}})
	v.expects(http.StatusOK, "Where does a domain lead?")
}

// TestConsoleForms sends what a browser would not.
func TestConsoleForms(t *testing.T) {
	t.Parallel()
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
	v.expects(http.StatusOK, "Where does a domain lead?")
}

// TestConsoleMailSecret: the project's page says why its mail is not sent, without a send before.
func TestConsoleMailSecret(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	r := idleRig(t, t.TempDir(), nil)
	demo, err := os.ReadFile(filepath.Join("..", "..", "projects.d", "keys.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	r.put("keys.hcl", string(demo))
	r.put("letters.hcl", "project \"letters\" {\n  name = \"Letters\"\n  smtp_config {\n    host = \"mail.example\"\n"+
		"    username = \"l\"\n    password = env(\"LETTERS_PASSWORD\")\n    from_email = \"a@letters.example\"\n  }\n}\n")
	r.start()
	v := newVisitor(t, r.url)
	v.ask("/console/sign-in", url.Values{"demo": {"1"}})
	v.ask("/console/projects/"+strconv.FormatInt(catalog.DeriveID(catalog.KindProject, catalog.DeriveProjectUUID("letters")), 10), nil)
	v.expects(http.StatusOK, "No mail of this project is sent: the password of the SMTP config cannot be opened: the environment variable LETTERS_PASSWORD is not set")
}

func mustURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestConsoleGit: with git a save names its commit, which is the person's, and a change can be proposed and applied.
// TestConsoleSMTPSteps: with a script the steps of a test come while the server still thinks, without one at the end.
func TestConsoleSMTPSteps(t *testing.T) {
	t.Parallel()
	files, admin, _ := consoleFiles(25)
	r := idleRig(t, t.TempDir(), files)
	r.flags = []string{"--smtp-allow", "127.0.0.0/8"}
	r.start()
	post := &testrig.Sink{}
	release := post.Hold()
	must(t, post.Up())
	t.Cleanup(post.Down)
	_, port, _ := net.SplitHostPort(post.Addr())
	v := newVisitor(t, r.url)
	v.signIn(admin)
	settings := url.Values{"token": {v.token()}, "kind": {"smtp-config"}, "host": {"127.0.0.1"}, "port": {port}, "fromEmail": {"shop@example.com"}, "tlsEnabled": {"no"}, "toEmail": {"ops@example.com"}}
	stream := regexp.MustCompile(`sse-connect="([^"]+)"`)
	begin := func() string {
		t.Helper()
		v.ask("/console/smtp-test", settings, "HX-Request", "true")
		v.expects(http.StatusOK, "The service talks to the server")
		m := stream.FindStringSubmatch(v.body)
		if m == nil {
			t.Fatal(v.body)
		}
		return m[1]
	}
	res, err := v.client.Get(r.url + begin())
	must(t, err)
	defer res.Body.Close()
	twin, err := v.client.Get(r.url + res.Request.URL.Path) // as after a lost connection
	must(t, err)
	defer twin.Body.Close()
	testrig.Eventually(t, "the server has the mail, and has not answered", func() bool { return post.Counts().Held > 0 })
	lines := bufio.NewScanner(res.Body)
	until := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("the stream has ended without %q: %v", want, lines.Err())
	}
	until(`<th scope="row">dns</th>`)
	until(`<th scope="row">connect</th>`)
	release()
	until(`<th scope="row">send</th>`)
	until("The server took the mail.")
	until("event: done")
	for lines.Scan() {
		if rest := lines.Text(); strings.TrimSpace(rest) != "data:" && rest != "" {
			t.Errorf("after the end: %s", rest)
		}
	}

	if all, err := io.ReadAll(twin.Body); err != nil || !strings.Contains(string(all), "The server took the mail.") {
		t.Errorf("the other stream: %s, %v", all, err)
	}

	// Asked again, and by a page that another test has left behind.
	gone := res.Request.URL.Path
	v.ask(gone, nil)
	v.expects(http.StatusOK, "The server took the mail.")
	settings.Set("port", "1")
	next := begin()
	v.ask(next, nil)
	v.expects(http.StatusOK, "SMTP_", "event: done")
	v.ask(gone, nil)
	v.expects(http.StatusNoContent)
	settings.Set("port", "x")
	v.ask("/console/smtp-test", settings, "HX-Request", "true")
	v.expects(http.StatusOK, "port", "must be a number")

	settings.Set("port", port)
	v.ask("/console/smtp-test", settings)
	v.expects(http.StatusOK, "The server took the mail.", "dns", "connect", "send", " ms")
	settings.Set("port", "1")
	v.ask("/console/smtp-test", settings)
	v.expects(http.StatusOK, "SMTP_", "dns", "connect", " ms")
}

// TestConsoleCannotWrite: a folder that takes no writes, and a disk that is full between the diff and the save. The reason
// is shown, what was entered stays, and no file changes.
func TestConsoleCannotWrite(t *testing.T) {
	t.Parallel()
	files, admin, _ := consoleFiles(25)
	form := func(v *visitor, acme, name string) url.Values {
		t.Helper()
		v.ask("/console/edit?kind=project&project="+acme, nil)
		etag := regexp.MustCompile(`name="etag" value="([^"]*)"`).FindStringSubmatch(v.body)
		if etag == nil {
			t.Fatalf("no form: %s", cutMiddle(v.body, 800))
		}
		return url.Values{"token": {v.token()}, "kind": {"project"}, "project": {acme}, "etag": {html.UnescapeString(etag[1])}, "name": {name}, "slug": {"acme"},
			"status": {"ACTIVE"}, "description": {"Storefront and back office"}, "labels": {"plan=gold"}}
	}
	same := func(r *rig, was string) {
		t.Helper()
		if now, err := os.ReadFile(r.path("acme.hcl")); err != nil || string(now) != was {
			t.Errorf("the file is %q, %v", now, err)
		}
	}
	t.Run("read-only", func(t *testing.T) {
		t.Parallel()
		r := idleRig(t, t.TempDir(), files)
		r.flags = []string{"--read-only"}
		r.start()
		v := newVisitor(t, r.url)
		v.signIn(admin)
		v.ask("/console/edit", form(v, r.projectID("acme"), "Never"))
		v.expects(http.StatusConflict, "read-only", `value="Never"`)
		same(r, files["acme.hcl"])
	})
	t.Run("disk full", func(t *testing.T) {
		t.Parallel()
		if !canMount() {
			t.Skip("needs root, to mount a small file system")
		}
		r := idleRig(t, t.TempDir(), files)
		small := filepath.Join(r.dir, "small")
		must(t, os.Rename(r.path("."), small))
		must(t, os.Mkdir(r.path("."), 0o755))
		must(t, syscall.Mount("tmpfs", r.path("."), "tmpfs", 0, "size=8m"))
		t.Cleanup(func() { _ = syscall.Unmount(r.path("."), syscall.MNT_DETACH) })
		must(t, os.CopyFS(r.path("."), os.DirFS(small)))
		r.start()
		v := newVisitor(t, r.url)
		v.signIn(admin)
		v.ask("/console/edit", form(v, r.projectID("acme"), "Later"))
		v.expects(http.StatusOK, "what it changes")
		draft := v.res.Request.URL.Path
		filler := r.path("filler")
		f, err := os.Create(filler)
		must(t, err)
		for err == nil {
			_, err = f.Write(make([]byte, 1<<16))
		}
		must(t, f.Close())
		v.ask(draft, url.Values{"token": {v.token()}, "do": {"save"}})
		v.expects(http.StatusServiceUnavailable, "disk", "Later")
		same(r, files["acme.hcl"])
		must(t, os.Remove(filler))
		if err := poll(testrig.Patience, func() error {
			if v.ask(draft, url.Values{"token": {v.token()}, "do": {"save"}}); v.res.StatusCode != http.StatusOK {
				return errors.New(v.res.Status)
			}
			return nil
		}); err != nil {
			t.Fatalf("once there is room: %v: %s", err, cutMiddle(v.body, 800))
		}
		if now, err := os.ReadFile(r.path("acme.hcl")); err != nil || !strings.Contains(string(now), `"Later"`) {
			t.Errorf("the file is %q, %v", now, err)
		}
	})
}

func TestConsoleGit(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	testrig.Need(t, "git")
	files, admin, _ := consoleFiles(25)
	r := idleRig(t, t.TempDir(), files)
	git := func(args ...string) string {
		t.Helper()
		return testrig.Git(t, r.dir, args...)
	}
	git("init", "-q", "-b", "main")
	git("add", "projects.d")
	git("commit", "-qm", "one")
	git("remote", "add", "origin", filepath.Join(r.dir, "nowhere.git"))
	git("config", "branch.main.remote", "origin")
	git("config", "branch.main.merge", "refs/heads/main")
	r.flags = []string{"--git", "--git-pull", "1s", "--git-ack", "commit", "--git-web", "https://git.example/acme"}
	r.start()
	acme := r.projectID("acme")
	v := newVisitor(t, r.url)
	v.ask("/console/sign-in", url.Values{"key": {admin}, "name": {"Ada Lovelace"}, "email": {"ada@example.com"}})
	token := v.token()
	change := func(name string, save ...string) {
		t.Helper()
		v.ask("/console/edit?kind=project&project="+acme, nil)
		etag := regexp.MustCompile(`name="etag" value="([^"]*)"`).FindStringSubmatch(v.body)
		if etag == nil {
			t.Fatalf("no form: %s", cutMiddle(v.body, 800))
		}
		v.ask("/console/edit", url.Values{"token": {token}, "kind": {"project"}, "project": {acme}, "etag": {html.UnescapeString(etag[1])}, "name": {name}, "slug": {"acme"},
			"status": {"ACTIVE"}, "description": {"Storefront and back office"}, "labels": {"plan=gold"}})
		v.expects(http.StatusOK, "what it changes")
		form := url.Values{"token": {token}}
		for i := 0; i < len(save); i += 2 {
			form.Set(save[i], save[i+1])
		}
		v.ask(v.res.Request.URL.Path, form)
	}
	change("Committed", "do", "save", "message", "Say what it is")
	v.expects(http.StatusOK, "Saved as commit "+strings.TrimSpace(git("rev-parse", "HEAD"))[:10])
	if got := git("log", "-1", "--format=%an <%ae> %s"); got != "Ada Lovelace <ada@example.com> Say what it is" {
		t.Errorf("the commit: %s", got)
	}
	if err := poll(testrig.Patience, func() error { // the trail learns it a moment later
		if v.ask("/console/changes?project="+acme, nil); !strings.Contains(v.body, `href="https://git.example/acme/commit/`+strings.TrimSpace(git("rev-parse", "HEAD"))+`"`) {
			return errors.New("no link to the commit")
		}
		return nil
	}); err != nil {
		t.Errorf("%v: %s", err, cutMiddle(v.body, 1500))
	}
	change("Proposed", "do", "propose", "proposal", "No Such Name")
	v.expects(http.StatusBadRequest, "A proposal needs a name")
	change("Proposed", "do", "propose", "proposal", "rename-shop")
	v.expects(http.StatusOK, "Proposed on the branch propose/rename-shop", "can be applied", "<ins>Proposed</ins>")
	if strings.Contains(git("show", "HEAD:projects.d/acme.hcl"), "Proposed") {
		t.Error("the proposal is on main already")
	}
	// Live, it has changed since, which the proposal does not know of; who edits what it has, works in it.
	change("Proposed again", "do", "propose", "proposal", "rename-shop")
	v.expects(http.StatusPreconditionFailed, "The proposal rename-shop has changed this already")
	v.ask("/console/proposals/nothing", url.Values{"token": {token}, "do": {"enter"}})
	v.expects(http.StatusNotFound, "no such proposal")
	v.ask("/console/proposals/rename-shop", url.Values{"token": {token}, "do": {"enter"}})
	v.expects(http.StatusOK, "You work in the proposal")
	v.ask("/console/projects/"+acme, nil)
	v.expects(http.StatusOK, "You work in the proposal", "Proposed")
	change("Proposed again", "do", "save") // from a page that was open before
	v.expects(http.StatusOK, "Proposed on the branch propose/rename-shop", "Proposed again")
	v.ask("/console/edit?kind=project", nil)
	v.ask("/console/edit", url.Values{"token": {token}, "kind": {"project"}, "name": {"Only There"}, "slug": {"only-there"}, "status": {"DRAFT"}})
	v.expects(http.StatusOK, "what it changes", "Save in rename-shop")
	v.ask(v.res.Request.URL.Path, url.Values{"token": {token}, "do": {"propose"}})
	v.expects(http.StatusOK, "Proposed on the branch propose/rename-shop", "Only There")
	there := v.res.Request.URL.Path
	if there != "/console/projects/only-there" {
		t.Errorf("the page of the new project is %s", there)
	}
	id := regexp.MustCompile(`project=(\d+)`).FindStringSubmatch(v.body)[1]
	v.ask("/console/edit?kind=domain&project="+id, nil)
	v.ask("/console/edit", url.Values{"token": {token}, "kind": {"domain"}, "project": {id}, "domain": {"there.example"}, "active": {"yes"}})
	v.expects(http.StatusOK, "what it changes", "there.example")
	v.ask(v.res.Request.URL.Path, url.Values{"token": {token}, "do": {"propose"}})
	v.ask(there, nil)
	v.expects(http.StatusOK, "there.example")
	v.ask("/console/proposals/rename-shop", url.Values{"token": {token}, "do": {"leave"}})
	v.expects(http.StatusOK, "What is shown is live")
	v.ask(there, nil)
	v.expects(http.StatusNotFound)
	v.ask("/console/proposals/rename-shop", url.Values{"token": {token}, "do": {"apply"}})
	v.expects(http.StatusOK, "The proposal rename-shop is applied, and live.")
	v.ask(there, nil)
	v.expects(http.StatusOK, "Only There", "there.example")
	if !strings.Contains(git("show", "HEAD:projects.d/acme.hcl"), "Proposed") {
		t.Error("the proposal is not on main")
	}

	// Somebody drops the proposal that a person works in: the person is told, and sees what is live.
	change("Never", "do", "propose", "proposal", "gone-soon")
	v.ask("/console/proposals/gone-soon", url.Values{"token": {token}, "do": {"enter"}})
	if got := r.ask(http.MethodDelete, "/api/platform/proposals/gone-soon", admin, ""); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	v.ask("/console/projects/"+acme, nil)
	v.expects(http.StatusOK, "The proposal gone-soon is gone", "What is shown is live.", "<h1>Proposed again")
	if status := git("status", "--porcelain", "projects.d"); status != "" {
		t.Errorf("git status: %s", status)
	}
	v.ask("/console/live", nil)
	v.expects(http.StatusOK, `branch <span class="mono">main</span> at`)
	if err := poll(testrig.Patience, func() error { // the remote is not there
		if v.ask("/console/problems", nil); !strings.Contains(v.body, "<strong>Git:</strong>") {
			return errors.New("the remote's absence is no problem")
		}
		return nil
	}); err != nil {
		t.Errorf("%v: %s", err, cutMiddle(v.body, 1500))
	}
}

// TestConsoleOnEdge: a change that is made at an edge is the authority's, and waits in the session while that is away.
func TestConsoleOnEdge(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	c := newCluster(t, "lisbon")
	admin, id := catalog.NewKeyText()
	c.put("key-admin.hcl", fmt.Sprintf("key \"admin\" {\n  id = %q\n  hash = %q\n  allow = [\"read\", \"write\"]\n}\n", id, catalog.HashKeyText(admin)))
	edge := c.edge("lisbon", t.TempDir())
	acme := c.projectID("acme")
	edge.resolves("shop.acme.example")
	v := newVisitor(t, edge.url)
	if err := poll(testrig.Patience, func() error {
		if v.ask("/console/sign-in", url.Values{"key": {admin}}); v.res.StatusCode != http.StatusOK {
			return fmt.Errorf("%d", v.res.StatusCode)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	token := v.token()
	v.ask("/console/edit", url.Values{"token": {token}, "kind": {"domain"}, "project": {acme}, "domain": {"edge.acme.example"}, "active": {"yes"}})
	v.expects(http.StatusOK, `domain &#34;edge.acme.example&#34; {}`, "this is an edge")
	draft := v.res.Request.URL.Path
	c.halt()
	v.ask(draft, url.Values{"token": {token}, "do": {"save"}})
	v.expects(http.StatusServiceUnavailable, "authority", `domain &#34;edge.acme.example&#34; {}`)
	v.ask("/console/lookup?domain=shop.acme.example", nil)
	v.expects(http.StatusOK, "leads to the project")
	c.begin()
	if err := poll(testrig.Patience, func() error {
		if v.ask(draft, url.Values{"token": {token}, "do": {"save"}}); v.res.StatusCode != http.StatusOK {
			return fmt.Errorf("%d %s", v.res.StatusCode, cutMiddle(v.body, 500))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(c.path("acme.hcl")); err != nil || !strings.Contains(string(text), `domain "edge.acme.example" {}`) {
		t.Errorf("the authority's file: %v\n%s", err, text)
	}
	v.ask("/console/lookup?domain=edge.acme.example", nil)
	v.expects(http.StatusOK, "by its own record")
}
