package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// reachFiles are served in TestProposalReach: two projects whose templates take their bodies from files.
var reachFiles = map[string]string{
	"acme.hcl":         bodied("acme", "Acme Shop"),
	"other.hcl":        bodied("other", "Other"),
	"mail/acme.html":   "<p>acme</p>\n",
	"mail/other.html":  "<p>other</p>\n",
	"mail/shared.html": "<p>shared</p>\n",
	"mail/notes.txt":   "nobody names this\n",
}

func bodied(slug, name string) string {
	template := func(code, file string) string {
		return fmt.Sprintf("  template %q {\n    name             = \"A mail\"\n    subject_template = \"Hi\"\n"+
			"    body_html        = file(\"mail/%s.html\")\n  }\n", code, file)
	}
	return fmt.Sprintf("project %q {\n  name = %q\n  domain \"www.%s.example\" {}\n%s%s}\n", slug, name, slug,
		template("own", slug), template("common", "shared"))
}

// A reachKind is a change that a person proposes, and what it touches: projects by slug, and "rest".
type reachKind struct {
	name    string
	files   map[string]string // by path in the repository; "": removed
	touches []string
	breaks  bool // it cannot be applied
}

const reachEdge = "UAYR3PTZADPQTTJLCODAOEHVHW7FVQWCRF7L6VCCSALXQUROFKHFTQKA"

var reachKinds = []reachKind{
	{"name", map[string]string{"projects.d/acme.hcl": bodied("acme", "New")}, []string{"acme"}, false},
	{"name-of-other", map[string]string{"projects.d/other.hcl": bodied("other", "New")}, []string{"other"}, false},
	{"both-names", map[string]string{"projects.d/acme.hcl": bodied("acme", "Two"),
		"projects.d/other.hcl": bodied("other", "Two")}, []string{"acme", "other"}, false},
	{"body", map[string]string{"projects.d/mail/acme.html": "<p>new</p>\n"}, []string{"acme"}, false},
	{"body-of-other", map[string]string{"projects.d/mail/other.html": "<p>new</p>\n"}, []string{"other"}, false},
	{"shared-body", map[string]string{"projects.d/mail/shared.html": "<p>new</p>\n"}, []string{"acme", "other"}, false},
	{"comment", map[string]string{"projects.d/acme.hcl": "# A comment.\n" + bodied("acme", "Acme Shop")},
		[]string{"acme"}, false},
	{"moved", map[string]string{"projects.d/acme.hcl": "",
		"projects.d/other.hcl": bodied("other", "Other") + bodied("acme", "Acme Shop")}, []string{"acme", "other"}, false},
	{"removed", map[string]string{"projects.d/acme.hcl": ""}, []string{"acme"}, true},
	{"new-project", map[string]string{"projects.d/new.hcl": "project \"new\" {\n  name = \"New\"\n}\n"},
		[]string{"new"}, false},
	{"edge", map[string]string{"projects.d/edge.hcl": "edge \"fra\" {\n  public_key = \"" + reachEdge + "\"\n}\n"},
		[]string{"rest"}, false},
	{"key", map[string]string{"projects.d/key-hint.hcl": ""}, []string{"rest"}, false},
	{"login", map[string]string{"projects.d/login.hcl": "login \"company\" {\n  issuer = \"https://login.example/\"\n" +
		"  client_id = \"a\"\n  rule {\n    claim = \"groups\"\n    value = \"ops\"\n    allow = [\"read\"]\n" +
		"    projects = [\"acme\"]\n  }\n}\n"}, []string{"rest"}, false},
	{"inbound", map[string]string{"projects.d/inbound.hcl": "inbound \"ses\" {\n  format = \"ses\"\n  secret = env(\"A\")\n" +
		"  projects = [\"acme\"]\n}\n"}, []string{"rest"}, false},
	{"sealing", map[string]string{"projects.d/sealing.hcl": "sealing {\n  require = true\n}\n"}, []string{"rest"}, false},
	{"defaults", map[string]string{"projects.d/defaults.hcl": "defaults {\n  service_settings { sms_enabled = true }\n}\n"},
		[]string{"rest"}, false},
	{"default-template", map[string]string{"projects.d/t.hcl": "template \"all\" {\n  name = \"A\"\n" +
		"  subject_template = \"Hi\"\n  body_text = \"Hi\"\n}\n"}, []string{"rest"}, false},
	{"unnamed", map[string]string{"projects.d/mail/notes.txt": "new\n"}, []string{"rest"}, false},
	{"body-and-unnamed", map[string]string{"projects.d/mail/acme.html": "<p>two</p>\n",
		"projects.d/mail/notes.txt": "two\n"}, []string{"acme", "rest"}, false},
	{"outside", map[string]string{"README": "new\n"}, []string{"rest"}, false},
	{"broken", map[string]string{"projects.d/acme.hcl": "project {\n"}, []string{"rest"}, true},
}

// reachKeys are the projects of the keys that knock, nil for every project.
var reachKeys = map[string][]string{"first": {"acme"}, "second": {"other"}, "both": {"acme", "other"}, "full": nil}

func (k *reachKind) reachedBy(key string) bool {
	covers := reachKeys[key]
	return covers == nil || !slices.ContainsFunc(k.touches, func(of string) bool { return !slices.Contains(covers, of) })
}

// A proposal belongs to those who reach all that it touches: nobody else sees it, adds to it, applies or drops it, by
// any door.
func TestProposalReach(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, reachFiles)
	cells := 0
	for _, k := range reachKinds {
		tip := g.commitAs("propose/"+k.name, k.files)
		for _, key := range []string{"first", "second", "both", "full"} {
			cells += g.knock(&k, key, tip)
		}
		g.git(g.dir, "branch", "-q", "-D", "propose/"+k.name)
	}
	testrig.Figure(t, "%d kinds of proposals, %d cells of door and key", len(reachKinds), cells)
}

// knock tries all doors to a proposal with a key, and checks that the branch is there afterwards.
func (g *proposalRig) knock(k *reachKind, key, tip string) (cells int) {
	g.t.Helper()
	reached := k.reachedBy(key)
	own := g.pathOf("acme")
	if key == "second" || k.name == "removed" || k.name == "broken" {
		own = g.pathOf("other")
	}
	if key == "first" {
		own = g.pathOf("acme")
	}
	path := proposalsPath + "/" + k.name
	head := g.git(g.dir, "rev-parse", "HEAD")
	door := func(what string, got reply, ok int, otherwise int, hint string) {
		g.t.Helper()
		cells++
		want := otherwise
		if reached {
			want = ok
		}
		if got.status != want || !reached && !strings.Contains(got.body, hint) {
			g.t.Errorf("%s of %s with the key %s: %d %s", what, k.name, key, got.status, got.body)
		}
		if !reached && (g.git(g.dir, "rev-parse", "propose/"+k.name) != tip || g.git(g.dir, "rev-parse", "HEAD") != head) {
			g.t.Errorf("%s of %s with the key %s has changed a branch", what, k.name, key)
		}
	}
	there := http.StatusOK
	added := http.StatusAccepted
	if k.name == "removed" && key == "first" {
		there, added = http.StatusNotFound, http.StatusNotFound
	}
	list := g.as(key, "", http.MethodGet, proposalsPath, "")
	if cells++; strings.Contains(list.body, `"`+k.name+`"`) != reached {
		g.t.Errorf("the list for %s, of %s: %s", key, k.name, list.body)
	}
	door("a look", g.as(key, "", http.MethodGet, path, ""), http.StatusOK, http.StatusNotFound, "no such proposal")
	door("a read", g.as(key, k.name, http.MethodGet, own, ""), there, http.StatusNotFound, "no such proposal")
	door("a dry run", g.as(key, k.name, http.MethodPut, own+"?dryRun=1", `{"description":"dry"}`),
		map[bool]int{true: there, false: http.StatusOK}[there != http.StatusOK], http.StatusConflict, `"X-Propose"`)
	door("a write", g.as(key, k.name, http.MethodPut, own, `{"description":"added"}`), added, http.StatusConflict,
		`"X-Propose"`)
	g.git(g.dir, "update-ref", "refs/heads/propose/"+k.name, tip)
	if !reached {
		door("apply", g.as(key, "", http.MethodPost, path+"/apply", ""), 0, http.StatusNotFound, "no such proposal")
	}
	door("drop", g.as(key, "", http.MethodDelete, path, ""), http.StatusOK, http.StatusNotFound, "no such proposal")
	g.git(g.dir, "update-ref", "refs/heads/propose/"+k.name, tip)
	return cells
}

// restore brings the served folder back to reachFiles.
func (g *proposalRig) restore() {
	g.t.Helper()
	for name, text := range reachFiles {
		g.put(name, text)
	}
	g.git(g.dir, "add", "-A")
	g.git(g.dir, "commit", "-q", "--allow-empty", "-m", "restored")
	res, err := http.Post(g.ops+"/reload", "", nil)
	must(g.t, err)
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		g.t.Fatalf("reload: %s", res.Status)
	}
}

// What a person proposes is applied by the narrowest key that reaches it; its plan shows what changes, bodies too.
func TestProposalPlans(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, reachFiles)
	for _, k := range reachKinds {
		g.restore()
		g.commitAs("propose/"+k.name, k.files)
		key := "full"
		for _, narrow := range []string{"both", "second", "first"} {
			if k.reachedBy(narrow) {
				key = narrow
			}
		}
		all := g.as(key, "", http.MethodGet, proposalsPath, "").body
		if !strings.Contains(all, `"name":"`+k.name+`"`) || strings.Contains(all, `"plan"`) {
			t.Errorf("%s: the list is %s", k.name, all)
		}
		p := g.look(key, k.name)
		var plan *struct{ Changed bool }
		if err := json.Unmarshal(p.Plan, &plan); err != nil {
			t.Fatal(err)
		}
		silent := slices.Contains([]string{"comment", "moved", "unnamed", "outside"}, k.name)
		if p.Key != nil || p.Readable == (k.name == "broken") || p.Readable != (plan != nil) || plan != nil && plan.Changed == silent {
			t.Errorf("%s: %+v, %+v", k.name, p, plan)
		}
		want := http.StatusOK
		if k.breaks {
			want = http.StatusConflict
		}
		if got := g.as(key, "", http.MethodPost, proposalsPath+"/"+k.name+"/apply", ""); got.status != want {
			t.Errorf("%s, applied with the key %s: %d %s", k.name, key, got.status, got.body)
		}
	}
	if out, code := g.run("validate"); code != 0 {
		t.Errorf("what is committed does not load: %s", out)
	}
}

// Who has made a proposal is in the ledger, whatever a trailer says. Its maker may drop it; the answer to a write shows
// its diff; one that changes nothing makes no branch; there is an end to them; and old ones are dropped.
func TestProposalBounds(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, reachFiles)
	acme := g.pathOf("acme")

	g.must(g.as("hint", "same", http.MethodPut, acme, `{"name":"Acme Shop"}`), http.StatusUnprocessableEntity)
	if got := g.git(g.dir, "branch", "--list", "propose/*"); got != "" {
		t.Errorf("a branch without a commit: %s", got)
	}
	templates := strings.TrimPrefix(acme, "/api/platform") + "/templates"
	made := g.must(g.mail("POST", templates, "first", `{"code":"own","bodyHtml":"<p>theirs</p>"}`,
		"X-Propose: body"), http.StatusAccepted)
	if !strings.Contains(made.body, `"changed":true`) || !strings.Contains(made.body, `+\u003cp\u003etheirs`) {
		t.Errorf("the answer shows no change: %s", made.body)
	}

	// A removal shows the project's lines, and nothing of the keys that lose it.
	gone := g.must(g.as("first", "gone", http.MethodDelete, acme, ""), http.StatusAccepted)
	if !strings.Contains(gone.body, `-project \"acme\"`) || strings.Contains(gone.body, "key-") {
		t.Errorf("a removal: %s", gone.body)
	}
	g.must(g.as("first", "", http.MethodDelete, proposalsPath+"/gone", ""), http.StatusOK)

	// A trailer that somebody forges makes nobody the maker.
	g.commitAs("propose/forged", map[string]string{"README": "forged\n"})
	g.git(g.work, "commit", "-q", "--amend", "-m", "by hand", "-m", "Fingerpost-Key: first")
	g.git(g.work, "push", "-q", "-f", "origin", "edit:refs/heads/propose/forged")
	g.must(g.as("first", "", http.MethodDelete, proposalsPath+"/forged", ""), http.StatusNotFound)
	if list := g.as("full", "", http.MethodGet, proposalsPath, "").body; !strings.Contains(list, `"name":"forged"`) ||
		strings.Count(list, `"key":"first"`) != 1 {
		t.Errorf("the makers: %s", list)
	}
	g.must(g.as("hint", "", http.MethodDelete, proposalsPath+"/body", ""), http.StatusForbidden)

	for n := range 20 {
		g.add("hint", fmt.Sprintf("p%d", n), http.MethodPut, acme, fmt.Sprintf(`{"description":"%d"}`, n))
	}
	late := g.must(g.as("hint", "p20", http.MethodPut, acme, `{"description":"20"}`), http.StatusTooManyRequests)
	if late.header.Get("Retry-After") == "" {
		t.Errorf("no Retry-After: %v", late.header)
	}
	g.add("hint", "p19", http.MethodPut, acme, `{"description":"again"}`)
	g.add("first", "another", http.MethodPut, acme, `{"description":"another"}`)
	g.must(g.as("hint", "", http.MethodDelete, proposalsPath+"/p3", ""), http.StatusOK)
	g.add("hint", "p20", http.MethodPut, acme, `{"description":"20"}`)
	for n := 23; n < 200; n++ {
		g.git(g.dir, "update-ref", fmt.Sprintf("refs/heads/propose/q%d", n), "refs/heads/propose/forged")
	}
	g.must(g.as("full", "all", http.MethodPut, acme, `{"description":"all"}`), http.StatusTooManyRequests)

	// An old one goes at the next start, the others stay.
	g.halt()
	work := filepath.Join(t.TempDir(), "old")
	g.git(g.dir, "worktree", "add", "-q", "-b", "propose/old", work)
	must(t, os.WriteFile(filepath.Join(work, "OLD"), []byte("old\n"), 0o644))
	g.git(work, "add", "-A")
	cmd := testrig.GitCommand(work, "commit", "-qm", "old")
	cmd.Env = append(cmd.Env, "GIT_COMMITTER_DATE=2020-01-01T00:00:00Z")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	g.git(g.dir, "worktree", "remove", "--force", work)
	g.start()
	testrig.Eventually(t, "the old one is dropped, and the audit trail has it", func() bool {
		trail := g.as("full", "", http.MethodGet, "/api/platform/audit?action=proposal.drop&limit=1", "").body
		return strings.Contains(trail, "no write since") && strings.Contains(trail, `"old"`)
	})
	if left := g.git(g.dir, "branch", "--list", "propose/*"); strings.Count(left, "propose/p") != 20 ||
		strings.Contains(left, "propose/old") {
		t.Errorf("left are %s", left)
	}
}
