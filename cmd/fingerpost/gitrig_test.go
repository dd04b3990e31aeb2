package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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
