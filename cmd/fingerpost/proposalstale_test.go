package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// A proposalRig is a running server with git, and with keys that reach a part of the projects.
type proposalRig struct {
	*gitRig
	work string // a clone in which a person edits branches of proposals
}

const (
	projectsPath  = "/api/platform/projects"
	proposalsPath = "/api/platform/proposals"
)

// proposalKeys may do more than those of a rig.
var proposalKeys = map[string]string{
	"full":   `allow = ["read", "write", "secrets"]`,
	"first":  "allow = [\"read\", \"write\"]\n  projects = [\"acme\"]",
	"second": "allow = [\"read\", \"write\"]\n  projects = [\"other\"]",
	"both":   "allow = [\"read\", \"write\"]\n  projects = [\"acme\", \"other\"]",
	"reader": "allow = [\"read\"]\n  projects = [\"acme\", \"other\"]",
	"hint":   "allow = [\"read\", \"propose\"]\n  projects = [\"acme\"]",
}

func newProposalRig(t *testing.T, more map[string]string, flags ...string) *proposalRig {
	t.Helper()
	testrig.Need(t, "git")
	r := idleRig(t, t.TempDir(), more)
	for name, rights := range proposalKeys {
		r.put("key-"+name+".hcl", r.newKey(name, rights))
	}
	g := &proposalRig{gitRig: newGitRig(t, r)}
	g.work = filepath.Join(t.TempDir(), "work")
	g.git(r.dir, "clone", "-q", ".", g.work)
	r.flags = append([]string{"--git", "--git-ack", "commit"}, flags...)
	r.start()
	return g
}

// newKey makes a key of the rig, and returns its block.
func (r *rig) newKey(name, rights string) string {
	text := r.keys[name]
	if text == "" {
		text, _ = catalog.NewKeyText()
		r.keys[name] = text
	}
	id, _ := catalog.KeyTextID([]byte(text))
	return fmt.Sprintf("key %q {\n  id = %q\n  hash = %q\n  %s\n}\n", name, id, catalog.HashKeyText(text), rights)
}

// as makes a call with a key, in a proposal if its name is not empty. It is made again while the answer is that somebody
// else, git or a write, is at work.
func (g *proposalRig) as(key, proposal, method, path, body string) reply {
	g.t.Helper()
	var header []string
	if proposal != "" {
		header = append(header, "X-Propose: "+proposal)
	}
	for end := time.Now().Add(testrig.Patience); ; {
		got := g.ask(method, path, g.keys[key], body, header...)
		if got.status != http.StatusServiceUnavailable || time.Now().After(end) {
			return got
		}
	}
}

func (g *proposalRig) must(got reply, status int) reply {
	g.t.Helper()
	if got.status != status {
		g.t.Fatalf("%d %s", got.status, got.body)
	}
	return got
}

// project makes a live project, and returns its path.
func (g *proposalRig) project(slug string) string {
	g.t.Helper()
	got := g.must(g.as("full", "", http.MethodPost, projectsPath, fmt.Sprintf(`{"name":%q,"slug":%q}`, slug, slug)),
		http.StatusCreated)
	return projectsPath + "/" + idOf(got)
}

func (g *proposalRig) pathOf(slug string) string {
	g.t.Helper()
	return projectsPath + "/" + idOf(g.must(g.as("full", "", http.MethodGet, projectsPath+"/by-slug/"+slug, ""),
		http.StatusOK))
}

// commitAs adds a person's commit to a branch, or makes the branch.
func (g *proposalRig) commitAs(branch string, files map[string]string) (commit string) {
	g.t.Helper()
	g.git(g.work, "fetch", "-q", "origin")
	base := "origin/main"
	if _, err := testrig.TryGit(g.work, "rev-parse", "-q", "--verify", "refs/remotes/origin/"+branch); err == nil {
		base = "origin/" + branch
	}
	g.git(g.work, "checkout", "-q", "-B", "edit", base)
	for name, text := range files {
		file := filepath.Join(g.work, filepath.FromSlash(name))
		if text == "" {
			must(g.t, os.Remove(file))
			continue
		}
		must(g.t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(g.t, os.WriteFile(file, []byte(text), 0o644))
	}
	g.git(g.work, "add", "-A")
	g.git(g.work, "commit", "-qm", "by hand")
	g.git(g.work, "push", "-q", "origin", "edit:refs/heads/"+branch)
	return g.git(g.work, "rev-parse", "HEAD")
}

// save writes files into the served folder, as a person does, and commits them.
func (g *proposalRig) save(live func() bool, files map[string]string) {
	g.t.Helper()
	for name, text := range files {
		if text == "" {
			must(g.t, os.Remove(g.path(name)))
			continue
		}
		must(g.t, os.MkdirAll(filepath.Dir(g.path(name)), 0o755))
		g.put(name, text)
	}
	g.git(g.dir, "add", "-A")
	g.git(g.dir, "commit", "-qm", "saved")
	testrig.Eventually(g.t, "the files are live", live)
}

// A staleCase is a proposal that was right when it was made.
type staleCase struct {
	name    string
	propose func(g *proposalRig, name string)
	later   func(g *proposalRig) // makes it wrong; nil: it stays right
	by      string               // key that applies; "": full
	want    int                  // 0: 409
	touches string               // what limits who reaches it: "acme", or "more" for keys for every project
}

func (g *proposalRig) add(key, name, method, path, body string) {
	g.t.Helper()
	g.must(g.as(key, name, method, path, body), http.StatusAccepted)
}

func domainBody(name string) string { return fmt.Sprintf(`{"domain":%q}`, name) }

var staleCases = []staleCase{
	{name: "right", propose: func(g *proposalRig, n string) {
		g.add("first", n, "POST", g.pathOf("acme")+"/domains", domainBody("right.example"))
	}, want: http.StatusOK},
	{name: "right-after-others", propose: func(g *proposalRig, n string) {
		g.add("hint", n, "POST", g.pathOf("acme")+"/domains", domainBody("right2.example"))
	}, later: func(g *proposalRig) {
		g.must(g.as("full", "", "POST", g.pathOf("acme")+"/domains", domainBody("right3.example")), http.StatusCreated)
	}, by: "first", want: http.StatusOK},
	{name: "below-a-wildcard", propose: func(g *proposalRig, n string) {
		g.add("first", n, "POST", g.pathOf("acme")+"/domains", domainBody("a.below.example"))
	}, later: func(g *proposalRig) {
		g.must(g.as("full", "", "POST", g.pathOf("other")+"/domains", domainBody("*.below.example")), http.StatusCreated)
	}},
	{name: "below-a-wildcard-by-its-maker", propose: func(g *proposalRig, n string) {
		g.add("first", n, "POST", g.pathOf("acme")+"/domains", domainBody("a.below2.example"))
	}, later: func(g *proposalRig) {
		g.must(g.as("full", "", "POST", g.pathOf("other")+"/domains", domainBody("*.below2.example")), http.StatusCreated)
	}, by: "first"},
	{name: "above-a-name", propose: func(g *proposalRig, n string) {
		g.add("hint", n, "POST", g.pathOf("acme")+"/domains", domainBody("*.above.example"))
	}, later: func(g *proposalRig) {
		g.must(g.as("full", "", "POST", g.pathOf("other")+"/domains", domainBody("a.above.example")), http.StatusCreated)
	}},
	{name: "made-wildcard", propose: func(g *proposalRig, n string) {
		made := g.must(g.as("first", "", "POST", g.pathOf("acme")+"/domains", domainBody("wide.example")), http.StatusCreated)
		g.add("first", n, "PUT", g.pathOf("acme")+"/domains/"+idOf(made), domainBody("*.wide.example"))
	}, later: func(g *proposalRig) {
		g.must(g.as("full", "", "POST", g.pathOf("other")+"/domains", domainBody("a.wide.example")), http.StatusCreated)
	}},
	{name: "below-a-wildcard-for-everybody", propose: func(g *proposalRig, n string) {
		g.add("full", n, "POST", g.pathOf("acme")+"/domains", domainBody("a.below3.example"))
	}, later: func(g *proposalRig) {
		g.must(g.as("full", "", "POST", g.pathOf("other")+"/domains", domainBody("*.below3.example")), http.StatusCreated)
	}, want: http.StatusOK},
	{name: "applied-by-a-lesser-key", propose: func(g *proposalRig, n string) {
		g.add("full", n, "POST", g.pathOf("acme")+"/domains", domainBody("a.below4.example"))
	}, later: func(g *proposalRig) {
		g.must(g.as("full", "", "POST", g.pathOf("other")+"/domains", domainBody("*.below4.example")), http.StatusCreated)
	}, by: "first"},
	{name: "taken-name", propose: func(g *proposalRig, n string) {
		g.add("full", n, "POST", g.pathOf("acme")+"/domains", domainBody("taken.example"))
	}, later: func(g *proposalRig) {
		g.must(g.as("full", "", "POST", g.pathOf("other")+"/domains", domainBody("taken.example")), http.StatusCreated)
	}},
	{name: "taken-slug", touches: "more", propose: func(g *proposalRig, n string) {
		g.add("full", n, "POST", projectsPath, `{"name":"Taken","slug":"taken-slug"}`)
	}, later: func(g *proposalRig) {
		g.save(func() bool { return g.as("full", "", "GET", projectsPath+"/by-slug/taken-slug", "").status == 200 },
			map[string]string{"elsewhere.hcl": "project \"taken-slug\" {\n  name = \"By hand\"\n}\n"})
	}},
	{name: "taken-slug-same-file", touches: "more", propose: func(g *proposalRig, n string) {
		g.add("full", n, "POST", projectsPath, `{"name":"Taken","slug":"same-file"}`)
	}, later: func(g *proposalRig) { g.project("same-file") }},
	{name: "rename-to-a-taken-slug", touches: "more", propose: func(g *proposalRig, n string) {
		g.project("mover")
		g.must(g.as("full", "", "POST", "/api/platform/keys", `{"name":"k-mover","allow":["read"],"projects":["mover"]}`),
			http.StatusCreated)
		g.add("full", n, "PUT", g.pathOf("mover"), `{"slug":"moved"}`)
	}, later: func(g *proposalRig) { g.project("moved") }},
	{name: "rename-with-a-later-key", touches: "more", propose: func(g *proposalRig, n string) {
		g.project("mover2")
		g.add("full", n, "PUT", g.pathOf("mover2"), `{"slug":"moved2"}`)
	}, later: func(g *proposalRig) {
		g.must(g.as("full", "", "POST", "/api/platform/keys", `{"name":"k-mover2","allow":["read"],"projects":["mover2"]}`),
			http.StatusCreated)
	}},
	{name: "removal-with-a-later-key", touches: "more", propose: func(g *proposalRig, n string) {
		g.project("leaver")
		g.add("full", n, "DELETE", g.pathOf("leaver"), "")
	}, later: func(g *proposalRig) {
		g.must(g.as("full", "", "POST", "/api/platform/keys", `{"name":"k-leaver","allow":["read"],"projects":["leaver"]}`),
			http.StatusCreated)
	}},
	{name: "its-maker-lost-the-project", propose: func(g *proposalRig, n string) {
		g.save(func() bool { return g.as("loser", "", "GET", g.pathOf("acme"), "").status == 200 },
			map[string]string{"key-loser.hcl": g.newKey("loser", "allow = [\"read\", \"propose\"]\n  projects = [\"acme\"]")})
		g.add("loser", n, "PUT", g.pathOf("acme"), `{"description":"lost"}`)
	}, later: func(g *proposalRig) {
		g.save(func() bool { return g.as("loser", "", "GET", g.pathOf("acme"), "").status == 403 },
			map[string]string{"key-loser.hcl": g.newKey("loser", "allow = [\"read\", \"propose\"]\n  projects = [\"other\"]")})
	}},
	{name: "its-maker-is-revoked", propose: func(g *proposalRig, n string) {
		g.save(func() bool { return g.as("leaves", "", "GET", g.pathOf("acme"), "").status == 200 },
			map[string]string{"key-leaves.hcl": g.newKey("leaves", "allow = [\"read\", \"propose\"]\n  projects = [\"acme\"]")})
		g.add("leaves", n, "PUT", g.pathOf("acme"), `{"description":"revoked"}`)
	}, later: func(g *proposalRig) {
		g.save(func() bool { return g.as("leaves", "", "GET", g.pathOf("acme"), "").status == 401 },
			map[string]string{"key-leaves.hcl": ""})
	}},
	{name: "a-second-maker-is-too-narrow", propose: func(g *proposalRig, n string) {
		g.add("full", n, "PUT", g.pathOf("acme"), `{"description":"narrow"}`)
		g.add("first", n, "POST", g.pathOf("acme")+"/domains", domainBody("a.narrow.example"))
	}, later: func(g *proposalRig) {
		g.must(g.as("full", "", "POST", g.pathOf("other")+"/domains", domainBody("*.narrow.example")), http.StatusCreated)
	}},
	{name: "a-body-is-gone", touches: "more", propose: func(g *proposalRig, n string) {
		g.save(func() bool { return true }, map[string]string{"mail/gone.html": "<p>here</p>\n"})
		g.commitAs("propose/"+n, map[string]string{"projects.d/bodied.hcl": `project "bodied" {
  name = "Bodied"
  template "hi" {
    name             = "Hi"
    subject_template = "Hi"
    body_html        = file("mail/gone.html")
  }
}
`})
	}, later: func(g *proposalRig) {
		g.save(func() bool { return true }, map[string]string{"mail/gone.html": ""})
	}},
	{name: "a-broken-file", touches: "more", propose: func(g *proposalRig, n string) {
		g.commitAs("propose/"+n, map[string]string{"projects.d/broken.hcl": "project {\n"})
	}},
}

// A proposal is judged again when it is applied: what has become wrong since is refused, and nothing moves.
func TestStaleProposals(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, nil)
	for _, c := range staleCases {
		ok := t.Run(c.name, func(t *testing.T) {
			was := g.t
			g.t = t
			defer func() { g.t = was }()
			g.stale(c)
		})
		if !ok && strings.Contains(g.logged(), "panic") {
			t.Fatal(g.logged())
		}
	}
}

// knockStale tries the doors to a proposal that has become wrong with keys of each reach: those who reach it see it and
// are refused, the others find nothing.
func (g *proposalRig) knockStale(c *staleCase) {
	g.t.Helper()
	acme, other := g.pathOf("acme"), g.pathOf("other")
	for _, key := range []string{"first", "second", "both", "full"} {
		reached := key == "full" || c.touches == "" && key != "second"
		door := func(what string, got reply, ok, otherwise int) {
			g.t.Helper()
			if want := map[bool]int{true: ok, false: otherwise}[reached]; got.status != want {
				g.t.Errorf("%s with the key %s: %d %s, want %d", what, key, got.status, got.body, want)
			}
		}
		own := acme
		if key == "second" {
			own = other
		}
		if list := g.as(key, "", "GET", proposalsPath, ""); strings.Contains(list.body, `"name":"`+c.name+`"`) != reached {
			g.t.Errorf("the list for %s: %s", key, list.body)
		}
		door("a read", g.as(key, c.name, "GET", own, ""), http.StatusOK, http.StatusNotFound)
		door("a dry run", g.as(key, c.name, "PUT", own+"?dryRun=1", `{"description":"dry"}`), http.StatusOK,
			http.StatusConflict)
		door("apply", g.as(key, "", "POST", proposalsPath+"/"+c.name+"/apply", ""), http.StatusConflict,
			http.StatusNotFound)
		if !reached {
			door("a write", g.as(key, c.name, "PUT", own, `{"description":"added"}`), 0, http.StatusConflict)
			door("drop", g.as(key, "", "DELETE", proposalsPath+"/"+c.name, ""), 0, http.StatusNotFound)
		}
	}
}

func (g *proposalRig) stale(c staleCase) {
	c.propose(g, c.name)
	if c.later != nil {
		c.later(g)
	}
	if c.by == "" {
		c.by = "full"
	}
	if c.want == 0 {
		c.want = http.StatusConflict
	}
	before := g.git(g.dir, "rev-parse", "HEAD")
	if c.want != http.StatusOK && c.by == "full" {
		g.knockStale(&c)
	}
	got := g.as(c.by, "", http.MethodPost, proposalsPath+"/"+c.name+"/apply", "")
	if got.status != c.want {
		g.t.Errorf("applied: %d %s", got.status, got.body)
	}
	if c.want != http.StatusOK {
		if now := g.git(g.dir, "rev-parse", "HEAD"); now != before {
			g.t.Errorf("the branch has moved from %s to %s", before, now)
		}
		if !strings.Contains(g.git(g.dir, "for-each-ref", "refs/heads/propose/"+c.name), c.name) {
			g.t.Error("the proposal is gone")
		}
	}
	if out, code := g.run("validate"); code != 0 {
		g.t.Errorf("what is committed does not load: %s", out)
	}
}

// While a proposal is applied, others claim the same name by a write: one of them gets it, and what is committed loads.
func TestProposalTurn(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, nil)
	acme, other := g.pathOf("acme"), g.pathOf("other")
	applied := 0
	rounds := testrig.Size(t, 60, 8)
	for n := range rounds {
		name := fmt.Sprintf("turn-%d", n)
		g.add("first", name, "POST", acme+"/domains", domainBody(name+".example"))
		var both sync.WaitGroup
		var apply, write reply
		branch := filepath.Join(g.dir, ".git", "refs", "heads", "main")
		before, err := os.ReadFile(branch)
		must(t, err)
		both.Go(func() { apply = g.as("full", "", "POST", proposalsPath+"/"+name+"/apply", "") })
		if n%2 == 0 { // as soon as the branch has moved, before the files are known to be there
			testrig.Eventually(t, "the branch moves", func() bool {
				now, err := os.ReadFile(branch)
				return err == nil && !bytes.Equal(now, before)
			})
		}
		write = g.as("full", "", "POST", other+"/domains", domainBody(name+".example"))
		both.Wait()
		switch {
		case apply.status == http.StatusOK && write.status == http.StatusConflict:
			applied++
		case apply.status == http.StatusConflict && write.status == http.StatusCreated:
			g.must(g.as("full", "", http.MethodDelete, proposalsPath+"/"+name, ""), http.StatusOK)
		default:
			t.Errorf("applied: %d %s; written: %d %s", apply.status, apply.body, write.status, write.body)
		}
		if out, code := g.run("validate"); code != 0 {
			t.Fatalf("what is committed does not load: %s", out)
		}
	}
	testrig.Figure(t, "%d of %d proposals were applied against a write of the same name", applied, rounds)
}
