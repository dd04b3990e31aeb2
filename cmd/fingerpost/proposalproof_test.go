package main

import (
	"net/http"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// TestProposalProof: no proposal of a project's key makes a name trusted that must be proven: one that was made before
// proofs were required is refused when it is applied, whoever applies it; and one that a person has pushed, when such a key
// applies it. A later one has the name as pending.
func TestProposalProof(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, map[string]string{"acme.hcl": bodied("acme", "Acme Shop"), "other.hcl": bodied("other", "Other"),
		"mail/acme.html": "<p>acme</p>\n", "mail/other.html": "<p>other</p>\n", "mail/shared.html": "<p>shared</p>\n"})
	domains := g.pathOf("acme") + "/domains"
	applied := func(key, name string, status int) {
		t.Helper()
		got := g.must(g.as(key, "", http.MethodPost, proposalsPath+"/"+name+"/apply", ""), status)
		if status == http.StatusConflict && !strings.Contains(got.body, `"field":"verified"`) {
			t.Errorf("the refusal does not name the field: %s", got.body)
		}
	}
	resolves := func(name string, status int) {
		t.Helper()
		g.must(g.as("full", "", http.MethodGet, projectsPath+"/resolve?domain="+name, ""), status)
	}

	g.must(g.as("first", "early", http.MethodPost, domains, domainBody("early.acme.example")), http.StatusAccepted)
	g.must(g.as("hint", "hinted", http.MethodPost, domains, domainBody("hinted.acme.example")), http.StatusAccepted)
	g.must(g.as("full", "trusted", http.MethodPost, domains, domainBody("trusted.acme.example")), http.StatusAccepted)
	g.save(func() bool {
		got := g.as("first", "", http.MethodPost, domains+"?dryRun=1", domainBody("try.acme.example"))
		return strings.Contains(got.body, "pending")
	}, map[string]string{"defaults.hcl": "defaults {\n  verification { require = \"project-keys\" }\n}\n"})

	for _, key := range []string{"first", "full"} {
		applied(key, "early", http.StatusConflict)
	}
	applied("full", "hinted", http.StatusConflict)
	resolves("early.acme.example", http.StatusNotFound)
	applied("full", "trusted", http.StatusOK)
	resolves("trusted.acme.example", http.StatusOK)

	// In the proposal the name is removed and added again: it is pending.
	made := g.must(g.ask(http.MethodGet, domains, g.keys["first"], "", "X-Propose: early"), http.StatusOK)
	at := strings.Index(made.body, `"domain":"early.acme.example"`)
	id := made.body[strings.LastIndex(made.body[:at], `"id":`)+len(`"id":`):]
	id = id[:strings.IndexByte(id, ',')]
	g.must(g.as("first", "early", http.MethodDelete, domains+"/"+id, ""), http.StatusAccepted)
	g.must(g.as("first", "early", http.MethodPost, domains, domainBody("early.acme.example")), http.StatusAccepted)
	applied("first", "early", http.StatusOK)
	resolves("early.acme.example", http.StatusForbidden)

	// What a person pushes is the person's, unless a project's key applies it.
	text := read(t, g.path("acme.hcl"))
	text = strings.Replace(text, `domain "early.acme.example" { verified = "pending" }`, `domain "early.acme.example" {}`, 1)
	if text == read(t, g.path("acme.hcl")) {
		t.Fatalf("no pending domain in\n%s", text)
	}
	g.commitAs("propose/pushed", map[string]string{"projects.d/acme.hcl": text})
	applied("first", "pushed", http.StatusConflict)
	resolves("early.acme.example", http.StatusForbidden)
	applied("full", "pushed", http.StatusOK)
	resolves("early.acme.example", http.StatusOK)
}
