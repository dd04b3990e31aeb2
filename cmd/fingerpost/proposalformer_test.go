package main

import (
	"net/http"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// rebases has a pull take a commit from the branch, by a push of another clone.
func (g *proposalRig) rebases(commit string) {
	g.t.Helper()
	g.push("pat.hcl", "project \"pat\" {\n  name = \"Pat\"\n}\n")
	testrig.Eventually(g.t, "the pull is live", func() bool {
		return strings.Contains(g.get("/api/platform/projects/by-slug/pat").body, "Pat")
	})
	if g.inMain(commit) {
		g.t.Fatal("the commit was not rebased")
	}
}

func (g *proposalRig) inMain(commit string) bool {
	_, err := testrig.TryGit(g.dir, "merge-base", "--is-ancestor", commit, "main")
	return err == nil
}

// TestProposalBeforeAPull: a proposal that left the branch at a commit which a pull then rebased changes what it
// changed before, for those who reached it before, and brings no former copy of that commit back.
func TestProposalBeforeAPull(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, nil, "--git-pull", "1s")
	other, acme := g.pathOf("other"), g.pathOf("acme")
	g.must(g.as("full", "", http.MethodPut, other, `{"name":"Other of the API"}`), http.StatusOK)
	former := g.git(g.dir, "rev-parse", "HEAD")
	g.add("first", "later", http.MethodPut, acme, `{"name":"Acme proposed"}`)
	g.add("full", "fresh", http.MethodPut, other, `{"description":"fresh"}`)

	// The remote is ahead as well: the pull rebases the commit.
	g.rebases(former)
	for round := range 2 { // a further move of the branch changes nothing
		list := g.must(g.as("first", "", http.MethodGet, proposalsPath, ""), http.StatusOK)
		if !strings.Contains(list.body, `"name":"later"`) || !strings.Contains(list.body, `"mergeable":true`) ||
			strings.Contains(list.body, "Other of the API") {
			t.Errorf("round %d: %s", round, list.body)
		}
		g.must(g.as("full", "", http.MethodPut, other, `{"name":"Other again"}`), http.StatusOK)
	}
	g.add("first", "later", http.MethodPut, acme, `{"description":"Added after the pull"}`)
	g.must(g.as("first", "", http.MethodPost, proposalsPath+"/later/apply", ""), http.StatusOK)
	g.must(g.as("full", "", http.MethodPost, proposalsPath+"/fresh/apply", ""), http.StatusOK)
	if g.inMain(former) {
		t.Error("the former commit is in the branch again")
	}
	subjects := strings.Split(g.git(g.dir, "log", "--format=%s of %an", "main"), "\n")
	if got := strings.Join(subjects[:2], "; "); got != "Merge proposal fresh of full; Merge proposal later of first" {
		t.Errorf("the branch has %q", subjects)
	}
	if got := g.get(acme).body; !strings.Contains(got, "Acme proposed") || !strings.Contains(got, "Added after the pull") {
		t.Error(got)
	}
	if got := g.get(other).body; !strings.Contains(got, "Other again") || !strings.Contains(got, "fresh") {
		t.Error(got)
	}
	if refs := g.git(g.dir, "for-each-ref", "refs/fingerpost/former"); refs != "" {
		t.Errorf("refs that nobody needs any more: %s", refs)
	}
}
