package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"fingerpost/api/client"
	"fingerpost/cmd/testrig"
)

func plain(slug, name string) string {
	return fmt.Sprintf("project %q {\n  name = %q\n}\n", slug, name)
}

// look reads a proposal.
func (g *proposalRig) look(key, name string) (p client.ProposalLook) {
	g.t.Helper()
	got := g.must(g.as(key, "", http.MethodGet, proposalsPath+"/"+name, ""), http.StatusOK)
	var answer struct{ Data client.ProposalLook }
	must(g.t, json.Unmarshal([]byte(got.body), &answer))
	return answer.Data
}

// Who decides about a proposal sees its commits, its diff, and whether it can be applied; and decides about what was
// seen: a branch that has moved since is not applied and not dropped.
func TestProposalLook(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, map[string]string{"acme.hcl": plain("acme", "Acme"), "other.hcl": plain("other", "Other")})
	acme := g.pathOf("acme")
	g.add("hint", "shop", http.MethodPut, acme, `{"name":"Acme Shop"}`)
	seen := g.look("full", "shop")
	if c := seen.Commits; seen.Title != "acme: name" || len(c) != 1 || !seen.AllCommits || c[0].Message != seen.Title ||
		c[0].Commit != seen.Commit {
		t.Fatalf("a look at it: %+v", seen)
	}
	if !strings.Contains(seen.Diff, `+  name = "Acme Shop"`) || seen.DiffLines != strings.Count(seen.Diff, "\n") ||
		seen.Refusal != nil {
		t.Errorf("what it changes: %+v", seen)
	}
	g.must(g.as("second", "", http.MethodGet, proposalsPath+"/shop", ""), http.StatusNotFound)

	g.add("hint", "shop", http.MethodPut, acme, `{"description":"more"}`)
	for method, path := range map[string]string{http.MethodPost: "/apply", http.MethodDelete: ""} {
		got := g.must(g.as("full", "", method, proposalsPath+"/shop"+path+"?commit="+seen.Commit, ""),
			http.StatusPreconditionFailed)
		if !strings.Contains(got.body, "has changed since you looked") {
			t.Errorf("%s: %s", method, got.body)
		}
	}
	if now := g.look("hint", "shop"); len(now.Commits) != 2 || now.Commits[0].Commit != seen.Commit {
		t.Errorf("after one more write: %+v", now.Commits)
	}

	// The command says the same.
	cli := func(want int, args ...string) string {
		t.Helper()
		out, code := g.run(append(append([]string{"propose"}, args...), "--url", g.url, "--key", g.keys["full"])...)
		if code != want {
			t.Errorf("propose %q ended with %d: %s", args, code, out)
		}
		return out
	}
	if out := cli(0, "show", "shop"); !strings.Contains(out, seen.Commit+"  ") || !strings.Contains(out, `~ name: "Acme" → "Acme Shop"`) {
		t.Errorf("propose show: %s", out)
	}
	if out := cli(3, "apply", "shop", "--commit", seen.Commit); !strings.Contains(out, "has changed since you looked") {
		t.Errorf("propose apply: %s", out)
	}
	if out := cli(1, "show", "nothing"); !strings.Contains(out, `there is no proposal "nothing"`) {
		t.Errorf("propose show: %s", out)
	}

	// A person rewrites the branch: what was seen is gone.
	g.git(g.dir, "branch", "-f", "propose/shop", seen.Commit)
	g.must(g.as("full", "", http.MethodPost, proposalsPath+"/shop/apply?commit="+seen.Commit, ""), http.StatusOK)
	g.must(g.as("full", "", http.MethodGet, proposalsPath+"/shop", ""), http.StatusNotFound)
}

// A look says which warnings a proposal would bring, and not those that are there already; to a key of some projects,
// nothing of names of others.
func TestProposalWarnings(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	long := strings.Replace(plain("acme", "Acme"), "\n}", "\n  auth_settings { jwt_secret = \"short\" }\n}", 1)
	g := newProposalRig(t, map[string]string{"acme.hcl": long,
		"other.hcl": strings.Replace(plain("other", "Other"), "\n}", "\n  domain \"*.wild.example\" {}\n}", 1)})
	warned := func(key, name string, want ...string) {
		t.Helper()
		p := g.look(key, name)
		var all []string
		for _, problem := range p.Problems {
			all = append(all, problem.Summary)
		}
		for i, w := range want {
			if len(all) != len(want) || !strings.Contains(all[i], w) {
				t.Errorf("%s for %s: %q, want %q", name, key, all, want)
			}
		}
		if len(want) == 0 && len(all) > 0 || p.Refusal != nil {
			t.Errorf("%s for %s: %q, %+v", name, key, all, p.Refusal)
		}
	}
	g.add("full", "name", http.MethodPut, g.pathOf("acme"), `{"name":"Acme Shop"}`)
	warned("full", "name")
	g.add("full", "below", http.MethodPost, g.pathOf("acme")+"/domains", domainBody("x.wild.example"))
	warned("full", "below", `wildcard "*.wild.example" would lie above "x.wild.example" of another project`)
	if p := g.look("first", "below"); len(p.Problems) > 0 || p.Refusal == nil {
		t.Errorf("below for first: %+v, %+v", p.Problems, p.Refusal)
	}
	text, err := os.ReadFile(g.path("other.hcl"))
	must(t, err)
	g.commitAs("propose/secret", map[string]string{"projects.d/other.hcl": strings.Replace(string(text), "\n}",
		"\n  auth_settings { jwt_secret = \"short, too\" }\n}", 1)})
	warned("second", "secret", "clear text", "32 bytes")
	out, code := g.run("propose", "show", "below", "--url", g.url, "--key", g.keys["full"])
	if code != 0 || !strings.Contains(out, "It would bring a warning: wildcard") {
		t.Errorf("propose show: %d %s", code, out)
	}
}

// A look says why a proposal cannot be applied, with the words of apply.
func TestProposalRefusals(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, map[string]string{"acme.hcl": plain("acme", "Acme"), "other.hcl": plain("other", "Other")})
	acme, other := g.pathOf("acme"), g.pathOf("other")
	refused := func(name, code string, status int) {
		t.Helper()
		why := g.look("full", name).Refusal
		got := g.must(g.as("full", "", http.MethodPost, proposalsPath+"/"+name+"/apply", ""), status)
		if why == nil || why.Code != code || !strings.Contains(got.body, why.Code) ||
			!strings.Contains(got.body, strings.SplitN(why.Message, `"`, 2)[0]) {
			t.Errorf("%s: the look says %+v, and apply %s", name, why, got.body)
		}
	}
	g.add("full", "same", http.MethodPut, acme, `{"description":"theirs"}`)
	g.must(g.as("full", "", http.MethodPut, acme, `{"description":"ours"}`), http.StatusOK)
	refused("same", "CONFLICT", http.StatusConflict)

	g.add("full", "taken", http.MethodPost, acme+"/domains", domainBody("taken.example"))
	g.must(g.as("full", "", http.MethodPost, other+"/domains", domainBody("taken.example")), http.StatusCreated)
	refused("taken", "CONFLICT", http.StatusConflict)

	g.add("full", "live", http.MethodPut, other, `{"description":"the same"}`)
	g.must(g.as("full", "", http.MethodPut, other, `{"description":"the same"}`), http.StatusOK)
	refused("live", "NOTHING_CHANGED", http.StatusUnprocessableEntity)

	// There and back again.
	g.add("full", "back", http.MethodPut, acme, `{"name":"Elsewhere"}`)
	g.add("full", "back", http.MethodPut, acme, `{"name":"Acme"}`)
	refused("back", "NOTHING_CHANGED", http.StatusUnprocessableEntity)

	text, err := os.ReadFile(g.path("acme.hcl"))
	must(t, err)
	g.commitAs("propose/broken", map[string]string{"projects.d/acme.hcl": strings.Replace(string(text), "{", "{ what", 1)})
	refused("broken", "CONFIG_FILE_INVALID", http.StatusConflict)
}

// A proposal that somebody has merged by hand is none any more: its name is free, and its branch goes.
func TestProposalMergedByHand(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, map[string]string{"acme.hcl": plain("acme", "Acme")})
	acme := g.pathOf("acme")
	g.add("hint", "shop", http.MethodPut, acme, `{"name":"Acme Shop"}`)
	g.git(g.dir, "merge", "-q", "--no-ff", "-m", "merged", "propose/shop")
	g.must(g.as("hint", "", http.MethodGet, proposalsPath+"/shop", ""), http.StatusNotFound)
	if list := g.as("full", "", http.MethodGet, proposalsPath, "").body; strings.Contains(list, "shop") {
		t.Errorf("the list still has it: %s", list)
	}
	testrig.Eventually(t, "what was merged is live", func() bool {
		return strings.Contains(g.as("full", "", http.MethodGet, acme, "").body, "Acme Shop")
	})
	g.add("hint", "shop", http.MethodPut, acme, `{"name":"Acme Shop and more"}`)
	if now := g.look("full", "shop"); len(now.Commits) != 1 || now.Refusal != nil {
		t.Errorf("a new one of the name: %+v", now)
	}
	if subjects := g.git(g.dir, "log", "--format=%s", "main..propose/shop"); strings.Count(subjects, "\n") != 0 {
		t.Errorf("the new one is made of %q", subjects)
	}

	// At the next start the branch of a key's proposal is removed, and the one that a person has just begun stays.
	g.git(g.dir, "merge", "-q", "--no-ff", "-m", "merged", "propose/shop")
	g.git(g.dir, "branch", "propose/begun", "main")
	g.halt()
	g.start()
	testrig.Eventually(t, "the merged branch is gone, and the trail says why", func() bool {
		trail := g.as("full", "", http.MethodGet, "/api/platform/audit?action=proposal.drop", "").body
		return strings.Contains(trail, "merged by hand") && g.git(g.dir, "branch", "--list", "propose/shop") == ""
	})
	if g.git(g.dir, "branch", "--list", "propose/begun") == "" {
		t.Error("the branch of a person who has just begun was removed")
	}
}
