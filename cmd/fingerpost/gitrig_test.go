package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/api/ops"
	"fingerpost/cmd/testrig"
)

// A gitRig is a stopped rig whose folder is a clone of a bare remote, which Bob has cloned, too.
type gitRig struct {
	*rig
	remote, bobs string
}

func newGitRig(t testing.TB, r *rig) *gitRig {
	t.Helper()
	g := &gitRig{rig: r, remote: filepath.Join(t.TempDir(), "remote.git"), bobs: filepath.Join(t.TempDir(), "bob")}
	must(t, os.WriteFile(filepath.Join(r.dir, ".gitignore"), []byte("/.fingerpost/\n"), 0o644))
	g.git(r.dir, "init", "-q", "-b", "main")
	g.git(r.dir, "add", "-A")
	g.git(r.dir, "commit", "-qm", "start")
	g.git(r.dir, "clone", "-q", "--bare", ".", g.remote)
	g.git(r.dir, "remote", "add", "origin", g.remote)
	g.git(r.dir, "fetch", "-q")
	g.git(r.dir, "branch", "-q", "-u", "origin/main")
	g.git(r.dir, "clone", "-q", g.remote, g.bobs)
	return g
}

// tryGit runs git in a folder, as Bob.
func (g *gitRig) tryGit(dir string, args ...string) (string, error) {
	g.t.Helper()
	cmd := g.command(g.t.Context(), append([]string{"-c", "user.name=Bob", "-c", "user.email=bob@example.com"}, args...)...)
	path, err := exec.LookPath("git")
	if err != nil {
		return "", err
	}
	cmd.Path, cmd.Args[0] = path, "git"
	cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL="+os.DevNull, "LC_ALL=C")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return strings.TrimRight(string(out), "\n"), err
}

func (g *gitRig) git(dir string, args ...string) string {
	g.t.Helper()
	out, err := g.tryGit(dir, args...)
	if err != nil {
		g.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

// push has Bob save a file of the config folder, commit and push it.
func (g *gitRig) push(file, text string) (commit string) {
	g.t.Helper()
	must(g.t, os.WriteFile(filepath.Join(g.bobs, "projects.d", file), []byte(text), 0o644))
	g.git(g.bobs, "add", "-A")
	g.git(g.bobs, "commit", "-qm", "bob's")
	g.git(g.bobs, "pull", "-q", "--rebase")
	g.git(g.bobs, "push", "-q")
	return g.git(g.bobs, "rev-parse", "HEAD")
}

// gitStatus is the part of /status about git.
func (g *gitRig) gitStatus() ops.GitStatus {
	g.t.Helper()
	res, err := g.client.Get(g.ops + "/status")
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	var st struct{ Git ops.GitStatus }
	if err := json.NewDecoder(res.Body).Decode(&st); err != nil {
		g.t.Fatal(err)
	}
	return st.Git
}

func (g *gitRig) untilGit(what string, is func(st ops.GitStatus) bool) ops.GitStatus {
	g.t.Helper()
	var st ops.GitStatus
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

// whole fails unless the history has each request once, and git finds nothing broken and nothing to commit.
func (g *gitRig) whole(requests ...string) {
	g.t.Helper()
	seen := map[string]int{}
	for id := range strings.FieldsSeq(g.git(g.dir, "log", "--branches", "--format=%(trailers:key=Fingerpost-Request,valueonly)")) {
		seen[id]++
	}
	for _, id := range requests {
		if seen[id] != 1 {
			g.t.Errorf("the write %s is %d times in the history", id, seen[id])
		}
	}
	if out := g.git(g.dir, "status", "--porcelain"); out != "" {
		g.t.Errorf("git status: %s", out)
	}
	if out, err := g.tryGit(g.dir, "fsck", "--strict", "--no-dangling"); err != nil {
		g.t.Errorf("git fsck: %v\n%s", err, out)
	}
}
