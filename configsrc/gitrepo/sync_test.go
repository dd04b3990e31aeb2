package gitrepo_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/resolver/catalog"
)

// withRemote makes a bare remote, the service's clone of it, and a person's.
func withRemote(t testing.TB) (clone, person string) {
	t.Helper()
	clone = newClone(t)
	bare, person := filepath.Join(filepath.Dir(clone), "bare.git"), filepath.Join(filepath.Dir(clone), "person")
	testrig.Git(t, clone, "clone", "-q", "--bare", clone, bare)
	testrig.Git(t, clone, "remote", "add", "origin", bare)
	testrig.Git(t, clone, "fetch", "-q", "origin")
	testrig.Git(t, clone, "branch", "-q", "--set-upstream-to=origin/main", "main")
	testrig.Git(t, clone, "clone", "-q", bare, person)
	return clone, person
}

func syncing(o *gitrepo.Options) {
	o.Push, o.Pull, o.Ack = true, time.Hour, gitrepo.AckPush
}

// edit lets a person edit a file, commit, and push.
func edit(t testing.TB, person, file, old, new, message string) {
	t.Helper()
	path := filepath.Join(person, file)
	was := read(t, path)
	if !strings.Contains(was, old) {
		t.Fatalf("%s has no %q:\n%s", file, old, was)
	}
	save(t, person, file, strings.Replace(was, old, new, 1))
	testrig.Git(t, person, "commit", "-q", "-a", "-m", message)
}

func (r *rig) named(slug string) string {
	p, err := r.resolver.ProjectBySlug(slug)
	if err != nil {
		return err.Error()
	}
	return p.Name
}

func TestPushAndPull(t *testing.T) {
	t.Parallel()
	clone, person := withRemote(t)
	r := start(t, clone, syncing)
	got := r.mustWrite(key("ci", "r1"), "acme", "Acme Shop")
	if !got.Pushed || got.Commit != testrig.Git(t, person, "ls-remote", "origin", "refs/heads/main")[:40] {
		t.Fatalf("%+v", got)
	}
	// A person's push is live, as one generation.
	testrig.Git(t, person, "pull", "-q")
	edit(t, person, "projects.d/acme.hcl", `"Acme Shop"`, `"Acme of Pat"`, "rename")
	edit(t, person, "projects.d/teams/other.hcl", `"Other"`, `"Other of Pat"`, "rename")
	testrig.Git(t, person, "push", "-q")
	generation := r.resolver.Generation()
	r.repo.Sync()
	testrig.Eventually(t, "the push is live", func() bool { return r.named("acme") == "Acme of Pat" && r.named("other") == "Other of Pat" })
	// A read may see a change a moment before its generation is told.
	testrig.Eventually(t, "another generation", func() bool { return r.resolver.Generation() > generation })
	if now := r.resolver.Generation(); now != generation+1 {
		t.Errorf("generation %d after %d", now, generation)
	}
	testrig.Eventually(t, "the status", func() bool {
		st := r.repo.Status()
		return st.Head == testrig.Git(t, person, "rev-parse", "HEAD") && st.Ahead == 0
	})
	r.clean()

	// Both sides have commits to one file: the write is made again on the person's.
	edit(t, person, "projects.d/acme.hcl", "# The shop.", "# The shop of Pat.", "comment")
	edit(t, person, "projects.d/acme.hcl", `"ACTIVE"`, `"SUSPENDED"`, "suspend")
	testrig.Git(t, person, "push", "-q")
	by := key("ci", "r2")
	by.Actor = "Ada <ada@example.com>"
	if got, err := r.write(by, "acme", func(p *catalog.ProjectConfig) { p.Project.Name = "Both" }); err != nil || !got.Pushed {
		t.Fatalf("%+v, %v", got, err)
	}
	testrig.Git(t, person, "pull", "-q")
	want := strings.NewReplacer(`"Acme"`, `"Both"`, "# The shop.", "# The shop of Pat.", "ACTIVE", "SUSPENDED").Replace(acme)
	if got := read(t, filepath.Join(person, "projects.d/acme.hcl")); got != want {
		t.Errorf("got\n%s", got)
	}
	if log := testrig.Git(t, person, "log", "-2", "--format=%an %s"); log != "Ada acme: name\nPat suspend" {
		t.Error(log)
	}
	testrig.Eventually(t, "the audit trail has the commit as it was made again", func() bool { return r.audited("r2") == testrig.Git(t, person, "rev-parse", "HEAD") })
	r.clean()

	// The same field: the person wins, and the write is kept on a branch.
	edit(t, person, "projects.d/acme.hcl", `"Both"`, `"Pat wins"`, "mine")
	testrig.Git(t, person, "push", "-q")
	got = r.mustWrite(key("ci", "r3"), "acme", "Ci loses")
	if got.Pushed || got.Overruled != "fingerpost/overruled/r3" {
		t.Fatalf("%+v", got)
	}
	if r.mu.Lock(); len(r.set) != 1 || r.set[0].Author.RequestID != "r3" || r.set[0].By != "Pat <pat@people.example>" {
		t.Errorf("%+v", r.set)
	}
	r.mu.Unlock()
	testrig.Eventually(t, "the person's name is live", func() bool { return r.named("acme") == "Pat wins" })
	testrig.Eventually(t, "the branch is pushed", func() bool {
		testrig.Git(t, person, "fetch", "-q")
		out, err := testrig.TryGit(person, "show", "origin/fingerpost/overruled/r3:projects.d/acme.hcl")
		return err == nil && strings.Contains(out, "Ci loses")
	})
	r.clean()
}

func TestPullNextToPeople(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	clone, person := withRemote(t)
	r := start(t, clone, syncing)
	testrig.Eventually(t, "the first round", func() bool { return r.repo.Status().Upstream != "" })
	// An edit that is not committed is not overwritten: the pull waits.
	save(t, clone, "projects.d/acme.hcl", strings.Replace(acme, "# The shop.", "# Not committed.", 1))
	edit(t, person, "projects.d/acme.hcl", `"Acme"`, `"Pulled"`, "rename")
	testrig.Git(t, person, "push", "-q")
	r.repo.Sync()
	testrig.Eventually(t, "the status says so", func() bool { return strings.Contains(r.repo.Status().SyncError, "projects.d/acme.hcl") })
	if got := read(t, filepath.Join(r.dir, "acme.hcl")); !strings.Contains(got, "Not committed") {
		t.Errorf("overwritten: %s", got)
	}
	// Once it is committed, that commit is rebased.
	testrig.PatientGit(t, clone, "commit", "-q", "-a", "-m", "comment")
	r.repo.Sync()
	testrig.Eventually(t, "the pull is live", func() bool { return r.named("acme") == "Pulled" })
	testrig.Eventually(t, "the commit is pushed", func() bool { return strings.Contains(testrig.Git(t, person, "ls-remote"), r.repo.Status().Head) })
	testrig.Git(t, person, "pull", "-q")
	if log := testrig.Git(t, person, "log", "-2", "--format=%an %s"); log != "Pat comment\nPat rename" {
		t.Error(log)
	}
	r.clean()

	// Two people in conflict: nothing is touched, and the status says what to do.
	edit(t, clone, "README", "about", "about here", "here")
	edit(t, person, "README", "about", "about there", "there")
	testrig.Git(t, person, "push", "-q")
	before := testrig.Git(t, clone, "rev-parse", "HEAD")
	r.repo.Sync()
	testrig.Eventually(t, "the status says so", func() bool { return strings.Contains(r.repo.Status().Conflict, "README") })
	if got := testrig.Git(t, clone, "rev-parse", "HEAD"); got != before {
		t.Error("the branch has moved")
	}
	r.clean()
	if out, err := testrig.TryGit(clone, "pull", "-q", "--rebase", "-X", "theirs"); err != nil {
		t.Fatal(out)
	}
	r.repo.Sync()
	testrig.Eventually(t, "the conflict is solved", func() bool { st := r.repo.Status(); return st.Conflict == "" && st.Ahead == 0 && st.Behind == 0 })
}

func TestRewrittenUpstream(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	clone, person := withRemote(t)
	r := start(t, clone, syncing)
	r.mustWrite(key("ci", "r1"), "acme", "One")
	// With nothing of our own, a force-push is followed.
	edit(t, person, "projects.d/acme.hcl", `"Acme"`, `"Forced"`, "forced")
	testrig.Git(t, person, "push", "-q", "--force")
	r.repo.Sync()
	testrig.Eventually(t, "the rewritten branch is followed", func() bool { return r.named("acme") == "Forced" })
	r.clean()
	// With commits of our own, it is a conflict.
	r.end()
	r = start(t, clone, func(o *gitrepo.Options) { o.Ack = gitrepo.AckCommit })
	r.mustWrite(key("ci", "r2"), "other", "Ours")
	r.end()
	testrig.Git(t, person, "commit", "-q", "--amend", "-m", "again")
	testrig.Git(t, person, "push", "-q", "--force")
	r = start(t, clone, syncing)
	testrig.Eventually(t, "the status says so", func() bool { return strings.Contains(r.repo.Status().Conflict, "was rewritten") })
	if r.named("other") != "Ours" {
		t.Error("the write is gone")
	}
	r.clean()
}

// A remote that refuses or is away stops nothing, and is tried again.
func TestRemoteAway(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	clone, person := withRemote(t)
	bare := testrig.Git(t, clone, "remote", "get-url", "origin")
	testrig.Git(t, clone, "remote", "set-url", "origin", bare+".away")
	r := start(t, clone, func(o *gitrepo.Options) { syncing(o); o.Ack = gitrepo.AckCommit })
	if got := r.mustWrite(key("ci", "r1"), "acme", "Away"); got.Commit == "" || got.Pushed {
		t.Errorf("%+v", got)
	}
	testrig.Eventually(t, "the status says so", func() bool { return r.repo.Status().SyncError != "" })
	testrig.Git(t, clone, "remote", "set-url", "origin", bare)
	testrig.Eventually(t, "it is pushed", func() bool { return strings.Contains(testrig.Git(t, person, "ls-remote"), r.repo.Status().Head) })
	testrig.Eventually(t, "the error goes", func() bool { return r.repo.Status().SyncError == "" })
}

// A pull that a crash has cut off, when the files had changed and the branch had not, does not stop the next one, which
// brings other content for the same files.
func TestPullAfterCutOff(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	clone, person := withRemote(t)
	change := func(n string) {
		t.Helper()
		save(t, person, "README", "about "+n+"\n")
		edit(t, person, "projects.d/acme.hcl", `name   = "Acme`, `name   = "Acme `+n, n)
		testrig.Git(t, person, "push", "-q")
	}
	change("one")
	testrig.Git(t, clone, "fetch", "-q")
	testrig.Git(t, clone, "update-ref", "refs/fingerpost/moving", "origin/main")
	testrig.Git(t, clone, "read-tree", "-m", "-u", "HEAD", "origin/main")
	change("two")
	r := start(t, clone, syncing)
	testrig.Eventually(t, "the second push is live", func() bool {
		if st := r.repo.Status(); strings.Contains(st.SyncError, "not committed") {
			t.Fatalf("%+v", st)
		}
		return r.named("acme") == "Acme two one"
	})
	if got := read(t, filepath.Join(clone, "README")); got != "about two\n" {
		t.Error(got)
	}
	testrig.Eventually(t, "the branch is the remote's", func() bool {
		return testrig.Git(t, clone, "rev-parse", "HEAD") == testrig.Git(t, person, "rev-parse", "HEAD")
	})
	r.clean()
}
