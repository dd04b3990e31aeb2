package gitrepo_test

import (
	"os"
	"path/filepath"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
)

// What fails after the branch, or the remote, has a change is no failure of the call that has made it, and is made good
// later.

func TestAppliedThoughItsBranchStays(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	clone := newClone(t)
	r := start(t, clone, nil)
	proposed(t, clone, "x", "main", "projects.d/teams/other.hcl", `"Other"`, `"Proposed"`)
	save(t, clone, ".git/refs/heads/propose/x.lock", "")
	r.apply("x", "apply")
	if got := r.named("other"); got != "Proposed" {
		t.Errorf("live is %q", got)
	}
	if err := os.Remove(filepath.Join(clone, ".git/refs/heads/propose/x.lock")); err != nil {
		t.Fatal(err)
	}
	testrig.Eventually(t, "the branch goes", func() bool {
		_, err := testrig.TryGit(clone, "rev-parse", "-q", "--verify", "propose/x")
		return err != nil
	})
	r.clean()
}

func TestPushedThoughItsNoteFails(t *testing.T) {
	t.Parallel()
	clone, _ := withRemote(t)
	r := start(t, clone, syncing)
	r.mustWrite(key("ci", "r1"), "acme", "One")
	save(t, clone, ".git/refs/fingerpost/base/main.lock", "")
	if got := r.mustWrite(key("ci", "r2"), "acme", "Two"); !got.Pushed {
		t.Errorf("%+v", got)
	}
	testrig.Eventually(t, "the status is well", func() bool { return r.repo.Status().SyncError == "" })
}

func TestPulledThoughTheIndexStays(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	clone, person := withRemote(t)
	edit(t, person, "projects.d/acme.hcl", `"Acme"`, `"Pulled"`, "rename")
	testrig.Git(t, person, "push", "-q")
	// While the branch moves, the copy of the index becomes a folder, which cannot take the index's place.
	save(t, clone, ".git/hooks/reference-transaction", "#!/bin/sh\n[ \"$1\" = committed ] && grep -q refs/heads/main || exit 0\n"+
		"touch .git/moved\nrm .git/fingerpost-scratch/index\nmkdir .git/fingerpost-scratch/index\n")
	hook := filepath.Join(clone, ".git/hooks/reference-transaction")
	if err := os.Chmod(hook, 0o755); err != nil {
		t.Fatal(err)
	}
	save(t, clone, ".git/refs/fingerpost/base/main.lock", "")
	r := start(t, clone, func(o *gitrepo.Options) { syncing(o); o.Hooks = true })
	testrig.Eventually(t, "the branch has moved", func() bool { return r.repo.Status().Pulls == 1 })
	if _, err := os.Lstat(filepath.Join(clone, ".git/moved")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	testrig.Eventually(t, "the pull is live and no error", func() bool {
		return r.named("acme") == "Pulled" && r.repo.Status().SyncError == ""
	})
	testrig.Eventually(t, "the index follows", func() bool { return testrig.Git(t, clone, "diff", "--cached", "--name-only") == "" })
	r.clean()
}
