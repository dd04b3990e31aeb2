package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"fingerpost/cmd/testrig"
)

const bobBrown = "Bob Brown <bob@example.com>"

// approve approves of a proposal with a key for a person.
func (g *proposalRig) approve(key, who, name string, status int) reply {
	g.t.Helper()
	return g.must(g.ask(http.MethodPost, proposalsPath+"/"+name+"/approve", g.keys[key], "", "X-Actor: "+who), status)
}

// needsApproval wants that a proposal is refused for the number of approvals, by the look and by apply.
func (g *proposalRig) needsApproval(name, people string) {
	g.t.Helper()
	why := g.look("full", name).Refusal
	got := g.must(g.as("full", "", http.MethodPost, proposalsPath+"/"+name+"/apply", ""), http.StatusConflict)
	if why == nil || why.Code != "APPROVAL_NEEDED" || !strings.HasPrefix(why.Message, people) ||
		!strings.Contains(got.body, `"APPROVAL_NEEDED"`) || !strings.Contains(got.body, people) {
		g.t.Errorf("%s is refused with %+v, and apply says %s", name, why, got.body)
	}
}

// With --propose-approvals a proposal is applied once so many keys with write, other than those that have written to it,
// have approved of its last commit. Their names and the comment are in the merge.
func TestProposalApprovals(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, map[string]string{"acme.hcl": plain("acme", "Acme"), "other.hcl": plain("other", "Other")},
		"--propose-approvals", "2")
	acme := g.pathOf("acme")
	g.add("first", "shop", "PUT", acme, `{"name":"Acme Shop"}`)
	g.needsApproval("shop", "2 more people must approve")

	// Its author does not count, who may not write may not approve, and who does not reach it finds nothing.
	g.approve("first", adaLovelace, "shop", http.StatusForbidden)
	g.approve("hint", adaLovelace, "shop", http.StatusForbidden)
	g.approve("reader", adaLovelace, "shop", http.StatusForbidden)
	g.must(g.ask("POST", proposalsPath+"/shop/approve", g.keys["second"], ""), http.StatusNotFound)
	seen := g.look("full", "shop")
	if seen.ApprovalsNeeded != 2 || seen.Approvals == nil || len(seen.Approvals) != 0 {
		t.Errorf("the look: %+v", seen)
	}

	// A key counts once, whomever it acts for.
	g.approve("full", bobBrown, "shop", http.StatusOK)
	g.approve("full", adaLovelace, "shop", http.StatusOK)
	g.needsApproval("shop", "1 more person must approve")
	if p := g.look("first", "shop"); len(p.Approvals) != 1 || p.Approvals[0].By != bobBrown || p.Approvals[0].Key != "full" ||
		!p.Approvals[0].Counts {
		t.Errorf("the approvals: %+v", p.Approvals)
	}

	// A write voids it, and so does the approver who writes; an approval of what was seen is not one of what is there.
	g.add("hint", "shop", "PUT", acme, `{"description":"added"}`)
	g.needsApproval("shop", "2 more people")
	g.must(g.as("full", "", "POST", proposalsPath+"/shop/approve?commit="+seen.Commit, ""), http.StatusPreconditionFailed)
	g.approve("full", bobBrown, "shop", http.StatusOK)
	g.approve("both", adaLovelace, "shop", http.StatusOK)
	if entries := g.as("full", "", "GET", "/api/platform/audit?action=proposal.approve", "").body; strings.Count(entries, `"proposal.approve"`) != 3 {
		t.Errorf("the audit trail: %s", entries)
	}

	// They are there after a restart, also one that is killed.
	must(t, g.cmd.Process.Kill())
	<-g.exited
	g.start()
	p := g.look("full", "shop")
	if len(p.Approvals) != 2 || p.Refusal != nil {
		t.Fatalf("after a restart: %+v", p)
	}
	for body, status := range map[string]int{`{"comment":"a\u0007b"}`: 400, `{"comment":7}`: 400, `[]`: 400,
		fmt.Sprintf(`{"comment":%q}`, strings.Repeat("x", 2001)): 400} {
		g.must(g.ask("POST", proposalsPath+"/shop/apply", g.keys["full"], body), status)
	}
	comment, err := json.Marshal("Read twice.\r\n\r\nFingerpost-Key: forged\nApproved-by: Nobody <nobody@example.com>\n" +
		"---\n# ------------------------ >8 ------------------------\nat the end")
	must(t, err)
	got := g.must(g.ask("POST", proposalsPath+"/shop/apply", g.keys["full"], `{"comment":`+string(comment)+`}`,
		"X-Actor: "+adaLovelace), http.StatusOK)
	message := g.git(g.dir, "log", "-1", "--format=%an%n%P%n%B")
	lines := strings.Split(message, "\n")
	if lines[0] != "Ada Lovelace" || !strings.HasSuffix(lines[1], p.Commit) || lines[2] != "Merge proposal shop" ||
		!strings.Contains(message, "\n\nRead twice.\n\nFingerpost-Key: forged\n") {
		t.Errorf("%s\n%s", got.body, message)
	}
	trailers := g.git(g.dir, "log", "-1", "--format=%(trailers:key=Approved-by,valueonly)%(trailers:key=Fingerpost-Key,valueonly)")
	if trailers != bobBrown+"\n"+adaLovelace+"\nfull" {
		t.Fatalf("the trailers: %q", trailers)
	}
	must(t, os.WriteFile(g.path("message.txt"), []byte(g.git(g.dir, "log", "-1", "--format=%B")), 0o600))
	if parsed := g.git(g.dir, "interpret-trailers", "--parse", g.path("message.txt")); strings.Contains(parsed, "Nobody") ||
		!strings.Contains(parsed, "Approved-by: "+bobBrown) {
		t.Errorf("git reads the trailers as %q", parsed)
	}
}

// An approval counts while its key may write: not after that is taken away. A branch that a person has made is approved
// of, too, and without --propose-approvals, a comment alone makes a merge.
func TestProposalApprovalsOfKeys(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, map[string]string{"acme.hcl": plain("acme", "Acme")}, "--propose-approvals", "1")
	g.save(func() bool { return g.as("leaver", "", "GET", g.pathOf("acme"), "").status == 200 },
		map[string]string{"key-leaver.hcl": g.newKey("leaver", `allow = ["read", "write"]`)})
	text, err := os.ReadFile(g.path("acme.hcl"))
	must(t, err)
	g.commitAs("propose/hand", map[string]string{"projects.d/acme.hcl": strings.Replace(string(text), `"Acme"`, `"By hand"`, 1)})
	g.needsApproval("hand", "1 more person must approve")
	g.approve("leaver", bobBrown, "hand", http.StatusOK)
	if p := g.look("full", "hand"); p.Refusal != nil || p.Key != nil {
		t.Errorf("approved: %+v", p)
	}
	g.save(func() bool { return g.as("leaver", "", "POST", proposalsPath+"/hand/approve", "").status == 403 },
		map[string]string{"key-leaver.hcl": g.newKey("leaver", `allow = ["read"]`)})
	g.needsApproval("hand", "1 more person must approve")
	if p := g.look("full", "hand"); len(p.Approvals) != 1 || p.Approvals[0].Counts {
		t.Errorf("its key is gone: %+v", p.Approvals)
	}
	g.approve("full", adaLovelace, "hand", http.StatusOK)
	g.must(g.as("full", "", http.MethodPost, proposalsPath+"/hand/apply", ""), http.StatusOK)
	if trailers := g.git(g.dir, "log", "-1", "--format=%(trailers:key=Approved-by,valueonly)"); trailers != bobBrown+"\n"+adaLovelace {
		t.Errorf("the trailers: %q", trailers)
	}
}

// A key that has rotated itself is the key that it was: its author does not approve of what it has written, and no key
// approves twice, with the new text or with the old one, which is good for a while.
func TestProposalApprovalsOfRotatedKeys(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, map[string]string{"acme.hcl": plain("acme", "Acme")}, "--propose-approvals", "2")
	rotate := func(key string) {
		t.Helper()
		got := g.must(g.as(key, "", "POST", "/api/platform/keys/"+key+"/rotate", ""), http.StatusOK)
		var row struct{ Data struct{ Secret, Key string } }
		must(t, json.Unmarshal([]byte(got.body), &row))
		g.keys[key+"-before"], g.keys[key] = g.keys[key], row.Data.Key
	}
	g.add("first", "shop", "PUT", g.pathOf("acme"), `{"name":"Acme Shop"}`)
	g.approve("full", bobBrown, "shop", http.StatusOK)
	rotate("first")
	rotate("full")
	g.approve("first", adaLovelace, "shop", http.StatusForbidden)
	if !g.look("first", "shop").Own {
		t.Error("the key that was rotated has not written to its proposal")
	}
	g.approve("full", adaLovelace, "shop", http.StatusOK)
	g.approve("full-before", adaLovelace, "shop", http.StatusOK)
	g.needsApproval("shop", "1 more person must approve")
	rotate("full")
	g.approve("full", adaLovelace, "shop", http.StatusOK)
	g.needsApproval("shop", "1 more person must approve")

	// What the old text writes, the new one does not approve of.
	g.add("first-before", "more", "PUT", g.pathOf("acme"), `{"description":"more"}`)
	g.approve("first", adaLovelace, "more", http.StatusForbidden)
	g.approve("both", adaLovelace, "shop", http.StatusOK)
	g.must(g.as("full", "", "POST", proposalsPath+"/shop/apply", ""), http.StatusOK)
}

// The commands approve, update and apply --comment do what the API does, and a server without --git has neither.
func TestProposeCommands(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, map[string]string{"acme.hcl": plain("acme", "Acme")})
	cli := func(key string, want int, args ...string) string {
		t.Helper()
		out, code := g.run(append(append([]string{"propose"}, args...), "--url", g.url, "--key", g.keys[key])...)
		if code != want {
			t.Errorf("propose %q ended with %d: %s", args, code, out)
		}
		return strings.TrimSpace(out)
	}
	g.add("hint", "shop", "PUT", g.pathOf("acme"), `{"name":"Acme Shop"}`)
	if out := cli("hint", 3, "approve", "shop"); !strings.Contains(out, "write") {
		t.Errorf("approved by who may not: %s", out)
	}
	if out := cli("full", 0, "approve", "shop", "--commit", g.look("full", "shop").Commit); !strings.Contains(out, "full <full@") {
		t.Errorf("propose approve: %s", out)
	}
	if out := cli("full", 0, "show", "shop"); !strings.Contains(out, "Approved by full <full@") {
		t.Errorf("propose show: %s", out)
	}
	if out := cli("full", 3, "update", "shop"); !strings.Contains(out, "nothing that is live conflicts") {
		t.Errorf("propose update: %s", out)
	}
	commit := cli("full", 0, "apply", "shop", "--comment", "As agreed")
	if message := g.git(g.dir, "log", "-1", "--format=%B", commit); !strings.Contains(message, "\n\nAs agreed\n\nApproved-by: full <full@") {
		t.Errorf("the merge: %s", message)
	}
}

// While a proposal is approved and applied, others write to it: it is never applied with a commit that nobody has
// approved of.
func TestProposalApprovalRaces(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, map[string]string{"acme.hcl": plain("acme", "Acme")}, "--propose-approvals", "1")
	acme := g.pathOf("acme")
	applied := 0
	rounds := testrig.Size(t, 40, 6)
	for n := range rounds {
		name := fmt.Sprintf("race-%d", n)
		g.add("hint", name, "PUT", acme, fmt.Sprintf(`{"name":"Read %d"}`, n))
		g.approve("full", adaLovelace, name, http.StatusOK)
		var both sync.WaitGroup
		var apply reply
		both.Go(func() { apply = g.as("full", "", "POST", proposalsPath+"/"+name+"/apply", "") })
		both.Go(func() {
			g.as("hint", name, "PUT", acme, fmt.Sprintf(`{"description":"unread %d"}`, n))
		})
		both.Wait()
		live := g.as("full", "", "GET", acme, "").body
		if strings.Contains(live, fmt.Sprintf("unread %d", n)) {
			t.Fatalf("round %d: what nobody has approved of is live: %d %s", n, apply.status, live)
		}
		switch {
		case apply.status == http.StatusOK:
			applied++
		case apply.status != http.StatusConflict || !strings.Contains(apply.body, "APPROVAL_NEEDED"):
			t.Fatalf("round %d: %d %s", n, apply.status, apply.body)
		}
		g.as("full", "", "DELETE", proposalsPath+"/"+name, "")
	}
	testrig.Figure(t, "%d of %d approved proposals were applied against a write to them", applied, rounds)
}
