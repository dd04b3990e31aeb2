package main

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// A save with git names its commit also where the API does not wait for it.
func TestConsoleSaveNamesItsCommit(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	files, admin, _ := consoleFiles(25)
	r := idleRig(t, t.TempDir(), files)
	testrig.Git(t, r.dir, "init", "-q", "-b", "main")
	testrig.Git(t, r.dir, "add", "projects.d")
	testrig.Git(t, r.dir, "commit", "-qm", "one")
	r.flags = []string{"--git"}
	r.start()
	acme := r.projectID("acme")
	v := newVisitor(t, r.url)
	v.signIn(admin)
	token := v.token()
	v.ask("/console/edit?kind=project&project="+acme, nil)
	etag := regexp.MustCompile(`name="etag" value="([^"]*)"`).FindStringSubmatch(v.body)
	v.ask("/console/edit", url.Values{"token": {token}, "kind": {"project"}, "project": {acme}, "etag": {html.UnescapeString(etag[1])}, "name": {"Renamed"},
		"slug": {"acme"}, "status": {"ACTIVE"}, "description": {"Storefront and back office"}, "labels": {"plan=gold"}})
	v.expects(http.StatusOK, "what it changes")
	v.ask(v.res.Request.URL.Path, url.Values{"token": {token}, "do": {"save"}})
	v.expects(http.StatusOK, "Saved as commit "+strings.TrimSpace(testrig.Git(t, r.dir, "rev-parse", "HEAD"))[:10])
}

// The project's page says that its mail has stopped, as the Mail page does. The page of one project's mail tells nothing of
// other projects, and marks a default template that the project's own one takes the place of.
func TestConsoleMailOfOneProject(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	k := testrig.NewSink(t)
	k.Set(func(r *testrig.SinkRules) { r.User, r.Password = "u", "right" })
	files, admin, _ := consoleFiles(k.Port())
	files["acme.hcl"] = strings.Replace(files["acme.hcl"], `from_email = "hello@acme.example"`,
		"from_email = \"hello@acme.example\"\n    username = \"u\"\n    password = \"wrong\"", 1)
	files["defaults.hcl"] = "template \"WELCOME\" {\n  name = \"Welcome of all\"\n  subject_template = \"W\"\n  body_text = \"W\"\n}\n"
	r := idleRig(t, t.TempDir(), files)
	r.flags = []string{"--smtp-allow", "127.0.0.0/8"}
	r.start()
	for _, subject := range []string{"first", "second"} {
		r.ask(http.MethodPost, "/api/mail/send/raw", admin, fmt.Sprintf(`{"domain":"shop.acme.example","toEmail":"ada@example.com","subject":%q,"bodyText":"x"}`, subject),
			"X-Internal-Service-Token: "+admin, "X-Internal-Service-Name: shop", "Content-Type: application/json")
	}
	v := newVisitor(t, r.url)
	v.signIn(admin)
	v.ask("/console/projects/acme", nil)
	v.expects(http.StatusOK, "Stopped: the username or the password is refused")
	if strings.Contains(v.body, "retrying") {
		t.Error("the project's page calls stopped mail retrying")
	}
	v.ask("/console/mail?project="+r.projectID("acme"), nil)
	v.expects(http.StatusOK, "default, replaced by its own")
	if strings.Contains(v.body, `id="queue"`) {
		t.Error("the page of one project's mail has the queue of all")
	}
	v.ask("/console/mail", nil)
	v.expects(http.StatusOK, `id="queue"`)
}

// A mail of the log is sent again where its text is known or can be rendered again, as a new mail that names the old one, and by
// a key that may send; else the page says why not.
func TestConsoleSendsAgain(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	k := testrig.NewSink(t)
	files, admin, shopOnly := consoleFiles(k.Port())
	r := idleRig(t, t.TempDir(), files)
	r.flags = []string{"--smtp-allow", "127.0.0.0/8"}
	r.start()
	send := func(kind, fields string) string {
		t.Helper()
		got := r.ask(http.MethodPost, "/api/mail/send/"+kind, admin, `{"domain":"shop.acme.example","toEmail":"ada@example.com",`+fields+"}",
			"X-Internal-Service-Token: "+admin, "X-Internal-Service-Name: shop", "Content-Type: application/json")
		at := strings.Split(got.header.Get("Location"), "/")
		if got.status != http.StatusOK || len(at) < 4 {
			t.Fatalf("%s: %d %s", kind, got.status, got.body)
		}
		return "/console/mail/" + at[len(at)-3] + "/" + at[len(at)-1]
	}
	welcome, raw := send("template", `"templateCode":"WELCOME","variables":{"userName":"Ada"}`), send("raw", `"subject":"s","bodyText":"t"`)
	v := newVisitor(t, r.url)
	v.signIn(admin)
	token := v.token()
	v.ask(raw, nil)
	v.expects(http.StatusOK, "that program can send it again")
	if v.ask(raw+"/again", url.Values{"token": {token}, "once": {"x"}}); v.res.StatusCode != http.StatusConflict {
		t.Errorf("a raw mail was sent again: %d", v.res.StatusCode)
	}
	v.ask(welcome, nil)
	v.expects(http.StatusOK, "Send again", `name="var.userName"`, "were not kept")
	once := regexp.MustCompile(`name="once" value="([^"]+)"`).FindStringSubmatch(v.body)
	v.ask(welcome+"/again", url.Values{"token": {token}, "once": {once[1]}})
	v.expects(http.StatusBadRequest, "userName")
	for range 2 { // a second press of the button is the same mail
		v.ask(welcome+"/again", url.Values{"token": {token}, "once": {once[1]}, "var.userName": {"Ada"}})
		v.expects(http.StatusOK, "Sent again: this is the new mail.", `<a href="`+welcome+`">an earlier mail</a>`, "Asked for by console")
	}
	if n := len(k.To("ada@example.com")); n != 3 {
		t.Errorf("%d mails, want the two of before and one more", n)
	}
	v = newVisitor(t, r.url)
	v.signIn(shopOnly)
	v.ask(welcome, nil)
	if strings.Contains(v.body, "Send it again") {
		t.Error("a key that may only read is offered to send again")
	}
	v.ask(welcome+"/again", url.Values{"token": {v.token()}, "once": {"x"}, "var.userName": {"Ada"}})
	v.expects(http.StatusForbidden, "requires mail")
}
