package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// TestGitLargeBody: a body that goes to a file of its own is in the commit of the write, and in a proposal, with the
// config file that names it.
func TestGitLargeBody(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	testrig.Need(t, "git")
	r := newRig(t, nil)
	r.halt()
	newGitRig(t, r)
	r.flags = []string{"--git", "--git-ack", "commit"}
	r.start()
	git := func(args ...string) string { return testrig.Git(t, r.dir, args...) }
	id := idOf(r.get("/api/platform/projects/by-slug/other"))
	save := func(code, letter string, status int, header ...string) {
		t.Helper()
		body, err := json.Marshal(map[string]string{"code": code, "name": "n", "subjectTemplate": "s",
			"bodyText": strings.Repeat(letter, 100_000)})
		if err != nil {
			t.Fatal(err)
		}
		got := r.ask(http.MethodPut, "/api/mail/projects/"+id+"/templates", r.keys["write"], string(body),
			append(header, "X-Internal-Service-Token: "+r.keys["write"], "X-Internal-Service-Name: t")...)
		if got.status != status {
			t.Fatalf("%d %.300s", got.status, got.body)
		}
	}
	live := func(code, letter string) {
		t.Helper()
		templates := "/api/mail/projects/" + id + "/templates"
		got := r.ask(http.MethodGet, templates+"/"+r.rowID(r.keys["all"], templates, "code", code), r.keys["all"], "",
			"X-Internal-Service-Token: "+r.keys["all"], "X-Internal-Service-Name: t")
		if got.status != http.StatusOK || !strings.Contains(got.body, strings.Repeat(letter, 100_000)) {
			t.Errorf("%s: %d %.300s", code, got.status, got.body)
		}
	}
	save("LIVE", "a", http.StatusCreated)
	live("LIVE", "a")
	if got := git("show", "--name-only", "--format=", "HEAD"); !strings.Contains(got, "other.LIVE.txt") || !strings.Contains(got, ".hcl") {
		t.Errorf("the commit has %q", got)
	}
	save("LATER", "b", http.StatusAccepted, "X-Propose: later")
	save("LATER", "c", http.StatusAccepted, "X-Propose: later")
	if got := r.ask(http.MethodPost, "/api/platform/proposals/later/apply", r.keys["write"], ""); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	live("LATER", "c")
	if got := git("status", "--porcelain"); got != "" {
		t.Errorf("the tree is not clean: %s", got)
	}
}
