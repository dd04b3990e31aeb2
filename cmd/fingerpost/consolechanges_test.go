package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// The page Changes tells what happened in sentences, and finds it by person, project, kind and time.
func TestConsoleChanges(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	files, admin, shop := consoleFiles(25)
	r := idleRig(t, t.TempDir(), files)
	r.start()
	acme := "/api/platform/projects/" + r.projectID("acme")
	write := func(method, path, body, actor string) {
		t.Helper()
		if got := r.ask(method, path, admin, body, "X-Actor: "+actor); got.status >= 300 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	write(http.MethodPut, acme, `{"name":"Acme & Sons"}`, "Ada Lovelace <ada@example.com>")
	write(http.MethodPost, acme+"/domains", `{"domain":"new.acme.example"}`, "Bob <bob@example.com>")
	write(http.MethodPut, "/api/platform/projects/"+r.projectID(strings.Repeat("a", 63)), `{"status":"SUSPENDED"}`,
		"Bob <bob@example.com>")

	v := newVisitor(t, r.url)
	v.signIn(admin)
	const renamed, added, suspended = "Acme Shop</strong> to", "new.acme.example", " suspended "
	shows := func(query string, want ...string) {
		t.Helper()
		v.ask("/console/changes?"+query, nil)
		v.expects(http.StatusOK, want...)
		_, rest, _ := strings.Cut(v.body, `<ul class="log">`)
		log, _, _ := strings.Cut(rest, "</ul>")
		for _, text := range []string{renamed, added, suspended} {
			is := false
			for _, w := range want {
				is = is || w == text
			}
			if strings.Contains(log, text) != is {
				t.Errorf("%s: %q is there: %v", query, text, !is)
			}
		}
	}
	shows("", renamed, added, suspended, "<strong>Ada Lovelace</strong> renamed", "Acme &amp; Sons</a>")
	shows("actor=ada+lovelace", renamed)
	shows("actor=BOB%40example.com", added, suspended)
	shows("actor=admin", renamed, added, suspended)
	shows("project=acme", renamed, added)
	shows("project="+r.projectID("acme"), renamed, added, `name="project" value="acme"`)
	shows("project=ACME&action=domain.create", added)
	shows("action=project.update", renamed, suspended)
	shows("until=2020-01-31T09:30", "No change matches.")
	shows("from=2020-01-31T09:30", renamed, added, suspended)
	shows("from=yesterday", "must be a time in UTC")
	shows("project=nothing", "There is no project nothing")

	// Another project's changes are not there, nor is its name.
	limited := newVisitor(t, r.url)
	limited.ask("/console/sign-in", url.Values{"key": {shop}, "name": {"Carol"}, "email": {"carol@example.com"}})
	limited.ask("/console/changes", nil)
	limited.expects(http.StatusOK, renamed, added)
	if strings.Contains(limited.body, suspended) {
		t.Error("a key for one project sees the changes of another")
	}
	limited.ask("/console/changes?project="+strings.Repeat("a", 63), nil)
	limited.expects(http.StatusOK, "or your key does not cover it")
}
