package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/api/conditions"
	"fingerpost/api/console"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// errorPage checks that a page says what is wrong as a sentence, and leads on: it has the header with the look-up box.
func (g *guest) errorPage(what string, status int, wants ...string) {
	g.t.Helper()
	if g.status != status {
		g.t.Errorf("%s: %d, want %d: %s", what, g.status, status, visibleText(g.page))
	}
	_, main, _ := strings.Cut(g.page, "<main")
	for _, want := range append(wants, `href="/console/"`) {
		if !strings.Contains(main, want) {
			g.t.Errorf("%s lacks %q: %s", what, want, visibleText(g.page))
		}
	}
	for _, want := range []string{`id="find"`, `<nav class="main"`} {
		if !strings.Contains(g.page, want) {
			g.t.Errorf("%s lacks %s", what, want)
		}
	}
}

// A page that refuses names the permission that the key lacks. A form of another session has nothing to do with keys.
func TestConsoleRefusals(t *testing.T) {
	t.Parallel()
	reader, readerFile := keyFile("reader", `allow = ["read"]`)
	writer, writerFile := keyFile("writer", "allow = [\"read\", \"write\"]")
	acme, acmeFile := keyFile("acme-only", "allow = [\"read\", \"write\"]\n  projects = [\"acme\"]")
	d := &desk{dir: t.TempDir(), verifier: &script{}}
	d.open(t, map[string]string{"acme.hcl": twoShops, "globex.hcl": "project \"globex\" {\n  name = \"Globex\"\n}\n",
		"reader.hcl": readerFile, "writer.hcl": writerFile, "acme-only.hcl": acmeFile})
	r := newConsoleRig(t, d)
	id := func(slug string) string {
		return itoa(int(catalog.DeriveID(catalog.KindProject, catalog.DeriveProjectUUID(slug))))
	}
	const mono = `may: <span class="mono">`
	for _, x := range []struct{ key, method, path, requires, message string }{
		{reader, "GET", "/console/edit?kind=project&project=" + id("acme"), "propose", "This change requires propose."},
		{reader, "GET", "/console/edit?kind=project", "propose", "Adding a project requires propose."},
		{reader, "GET", "/console/edit?kind=key", "write,secrets", "Changing keys requires write and secrets."},
		{writer, "GET", "/console/edit?kind=key", "secrets", "Changing keys requires secrets."},
		{writer, "GET", "/console/smtp-test", "mail", "Testing SMTP settings, which sends a mail, requires mail."},
		{reader, "POST", "/console/confirm", "write", "Letting the reload through requires write."},
		{reader, "POST", "/console/keys/writer", "write,secrets", "Keys are managed with a key that has write and secrets on every project."},
		{reader, "POST", "/console/projects/" + id("acme") + "/domains/" + strings.Split(acmeDomainPage(), "/")[5], "write", "which requires write."},
		{acme, "GET", "/console/edit?kind=project", "", "Adding a project requires a key for every project."},
		{acme, "POST", "/console/confirm", "", "Letting the reload through requires a key for every project."},
		{acme, "GET", "/console/projects/" + id("globex"), "", "The key does not reach this project."},
	} {
		g := r.signIn(t, x.key)
		var form url.Values
		if x.method == http.MethodPost {
			g.send("/console/", nil)
			sent, _ := g.controls("/console/sign-out")
			form = url.Values{"token": sent["token"], "word": {"remove"}}
		}
		g.send(x.path, form)
		g.errorPage(x.method+" "+x.path, http.StatusForbidden, x.message, "You are signed in with the key")
		if named := strings.Contains(g.page, "requires a key that "+mono+x.requires+"</span>"); named != (x.requires != "") {
			t.Errorf("%s: it names the permission %q: %t: %s", x.path, x.requires, named, visibleText(g.page))
		}
	}
	g := r.signIn(t, reader)
	g.send("/console/confirm", url.Values{"token": {"of another session"}})
	g.errorPage("a form of another session", http.StatusForbidden, "Nothing was done", "Open the page with the form again")
	if strings.Contains(g.page, "You are signed in with the key") {
		t.Error("a form of another session is blamed on the key")
	}
	for _, path := range []string{"/console/nothing", "/console/projects/none", "/console/mail/" + id("acme") + "/1", "/console/drafts/none"} {
		g.send(path, nil)
		_, main, _ := strings.Cut(g.page, "<main")
		if g.status != http.StatusNotFound || !strings.Contains(main, `id="domain"`) || !strings.Contains(main, `href="/console/projects"`) {
			t.Errorf("%s: %d %s", path, g.status, visibleText(g.page))
		}
	}
	r.alter = func(path string, answer []byte) []byte {
		if strings.HasPrefix(path, "/api/platform/keys") {
			return []byte("{")
		}
		return answer
	}
	g = r.signIn(t, r.key)
	g.send("/console/keys", nil)
	if strings.Contains(g.page, "Your key may not") || !strings.Contains(g.page, `role="alert"`) {
		t.Errorf("a list of keys that cannot be read: %d %s", g.status, visibleText(g.page))
	}
}

// Wrong keys from one address are refused with the time to wait, in seconds and in Retry-After.
func TestConsoleSignInThrottled(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	h := start(t, func(o *api.Options) { o.Console = &console.Options{} })
	r := &customerRig{desk: &desk{house: h}, t: t, url: "http://" + h.listen(api.Console)}
	for deadline := time.Now().Add(testrig.Patience); time.Now().Before(deadline); {
		res, page := r.visit("POST", "/console/sign-in", "", url.Values{"key": {"fpk_wrong"}})
		if res.StatusCode == http.StatusUnauthorized {
			continue
		}
		after := res.Header.Get("Retry-After")
		if res.StatusCode != http.StatusTooManyRequests || after == "" ||
			!strings.Contains(page, "Too many wrong keys came from your address. Try again in "+after+" second") {
			t.Errorf("%d, Retry-After %q: %s", res.StatusCode, after, visibleText(page))
		}
		return
	}
	t.Error("wrong keys are not throttled")
}

// The start page of an edge tells of an authority that it does not hear, and of nothing while it hears it.
func TestConsoleCutOff(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	for age, want := range map[time.Duration]bool{0: false, 3 * time.Minute: true} {
		state := func() *conditions.State { return &conditions.State{CutOff: age} }
		h := start(t, func(o *api.Options) {
			o.Console, o.Cluster.Edge = &console.Options{Node: console.Node{State: state}}, new(standIn)
		})
		r := &customerRig{desk: &desk{house: h}, t: t, url: "http://" + h.listen(api.Console)}
		res, _ := r.visit("POST", "/console/sign-in", "", url.Values{"key": {h.all}})
		if len(res.Cookies()) == 0 {
			t.Fatalf("sign in: %d", res.StatusCode)
		}
		_, page := r.visit("GET", "/console/", res.Cookies()[0].Name+"="+res.Cookies()[0].Value, nil)
		if told := strings.Contains(page, "This edge last heard its authority 3 minutes ago"); told != want {
			t.Errorf("told: %t, want %t: %s", told, want, visibleText(page))
		}
	}
}

// A name with several mistakes is found where there are few domains.
func TestConsoleLookUpFewDomains(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	r := newConsoleRig(t, newDesk(t, map[string]string{"globex.hcl": "project \"globex\" {\n  name = \"Globex\"\n  domain \"globex.example\" {}\n}\n"}))
	g := r.signIn(t, r.key)
	g.send("/console/lookup?domain=globx.exmple", nil)
	if !strings.Contains(g.page, "Did you mean") || !strings.Contains(g.page, ">globex.example</a>") {
		t.Errorf("%d %s", g.status, visibleText(g.page))
	}
	g.send("/console/lookup?domain=quite.different.test", nil)
	if !strings.Contains(g.page, "No name is near to it") {
		t.Errorf("%d %s", g.status, visibleText(g.page))
	}
}
