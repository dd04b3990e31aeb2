package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"fingerpost/api/client"
	"fingerpost/cmd/testrig"
)

// conflictsOf writes the conflicts of a proposal as lines.
func conflictsOf(p *client.ProposalLook) string {
	var b strings.Builder
	text := func(s *string) string {
		if s == nil {
			return "null"
		}
		return *s
	}
	for _, c := range p.Conflicts {
		marks := map[bool]string{true: " secret"}[c.Secret] + map[bool]string{true: " removed"}[c.Removes]
		at := " undated"
		if c.At != nil {
			at = ""
		}
		fmt.Fprintf(&b, "%s %s of %s: %s%s: %v, %v, %v, by %s%s\n", c.Kind, c.Object, text(c.Project), text(c.Field), marks,
			c.Was, c.Live, c.Proposed, text(c.By), at)
	}
	return strings.TrimSpace(b.String())
}

// actor makes a live write for a person.
func (g *proposalRig) actor(who, method, path, body string, status int) {
	g.t.Helper()
	g.must(g.ask(method, path, g.keys["full"], body, "X-Actor: "+who), status)
}

const adaLovelace = "Ada Lovelace <ada@example.com>"

// A conflict names each field with was, live and proposed, and who has changed what is live, and when; never a secret.
// Bringing the proposal up to date takes its values onto what is live, as one commit; then it is applied.
func TestProposalConflicts(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, map[string]string{"acme.hcl": plain("acme", "Acme"), "other.hcl": plain("other", "Other")})
	acme := g.pathOf("acme")
	g.add("hint", "shop", "PUT", acme, `{"name":"Acme Shop","description":"theirs"}`)
	g.add("hint", "shop", "PUT", acme, `{"labels":{"plan":"gold"}}`)
	if p := g.look("hint", "shop"); len(p.Conflicts) != 0 || p.ConflictCount != 0 || p.Conflicts == nil {
		t.Errorf("before anything conflicts: %+v", p.Conflicts)
	}
	g.must(g.as("hint", "", "POST", proposalsPath+"/shop/update", ""), http.StatusUnprocessableEntity)

	g.actor(adaLovelace, "PUT", acme, `{"name":"Acme by Ada","status":"ACTIVE"}`, http.StatusOK)
	g.actor("Bob <bob@example.com>", "PUT", acme, `{"labels":{"plan":"free"}}`, http.StatusOK)
	p := g.look("hint", "shop")
	want := "project acme of acme: name: Acme, Acme by Ada, Acme Shop, by " + adaLovelace + "\n" +
		"project acme of acme: labels: <nil>, map[plan:free], map[plan:gold], by Bob <bob@example.com>"
	if got := conflictsOf(&p); got != want || p.ConflictCount != 2 || p.Refusal == nil || p.Refusal.Code != "CONFLICT" ||
		!strings.Contains(p.Refusal.Message, "bring the proposal up to date") {
		t.Fatalf("the conflicts:\n%s\nwant\n%s\n%+v", got, want, p.Refusal)
	}
	out, _ := g.run("propose", "show", "shop", "--url", g.url, "--key", g.keys["full"])
	if !strings.Contains(out, `project "acme": name: was "Acme", is live "Acme by Ada", proposed "Acme Shop" (by Ada Lovelace`) {
		t.Errorf("propose show: %s", out)
	}

	// Who does not reach it finds nothing; who may only read does not write.
	for key, status := range map[string]int{"second": http.StatusNotFound, "reader": http.StatusForbidden} {
		g.must(g.as(key, "", "POST", proposalsPath+"/shop/update", ""), status)
	}
	g.must(g.as("hint", "", "POST", proposalsPath+"/shop/update?commit="+p.Commit[:12], ""), http.StatusPreconditionFailed)
	out, code := g.run("propose", "update", "shop", "--commit", p.Commit, "--url", g.url, "--key", g.keys["hint"])
	now := g.look("full", "shop")
	if code != 0 || strings.TrimSpace(out) != now.Commit {
		t.Fatalf("propose update: %d %s", code, out)
	}
	if now.Title != p.Title || now.CreatedAt != p.CreatedAt || len(now.Commits) != 3 || now.Commits[0].Commit != p.Commits[0].Commit ||
		now.Commits[2].Message != "Bring proposal shop up to date" || now.Refusal != nil || len(now.Conflicts) != 0 {
		t.Errorf("brought up to date: %+v", now)
	}
	if !strings.Contains(now.Diff, `-  name   = "Acme by Ada"`) || strings.Contains(string(now.Plan), `"field":"status"`) {
		t.Errorf("what it changes now: %s", now.Diff)
	}
	if parents := g.git(g.dir, "log", "-1", "--format=%P", now.Commit); parents != p.Commit+" "+g.git(g.dir, "rev-parse", "HEAD") {
		t.Errorf("the parents are %s", parents)
	}
	g.must(g.as("hint", "", "POST", proposalsPath+"/shop/update", ""), http.StatusUnprocessableEntity)

	// It goes on as any proposal: one more write, HEAD moves on, one more conflict, and it is applied.
	g.add("hint", "shop", "PUT", acme, `{"description":"more"}`)
	g.actor(adaLovelace, "PUT", acme, `{"description":"mine"}`, http.StatusOK)
	p = g.look("full", "shop")
	if got := conflictsOf(&p); !strings.HasPrefix(got, "project acme of acme: description: <nil>, mine, more, by Ada") || len(p.Commits) != 4 {
		t.Errorf("after more writes: %s\n%+v", got, p.Commits)
	}
	g.must(g.as("full", "", "POST", proposalsPath+"/shop/update", ""), http.StatusOK)
	g.actor(adaLovelace, "PUT", g.pathOf("other"), `{"description":"unrelated"}`, http.StatusOK)
	if p = g.look("hint", "shop"); p.Refusal != nil || len(p.Commits) != 5 || p.Title != now.Title {
		t.Errorf("brought up to date again: %+v", p)
	}
	g.must(g.as("full", "", "POST", proposalsPath+"/shop/apply", ""), http.StatusOK)
	got := g.as("full", "", "GET", acme, "").body
	if !strings.Contains(got, `"Acme Shop"`) || !strings.Contains(got, `"more"`) || !strings.Contains(got, `"ACTIVE"`) {
		t.Errorf("what is live: %s", got)
	}
	if fsck := g.git(g.dir, "fsck", "--strict"); strings.Contains(fsck, "error") {
		t.Errorf("git fsck: %s", fsck)
	}
}

// What an object is gone for cannot be brought up to date: the answer names it. What the proposal removes is named, too,
// and goes.
func TestProposalConflictGone(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, map[string]string{"acme.hcl": plain("acme", "Acme"), "other.hcl": plain("other", "Other")})
	acme, other := g.pathOf("acme"), g.pathOf("other")
	domain := func(name string) string {
		return acme + "/domains/" + idOf(g.must(g.as("full", "", "POST", acme+"/domains", domainBody(name)), http.StatusCreated))
	}
	goes, stays := domain("goes.example"), domain("stays.example")
	g.add("full", "gone", "PUT", goes, `{"active":false}`)
	g.add("full", "gone", "PUT", acme, `{"name":"Kept"}`)
	g.add("full", "removes", "DELETE", stays, "")
	g.add("full", "end", "PUT", other, `{"name":"Other than that"}`)
	g.actor(adaLovelace, "DELETE", goes, "", http.StatusOK)
	g.actor(adaLovelace, "PUT", stays, `{"active":false}`, http.StatusOK)
	g.actor(adaLovelace, "DELETE", other, "", http.StatusOK)
	for name, want := range map[string]string{
		"gone":    "domain goes.example of acme: null: <nil>, <nil>, <nil>, by " + adaLovelace,
		"removes": "domain stays.example of acme: active removed: true, false, <nil>, by " + adaLovelace,
		"end":     "project other of other: null: <nil>, <nil>, <nil>, by " + adaLovelace,
	} {
		p := g.look("full", name)
		if got := conflictsOf(&p); got != want {
			t.Errorf("%s: %s\nwant %s", name, got, want)
		}
	}
	for name, what := range map[string]string{"gone": "domain goes.example, which is gone there", "end": "project other, which is gone there"} {
		got := g.must(g.as("full", "", "POST", proposalsPath+"/"+name+"/update", ""), http.StatusConflict)
		if !strings.Contains(got.body, what) || !strings.Contains(got.body, "remove in the proposal what is gone") {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	g.must(g.as("full", "", "POST", proposalsPath+"/removes/update", ""), http.StatusOK)
	g.must(g.as("full", "", "POST", proposalsPath+"/removes/apply", ""), http.StatusOK)
	g.must(g.as("full", "", "GET", stays, ""), http.StatusNotFound)

	// Removed in the proposal, too, it is no conflict any more.
	g.add("full", "gone", "DELETE", goes, "")
	if p := g.look("full", "gone"); p.Refusal != nil || len(p.Conflicts) != 0 {
		t.Errorf("without what is gone: %+v", p)
	}
	g.must(g.as("full", "", "POST", proposalsPath+"/gone/apply", ""), http.StatusOK)
}

// A proposal is brought up to date while others write to it, to what is live, and apply it: each call has its own
// outcome, and what was answered is in history.
func TestProposalUpdateRaces(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, map[string]string{"acme.hcl": plain("acme", "Acme")})
	acme := g.pathOf("acme")
	rounds := testrig.Size(t, 20, 4)
	for n := range rounds {
		name := fmt.Sprintf("race-%d", n)
		g.add("full", name, "PUT", acme, fmt.Sprintf(`{"name":"Ours %d"}`, n))
		g.actor(adaLovelace, "PUT", acme, fmt.Sprintf(`{"name":"Theirs %d"}`, n), http.StatusOK)
		var all sync.WaitGroup
		var update, write, apply, live reply
		all.Go(func() { update = g.as("full", "", "POST", proposalsPath+"/"+name+"/update", "") })
		all.Go(func() { write = g.as("hint", name, "PUT", acme, fmt.Sprintf(`{"description":"added %d"}`, n)) })
		all.Go(func() { apply = g.as("full", "", "POST", proposalsPath+"/"+name+"/apply", "") })
		all.Go(func() {
			live = g.as("full", "", "PUT", acme, fmt.Sprintf(`{"status":%q}`, []string{"ACTIVE", "DRAFT"}[n%2]))
		})
		all.Wait()
		if update.status != http.StatusOK || live.status != http.StatusOK || write.status != http.StatusAccepted ||
			apply.status != http.StatusOK && apply.status != http.StatusConflict {
			t.Fatalf("round %d: update %d %s, write %d %s, apply %d %s, live %d", n, update.status, update.body, write.status,
				write.body, apply.status, apply.body, live.status)
		}
		g.as("full", "", "POST", proposalsPath+"/"+name+"/apply", "")
		got := g.as("full", "", "GET", acme, "").body
		if !strings.Contains(got, fmt.Sprintf(`"Ours %d"`, n)) || !strings.Contains(got, fmt.Sprintf(`"added %d"`, n)) {
			t.Errorf("round %d: %s", n, got)
		}
	}
	if out, code := g.run("validate"); code != 0 {
		t.Errorf("what is committed does not load: %s", out)
	}
}

// A secret that both have changed is named without a value, and one in clear text is never written by the service.
func TestProposalConflictSecret(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	file := func(name, password string) string {
		return strings.Replace(plain("acme", name), "\n}", "\n  smtp_config {\n    host = \"mail.acme.example\"\n    username = \"u\"\n"+
			"    password = "+password+"\n    from_email = \"a@acme.example\"\n  }\n}", 1)
	}
	g := newProposalRig(t, map[string]string{"acme.hcl": file("Acme", `env("BEFORE")`)})
	g.commitAs("propose/secret", map[string]string{"projects.d/acme.hcl": file("Acme", `"do-not-show-1"`)})
	acme := g.pathOf("acme")
	g.save(func() bool { return strings.Contains(g.as("full", "", "GET", acme, "").body, "Acme Shop") },
		map[string]string{"acme.hcl": file("Acme Shop", `"do-not-show-2"`)})
	got := g.must(g.as("full", "", http.MethodGet, proposalsPath+"/secret", ""), http.StatusOK)
	p := g.look("full", "secret")
	if c := conflictsOf(&p); !strings.HasPrefix(c, "smtp_config acme of acme: password secret: <nil>, <nil>, <nil>, by ") {
		t.Errorf("the conflict: %s", c)
	}
	refused := g.must(g.as("full", "", http.MethodPost, proposalsPath+"/secret/update", ""), http.StatusConflict)
	for _, body := range []string{got.body, refused.body} {
		if strings.Contains(body, "do-not-show") {
			t.Errorf("a secret is shown: %s", body)
		}
	}
	if !strings.Contains(refused.body, "a secret in clear text is not written") {
		t.Errorf("brought up to date: %s", refused.body)
	}
}

// A proposal that was brought up to date is pushed without force.
func TestProposalUpdatePushed(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, nil, "--git-push")
	acme := g.pathOf("acme")
	pushed := func() {
		g.t.Helper()
		tip := g.look("full", "shop").Commit
		testrig.Eventually(t, "the proposal is pushed", func() bool {
			got, err := testrig.TryGit(g.remote, "rev-parse", "refs/heads/propose/shop")
			return err == nil && strings.TrimSpace(got) == tip
		})
	}
	g.add("first", "shop", http.MethodPut, acme, `{"name":"Acme proposed"}`)
	pushed()
	g.actor(adaLovelace, "PUT", acme, `{"name":"Acme by Ada"}`, http.StatusOK)
	g.must(g.as("first", "", http.MethodPost, proposalsPath+"/shop/update", ""), http.StatusOK)
	pushed()
	g.must(g.as("full", "", http.MethodPost, proposalsPath+"/shop/apply", ""), http.StatusOK)
	testrig.Eventually(t, "it is applied at the remote, too", func() bool {
		main, err := testrig.TryGit(g.remote, "rev-parse", "main")
		_, there := testrig.TryGit(g.remote, "rev-parse", "-q", "--verify", "refs/heads/propose/shop")
		return err == nil && strings.TrimSpace(main) == g.git(g.dir, "rev-parse", "main") && there != nil
	})
}

// When HEAD is rebased after a proposal was brought up to date with it, the proposal's change stays its own, and
// applying it brings no former commit back: nor after it was brought up to date again.
func TestProposalUpdateBeforeAPull(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, nil, "--git-pull", "1s")
	acme, other := g.pathOf("acme"), g.pathOf("other")
	names := []string{"shop", "again"}
	for _, name := range names {
		g.add("first", name, http.MethodPut, acme, `{"name":"Acme proposed"}`)
	}
	g.actor(adaLovelace, "PUT", other, `{"name":"Other of the API"}`, http.StatusOK)
	g.actor(adaLovelace, "PUT", acme, `{"name":"Acme by Ada"}`, http.StatusOK)
	former := g.git(g.dir, "rev-parse", "main")
	for _, name := range names {
		g.must(g.as("first", "", http.MethodPost, proposalsPath+"/"+name+"/update", ""), http.StatusOK)
	}
	g.rebases(former)
	for _, name := range names {
		p := g.look("first", name)
		if p.Refusal != nil || strings.Contains(p.Diff, "Other of the API") || len(p.Commits) != 2 ||
			!strings.Contains(p.Diff, `+  name   = "Acme proposed"`) {
			t.Errorf("after HEAD was rebased: %+v", p)
		}
	}
	g.must(g.as("full", "", http.MethodPost, proposalsPath+"/shop/apply", ""), http.StatusOK)
	g.actor(adaLovelace, "PUT", acme, `{"name":"Acme by Ada again"}`, http.StatusOK)
	g.must(g.as("first", "", http.MethodPost, proposalsPath+"/again/update", ""), http.StatusOK)
	g.must(g.as("full", "", http.MethodPost, proposalsPath+"/again/apply", ""), http.StatusOK)
	if g.inMain(former) {
		t.Error("the former commit is in the branch again")
	}
	if got := g.get(acme).body; !strings.Contains(got, "Acme proposed") {
		t.Error(got)
	}
	if got := g.get(other).body; !strings.Contains(got, "Other of the API") {
		t.Error(got)
	}
}
