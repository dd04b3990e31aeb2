package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
)

// A gitRig is a stopped rig whose folder is a clone of a bare remote, which Pat has cloned, too.
type gitRig struct {
	*rig
	remote, pats string
}

func newGitRig(t testing.TB, r *rig) *gitRig {
	t.Helper()
	g := &gitRig{rig: r, remote: filepath.Join(t.TempDir(), "remote.git"), pats: filepath.Join(t.TempDir(), "pat")}
	must(t, os.WriteFile(filepath.Join(r.dir, ".gitignore"), []byte("/.fingerpost/\n"), 0o644))
	g.git(r.dir, "init", "-q", "-b", "main")
	g.git(r.dir, "add", "-A")
	g.git(r.dir, "commit", "-qm", "start")
	g.git(r.dir, "clone", "-q", "--bare", ".", g.remote)
	g.git(r.dir, "remote", "add", "origin", g.remote)
	g.git(r.dir, "fetch", "-q")
	g.git(r.dir, "branch", "-q", "-u", "origin/main")
	g.git(r.dir, "clone", "-q", g.remote, g.pats)
	return g
}

func (g *gitRig) git(dir string, args ...string) string {
	g.t.Helper()
	return testrig.Git(g.t, dir, args...)
}

// push has Pat save a file of the config folder, commit and push it.
func (g *gitRig) push(file, text string) (commit string) {
	g.t.Helper()
	must(g.t, os.WriteFile(filepath.Join(g.pats, "projects.d", file), []byte(text), 0o644))
	g.git(g.pats, "add", "-A")
	g.git(g.pats, "commit", "-qm", "pat's")
	g.share()
	return g.git(g.pats, "rev-parse", "HEAD")
}

// share pushes what Pat has committed; the service may push at the same time.
func (g *gitRig) share() {
	g.t.Helper()
	testrig.Eventually(g.t, "Pat's commit is pushed", func() bool {
		g.git(g.pats, "pull", "-q", "--rebase")
		_, err := testrig.TryGit(g.pats, "push", "-q")
		return err == nil
	})
}

// gitStatus is the part of /status about git.
func (g *gitRig) gitStatus() gitrepo.Status {
	g.t.Helper()
	res, err := g.client.Get(g.ops + "/status")
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	var st struct{ Git gitrepo.Status }
	if err := json.NewDecoder(res.Body).Decode(&st); err != nil {
		g.t.Fatal(err)
	}
	return st.Git
}

func (g *gitRig) untilGit(what string, is func(st gitrepo.Status) bool) gitrepo.Status {
	g.t.Helper()
	var st gitrepo.Status
	if err := poll(testrig.Patience, func() error {
		if st = g.gitStatus(); !is(st) {
			return fmt.Errorf("it is not so that %s: %+v\n%s", what, st, cutMiddle(g.logged(), 3000))
		}
		return nil
	}); err != nil {
		g.t.Fatal(err)
	}
	return st
}

// create makes a project by the API, with a request id, and returns the answer.
func (g *gitRig) create(name, request string) reply {
	g.t.Helper()
	got := g.ask(http.MethodPost, "/api/platform/projects", g.keys["write"], fmt.Sprintf(`{"name":%q}`, name), "X-Request-Id: "+request)
	if got.status != http.StatusCreated {
		g.t.Errorf("%s: %d %s", name, got.status, got.body)
	}
	return got
}

// whole fails unless the history has each request once, or a branch of a write that was set aside has it, and git finds
// nothing broken and nothing to commit.
func (g *gitRig) whole(requests ...string) {
	g.t.Helper()
	counted := func(refs ...string) map[string]int {
		seen := map[string]int{}
		for id := range strings.FieldsSeq(g.git(g.dir, append([]string{"log", "--format=%(trailers:key=Fingerpost-Request,valueonly)"},
			refs...)...)) {
			seen[id]++
		}
		return seen
	}
	// A branch of a write that was set aside begins where the write was made, so it repeats what was made again on main.
	seen, aside := counted("--exclude=fingerpost/overruled/*", "--branches"), counted("--branches=fingerpost/overruled/*")
	for _, id := range requests {
		if seen[id] != 1 && (seen[id] != 0 || aside[id] != 1) {
			g.t.Errorf("the write %s is %d times in the history", id, seen[id])
		}
	}
	if out := g.git(g.dir, "status", "--porcelain"); out != "" {
		g.t.Errorf("git status: %s", out)
	}
	if out, err := testrig.TryGit(g.dir, "fsck", "--strict", "--no-dangling"); err != nil {
		g.t.Errorf("git fsck: %v\n%s", err, out)
	}
}
