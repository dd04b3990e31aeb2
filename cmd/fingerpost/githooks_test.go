package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
)

// TestGitHooks: hooks of the repository run with --git-hooks only. One that refuses the commit keeps it back, and is
// named; the write is committed once the hook lets it.
func TestGitHooks(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	testrig.Need(t, "git")
	r := idleRig(t, t.TempDir(), nil)
	g := newGitRig(t, r)
	ran := filepath.Join(r.dir, ".fingerpost", "ran")
	hook := func(name, script string) {
		must(t, os.WriteFile(filepath.Join(r.dir, ".git", "hooks", name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	for _, name := range []string{"pre-commit", "post-commit", "pre-push", "reference-transaction"} {
		hook(name, fmt.Sprintf("echo %s $1 >> '%s'", name, ran))
	}
	r.flags = []string{"--git", "--git-push", "--git-ack", "push"}
	r.start()
	g.create("Without", "without")
	r.halt()
	if b, err := os.ReadFile(ran); !os.IsNotExist(err) {
		t.Errorf("hooks ran that nobody has asked for: %s, %v", b, err)
	}
	r.flags = append(r.flags, "--git-hooks")
	r.start()
	g.create("With", "with")
	b, err := os.ReadFile(ran)
	must(t, err)
	for _, want := range []string{"post-commit", "pre-push", "reference-transaction committed"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s ran:\n%s", want, b)
		}
	}
	if strings.Contains(string(b), "pre-commit") { // it judges the index, which such a commit does not have
		t.Errorf("pre-commit ran:\n%s", b)
	}
	hook("reference-transaction", `[ "$1" != prepared ] || { echo "not on a Friday" >&2; exit 1; }`)
	r.halt()
	r.flags = []string{"--git", "--git-hooks"}
	r.start()
	g.create("Kept back", "kept")
	g.untilGit("the status names the hook", func(st gitrepo.Status) bool {
		return st.Pending == 1 && strings.Contains(st.CommitError, "not on a Friday")
	})
	hook("reference-transaction", "exit 0")
	g.untilGit("the write is committed", func(st gitrepo.Status) bool { return st.Pending == 0 && st.CommitError == "" })
	g.whole("without", "with", "kept")
}

// TestGitFetchWhenAsked: a fetch begins with SIGHUP and with a webhook as GitHub, Gitea and GitLab sign it, and with no
// other; what it brings is live. --git-fanout gives a new project a folder, in the history, too.
func TestGitFetchWhenAsked(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	testrig.Need(t, "git")
	const secret = "a secret of the webhook"
	r := idleRig(t, t.TempDir(), nil)
	g := newGitRig(t, r)
	must(t, os.WriteFile(filepath.Join(r.dir, ".fingerpost-hook"), []byte(secret+"\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(r.dir, ".git", "info", "exclude"), []byte("/.fingerpost-hook\n"), 0o644))
	r.flags = []string{"--git", "--git-push", "--git-ack", "push", "--git-pull", "1h", "--git-hook-secret", ".fingerpost-hook", "--git-fanout"}
	r.start()
	g.untilGit("the first fetch has ended", func(st gitrepo.Status) bool { return !st.LastFetch.IsZero() })

	pushed := func(n int) (slug string) {
		t.Helper()
		slug = fmt.Sprint("pushed-", n)
		g.push(slug+".hcl", fmt.Sprintf("project %q {\n  name = %q\n  domain \"%s.example\" {}\n}\n", slug, slug, slug))
		return slug
	}
	live := func(slug string) {
		t.Helper()
		r.until(slug+" is live", "/api/platform/projects/by-slug/"+slug, func(got reply) bool { return got.status == http.StatusOK })
	}
	const body = `{"ref":"refs/heads/main"}`
	mac := func(secret string) string {
		h := hmac.New(sha256.New, []byte(secret))
		h.Write([]byte(body))
		return hex.EncodeToString(h.Sum(nil))
	}
	hook := func(header string, status int) {
		t.Helper()
		if got := r.ask(http.MethodPost, "/hooks/git", "", body, "Content-Type: application/json", header); got.status != status {
			t.Errorf("%s: %d %s, want %d", header, got.status, got.body, status)
		}
	}
	slug := pushed(0)
	before := g.gitStatus().LastFetch
	for _, header := range []string{"X-Hub-Signature-256: sha256=" + mac("another secret"), "X-Hub-Signature-256: " + mac(secret), "X-Hub-Signature: sha1=00",
		"X-Gitea-Signature: " + mac(""), "X-Gitlab-Token: " + secret[1:], "X-Gitlab-Token: ", "X-Gitlab-Token: " + mac(secret), "X-Any: 1"} {
		hook(header, http.StatusUnauthorized)
	}
	if err := r.cmd.Process.Signal(signals["HUP"]); err != nil {
		t.Fatal(err)
	}
	live(slug)
	if n := g.untilGit("it has fetched", func(st gitrepo.Status) bool { return st.LastFetch.After(before) }).Pulls; n != 1 {
		t.Errorf("%d pulls by one SIGHUP", n)
	}
	for n, header := range []string{"X-Hub-Signature-256: sha256=" + mac(secret), "X-Gitea-Signature: " + mac(secret), "X-Gitlab-Token: " + secret} {
		slug := pushed(n + 1)
		hook(header, http.StatusOK)
		live(slug)
	}
	g.create("Fanned Out", "fan")
	if got := g.git(r.dir, "show", "--format=", "--name-status"); got != "A\tprojects.d/fa/fanned-out.hcl" {
		t.Errorf("the commit has %s", got)
	}
	g.whole("fan")
}
